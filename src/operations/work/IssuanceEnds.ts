import * as Effect from "effect/Effect"
import type { Csr } from "../../crypto/x509/Csr.ts"
import { purposeWord } from "../../crypto/x509/KeyPurpose.ts"
import { hasRequestedUsages, leafUsages, notGranted, requestedWords } from "../../crypto/x509/RequestedExtensions.ts"
import type { IssuanceFailed } from "../../domain/AcmeError.ts"
import {
  AuthorityWithdrawn,
  BadCsr,
  IssuanceAbandoned,
  IssuerCompromised,
  KindRemoved
} from "../../domain/AcmeError.ts"
import { mostAlternates } from "../../domain/AlternateChain.ts"
import type { IssueFailureCause } from "../../domain/Audit.ts"
import { kindName } from "../../domain/CertificateKind.ts"
import { OrderId } from "../../domain/Id.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { namesOf } from "../../domain/Order.ts"
import { problemOf, problemType } from "../../domain/Problem.ts"
import type { ClientFacts } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { count } from "../../domain/words/Series.ts"
import type { Job } from "../../engine/queue/Job.ts"
import { arrived } from "../../engine/sql/Ahead.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { afterCommit, afterTransaction } from "../../engine/sql/Database.ts"
import { currentMillis, rfc3339 } from "../../engine/Time.ts"
import { notify } from "../../services/notify/Notifier.ts"
import type { Issued } from "../../services/signing/Signer.ts"
import * as audit from "../../store/AuditRows.ts"
import * as alternateChains from "../../store/orders/AlternateChains.ts"
import * as certificates from "../../store/orders/CertificateStoring.ts"
import { isChallenged } from "../../store/orders/OrderDetail.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as compromised from "../../store/revocation/CompromisedIssuers.ts"
import { burntFault } from "../BurntKey.ts"
import { auditFacts } from "../Caller.ts"
import type { Actor } from "../Operator.ts"

/*
 * The ways in which an issuance ends, whether a local CA or a relay signs: a certificate is stored, the CSR is refused,
 * or the issuance is given up.
 */

/** The facts that the job of an issuance has about the request that caused it. */
export interface Issuance {
  readonly order_id: string
  readonly profile: string
  readonly client: ClientFacts
}

/** The order of an issuance. */
export type Found = NonNullable<Effect.Success<ReturnType<typeof orders.findForIssuance>>>

/** Returns whether the account of an order may still get the certificate, and all its authorizations are valid. */
export const mayIssue = ({ accountStatus, blockedAt, scopeLost, unproved }: Found): boolean =>
  accountStatus === "valid" && blockedAt === undefined && scopeLost === undefined && unproved === 0

const rowOf = (of: Issuance, order: Found | undefined, error: IssuanceFailed) =>
  ({
    event: "certificate_issue_failed",
    actorKind: order === undefined ? "system" : "acme",
    actorId: order?.accountId,
    accountId: order?.accountId,
    orderId: of.order_id,
    identifiers: order && namesOf(order),
    reason: problemType(error),
    ...auditFacts(of.profile, of.client)
  }) as const

/** Moves the order from `processing` to `invalid`, and writes the audit row that states the reason. */
const fail = (
  of: Issuance,
  order: Found,
  error: IssuanceFailed,
  cause: IssueFailureCause,
  log: Effect.Effect<void>
): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    if ((yield* orders.failIssuance(order.id, problemOf(error))) === undefined) return
    yield* audit.insert({ ...rowOf(of, order, error), detail: { cause } })
    yield* afterCommit(log)
  })

/**
 * Ends an order if its account was blocked or lost its credential, or its account or one of its authorizations ended,
 * after finalize.
 */
export const withdrawn = (of: Issuance, order: Found) => {
  const isCredentialGone = order.scopeLost !== undefined
  return fail(
    of,
    order,
    new AuthorityWithdrawn({ isCredentialGone }),
    isCredentialGone ? "credential_denied" : "authority_withdrawn",
    emit("order_finalize_authority_withdrawn", { order_id: order.id })
  )
}

/** Ends an order whose certificate was not stored, with the reason that {@link certificates.issue} had. */
const notStored = Effect.fnUntraced(function*(of: Issuance, order: Found, csr: Csr, issuer: string | undefined) {
  if (issuer !== undefined && (yield* compromised.ids).has(issuer)) return yield* issuerCompromised(of, order)
  const burnt = yield* burntFault(csr.spki, order.accountId)
  if (burnt !== undefined) return yield* rejected(of, order, burnt.detail)
  yield* withdrawn(of, (yield* orders.findForIssuance(of.profile, order.id)) ?? order)
})

/** Ends an order whose certificate was signed by a CA that is compromised. */
const issuerCompromised = (of: Issuance, order: Found) =>
  fail(
    of,
    order,
    new IssuerCompromised(),
    "issuer_compromised",
    emit("order_finalize_issuer_compromised", { order_id: order.id })
  )

/** Ends an order whose kind of certificate was removed by a reload. */
export const kindRemoved = (of: Issuance, order: Found) => {
  const kind = kindName(order.kind)
  return fail(
    of,
    order,
    new KindRemoved({ kind }),
    "kind_removed",
    emit("order_finalize_kind_removed", { order_id: order.id, kind })
  )
}

/** Ends an order whose CSR was refused. */
export const rejected = (of: Issuance, order: Found, detail: string) =>
  fail(
    of,
    order,
    new BadCsr({ detail }),
    "bad_csr",
    emit("order_finalize_bad_csr", { order_id: order.id, error: detail })
  )

/**
 * Moves the order from `processing` to `valid` with the certificate, and writes the audit row. Returns whether the
 * certificate was stored. If the account was blocked, or the account or an authorization of the order ended in the
 * meantime, the order becomes `invalid` instead. `renewsAt` is when the hour of its renewal begins, in epoch seconds,
 * if an hour was chosen.
 */
export const stored = Effect.fnUntraced(
  function*(of: Issuance, job: Job, order: Found, csr: Csr, signed: Issued, renewsAt?: number) {
    const { alternates = [], chain, issuer, notAfter, serial } = signed
    const { id } = order
    const identifiers = namesOf(order)
    yield* orders.lock(id)
    // Only the order of an account with a credential can be without challenges.
    const isProvedByChallenge = order.eabKid === undefined || (yield* isChallenged(id))
    const stored = yield* certificates.issue({
      id,
      chain,
      certSerial: serial,
      certPubkey: csr.spki,
      certNotAfter: notAfter,
      renewsAt,
      issuer
    }, {
      event: "certificate_issued",
      actorKind: "acme",
      actorId: order.accountId,
      accountId: order.accountId,
      orderId: id,
      certSerial: serial,
      identifiers,
      ...auditFacts(of.profile, of.client),
      detail: {
        key_type: csr.keyType,
        not_after: rfc3339(notAfter),
        ...order.kind === undefined ? {} : { kind: order.kind },
        ...isProvedByChallenge ? {} : { proved_by: "credential" }
      }
    })
    if (stored === undefined) {
      yield* notStored(of, order, csr, issuer)
      return false
    }
    if (alternates.length > 0) yield* alternateChains.offer(id, alternates.slice(0, mostAlternates))
    const usages = csr.usages.length === 0 ? undefined : leafUsages(chain)
    const lacking = notGranted(csr, chain, usages)
    if (lacking.length > 0) yield* orders.noteNotGranted(id, lacking)
    const finished = yield* currentMillis
    yield* notify({
      event: "certificate_issued",
      scope: of.profile,
      fields: {
        order_id: id,
        account_id: order.accountId,
        cert_serial: serial,
        identifiers,
        kind: kindName(order.kind),
        not_after: notAfter,
        replaces: order.replaces,
        client_ip: of.client.ip
      }
    })
    yield* afterCommit(Effect.all([
      count("acme_svc_certificates_issued_total", { profile: of.profile }),
      count(
        "acme_svc_certificate_issue_duration_seconds",
        { profile: of.profile },
        Math.floor(finished / 1000) - job.createdAt
      ),
      lacking.length === 0
        ? Effect.void
        : emit("order_extensions_not_granted", { order_id: id, cert_serial: serial, extensions: lacking }),
      usages === undefined || hasRequestedUsages(csr, usages)
        ? Effect.void
        : emit("leaf_usages_differ", {
          order_id: id,
          cert_serial: serial,
          requested: requestedWords(csr),
          granted: usages.map(purposeWord)
        }),
      emit("order_finalized", { order_id: id, cert_serial: serial, elapsed_ms: finished - job.createdAt * 1000 })
    ], { discard: true }))
    yield* arrived // if any of these statements fails, the failure is known here
    return true
  },
  (writes, _of, _job, { id }) =>
    Effect.tapError(
      writes,
      ({ message }) => afterTransaction(emit("order_finalize_persistence_failed", { order_id: id, error: message }))
    )
)

/** Returns the cause that the audit trail records for a job that is given up. */
const causeOf = (failure: JobFailure): IssueFailureCause => {
  switch (failure._tag) {
    case "Cancelled":
      return "cancelled"
    case "DeadlinePassed":
      return "order_expired"
    case "SignerFailed":
      return failure.cause === "signer_failed" ? "attempts_exhausted" : failure.cause
    default:
      return "attempts_exhausted"
  }
}

/**
 * Ends an issuance that was given up by the queue, or by the operator in `by`. In one transaction, the order becomes
 * `invalid` and its audit row is written.
 */
export const abandoned = (
  of: Issuance,
  failure: JobFailure,
  by: Actor | undefined,
  problem: IssuanceFailed = new IssuanceAbandoned()
) =>
  Effect.gen(function*() {
    const id = OrderId(of.order_id)
    if ((yield* orders.failIssuance(id, problemOf(problem))) === undefined) return
    const order = yield* orders.findForIssuance(of.profile, id)
    yield* audit.insert({
      ...rowOf(of, order, problem),
      ...by,
      detail: { cause: causeOf(failure), error: failure.text.slice(0, 500) }
    })
    yield* afterCommit(emit("order_finalize_abandoned", { order_id: id, error: failure.text }))
  })
