import type { HttpApiEndpoint } from "@effect/platform"
import { Context } from "effect"
import type { Access, Guard } from "../admin/Access.ts"

/** The guard of an endpoint. */
export class AccessRule extends Context.Tag("acme/surfaces/api/AccessRule")<AccessRule, Guard>() {}

/** States who reaches an endpoint. A surface with an endpoint that lacks this is not made. */
export const reachedBy = (
  access: Access,
  rest: { readonly isWithoutCsrf?: boolean; readonly isStepUp?: boolean } = {}
) =>
<E extends HttpApiEndpoint.HttpApiEndpoint.Any>(endpoint: E): E => {
  const rule = { access, isWithoutCsrf: false, isStepUp: false, ...rest }
  return (endpoint as unknown as HttpApiEndpoint.HttpApiEndpoint.AnyWithProps).annotate(
    AccessRule,
    rule
  ) as unknown as E
}
