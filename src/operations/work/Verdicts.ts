import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { ChallengeFailed } from "../../domain/AcmeError.ts"
import {
  AlpnCertificateMismatched,
  ChallengeMismatched,
  ChallengeUnreachable,
  HandshakeFailed,
  TxtLookupFailed,
  TxtMismatched,
  ValidationAbandoned
} from "../../domain/AcmeError.ts"
import type { ChallengeType } from "../../domain/Challenge.ts"
import { keyAuthorization } from "../../domain/Challenge.ts"
import { ChallengeId as makeChallengeId } from "../../domain/Id.ts"
import { baseName, DnsName } from "../../domain/Identifier.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { ProfileNotServed, ValidationPostponed } from "../../domain/JobFailure.ts"
import { problemOf } from "../../domain/Problem.ts"
import type { ProblemDocument } from "../../domain/ProblemDocument.ts"
import type { ValidationCause, ValidationReason } from "../../domain/ValidationCause.ts"
import type { PayloadOf } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { Done, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { currentMillis, currentSeconds } from "../../engine/Time.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import { notify } from "../../services/notify/Notifier.ts"
import type { ChallengePolicy, ChallengeRefused } from "../../services/validation/Attempt.ts"
import { Validator } from "../../services/validation/Validator.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as authorizations from "../../store/AuthorizationRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { Subject } from "../../store/ProofRows.ts"
import * as proofs from "../../store/ProofRows.ts"

/** The challenge is no longer `processing`: another verdict came first. */
class Superseded extends Data.TaggedError("Superseded") {}

const unlessSuperseded = <R>(subject: Subject, writes: Effect.Effect<void, StorageFailed | Superseded, R>) =>
  Effect.catchTag(
    writes,
    "Superseded",
    () => emit("challenge_verdict_superseded", { challenge_id: subject.id, authz_id: subject.authzId })
  )

// The order row is locked first. Otherwise two verdicts for two names of one order would each see the other name as
// pending.
const inOneTransaction = <R>(subject: Subject, writes: Effect.Effect<void, StorageFailed | Superseded, R>) =>
  unlessSuperseded(subject, transaction(Effect.andThen(orders.lock(subject.orderId), writes)))

const acceptAll = (subject: Subject, now: number) =>
  Effect.asVoid(Effect.filterOrFail(
    proofs.accept(subject, now),
    (accepted) => accepted !== undefined,
    () => new Superseded()
  ))

/**
 * Commits an accepted proof: the challenge and its authorization become `valid`, and the order becomes `ready` if this
 * was its last pending authorization.
 */
export const commitAccepted = (
  subject: Subject,
  now: number,
  told: Effect.Effect<void> = Effect.void
): Effect.Effect<void, StorageFailed, Database> =>
  inOneTransaction(subject, Effect.andThen(acceptAll(subject, now), told))

/**
 * Commits a refused or abandoned proof: the challenge, its authorization and its order become `invalid`, unless another
 * challenge has already decided the authorization.
 */
const commitRefused = (
  subject: Subject,
  error: ChallengeFailed,
  cause: ValidationCause,
  told: Effect.Effect<void, StorageFailed, Notifier>
): Effect.Effect<void, StorageFailed, Database | Notifier> =>
  inOneTransaction(subject, Effect.andThen(refuseAll(subject, problemOf(error), cause), told))

const refuseAll = Effect.fnUntraced(function*(subject: Subject, problem: ProblemDocument, cause: ValidationCause) {
  if ((yield* authorizations.refuse(subject.id, problem, cause)) === undefined) return yield* new Superseded()
  if ((yield* authorizations.transition("refuse", subject.authzId)) !== undefined) {
    yield* orders.fail(subject.orderId, problem)
  }
})

const never = () => false

/**
 * For each type of challenge, the port to which its check connects, whether it follows redirects from there, and the
 * failure that a client sees after a wrong answer.
 */
const shownOf: {
  readonly [T in ChallengeType]: {
    readonly port: (challenge: ChallengePolicy) => number
    readonly mayRedirect: (challenge: ChallengePolicy) => boolean
    readonly incorrect: (name: string, refusal: ChallengeRefused) => ChallengeFailed
  }
} = {
  "http-01": {
    port: ({ http_01 }) => http_01.port,
    mayRedirect: ({ http_01 }) => http_01.follow_redirects,
    incorrect: (name) => new ChallengeMismatched({ name })
  },
  "dns-01": {
    port: () => 53, // of name servers
    mayRedirect: never,
    incorrect: (name, { answers = 0, compared = answers, hasBlanks }) =>
      new TxtMismatched({ name, answers, compared, hasBlanks })
  },
  "tls-alpn-01": {
    port: ({ tls_alpn_01 }) => tls_alpn_01.port,
    mayRedirect: never,
    incorrect: (name) => new AlpnCertificateMismatched({ name })
  }
}

/** Returns the part of a refusal that a client may see. The rest is in the cause of the refusal. */
const shownToClient = (
  { challenge, name, type }: {
    readonly type: ChallengeType
    readonly name: string
    readonly challenge: ChallengePolicy
  },
  refusal: ChallengeRefused
): ChallengeFailed => {
  const { incorrect, mayRedirect, port } = shownOf[type]
  switch (refusal.error) {
    case "connection":
      return new ChallengeUnreachable({ name, port: port(challenge), mayRedirect: mayRedirect(challenge) })
    case "unauthorized":
      return new ChallengeMismatched({ name })
    case "dns":
      return new TxtLookupFailed({ name })
    case "tls":
      return new HandshakeFailed({ name, port: port(challenge) })
    case "incorrectResponse":
      return incorrect(name, refusal)
  }
}

/**
 * The wait, in seconds, after a check was postponed. A postponed check usually does not count as an attempt: until the
 * order expires, it runs as soon as the host can run it.
 */
const postponedSeconds = 5

/**
 * Makes one validation attempt. If the check ran, its verdict is final, good or bad. Only a check that could not run is
 * retried. The verdict is committed in the same transaction as the settlement of the job.
 */
export const validate = Effect.fnUntraced(function*(
  profiles: ReadonlyMap<string, ProfileConfig>,
  payload: PayloadOf<"challenge_validate">
) {
  const profile = profiles.get(payload.profile)
  if (profile === undefined) {
    return Retry(new ProfileNotServed({ profile: payload.profile }))
  }
  const id = makeChallengeId(payload.challenge_id)
  const challenge = yield* authorizations.findForValidation(id, profile.name)
  if (challenge === undefined || challenge.status !== "processing") {
    return Done({ isMoot: challenge?.status !== "valid" })
  }
  const validator = yield* Validator
  const startedAt = yield* currentMillis
  const name = baseName(DnsName.make(challenge.identifier.value, { disableChecks: true }))
  const verdict = yield* Effect.result(validator.validate({
    type: challenge.type,
    identifier: name,
    keyAuthorization: keyAuthorization(challenge.token, payload.thumbprint),
    challenge: profile.challenge
  }))
  const now = yield* currentSeconds
  const about = { challenge_id: id, type: challenge.type, identifier: name }
  if (verdict._tag === "Success") {
    const elapsed_ms = (yield* currentMillis) - startedAt
    const told = afterCommit(emit("challenge_validated", { ...about, elapsed_ms }))
    return Done({ commit: commitAccepted(challenge, now, told) })
  }
  if (verdict.failure._tag === "ChallengePostponed") {
    const { detail, isCounted = false } = verdict.failure
    yield* emit("challenge_validation_postponed", { challenge_id: id, identifier: name, error: detail })
    const failure = new ValidationPostponed({ detail })
    return isCounted ? Retry(failure, { atMost: postponedSeconds }) : Reschedule(now + postponedSeconds, { failure })
  }
  const told = Effect.andThen(
    notify({
      event: "challenge_failed",
      scope: profile.name,
      fields: {
        order_id: challenge.orderId,
        account_id: challenge.accountId,
        authz_id: challenge.authzId,
        challenge_id: id,
        challenge_type: challenge.type,
        identifier: challenge.identifier.value,
        error: verdict.failure.error,
        client_ip: payload.client_ip
      }
    }),
    afterCommit(emit("challenge_failed", { ...about, reason: verdict.failure.error }))
  )
  const shown = shownToClient({ type: challenge.type, name, challenge: profile.challenge }, verdict.failure)
  const { detail, reason } = verdict.failure
  return Done({ commit: commitRefused(challenge, shown, { reason, detail }, told) })
})

const givenUp: ValidationReason = "given_up"

/** Ends a validation that the queue gave up: the challenge, its authorization and its order become `invalid`. */
export const abandon = (payload: PayloadOf<"challenge_validate">, failure: JobFailure) =>
  Effect.gen(function*() {
    const id = makeChallengeId(payload.challenge_id)
    const challenge = yield* authorizations.findForValidation(id, payload.profile)
    if (challenge === undefined || challenge.status !== "processing") return
    const told = afterCommit(emit("challenge_validation_abandoned", { challenge_id: id, error: failure.text }))
    yield* commitRefused(challenge, new ValidationAbandoned(), { reason: givenUp, detail: failure.text }, told)
  })
