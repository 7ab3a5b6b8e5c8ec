/**
 * The roles of operators. Each role permits everything that the roles before it permit (docs/decisions/admin.md,
 * "Roles").
 */
export const operatorRoles = ["viewer", "operator", "admin"] as const

export type OperatorRole = (typeof operatorRoles)[number]

const isOperatorRole = (text: string): text is OperatorRole => (operatorRoles as ReadonlyArray<string>).includes(text)

/**
 * Returns the role for a stored role. A row without a role is older than roles, and permits everything. If another
 * version stored a role that this version does not know, the lowest role is returned (docs/decisions/compatibility.md,
 * "Neighbours").
 */
export const roleRead = (stored: string | undefined): OperatorRole =>
  stored === undefined ? "admin" : isOperatorRole(stored) ? stored : "viewer"

/** Returns whether a stored role is unknown. For such a role, {@link roleRead} returns another role. */
export const isRoleUnknown = (stored: string | undefined): boolean => stored !== undefined && !isOperatorRole(stored)

const rank = (role: OperatorRole): number => operatorRoles.indexOf(role)

/** Returns whether a role permits everything that the needed role permits. */
export const permits = (role: OperatorRole, needed: OperatorRole): boolean => rank(role) >= rank(needed)

/** Returns the lower of two roles. */
export const lowerRole = (one: OperatorRole, other: OperatorRole): OperatorRole => permits(one, other) ? other : one
