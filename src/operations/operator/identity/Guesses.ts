import * as Effect from "effect/Effect"
import type { FailureLimit } from "../../../domain/LoginFailure.ts"
import { exhaustedWait, fromKnown, fromStrangers, isTold, waitAfter } from "../../../domain/LoginFailure.ts"
import { isKnownAddress, knownKey, nameKey, operatorKey } from "../../../domain/LoginKey.ts"
import { RateLimited } from "../../../domain/OperatorError.ts"
import { emit } from "../../../domain/words/Log.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as loginFailures from "../../../store/operators/LoginFailures.ts"
import type { User } from "../../../store/operators/Users.ts"
import type { Requester } from "./Identity.ts"
import { guessed } from "./Notices.ts"

/*
 * Limits how many wrong passwords in a row are compared for an operator, whatever addresses they come from
 * (docs/contribute/decisions/admin.md, "Guesses"). A name that no operator has is counted in the same way.
 */

/** A password that is counted as wrong before it is compared. */
export interface Guess {
  readonly key: string
  /** The number of wrong passwords in a row, if this password is wrong too. */
  readonly failures: number
}

type Guessed = Pick<User, "id" | "knownLoginIps">

const placeOf = (
  user: Guessed | undefined,
  typed: string,
  { client: { ip } }: Requester
): { readonly key: string; readonly limit: FailureLimit } => {
  if (user === undefined) return { key: nameKey(typed), limit: fromStrangers }
  return ip !== undefined && isKnownAddress(user.knownLoginIps, ip)
    ? { key: knownKey(user.id, ip), limit: fromKnown }
    : { key: operatorKey(user.id), limit: fromStrangers }
}

/**
 * Counts a password for an operator, or for a name that no operator has. Refuses the password if it comes too soon
 * after the last wrong password.
 */
export const take = Effect.fnUntraced(function*(user: Guessed | undefined, typed: string, requester: Requester) {
  const { key, limit } = placeOf(user, typed, requester)
  const now = yield* currentSeconds
  const failures = yield* loginFailures.take({ key, ...limit, now })
  if (failures !== undefined) {
    const guess: Guess = { key, failures }
    return guess
  }
  const last = yield* loginFailures.find(key)
  const rest = last === undefined ? 0 : last.lastFailedAt + waitAfter(last.failures, limit) - now
  return yield* new RateLimited({ retryAfter: Math.min(Math.max(1, rest), exhaustedWait) })
})

/** Takes back the count of a password that was never compared. */
export const giveBack = ({ key }: Guess) => loginFailures.giveBack(key)

/** Reports that the password was right. This ends the series of wrong passwords under its key. */
export const passed = ({ key }: Guess) => loginFailures.clear(key)

/**
 * Reports that the password was wrong. The operator and the admins are notified of every tenth wrong password in a row.
 */
export const failed = (user: User, { failures }: Guess, requester: Requester) =>
  isTold(failures)
    ? Effect.andThen(
      emit("admin_login_guessed", { username: user.username, client_ip: requester.client.ip, failures }),
      guessed(user, requester, failures)
    )
    : Effect.void

/** Forgets the wrong passwords for an operator whose password has changed. */
export const forget = ({ id, knownLoginIps }: Guessed) =>
  Effect.forEach(
    new Set([operatorKey(id), ...knownLoginIps.map((address) => knownKey(id, address))]),
    loginFailures.clear,
    { discard: true }
  )
