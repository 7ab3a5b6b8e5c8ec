/**
 * Who reaches a route (docs/decisions/admin.md, "Roles"): anybody; a session that still lacks its second factor; every operator, for
 * their own account and with a session only; or a role, with a session or a token.
 */
export type Access = "public" | "half" | "own" | "viewer" | "operator" | "admin"

/** The access of a route, and what its requests need beside it. */
export interface Guard {
  readonly access: Access
  /** Sign-in has no CSRF token yet; the check of the origin covers it. */
  readonly isWithoutCsrf: boolean
  /** The request asks for the caller's password, which no token has. */
  readonly isStepUp: boolean
  /** Whether it is a page: no token reaches it. */
  readonly isForPeople?: boolean
}
