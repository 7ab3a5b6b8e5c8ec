import type { HttpApiEndpoint } from "@effect/platform"
import { Context } from "effect"

/**
 * Who reaches a route (docs/decisions/admin.md, "Roles"): anybody; a session that still lacks its second factor; every operator, for
 * their own account and with a session only; or a role, with a session or a token.
 */
export type Access = "public" | "half" | "own" | "viewer" | "operator" | "admin"

/** The access of an endpoint, and what its requests need beside it. */
export class AccessRule extends Context.Tag("acme/surfaces/api/AccessRule")<AccessRule, {
  readonly access: Access
  /** Sign-in has no CSRF token yet; the check of the origin covers it. */
  readonly isWithoutCsrf: boolean
  /** The request asks for the caller's password, which no token has. */
  readonly isStepUp: boolean
}>() {}

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
