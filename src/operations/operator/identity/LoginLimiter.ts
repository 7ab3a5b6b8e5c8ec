import * as Effect from "effect/Effect"
import { addressKey, networkKey } from "../../../domain/LoginKey.ts"
import { Busy, RateLimited } from "../../../domain/OperatorError.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { Taken } from "../../../store/operators/LoginAttempts.ts"
import * as loginAttempts from "../../../store/operators/LoginAttempts.ts"
import type { Requester } from "./Identity.ts"

/*
 * Limits attempts to prove an identity. An attempt is counted before the proof is compared
 * (docs/contribute/decisions/admin.md).
 */

/** The keys of `[admin]` that limit sign-ins and sessions. */
export type SignInSettings = Pick<
  Config["admin"],
  | "base_url"
  | "login_max_attempts"
  | "login_window_seconds"
  | "require_mfa"
  | "session_idle_timeout_seconds"
  | "session_ttl_seconds"
>

const busySeconds = 5

/** An IPv6 network may make this many times as many attempts as one host. */
const networkTimes = 10

/** An attempt that was counted once under each of its keys. It is passed to {@link giveBack} to take the count back. */
export type Counted = ReadonlyArray<Taken>

const takeOne = Effect.fnUntraced(function*(settings: SignInSettings, key: string, times = 1) {
  const { login_max_attempts, login_window_seconds: windowSeconds } = settings
  const now = yield* currentSeconds
  const taken = yield* loginAttempts.take({ key, most: login_max_attempts * times, windowSeconds, now })
  if (taken !== undefined) return taken
  const startedAt = (yield* loginAttempts.windowOf(key)) ?? now
  const rest = Math.min(startedAt + windowSeconds - now, windowSeconds)
  return yield* new RateLimited({ retryAfter: Math.max(1, rest) })
})

/** Counts an attempt under one key. Refuses it if there were too many in the window. */
export const take = (settings: SignInSettings, key: string) =>
  Effect.map(takeOne(settings, key), (taken): Counted => [taken])

/**
 * Shortens the wait of a refusal while attempts of the client are still being compared. If these attempts succeed, they
 * no longer count. So the client is not locked out, and only has to wait a moment.
 */
const unlessPassing = (refused: RateLimited) =>
  Effect.flatMap(
    Effect.flatMap(Passwords, ({ underWay }) => underWay),
    (count) =>
      count === 0
        ? refused
        : new RateLimited({ retryAfter: Math.min(refused.retryAfter, busySeconds), isPassing: true })
  )

/**
 * Counts an attempt of a client, for its host and for the IPv6 network around that host. Refuses the attempt if either
 * has made too many attempts in the window.
 */
export const takeOf = Effect.fnUntraced(function*(settings: SignInSettings, { client }: Requester) {
  const address = client.ip ?? "unknown"
  const ofHost = yield* takeOne(settings, addressKey(address))
  const network = networkKey(address)
  if (network === undefined) return [ofHost]
  const ofNetwork = yield* Effect.tapErrorTag(
    takeOne(settings, network, networkTimes),
    "RateLimited",
    () => loginAttempts.giveBack(ofHost)
  )
  return [ofHost, ofNetwork]
}, Effect.catchTag("RateLimited", unlessPassing))

/** Takes back the count of an attempt that succeeded, or whose proof was never compared. */
export const giveBack = (counted: Counted) => Effect.forEach(counted, loginAttempts.giveBack, { discard: true })

/**
 * Takes back the count of an attempt whose proof the queue of hashes refused. If the client itself filled the queue,
 * the attempt stays counted. So a client that floods the queue is soon refused before it reaches the queue.
 */
export const giveBackUncompared = (counted: Counted) => ({ isOwnDoing = false }: RateLimited) =>
  isOwnDoing ? Effect.void : giveBack(counted)

/**
 * Returns the failure for an attempt that cannot be counted, and whose proof is therefore not compared. Use:
 * `Effect.catchTag("StorageFailed", uncounted)`.
 */
export const uncounted = () => new Busy({ retryAfter: busySeconds })
