import { Clock, Effect, Either } from "effect"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AuthorityWithdrawn, BadCsr, IssuanceAbandoned } from "../../domain/AcmeError.ts"
import type { AuditRow, IssueFailureCause } from "../../domain/Audit.ts"
import { OrderId } from "../../domain/Id.ts"
import type { Job, PayloadOf } from "../../domain/Job.ts"
import { problemOf, problemType } from "../../domain/Problem.ts"
import type { Csr } from "../../subsystems/crypto/Csr.ts"
import { reopenCsr } from "../../subsystems/crypto/Csr.ts"
import * as audit from "../../subsystems/db/audit.ts"
import type { StorageFailed } from "../../subsystems/db/Database.ts"
import { afterCommit, afterTransaction, Database } from "../../subsystems/db/Database.ts"
import * as orders from "../../subsystems/db/orders.ts"
import { emit } from "../../subsystems/log/EventLog.ts"
import { count } from "../../subsystems/metrics/Metrics.ts"
import type { Outcome } from "../../subsystems/queue/Handler.ts"
import { deadlinePassed } from "../../subsystems/queue/Settlement.ts"
import type { Issued } from "../../subsystems/signing/Signer.ts"
import { Signers, SigningFailed } from "../../subsystems/signing/Signer.ts"
import { auditFacts } from "./caller.ts"

type Payload = PayloadOf<"signer_issue">
type Found = NonNullable<Effect.Effect.Success<ReturnType<typeof orders.findForIssuance>>>

const failedRow = (
  payload: Payload,
  order: Found | undefined,
  error: AcmeError,
  cause: IssueFailureCause,
  text?: string
) =>
  audit.record({
    event: "certificate_issue_failed",
    actorKind: order === undefined ? "system" : "acme",
    actorId: order?.accountId,
    accountId: order?.accountId,
    orderId: payload.order_id,
    identifiers: order?.identifiers.map(({ value }) => value),
    reason: problemType(error),
    ...auditFacts(payload.profile, payload.client),
    detail: { cause, ...(text === undefined ? {} : { error: text.slice(0, 500) }) }
  })

/** `processing` to `invalid`, with the row that says why, once it has committed. */
const fail = (
  payload: Payload,
  order: Found,
  error: AcmeError,
  cause: IssueFailureCause,
  log: Effect.Effect<void>
): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    if ((yield* orders.failIssuance(order.id, problemOf(error))) === undefined) return
    const database = yield* Database
    const row = Effect.provideService(failedRow(payload, order, error, cause), Database, database)
    yield* afterCommit(Effect.zipRight(log, row))
  })

const withdrawn = (payload: Payload, order: Found) =>
  fail(
    payload,
    order,
    new AuthorityWithdrawn(),
    "authority_withdrawn",
    emit("order_finalize_authority_withdrawn", { order_id: order.id })
  )

/**
 * One attempt to sign (`jobs.md`, "signer_issue"): the order must still be `processing`, its account and every
 * authorization valid, before signing and again in the write that stores the certificate.
 */
export const issue = Effect.fnUntraced(function*(payload: Payload, job: Job) {
  type Ended = Outcome<Database>
  const done: Ended = { _tag: "Done" }
  const id = OrderId(payload.order_id)
  const order = yield* orders.findForIssuance(payload.profile, id)
  if (order === undefined || order.status !== "processing") return done
  if (order.accountStatus !== "valid" || order.unvalidated > 0) {
    return { _tag: "Done", commit: withdrawn(payload, order) } satisfies Ended
  }
  const rejected = (detail: string): Ended => ({
    _tag: "Done",
    commit: fail(
      payload,
      order,
      new BadCsr({ detail }),
      "bad_csr",
      emit("order_finalize_bad_csr", { order_id: id, error: detail })
    )
  })
  const csr = reopenCsr(Buffer.from(payload.csr, "base64url"))
  if (Either.isLeft(csr)) return rejected(csr.left.detail)
  const names = order.identifiers.map(({ value }) => value)
  const signers = yield* Signers
  const signed = yield* Effect.either(
    Effect.flatMap(
      signers.of(payload.profile),
      ({ issue }) =>
        issue?.({ orderId: id, csr: csr.right, names, notBefore: order.notBefore, notAfter: order.notAfter }) ??
          new SigningFailed({ cause: "signer_failed", detail: "the profile relays to an upstream now" })
    )
  )
  if (signed._tag === "Left") {
    switch (signed.left._tag) {
      case "CsrRejected":
        return rejected(signed.left.detail)
      case "ProfileNotMounted":
        return { _tag: "Retry", error: `profile ${payload.profile} is not mounted here` } satisfies Ended
      case "SigningFailed":
        yield* emit("order_finalize_issuance_failed", { order_id: id, error: signed.left.detail })
        return { _tag: "Retry", error: `${signed.left.cause}: ${signed.left.detail}` } satisfies Ended
    }
  }
  // The order ended meanwhile: what it would have had is nobody's.
  const now = yield* Clock.currentTimeMillis
  if (job.deadline !== undefined && now >= job.deadline * 1000) {
    return { _tag: "Failed", error: deadlinePassed } satisfies Ended
  }
  return { _tag: "Done", commit: store(payload, job, order, csr.right, signed.right) } satisfies Ended
})

/** `processing` to `valid` with the certificate, and the row that tells of it once that has committed. */
const store = Effect.fnUntraced(
  function*(payload: Payload, job: Job, order: Found, csr: Csr, signed: Issued) {
    const { chain, notAfter, serial } = signed
    const { id } = order
    yield* orders.lock(id)
    const stored = yield* orders.issue({
      id,
      certificate: chain,
      certSerial: serial,
      certPubkey: csr.spki,
      certNotAfter: notAfter
    })
    if (stored === undefined) return yield* withdrawn(payload, order)
    const database = yield* Database
    const finished = yield* Clock.currentTimeMillis
    const row = audit.record({
      event: "certificate_issued",
      actorKind: "acme",
      actorId: order.accountId,
      accountId: order.accountId,
      orderId: id,
      certSerial: serial,
      identifiers: order.identifiers.map(({ value }) => value),
      ...auditFacts(payload.profile, payload.client),
      detail: { key_type: csr.keyType, not_after: new Date(notAfter * 1000).toISOString() }
    })
    yield* afterCommit(Effect.all([
      count((metrics) => metrics.issued(payload.profile, Math.floor(finished / 1000) - job.createdAt)),
      emit("order_finalized", { order_id: id, cert_serial: serial, elapsed_ms: finished - job.createdAt * 1000 }),
      Effect.provideService(row, Database, database)
    ], { discard: true }))
  },
  (writes, _payload, _job, { id }) =>
    Effect.tapError(
      writes,
      ({ message }) => afterTransaction(emit("order_finalize_persistence_failed", { order_id: id, error: message }))
    )
)

// A failed signing says in its first word what the audit trail calls it.
const causeOf = (lastError: string): IssueFailureCause => {
  if (lastError === deadlinePassed) return "order_expired"
  return (["lint_failed", "chain_rejected", "script_failed"] as const).find((word) =>
    lastError.startsWith(`${word}:`)
  ) ??
    "attempts_exhausted"
}

/** Who gave an issuance up, where it was not the queue. */
export type GivenUpBy = Pick<AuditRow<"certificate_issue_failed">, "actorKind" | "actorId">

/** The signing is given up, by the queue or an operator: the order ends `invalid`, with its audit row, in one transaction. */
export const abandon = (payload: Payload, error: string, by?: GivenUpBy) =>
  Effect.gen(function*() {
    const id = OrderId(payload.order_id)
    const problem = new IssuanceAbandoned()
    if ((yield* orders.failIssuance(id, problemOf(problem))) === undefined) return
    const order = yield* orders.findForIssuance(payload.profile, id)
    yield* audit.insert({
      event: "certificate_issue_failed",
      ...(by ?? { actorKind: order === undefined ? "system" : "acme", actorId: order?.accountId }),
      accountId: order?.accountId,
      orderId: id,
      identifiers: order?.identifiers.map(({ value }) => value),
      reason: problemType(problem),
      ...auditFacts(payload.profile, payload.client),
      detail: { cause: by === undefined ? causeOf(error) : "cancelled", error: error.slice(0, 500) }
    })
    yield* afterCommit(emit("order_finalize_abandoned", { order_id: id, error }))
  })
