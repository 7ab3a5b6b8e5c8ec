import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as Context from "effect/Context"
import type { Access, Guard } from "../admin/Access.ts"

/** Who may use an endpoint. */
export class AccessRule extends Context.Tag("acme/surfaces/api/AccessRule")<AccessRule, Guard>() {}

/** States who may use an endpoint. The surface is not built if an endpoint lacks this. */
export const reachedBy = (
  access: Access,
  rest: { readonly isWithoutCsrf?: boolean; readonly isStepUp?: boolean } = {}
) =>
<E extends HttpApiEndpoint.HttpApiEndpoint.Any>(endpoint: E): E => {
  // The type `Any` of an endpoint has no methods. An annotation changes no type, so E stays what it is.
  const rule = { access, isWithoutCsrf: false, isStepUp: false, ...rest }
  return (endpoint as unknown as HttpApiEndpoint.HttpApiEndpoint.AnyWithProps).annotate(
    AccessRule,
    rule
  ) as unknown as E
}
