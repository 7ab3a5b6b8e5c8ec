/**
 * The roles of operators. Each role permits everything that the roles before it permit
 * (docs/contribute/decisions/admin.md, "Roles").
 */
export const operatorRoles = ["viewer", "operator", "admin"] as const

export type OperatorRole = (typeof operatorRoles)[number]

const isOperatorRole = (text: string): text is OperatorRole => (operatorRoles as ReadonlyArray<string>).includes(text)

/**
 * Returns the role that a stored role means. A row without a role is older than roles, so it permits everything. A role
 * that only another version knows counts as the lowest role (docs/contribute/decisions/compatibility.md, "Neighbours").
 */
export const roleRead = (stored: string | undefined): OperatorRole =>
  stored === undefined ? "admin" : isOperatorRole(stored) ? stored : "viewer"

/** Returns whether a stored role is unknown, so that {@link roleRead} returns the lowest role instead. */
export const isRoleUnknown = (stored: string | undefined): boolean => stored !== undefined && !isOperatorRole(stored)

const rank = (role: OperatorRole): number => operatorRoles.indexOf(role)

/** Returns whether a role permits everything that the needed role permits. */
export const permits = (role: OperatorRole, needed: OperatorRole): boolean => rank(role) >= rank(needed)

/** Returns the lower of two roles. */
export const lowerRole = (one: OperatorRole, other: OperatorRole): OperatorRole => permits(one, other) ? other : one
