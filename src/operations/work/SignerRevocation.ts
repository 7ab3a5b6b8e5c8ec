import * as Effect from "effect/Effect"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import { RevocationAbandoned, UpstreamRefusedReason } from "../../domain/AcmeError.ts"
import type { RevokeFailureCause } from "../../domain/Audit.ts"
import { OrderId } from "../../domain/Id.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { CertificateMissing, ProfileNotServed, readFailure, SignerFailed } from "../../domain/JobFailure.ts"
import { problemType } from "../../domain/Problem.ts"
import type { PayloadOf } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import * as jobs from "../../engine/queue/Job.ts"
import type { Job, JobId } from "../../engine/queue/Job.ts"
import { Done, Failed, Retry } from "../../engine/queue/Outcome.ts"
import { afterCommit } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { notify } from "../../services/notify/Notifier.ts"
import { Signers, SigningFailed } from "../../services/signing/Signer.ts"
import * as audit from "../../store/AuditRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { OrderRecord } from "../../store/orders/OrderSearch.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import * as revocations from "../../store/revocation/Revocations.ts"
import { auditFacts } from "../Caller.ts"
import type { Actor } from "../Operator.ts"
import { refuseChain } from "../StoredCertificate.ts"

/*
 * Revokes a certificate with an external signer. First the script or the upstream is asked. Then the order is marked as
 * revoked.
 */

type Payload = PayloadOf<"signer_revoke">

const authorizedBy = ({ actor }: Payload) =>
  actor.kind !== "acme" ? "operator" : actor.id === undefined ? "certificate_key" : "account"

const factsOf = (payload: Payload, order: OrderRecord | undefined) => ({
  actorKind: payload.actor.kind,
  actorId: payload.actor.id,
  accountId: order?.accountId,
  orderId: payload.order_id,
  certSerial: order?.certSerial,
  identifiers: order?.identifiers.map(({ value }) => value),
  ...auditFacts(payload.profile, payload.client)
})

const stamp = Effect.fnUntraced(function*(payload: Payload, order: OrderRecord) {
  const { reason } = payload
  yield* orders.lock(order.id)
  const stamped = yield* revocations.stampOrder({ id: order.id, now: yield* currentSeconds, reason })
  if (stamped === undefined) return
  yield* audit.insert({
    event: "certificate_revoked",
    ...factsOf(payload, order),
    ...(reason === undefined ? {} : { reason: String(reason) }),
    detail: { authorized_by: authorizedBy(payload) }
  })
  yield* notify({
    event: "certificate_revoked",
    scope: payload.profile,
    fields: {
      order_id: order.id,
      account_id: order.accountId,
      cert_serial: order.certSerial,
      identifiers: order.identifiers.map(({ value }) => value),
      reason,
      client_ip: payload.client.ip
    }
  })
  yield* afterCommit(
    emit("certificate_revoked", { order_id: order.id, cert_serial: order.certSerial, code: reason })
  )
})

/**
 * Makes one attempt (docs/contribute/decisions/job-outcomes.md, "Signing"). If the process crashes between the signer's
 * answer and the mark on the order, the signer is asked again.
 */
export const revoke = Effect.fnUntraced(function*(payload: Payload, job: Job) {
  const order = yield* orderSearch.findRecord(OrderId(payload.order_id))
  if (order === undefined || order.revokedAt !== undefined) return Done({ isMoot: order === undefined })
  if (order.certificate === undefined) return Failed(new CertificateMissing())
  const leaf = readStoredChain(order.certificate)?.leaf
  if (leaf === undefined) return yield* refuseChain("order_record", order.id)
  const signers = yield* Signers
  const asked = yield* Effect.result(Effect.flatMap(
    signers.of(payload.profile),
    ({ revoke }) =>
      revoke?.(leaf, payload.reason) ??
        new SigningFailed({
          cause: "signer_failed",
          detail: "the profile's current signer is not the one that issued the certificate"
        })
  ))
  if (asked._tag === "Success") return Done({ commit: stamp(payload, order) })
  if (asked.failure._tag === "ProfileNotMounted") {
    return Retry(new ProfileNotServed({ profile: payload.profile }))
  }
  const { again, cause, detail, problemType } = asked.failure
  yield* emit("certificate_revoke_signer_failed", { order_id: order.id, job_id: job.id, error: detail })
  const wait = again?.atLeast
  const notBefore = wait === undefined ? undefined : (yield* currentSeconds) + wait
  const failed = new SignerFailed({ cause, detail, problemType, notBefore })
  return cause === "upstream_refused" ? Failed(failed) : Retry(failed, again)
})

/**
 * Returns the epoch second before which a new job must not ask the signer, or `undefined` if it may ask now. This is
 * the time until which the signer told the previous job of the order to wait.
 */
export const due = Effect.fnUntraced(function*(orderId: string) {
  const former = readFailure(yield* jobs.lastError("signer_revoke", orderId))
  const notBefore = former?._tag === "SignerFailed" ? former.notBefore : undefined
  return notBefore === undefined || notBefore <= (yield* currentSeconds) ? undefined : notBefore
})

/** Returns the problem for the client of a revocation that was given up. */
export const problemBy = (failure: JobFailure | undefined) => {
  const isReason = failure?._tag === "SignerFailed" && failure.cause === "upstream_refused" &&
    failure.problemType === "badRevocationReason"
  return isReason ? new UpstreamRefusedReason({ detail: failure.detail }) : new RevocationAbandoned()
}

const causeOf = (failure: JobFailure): RevokeFailureCause => {
  if (failure._tag === "Cancelled") return "cancelled"
  const cause = failure._tag === "SignerFailed" ? failure.cause : undefined
  return cause === "script_failed" || cause === "upstream_refused" ? cause : "signer_failed"
}

/**
 * Ends a revocation that was given up by the queue, or by the operator in `by`. The order does not change. An audit row
 * records that the revocation was given up.
 */
export const abandon = (payload: Payload, failure: JobFailure, jobId: JobId, by?: Actor) =>
  Effect.gen(function*() {
    const order = yield* orderSearch.findRecord(OrderId(payload.order_id))
    yield* audit.insert({
      event: "certificate_revoke_failed",
      ...factsOf(payload, order),
      ...by,
      reason: problemType(problemBy(failure)),
      detail: { cause: causeOf(failure), error: failure.text.slice(0, 500) }
    })
    yield* afterCommit(
      emit("certificate_revoke_abandoned", { order_id: payload.order_id, job_id: jobId, error: failure.text })
    )
  })
