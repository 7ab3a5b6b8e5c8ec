import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { readCertificate } from "../../crypto/x509/Certificate.ts"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import { reopenCsr } from "../../crypto/x509/Csr.ts"
import { boundedKind, kindOfOrder, rollingReloadSeconds } from "../../domain/CertificateKind.ts"
import { OrderId } from "../../domain/Id.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { ProfileNotServed, SignerFailed } from "../../domain/JobFailure.ts"
import { namesOf } from "../../domain/Order.ts"
import type { PayloadOf } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import type { Job } from "../../engine/queue/Job.ts"
import { DeadlinePassed, Done, Failed, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentMillis, currentSeconds } from "../../engine/Time.ts"
import { RenewalHours } from "../../services/signing/RenewalHours.ts"
import type { Issued } from "../../services/signing/Signer.ts"
import { Signers, SigningFailed } from "../../services/signing/Signer.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { Actor } from "../Operator.ts"
import { abandoned, kindRemoved, mayIssue, rejected, stored, withdrawn } from "./IssuanceEnds.ts"
import * as orphans from "./OrphanedCertificates.ts"

type Payload = PayloadOf<"signer_issue">

/** The mounted profiles by their names. */
export type Profiles = ReadonlyMap<string, ProfileConfig>

/**
 * Returns for how many seconds an order waits for a CA that is away, if it has waited for `waited` seconds. Such
 * attempts are not counted, because the order is not the reason of the failure.
 */
const awaySeconds = (waited: number): number => Math.min(60, Math.max(5, Math.floor(waited / 2)))

/** Chooses the hour in which a certificate is to be renewed. Returns its start in epoch seconds. */
const chosenHour = Effect.fnUntraced(function*({ chain, serial }: Issued) {
  const leaf = readStoredChain(chain)?.leaf
  const read = leaf === undefined ? undefined : Result.getOrUndefined(readCertificate(leaf))
  return read === undefined ? undefined : yield* RenewalHours.use(({ choose }) => choose(read, serial))
})

/**
 * Makes one attempt to sign (docs/contribute/decisions/job-outcomes.md, "Signing"). The order must still be
 * `processing`, its account and all its authorizations must be valid, and the account must not be blocked. This is
 * checked before the signing, and again in the write that stores the certificate. While the CA is away, the order waits
 * until it would have expired.
 */
export const issue = Effect.fnUntraced(function*(profiles: Profiles, payload: Payload, job: Job) {
  const id = OrderId(payload.order_id)
  const order = yield* orders.findForIssuance(payload.profile, id)
  if (order === undefined || order.status !== "processing") return Done({ isMoot: order?.status !== "valid" })
  if (!mayIssue(order)) {
    return Done({ commit: withdrawn(payload, order) })
  }
  const profile = profiles.get(payload.profile)
  if (profile === undefined) return Retry(new ProfileNotServed({ profile: payload.profile }))
  const kind = kindOfOrder(certificateKinds(profile), order.kind)
  if (kind === undefined) {
    return (yield* currentSeconds) < order.createdAt + rollingReloadSeconds
      ? Retry(new ProfileNotServed({ profile: payload.profile }))
      : Done({ commit: kindRemoved(payload, order) })
  }
  const csr = reopenCsr(Buffer.from(payload.csr, "base64url"))
  if (Result.isFailure(csr)) return Done({ commit: rejected(payload, order, csr.failure.detail) })
  const names = namesOf(order)
  const signers = yield* Signers
  const signed = yield* Effect.result(
    Effect.flatMap(
      signers.of(payload.profile),
      ({ issue }) =>
        issue?.({
          orderId: id,
          csr: csr.success,
          names,
          kind: boundedKind(kind, order.validityBound),
          validityBound: order.validityBound,
          notBefore: order.notBefore,
          notAfter: order.notAfter,
          orderedAt: order.createdAt
        }) ??
          new SigningFailed({ cause: "signer_failed", detail: "the profile relays to an upstream now" })
    )
  )
  if (signed._tag === "Failure") {
    switch (signed.failure._tag) {
      case "CsrRejected":
        return Done({ commit: rejected(payload, order, signed.failure.detail) })
      case "ProfileNotMounted":
        return Retry(new ProfileNotServed({ profile: payload.profile }))
      case "SigningFailed": {
        const { cause, detail, isAway = false, isTimedOut, made } = signed.failure
        yield* count("acme_svc_signer_failures_total", {
          profile: payload.profile,
          cause: isTimedOut === true ? "script_timeout" : cause
        })
        yield* emit("order_finalize_issuance_failed", { order_id: id, error: detail })
        if (made !== undefined) {
          yield* transaction(orphans.record(payload, made, cause === "chain_rejected" ? cause : "signer_failed"))
        }
        // The certificate of another attempt would have the same fault.
        const failed = new SignerFailed({ cause, detail })
        if (isAway) {
          const now = yield* currentSeconds
          const isOver = now >= order.createdAt + profile.order.validity_seconds
          return isOver ? Failed(failed) : Reschedule(now + awaySeconds(now - job.createdAt), { failure: failed })
        }
        return cause === "chain_rejected" || cause === "lint_failed" ? Failed(failed) : Retry(failed)
      }
    }
  }
  const now = yield* currentMillis
  // If the order has ended in the meantime, the new certificate is not used.
  const inVain = orphans.inVain(payload, signed.success)
  if (job.deadline !== undefined && now >= job.deadline * 1000) {
    yield* transaction(inVain)
    return Failed(new DeadlinePassed())
  }
  const renewsAt = profile.renewal.spread ? yield* chosenHour(signed.success) : undefined
  const commit = Effect.flatMap(
    stored(payload, job, order, csr.success, signed.success, renewsAt),
    (isStored) => isStored ? Effect.void : inVain
  )
  return Done({ commit, discarded: orphans.unlessStored(payload, signed.success) })
})

/** Ends a signing that the queue or an operator gave up. */
export const abandon = (payload: Payload, failure: JobFailure, by?: Actor) => abandoned(payload, failure, by)
