import * as Effect from "effect/Effect"
import { InsufficientRole, LastAdmin, NoSuch } from "../../../domain/OperatorError.ts"
import { readUsername } from "../../../domain/Username.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import type { User } from "../../../store/operators/Users.ts"
import * as users from "../../../store/operators/Users.ts"
import type { Operator } from "../../Operator.ts"

/* The rules for every change of an operator (docs/contribute/decisions/admin.md, "Operators"). */

/** Finds the operator with this name, in any spelling that means the same name. */
export const named = Effect.fnUntraced(function*(username: string) {
  const name = readUsername(username)
  const user = name === undefined ? undefined : yield* users.findShown(name)
  return user ?? (yield* new NoSuch({ noun: "operator", id: username }))
})

type Admins = Effect.Success<typeof users.lockAdmins>

/**
 * Changes an operator in a transaction that locks the rows of all active admins. If the change is requested over the
 * API, the caller must be one of these admins. This is checked again here, because the caller may have lost the role
 * since the request was accepted. If the change returns `undefined`, nothing had to be changed.
 */
export const changing = <A, E, R>(
  operator: Operator,
  username: string,
  change: (target: User, admins: Admins) => Effect.Effect<A, E, R>
) =>
  transaction(Effect.gen(function*() {
    const admins = yield* users.lockAdmins
    if (operator.kind === "admin" && !admins.some((admin) => admin.username === operator.id)) {
      return yield* new InsufficientRole()
    }
    const name = readUsername(username)
    const target = name === undefined ? undefined : yield* users.lock(name)
    return yield* change(target ?? (yield* new NoSuch({ noun: "operator", id: username })), admins)
  }))

/** Returns whether an operator who uses the API has named themselves. */
export const isSelf = (operator: Operator, username: string): boolean =>
  operator.kind === "admin" && operator.id === readUsername(username)

/** Refuses a change that would leave no active admin. */
export const keepAnAdmin = ({ id, username }: User, admins: Admins): Effect.Effect<void, LastAdmin> =>
  admins.length === 1 && admins[0]?.id === id ? new LastAdmin({ username }) : Effect.void
