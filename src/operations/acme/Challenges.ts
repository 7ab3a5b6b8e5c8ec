import * as Effect from "effect/Effect"
import { shownName } from "../../crypto/Character.ts"
import { ChallengeEnqueueFailed, Malformed, NotFound, TooManyValidations } from "../../domain/AcmeError.ts"
import type { AuthorizationStatus } from "../../domain/Authorization.ts"
import { statusShown } from "../../domain/Authorization.ts"
import type { ChallengeId } from "../../domain/Id.ts"
import { AuthorizationId } from "../../domain/Id.ts"
import { expiryOf } from "../../domain/Order.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { afterCommit, afterTransaction, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds, rfc3339 } from "../../engine/Time.ts"
import * as authorizations from "../../store/AuthorizationRows.ts"
import * as proofs from "../../store/ProofRows.ts"
import type { Caller } from "../Caller.ts"
import { scopeOf, shareOfCaller } from "../Caller.ts"
import { refuseIfBlocked } from "./Authenticate.ts"
import * as acmeAuthorizations from "./Authorizations.ts"

const retryAfterSeconds = 5

/** Returns the challenge that stands for the authorization with this id, if no challenge of it is stored. */
const findImplied = Effect.fnUntraced(function*(caller: Caller, id: ChallengeId) {
  const view = yield* acmeAuthorizations.find(caller, AuthorizationId(id))
  const [implied] = acmeAuthorizations.impliedChallenges(caller.profile, view)
  return implied === undefined ? yield* new NotFound() : { ...view, ...implied, authzStatus: view.status }
})

/**
 * Finds the caller's challenge with its authorization and order. A missing challenge and another account's challenge
 * get the same answer.
 */
export const find = Effect.fnUntraced(function*(caller: Caller, id: ChallengeId) {
  return (yield* authorizations.findChallenge(id, scopeOf(caller))) ?? (yield* findImplied(caller, id))
})

/**
 * Returns why nothing more is validated for this name. The caller adds the rest of the sentence, which tells the client
 * how to continue.
 */
const whyEnded = (name: string, status: AuthorizationStatus, expires: number): string => {
  const subject = `The authorization of ${shownName(name)}`
  switch (status) {
    case "expired":
      return `${subject} expired at ${rfc3339(expires)}, and its order with it`
    case "invalid":
      return `${subject} is invalid, because another of its challenges failed, whose error says why`
    case "deactivated":
    case "revoked":
      return `${subject} was ${status}`
    case "pending":
    case "valid":
      return `The order of the authorization of ${shownName(name)} is no longer pending, and its error says why`
  }
}

// Finds out from the present state why a claim changed no row.
const explainLostClaim = Effect.fnUntraced(function*(caller: Caller, id: ChallengeId) {
  const challenge = yield* find(caller, id)
  if (challenge.status !== "pending" || challenge.authzStatus === "valid") return challenge
  const now = yield* currentSeconds
  const authorization = { ...challenge, status: challenge.authzStatus }
  const shown = statusShown(authorization, caller.profile.order.validity_seconds, now)
  if (shown === "expired") yield* authorizations.transition("expire", challenge.authzId)
  if (shown !== "pending" || challenge.orderStatus !== "pending") {
    const expires = expiryOf(challenge, caller.profile.order.validity_seconds)
    return yield* new Malformed({
      detail: `${whyEnded(challenge.identifier.value, shown, expires)}; place a new order.`
    })
  }
  yield* emit("challenge_trigger_rate_limited", {
    account_id: caller.accountId,
    in_flight: yield* authorizations.countInFlight(caller.accountId)
  })
  return yield* new TooManyValidations({
    most: caller.profile.challenge.max_in_flight_per_account,
    retryAfter: retryAfterSeconds,
    again: now + retryAfterSeconds
  })
})

type Found = Effect.Success<ReturnType<typeof find>>

/**
 * Accepts the challenge without validation. A bypassed validation takes no time, so nothing is in flight and no limit
 * is reached.
 */
const claimAndAccept = ({ profile }: Caller, challenge: Found, now: number) =>
  proofs.bypass(challenge, { now, validity: profile.order.validity_seconds })

/** Claims the challenge and queues its validation. */
const claimAndEnqueue = Effect.fnUntraced(function*(caller: Caller, challenge: Found, now: number) {
  const { profile } = caller
  const { id } = challenge
  const row = yield* authorizations.claim({
    id,
    accountId: caller.accountId,
    cap: profile.challenge.max_in_flight_per_account,
    now,
    validity: profile.order.validity_seconds
  })
  if (row === undefined) return row
  yield* Effect.catchTag(
    enqueueJob({
      kind: "challenge_validate",
      dedupKey: id,
      payload: {
        challenge_id: id,
        profile: profile.name,
        thumbprint: caller.thumbprint,
        client_ip: caller.client.ip,
        request_id: caller.client.request_id
      },
      deadline: expiryOf(challenge, profile.order.validity_seconds),
      share: shareOfCaller(caller)
    }),
    "StorageFailed",
    (error) =>
      Effect.andThen(
        afterTransaction(emit("challenge_validation_enqueue_failed", { challenge_id: id, error: error.message })),
        Effect.fail(error.transient ? error : new ChallengeEnqueueFailed()) // the transaction retries a transient error
      )
  )
  return row
})

/** Claims the challenge, if it is pending. */
const claim = Effect.fnUntraced(function*(caller: Caller, id: ChallengeId, now: number) {
  const { bypass, max_in_flight_per_account } = caller.profile.challenge
  // The limit is counted and the order is checked while these rows are locked.
  const withAccount = !bypass && max_in_flight_per_account > 0
  const challenge = yield* authorizations.holdPending(id, scopeOf(caller), { withAccount })
  if (challenge === undefined || challenge.authzStatus === "valid") return undefined
  const row = yield* (bypass ? claimAndAccept : claimAndEnqueue)(caller, challenge, now)
  if (row === undefined) return undefined
  yield* afterCommit(emit("challenge_validation_requested", {
    challenge_id: id,
    type: challenge.type,
    identifier: challenge.identifier.value
  }))
  return challenge
})

/**
 * Handles the trigger of a challenge (RFC 8555 section 7.5.1): one transaction claims the challenge and queues its
 * validation. If the profile bypasses validation, the transaction accepts the challenge at once. A challenge that is
 * already processing or decided, or whose authorization is valid, is returned unchanged. `isBegun` is true if this
 * request queued the validation.
 */
export const trigger = Effect.fnUntraced(function*(caller: Caller, id: ChallengeId) {
  yield* refuseIfBlocked(caller)
  const now = yield* currentSeconds
  const claimed = yield* transaction(claim(caller, id, now))
  if (claimed === undefined) return { ...yield* explainLostClaim(caller, id), isBegun: false }
  return caller.profile.challenge.bypass
    ? { ...claimed, status: "valid" as const, authzStatus: "valid" as const, validatedAt: now, isBegun: false }
    : { ...claimed, status: "processing" as const, isBegun: true }
})
