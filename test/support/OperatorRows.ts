import * as sessions from "../../src/store/operators/SessionRows.ts"
import * as users from "../../src/store/operators/Users.ts"

/* Rows of operators as their statements write them, for the tests of those statements. */

/** Returns an id that ends with this number. */
export const idOf = (number: number): string => `01890a5d-ac96-774b-bcce-${String(number).padStart(12, "0")}`

/** The ids of two operators. */
export const [ann, ben] = [idOf(1), idOf(2)]

/** Two secrets of authenticators. */
export const [secret, other] = [
  Buffer.from("a secret of an authenticator"),
  Buffer.from("another secret of another one")
]

/** Inserts an operator who is an admin. */
export const person = (id: string, username: string) =>
  users.insert({ id, username, passwordHash: "hash", role: "admin", contact: undefined, now: 1 })

/** Inserts a session. It begins at 100 and ends at 500 unless other times are given. */
export const session = (
  tokenHash: string,
  state: sessions.SessionState,
  userId = ann,
  { expiresAt, now } = { now: 100, expiresAt: 500 }
) => sessions.insert({ tokenHash, userId, csrfToken: "c", state, now, expiresAt, ip: undefined, userAgent: undefined })

/** A token of ann, without its times. */
export const token = {
  id: idOf(9),
  userId: ann,
  name: "t",
  role: "admin",
  tokenHash: "h",
  allowedAddresses: []
} as const

/** Returns whether a statement returned a row. */
export const is = (found: unknown): boolean => found !== undefined
