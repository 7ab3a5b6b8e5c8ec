import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { OrderId } from "../../domain/Id.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { ProfileNotServed, SignerFailed } from "../../domain/JobFailure.ts"
import { DeadlinePassed } from "../../kernel/queue/Failure.ts"
import { Done, Failed, Retry } from "../../kernel/queue/Handler.ts"
import type { Job, PayloadOf } from "../../kernel/queue/Job.ts"
import { afterCommit } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { count } from "../../kernel/telemetry/Metrics.ts"
import { currentMillis } from "../../kernel/Time.ts"
import { reopenCsr } from "../../pki/x509/Csr.ts"
import { Signers, SigningFailed } from "../../services/signing/Signer.ts"
import * as certificates from "../../store/orders/Certificates.ts"
import * as orders from "../../store/orders/Orders.ts"
import type { Actor } from "../Operator.ts"
import { abandoned, rejected, stored, withdrawn } from "./IssuanceEnds.ts"

type Payload = PayloadOf<"signer_issue">

/**
 * One attempt to sign (docs/decisions/job-outcomes.md, "Signing"). The order must still be `processing`, its account and
 * every authorization valid, before signing and again in the write that stores the certificate.
 */
export const issue = Effect.fnUntraced(function*(payload: Payload, job: Job) {
  const id = OrderId(payload.order_id)
  const order = yield* orders.findForIssuance(payload.profile, id)
  if (order === undefined || order.status !== "processing") return Done()
  if (order.accountStatus !== "valid" || order.unproved !== 0) {
    return Done({ commit: withdrawn(payload, order) })
  }
  const csr = reopenCsr(Buffer.from(payload.csr, "base64url"))
  if (Result.isFailure(csr)) return Done({ commit: rejected(payload, order, csr.failure.detail) })
  const names = order.identifiers.map(({ value }) => value)
  const signers = yield* Signers
  const signed = yield* Effect.result(
    Effect.flatMap(
      signers.of(payload.profile),
      ({ issue }) =>
        issue?.({
          orderId: id,
          csr: csr.success,
          names,
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
        const { cause, detail, isTimedOut } = signed.failure
        yield* count((metrics) =>
          metrics.signingFailed(payload.profile, isTimedOut === true ? "script_timeout" : cause)
        )
        yield* emit("order_finalize_issuance_failed", { order_id: id, error: detail })
        return Retry(new SignerFailed({ cause, detail }))
      }
    }
  }
  // The order ended meanwhile: the new certificate is discarded.
  const now = yield* currentMillis
  const { discarded = Effect.void, serial } = signed.success
  if (job.deadline !== undefined && now >= job.deadline * 1000) {
    yield* discarded
    return Failed(new DeadlinePassed())
  }
  const commit = Effect.flatMap(
    stored(payload, job, order, csr.success, signed.success),
    (isStored) => isStored ? Effect.void : afterCommit(discarded)
  )
  // A lost answer to COMMIT looks like a failure too, so a certificate that is stored is not discarded.
  const isStored = Effect.map(
    certificates.findBySerial(payload.profile, serial),
    (found) => found.some(({ orderId }) => orderId === id)
  )
  const unlessStored = Effect.flatMap(
    Effect.orElseSucceed(isStored, () => false),
    (isStored) => isStored ? Effect.void : discarded
  )
  return Done({ commit, discarded: unlessStored })
})

/** Ends a signing that the queue or an operator gave up. */
export const abandon = (payload: Payload, failure: JobFailure, by?: Actor) => abandoned(payload, failure, by)
