/**
 * Who may use a route (docs/decisions/admin.md, "Roles"): anybody; a session that lacks its second factor; every
 * operator, for their own account and only with a session; or a role, with a session or a token.
 */
export type Access = "public" | "half" | "own" | "viewer" | "operator" | "admin"

/** Who may use a route, and what its requests must bring. */
export interface Guard {
  readonly access: Access
  /** Sign-in has no CSRF token yet. The check of the origin protects it. */
  readonly isWithoutCsrf: boolean
  /** The request needs the caller's password. A token has none. */
  readonly isStepUp: boolean
  /** Whether the route is a page. No token may use a page. */
  readonly isForPeople?: boolean
}
