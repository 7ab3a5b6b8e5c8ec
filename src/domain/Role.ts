import * as Result from "effect/Result"

/** Every role, in the order in which they are listed. */
export const everyRole = ["acme", "admin", "worker"] as const

/**
 * What a process does: serve ACME clients, serve operators, or run jobs (docs/contribute/decisions/process.md,
 * "Roles").
 */
export type Role = (typeof everyRole)[number]

/** The roles of one process. */
export type Roles = ReadonlySet<Role>

/** Reads a list such as `acme,worker`. An empty list means every role. Fails with the first word that is not a role. */
export const parseRoles = (given: ReadonlyArray<string>): Result.Result<Roles, string> => {
  const words = given.flatMap((list) => list.split(",")).map((word) => word.trim())
  if (words.length === 0) return Result.succeed(new Set(everyRole))
  const unknown = words.find((word) => !everyRole.some((role) => role === word))
  return unknown === undefined
    ? Result.succeed(new Set(everyRole.filter((role) => words.includes(role))))
    : Result.fail(unknown)
}

/** Returns the roles as text, such as `acme,worker`. */
export const rolesText = (roles: Roles): string => everyRole.filter((role) => roles.has(role)).join()
