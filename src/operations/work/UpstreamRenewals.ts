import * as Effect from "effect/Effect"
import { namedLeafOf } from "../../crypto/x509/CertId.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import type { Outcome } from "../../engine/queue/Outcome.ts"
import { Reschedule } from "../../engine/queue/Outcome.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds, lifeMillis } from "../../engine/Time.ts"
import { Signers } from "../../services/signing/Signer.ts"
import * as renewals from "../../store/upstream/UpstreamRenewalRows.ts"

/*
 * A job asks upstreams when their certificates should be renewed, so that a client's request never causes a request to
 * an upstream.
 */

const hourSeconds = 3600
const daySeconds = 86_400
/**
 * The shortest and the longest wait between two requests about one certificate, in seconds. Between these limits, the
 * upstream chooses the wait.
 */
const [shortestWait, longestWait] = [6 * hourSeconds, daySeconds]
/**
 * If a pass did not reach all certificates, the job rests for this number of seconds, so that the other work of the
 * process comes first.
 */
const restSeconds = 60
const atOnce = 100
/** For how many milliseconds one pass begins new requests. Twice as long, it puts off what is not asked about. */
const passMillis = 30_000

type Due = Effect.Success<ReturnType<typeof renewals.due>>[number]

/** The longest wait between two passes, in seconds. */
export const renewalsEverySeconds = hourSeconds

/**
 * Asks about one certificate and stores the answer. Returns whether the upstream can also be asked about other
 * certificates.
 */
const askAbout = Effect.fnUntraced(function*({ certificate, notAfter, orderId, orderUrl, profile, revokedAt }: Due) {
  const now = yield* currentSeconds
  const certId = certificate === undefined ? undefined : namedLeafOf(certificate)?.certId
  const isOver = revokedAt !== undefined || (notAfter !== undefined && notAfter <= now)
  if (isOver || certId === undefined || orderUrl === undefined) {
    yield* transaction(renewals.again(orderId, undefined))
    return true
  }
  const signers = yield* Signers
  const answered = yield* Effect.result(
    Effect.flatMap(signers.of(profile), ({ renewal }) => renewal?.({ certId, orderUrl }) ?? Effect.succeed(undefined))
  )
  if (answered._tag === "Failure") {
    const { failure } = answered
    const wait = failure._tag === "SigningFailed" ? failure.again?.atLeast ?? hourSeconds : longestWait
    const due = now + Math.min(Math.max(wait, hourSeconds), longestWait)
    yield* transaction(renewals.again(orderId, due))
    return false
  }
  const { retryAfter = 0, window } = answered.success ?? {}
  const offers = window !== undefined || retryAfter > 0
  const due = now + (offers ? Math.min(Math.max(Math.ceil(retryAfter), shortestWait), longestWait) : longestWait)
  yield* transaction(renewals.keep({ orderId, window, due }))
  return true
})

/** Until when the upstreams of profiles are not asked, in epoch seconds, by the name of the profile. */
export type Resting = Map<string, number>

/**
 * Makes one pass over the certificates about which an upstream must be asked. If an upstream fails, it is not asked
 * about any certificate for an hour. `resting` outlives the pass, because an upstream that does not answer may use up
 * the whole pass, and would then use up the next one too, so that the other upstreams would never be asked.
 */
export const askUpstreams = (
  resting: Resting
): Effect.Effect<Outcome<Database, JobFailure>, StorageFailed, Database | Signers> =>
  Effect.gen(function*() {
    const begun = yield* lifeMillis
    for (;;) {
      const some = yield* renewals.due(yield* currentSeconds, atOnce)
      for (const one of some) {
        const now = yield* currentSeconds
        // If the clock was wrong when the upstream failed, the wait must not be longer than with a correct clock.
        const until = Math.min(resting.get(one.profile) ?? 0, now + hourSeconds)
        const isResting = until > now
        if ((yield* lifeMillis) - begun >= (isResting ? 2 : 1) * passMillis) return Reschedule(now + restSeconds)
        if (isResting) yield* transaction(renewals.again(one.orderId, until))
        else if (!(yield* askAbout(one))) resting.set(one.profile, (yield* currentSeconds) + hourSeconds)
      }
      if (some.length < atOnce) return Reschedule((yield* currentSeconds) + renewalsEverySeconds)
    }
  })
