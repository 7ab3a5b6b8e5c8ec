import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { reopenCsr } from "../../crypto/x509/Csr.ts"
import type { FromUpstream, IssuanceFailed } from "../../domain/AcmeError.ts"
import {
  IssuanceAbandoned,
  UpstreamForbiddenByCaa,
  UpstreamMalformedOrder,
  UpstreamRateLimited,
  UpstreamRefusedKey,
  UpstreamRefusedName,
  UpstreamRefusedNames,
  UpstreamRefusedOrder,
  UpstreamTooSlow,
  UpstreamUnsupportedName
} from "../../domain/AcmeError.ts"
import { kindOfOrder, rollingReloadSeconds } from "../../domain/CertificateKind.ts"
import { OrderId } from "../../domain/Id.ts"
import type { JobFailure, Subproblem } from "../../domain/JobFailure.ts"
import { ProfileNotServed, readFailure, SignerFailed } from "../../domain/JobFailure.ts"
import { mendableTypes } from "../../domain/UpstreamProblems.ts"
import type { PayloadOf } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import type { Job } from "../../engine/queue/Job.ts"
import * as jobRecords from "../../engine/queue/JobRecords.ts"
import { isTaken } from "../../engine/queue/Leases.ts"
import { DeadlinePassed, Done, Failed, Retry } from "../../engine/queue/Outcome.ts"
import { Database, StorageFailed, transaction } from "../../engine/sql/Database.ts"
import { currentMillis, currentSeconds } from "../../engine/Time.ts"
import type { TokenStore } from "../../services/signing/relay/Strategy.ts"
import { UpstreamUnavailable } from "../../services/signing/relay/UpstreamFailed.ts"
import type { Relaying } from "../../services/signing/Signer.ts"
import { Signers, SigningFailed } from "../../services/signing/Signer.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as http01Tokens from "../../store/upstream/Http01Tokens.ts"
import * as upstreamOrders from "../../store/upstream/UpstreamOrderRows.ts"
import type { Actor } from "../Operator.ts"
import { locate } from "../Renewal.ts"
import type { Profiles } from "./Issuance.ts"
import type { Issuance } from "./IssuanceEnds.ts"
import { abandoned, kindRemoved, mayIssue, rejected, stored, withdrawn } from "./IssuanceEnds.ts"
import * as orphans from "./OrphanedCertificates.ts"

type Payload = PayloadOf<"signer_relay_issue">
type Row = NonNullable<Effect.Success<ReturnType<typeof upstreamOrders.find>>>

const issuanceOf = ({ order_id, profile }: Payload, row: Row | undefined): Issuance => ({
  order_id,
  profile,
  client: { ip: row?.clientIp, ptr: row?.clientPtr, user_agent: row?.userAgent, request_id: row?.requestId }
})

/** Runs a write, and provides the database for it. */
const through = <A, E>(database: Database["Service"], write: (now: number) => Effect.Effect<A, E, Database>) =>
  Effect.provideService(Effect.flatMap(currentSeconds, write), Database, database)

const tokenLifeSeconds = 3600

const tokensIn = (database: Database["Service"]): TokenStore => ({
  put: (token, keyAuthorization) =>
    through(
      database,
      (now) => transaction(http01Tokens.put({ token, keyAuthorization, now, expiresAt: now + tokenLifeSeconds }))
    )
      .pipe(
        Effect.tapError(({ message }) => emit("http_01_token_store_failed", { error: message })),
        Effect.mapError(() =>
          new UpstreamUnavailable({
            detail: "the challenge's token could not be stored in the database here",
            status: undefined
          })
        )
      ),
  remove: (token) => Effect.ignore(through(database, () => transaction(http01Tokens.remove(token))))
})

const keeperIn = (database: Database["Service"], orderId: OrderId): Relaying<StorageFailed>["keeper"] => ({
  asked: (asks) =>
    through(database, (now) => transaction(upstreamOrders.asked({ orderId, asks, now }))).pipe(
      Effect.andThen(asks > 1 ? emit("upstream_order_lost", { order_id: orderId, attempts: asks }) : Effect.void)
    ),
  notReplaced: (error) => emit("upstream_replaces_refused", { order_id: orderId, error }),
  opened: (orderUrl, finalizeUrl) =>
    through(database, (now) => transaction(upstreamOrders.opened({ orderId, orderUrl, finalizeUrl, now }))),
  issued: (certificateUrl) =>
    through(database, (now) => transaction(upstreamOrders.issued({ orderId, certificateUrl, now }))),
  unclaimed: (urls) =>
    through(
      database,
      () => Effect.map(upstreamOrders.claimed(urls), (claimed) => urls.filter((url) => !claimed.includes(url)))
    )
})

// If the database does not answer, the attempt counts as taken over. In that case, the attempt keeps its row only until
// the lease ends.
const isTakenOverIn = (database: Database["Service"], job: Job): Effect.Effect<boolean> =>
  Effect.orElseSucceed(Effect.provideService(isTaken(job), Database, database), () => true)

/** Returns the failure of the previous attempt, if any. */
const lastFailureIn = (database: Database["Service"], { id }: Job): Effect.Effect<string | undefined> =>
  jobRecords.find(id).pipe(
    Effect.map((record) => readFailure(record?.lastError)?.text),
    Effect.orElseSucceed(() => undefined),
    Effect.provideService(Database, database)
  )

/**
 * Returns the certificate that an order replaces, if an upstream issued that certificate and its upstream order is
 * known.
 */
const replacedBy = Effect.fnUntraced(function*(profile: string, certId: string | undefined) {
  const former = certId === undefined ? "unknown" : yield* locate(profile, certId)
  const orderUrl = typeof former === "string" || "otherKeyOf" in former
    ? undefined
    : (yield* upstreamOrders.find(former.orderId))?.orderUrl
  return certId === undefined || orderUrl === undefined ? undefined : { certId, orderUrl }
})

/**
 * Makes one attempt to fulfil an order at the upstream (docs/contribute/decisions/relays.md). As for any signing, the
 * account and every authorization must be valid, both before the attempt begins and in the write that stores the
 * certificate (docs/contribute/decisions/job-outcomes.md, "Signing"). An order that is already open at the upstream is
 * continued. The time limit of the order includes the attempts and the waits between them, but not the time in which no
 * process has the job.
 */
export const relay = Effect.fnUntraced(function*(profiles: Profiles, payload: Payload, job: Job) {
  const id = OrderId(payload.order_id)
  const order = yield* orders.findForIssuance(payload.profile, id)
  const row = yield* upstreamOrders.find(id)
  if (order === undefined || row === undefined) return Done({ isMoot: true })
  const issuance = issuanceOf(payload, row)
  const endUpstream = (status: "valid" | "invalid", error?: string) =>
    Effect.flatMap(currentSeconds, (now) => upstreamOrders.end({ orderId: id, status, error, now }))
  const endUnauthorized = endUpstream("invalid", "authority withdrawn")
  // An earlier attempt may have ended before it learnt that the upstream had issued a certificate.
  const lookAfter = orphans.lookAfter(payload, row)
  if (order.status === "valid") return Done({ commit: endUpstream("valid") })
  if (order.status !== "processing") {
    const commit = Effect.andThen(lookAfter, endUpstream("invalid", "the order has ended"))
    return Done({ commit, isMoot: true })
  }
  if (!mayIssue(order)) {
    return Done({ commit: Effect.all([withdrawn(issuance, order), lookAfter, endUnauthorized], { discard: true }) })
  }
  const profile = profiles.get(payload.profile)
  if (profile === undefined) return Retry(new ProfileNotServed({ profile: payload.profile }))
  const kind = kindOfOrder(certificateKinds(profile), order.kind)
  if (kind === undefined) {
    if ((yield* currentSeconds) < order.createdAt + rollingReloadSeconds) {
      return Retry(new ProfileNotServed({ profile: payload.profile }))
    }
    const gone = endUpstream("invalid", "its kind of certificate was removed")
    return Done({ commit: Effect.all([kindRemoved(issuance, order), lookAfter, gone], { discard: true }) })
  }
  const refused = (detail: string) =>
    Done({ commit: Effect.andThen(rejected(issuance, order, detail), endUpstream("invalid", detail)) })
  const csr = reopenCsr(row.csr)
  if (Result.isFailure(csr)) return refused(csr.failure.detail)
  const now = yield* currentSeconds
  if ((yield* transaction(upstreamOrders.start(id, now))) === undefined) return Done({ isMoot: true })
  const database = yield* Database
  const names = order.identifiers.map(({ value }) => value)
  const { createdAt: orderedAt, notAfter, notBefore } = order
  const request = {
    orderId: id,
    csr: csr.success,
    names,
    kind,
    notBefore,
    notAfter,
    orderedAt,
    validityBound: order.validityBound
  }
  const replaced = row.orderUrl === undefined ? yield* replacedBy(payload.profile, order.replaces) : undefined
  const signers = yield* Signers
  const relayed = yield* Effect.result(Effect.flatMap(signers.of(payload.profile), ({ relay }) =>
    relay?.(request, {
      stored: row,
      replaced,
      spentSeconds: job.spentSeconds,
      wasBegun: row.startedAt !== undefined,
      lastFailure: lastFailureIn(database, job),
      keeper: keeperIn(database, id),
      tokens: tokensIn(database),
      isTakenOver: isTakenOverIn(database, job)
    }) ?? new SigningFailed({ cause: "signer_failed", detail: "the profile relays to no upstream now" })))
  if (relayed._tag === "Success") {
    yield* emit("upstream_relay_succeeded", { order_id: id, profile: payload.profile })
    // If the order has ended in the meantime, the new certificate is not used.
    const millis = yield* currentMillis
    const inVain = orphans.inVain(payload, relayed.success)
    if (job.deadline !== undefined && millis >= job.deadline * 1000) {
      yield* transaction(inVain)
      return Failed(new DeadlinePassed())
    }
    const commit = Effect.flatMap(
      stored(issuance, job, order, csr.success, relayed.success),
      (isStored) =>
        isStored ? endUpstream("valid") : Effect.andThen(inVain, endUpstream("invalid", "the order has ended"))
    )
    return Done({ commit, discarded: orphans.unlessStored(payload, relayed.success) })
  }
  const failure = relayed.failure
  switch (failure._tag) {
    case "StorageFailed":
      return yield* failure
    case "CsrRejected":
      return refused(failure.detail)
    case "ProfileNotMounted":
      return Retry(new ProfileNotServed({ profile: payload.profile }))
    case "SigningFailed": {
      const { again, cause, detail, made, problemType, subproblems } = failure
      yield* count("acme_svc_signer_failures_total", {
        profile: payload.profile,
        cause: cause === "signer_failed" ? "upstream_unavailable" : cause
      })
      yield* emit("upstream_relay_failed", { order_id: id, profile: payload.profile, error: detail })
      const wait = again?.atLeast
      const notBefore = wait === undefined ? undefined : (yield* currentSeconds) + wait
      const failed = new SignerFailed({ cause, detail, problemType, subproblems, notBefore })
      if (made !== undefined) {
        yield* transaction(orphans.record(payload, made, cause === "chain_rejected" ? cause : "signer_failed"))
      }
      const isOver = cause === "upstream_refused" || cause === "poll_timeout" || cause === "chain_rejected"
      return isOver ? Failed(failed) : Retry(failed, again)
    }
  }
})

/** Refusals that the client can fix, by the type of the upstream's problem. */
const refusals: { readonly [type: string]: new(from: FromUpstream) => IssuanceFailed } = {
  rejectedIdentifier: UpstreamRefusedName,
  unsupportedIdentifier: UpstreamUnsupportedName,
  malformed: UpstreamMalformedOrder,
  caa: UpstreamForbiddenByCaa,
  badPublicKey: UpstreamRefusedKey
}

/**
 * Returns whether the client can fix a refusal that has a part for each of several names. This is so if the client can
 * fix every part.
 */
const isOfNames = (subproblems: ReadonlyArray<Subproblem> = []): boolean =>
  subproblems.length > 0 && subproblems.every(({ type }) => mendableTypes.has(type))

/**
 * Returns the problem with which an order ends. Only the operator learns why the upstream was unavailable, not the
 * client.
 */
const problemBy = (failure: JobFailure): IssuanceFailed => {
  if (failure._tag !== "SignerFailed") return new IssuanceAbandoned()
  const { cause, detail, problemType = "", subproblems } = failure
  if (problemType === "rateLimited") return new UpstreamRateLimited({ detail })
  if (cause === "poll_timeout") return new UpstreamTooSlow()
  if (cause !== "upstream_refused") return new IssuanceAbandoned()
  const Refusal = Object.hasOwn(refusals, problemType)
    ? refusals[problemType]
    : isOfNames(subproblems)
    ? UpstreamRefusedNames
    : undefined
  return new (Refusal ?? UpstreamRefusedOrder)({ detail, subproblems })
}

/**
 * Returns whether the upstream may have issued a certificate, or may still issue one. An upstream that refused has
 * issued none, and a chain that was refused here has already been handled.
 */
const mayBeIssued = (failure: JobFailure): boolean =>
  failure._tag !== "SignerFailed" || failure.problemType === "rateLimited" ||
  (failure.cause !== "upstream_refused" && failure.cause !== "chain_rejected")

/**
 * Ends the relaying of an order after the queue or an operator gave it up. The order becomes `invalid`, and so does the
 * record of the upstream's order.
 */
export const abandon = (payload: Payload, failure: JobFailure, by?: Actor) =>
  Effect.gen(function*() {
    const orderId = OrderId(payload.order_id)
    const row = yield* upstreamOrders.find(orderId)
    yield* abandoned(issuanceOf(payload, row), failure, by, problemBy(failure))
    const notBefore = failure._tag === "SignerFailed" ? failure.notBefore : undefined
    if (row !== undefined && mayBeIssued(failure)) yield* orphans.lookAfter(payload, row, notBefore)
    yield* upstreamOrders.end({ orderId, status: "invalid", error: failure.text, now: yield* currentSeconds })
  })
