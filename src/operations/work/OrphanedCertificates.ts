import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import { readStoredChain } from "../../crypto/x509/Chain.ts"
import { reopenCsr } from "../../crypto/x509/Csr.ts"
import type { FoundLeaf } from "../../crypto/x509/FoundLeaf.ts"
import { findLeaf, readLeaf } from "../../crypto/x509/FoundLeaf.ts"
import type { AccountId } from "../../domain/Id.ts"
import { OrderId } from "../../domain/Id.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { ProfileNotServed, SignerFailed } from "../../domain/JobFailure.ts"
import type { PayloadOf } from "../../domain/words/JobKind.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import type { Job } from "../../engine/queue/Job.ts"
import { shareOf } from "../../engine/queue/Job.ts"
import { Done, Failed, Reschedule } from "../../engine/queue/Outcome.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds, rfc3339 } from "../../engine/Time.ts"
import type { Issued, Signer } from "../../services/signing/Signer.ts"
import { Signers, SigningFailed } from "../../services/signing/Signer.ts"
import * as audit from "../../store/AuditRows.ts"
import * as deletions from "../../store/Deletions.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { OrphanCause } from "../../store/orders/OrphanedCertificateRows.ts"
import * as rows from "../../store/orders/OrphanedCertificateRows.ts"
import * as upstreamOrders from "../../store/upstream/UpstreamOrderRows.ts"
import type { Actor } from "../Operator.ts"
import type { Open } from "./OrphanEnds.ts"
import { settle } from "./OrphanEnds.ts"

/*
 * Handles certificates whose orders ended while a program or an upstream signed them
 * (docs/contribute/decisions/orphaned-certificates.md).
 */

type Payload = PayloadOf<"orphan_revoke">

/** The order to which a certificate belongs. */
type Of = Pick<Payload, "order_id" | "profile">

/**
 * An order at an upstream that this service does not continue: its URL there, and the CSR of the local order as DER.
 */
export interface LeftAtUpstream {
  readonly orderUrl: string | undefined
  readonly csr: Uint8Array
}

const enqueue = Effect.fnUntraced(function*(
  { order_id, profile }: Of,
  upstream?: Payload["upstream"],
  notBefore?: number
) {
  const latest = (yield* currentSeconds) + longestWait
  const order = yield* Effect.orElseSucceed(orders.findForIssuance(profile, OrderId(order_id)), () => undefined)
  yield* enqueueJob({
    kind: "orphan_revoke",
    dedupKey: order_id,
    share: shareOf(profile, order?.accountId ?? order_id),
    payload: { order_id, profile, ...(upstream === undefined ? {} : { upstream }) },
    ...(notBefore === undefined ? {} : { runAt: Math.min(notBefore, latest) })
  })
})

const recordFound = Effect.fnUntraced(function*(of: Of, found: FoundLeaf, cause: OrphanCause) {
  const { fingerprint, leaf, names, notAfter, serial } = found
  const { order_id, profile } = of
  const orderId = OrderId(order_id)
  const now = yield* currentSeconds
  if ((yield* rows.insert({ orderId, fingerprint, profile, serial, leaf, notAfter, cause, now })) === undefined) return
  yield* audit.insert({
    event: "certificate_orphaned",
    actorKind: "system",
    actorId: undefined,
    profile,
    orderId,
    certSerial: serial,
    identifiers: names,
    detail: { cause, not_after: rfc3339(notAfter) }
  })
  yield* afterCommit(emitFound(of, found, cause))
})

const emitFound = ({ order_id, profile }: Of, { names, serial }: FoundLeaf, reason: OrphanCause) =>
  Effect.andThen(
    count("acme_svc_orphaned_certificates_total", { profile, state: "found" }),
    emit("certificate_orphaned", { order_id, profile, cert_serial: serial, identifiers: names, reason })
  )

/**
 * Records a certificate (DER) that will not be stored in its order, and queues its revocation. Both happen in the
 * caller's transaction. The job waits for the end of the order, because another attempt may still store the same
 * certificate.
 */
export const record = (of: Of, leaf: Uint8Array, cause: OrphanCause) => {
  const found = readLeaf(leaf)
  return found === undefined ? Effect.void : Effect.andThen(recordFound(of, found, cause), enqueue(of))
}

/**
 * Records, in the caller's transaction, a certificate that passed every check, but whose order ended without it. A
 * certificate that never left this process does no harm, so it is not recorded.
 */
export const inVain = (of: Of, { chain, discarded }: Issued) =>
  Effect.suspend(() => {
    if (discarded !== undefined) return afterCommit(discarded)
    const stored = readStoredChain(chain)
    return stored === undefined ? Effect.void : record(of, stored.leaf, "order_ended")
  })

/**
 * Does the same as {@link inVain} for an attempt whose end was not written, because its row was lost or the database
 * was unavailable. This also happens if only the answer to COMMIT was lost, so a certificate that is stored after all
 * is not touched. If nothing can be written, the log has the serial.
 */
export const unlessStored = Effect.fnUntraced(function*(of: Of, issued: Issued) {
  const { chain, discarded, serial } = issued
  const isStored = Effect.map(
    certificates.ofSerials([serial]),
    (found) => found.some(({ certificate }) => certificate === chain)
  )
  if (yield* Effect.orElseSucceed(isStored, () => false)) return
  yield* Effect.catch(transaction(inVain(of, issued)), () => discarded ?? emitUnrecorded(of, chain))
})

const emitUnrecorded = (of: Of, chain: string) => {
  const stored = readStoredChain(chain)
  const found = stored === undefined ? undefined : readLeaf(stored.leaf)
  return found === undefined ? Effect.void : emitFound(of, found, "order_ended")
}

/**
 * Queues, in the caller's transaction, a check of an order that this service does not continue. An upstream may still
 * have issued the certificate of this order. If `notBefore` (epoch seconds) is given, the check does not begin before
 * that time.
 */
export const lookAfter = (of: Of, { csr, orderUrl }: LeftAtUpstream, notBefore?: number) =>
  orderUrl === undefined
    ? Effect.void
    : enqueue(of, { order_url: orderUrl, csr: Buffer.from(csr).toString("base64url") }, notBefore)

/**
 * Does the same as {@link lookAfter} for every order of accounts that are about to be deleted. The caller must have
 * locked these orders.
 */
export const lookAfterAll = (accounts: ReadonlyArray<AccountId>) =>
  Effect.flatMap(deletions.relayed(accounts), (found) =>
    Effect.forEach(
      found,
      ({ csr, orderId, orderUrl, profile }) => lookAfter({ order_id: orderId, profile }, { csr, orderUrl }),
      { discard: true }
    ))

const isStored = (found: Pick<Open, "serial" | "leaf">) =>
  Effect.map(certificates.ofSerials([found.serial]), (others) =>
    others.some(({ certificate }) => {
      const leaf = readStoredChain(certificate)?.leaf
      return leaf !== undefined && sameBytes(leaf, found.leaf)
    }))

/**
 * Returns whether an upstream's order has been taken over by another local order. An upstream may answer a repeated
 * request with the unfinished order of the earlier request. The certificate of that order is then about to be stored
 * for the later request.
 */
const isTakenOver = Effect.fnUntraced(function*(orderId: OrderId, orderUrl: string) {
  const own = yield* upstreamOrders.find(orderId)
  return own?.orderUrl !== orderUrl && (yield* upstreamOrders.claimed([orderUrl])).length > 0
})

/** Finds the certificate that an upstream issued for an order that has ended here, and records it. */
const search = Effect.fnUntraced(
  function*(of: Of, { csr, order_url }: NonNullable<Payload["upstream"]>, signer: Signer) {
    const chain = signer.leftOver === undefined ? undefined : yield* signer.leftOver(order_url)
    const request = Result.getOrUndefined(reopenCsr(Buffer.from(csr, "base64url")))
    const found = chain === undefined || request === undefined ? undefined : findLeaf(chain, request.spki)
    if (found === undefined || (yield* isStored(found))) return
    if (yield* isTakenOver(OrderId(of.order_id), order_url)) return
    yield* transaction(recordFound(of, found, "order_ended"))
  }
)

const daySeconds = 86_400

/**
 * The shortest waits, in seconds: the wait for the end of an order, which comes soon, and the wait after a failure of
 * the signer.
 */
const shortest = { order: 5, signer: 60 }

/** The longest wait between two attempts, in seconds. */
export const longestWait = daySeconds

/**
 * For how many seconds the signer is asked again: long enough for a weekend to pass and for an operator to read the
 * log.
 */
const patience = 7 * daySeconds

/**
 * Makes the job run again. The wait is a quarter of the time since the certificate was found, so it is short at first,
 * and a day in the end.
 */
const again = Effect.fnUntraced(function*<F extends JobFailure>(job: Job, failure: F | undefined, atLeast = 0) {
  const now = yield* currentSeconds
  const least = failure === undefined ? shortest.order : shortest.signer
  const wait = Math.max(least, Math.ceil((now - job.createdAt) / 4), atLeast)
  return Reschedule<never, F>(now + Math.min(wait, longestWait), failure === undefined ? {} : { failure })
})

const isDefinite = ({ cause }: SigningFailed): boolean => cause === "upstream_refused"

const asFailure = ({ cause, detail, problemType }: SigningFailed) => new SignerFailed({ cause, detail, problemType })

const noRevocation = new SigningFailed({
  cause: "signer_failed",
  detail: "the profile's current signer is not the one that issued the certificate"
})

/** Revokes one certificate. If another attempt is necessary, returns why. */
const revokeOne = Effect.fnUntraced(function*(of: Of, one: Open, signer: Signer) {
  if (yield* isStored(one)) return yield* Effect.as(transaction(settle(of, one, "stored")), undefined)
  if (one.notAfter < (yield* currentSeconds)) {
    return yield* Effect.as(transaction(settle(of, one, "expired")), undefined)
  }
  const asked = yield* Effect.result(signer.revoke?.(one.leaf, undefined) ?? Effect.fail(noRevocation))
  if (Result.isSuccess(asked)) return yield* Effect.as(transaction(settle(of, one, "revoked")), undefined)
  const { failure } = asked
  yield* emit("certificate_orphan_revoke_failed", {
    order_id: of.order_id,
    profile: of.profile,
    cert_serial: one.serial,
    error: failure.detail
  })
  if (!isDefinite(failure)) return failure
  yield* transaction(settle(of, one, "kept", { error: asFailure(failure).text }))
  return undefined
})

/**
 * Makes one attempt to revoke the certificates of an order that ended without them. First waits until the order ends.
 * Does not revoke a certificate that has expired, or that is stored with an order after all. The signer is asked again
 * for up to a week.
 */
export const revoke = Effect.fnUntraced(function*(payload: Payload, job: Job) {
  const { order_id, profile, upstream } = payload
  const id = OrderId(order_id)
  const order = yield* orders.findForIssuance(profile, id)
  if (order?.status === "processing") return yield* again(job, undefined)
  const signers = yield* Signers
  const signer = yield* Effect.orElseSucceed(signers.of(profile), () => undefined)
  const isOver = (yield* currentSeconds) >= job.createdAt + patience
  if (signer === undefined) {
    const failure = new ProfileNotServed({ profile })
    return isOver ? Failed(failure) : yield* again(job, failure)
  }
  const failures: Array<SigningFailed> = []
  if (upstream !== undefined) {
    const searched = yield* Effect.result(search(payload, upstream, signer))
    if (Result.isFailure(searched)) {
      const { failure } = searched
      if (failure._tag === "StorageFailed") return yield* failure
      yield* emit("certificate_orphan_search_failed", { order_id, profile, error: failure.detail })
      if (!isDefinite(failure)) failures.push(failure)
    }
  }
  for (const one of yield* rows.open(id)) {
    const failure = yield* revokeOne(payload, one, signer)
    if (failure !== undefined) failures.push(failure)
  }
  const [failure] = failures
  // If a certificate was found during this attempt, the job for it has joined this job.
  if (failure === undefined) return Done({ ifJoined: enqueue(payload) })
  if (isOver) return Failed(asFailure(failure))
  return yield* again(job, asFailure(failure), failure.again?.atLeast)
})

/**
 * Ends a revocation that the queue or an operator gave up. The certificates stay valid, and operators see them in a
 * list.
 */
export const abandon = (payload: Payload, failure: JobFailure, by?: Actor) =>
  Effect.gen(function*() {
    const error = failure.text.slice(0, 500)
    for (const one of yield* rows.open(OrderId(payload.order_id))) {
      yield* settle(payload, one, "kept", { error, ...(by === undefined ? {} : { by }) })
    }
  })
