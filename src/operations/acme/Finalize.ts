import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { base64urlFault, decodeBase64url } from "../../crypto/Base64url.ts"
import type { Csr } from "../../crypto/x509/Csr.ts"
import { parseCsr } from "../../crypto/x509/Csr.ts"
import { CsrRefused, refuse } from "../../crypto/x509/CsrRefused.ts"
import { BadCsr, KindRemoved, OrderNotReady, ProfileDegraded, Unauthorized } from "../../domain/AcmeError.ts"
import type { IssueFailureCause } from "../../domain/Audit.ts"
import type { CertificateKind } from "../../domain/CertificateKind.ts"
import { kindName, kindOfOrder, rollingReloadSeconds } from "../../domain/CertificateKind.ts"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import type { OrderId } from "../../domain/Id.ts"
import { DnsName } from "../../domain/Identifier.ts"
import { expiryOf, isLapsed, namesOf, statusShown } from "../../domain/Order.ts"
import { problemOf } from "../../domain/Problem.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { Policies } from "../../services/policy/Policies.ts"
import { ProfileStates } from "../../services/signing/ProfileStates.ts"
import { certificateKinds } from "../../settings/CertificateKinds.ts"
import * as audit from "../../store/AuditRows.ts"
import { isChallenged } from "../../store/orders/OrderDetail.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as upstreamOrders from "../../store/upstream/UpstreamOrderRows.ts"
import { burntFault } from "../BurntKey.ts"
import type { Caller } from "../Caller.ts"
import { auditFacts, scopeOf, shareOfCaller } from "../Caller.ts"
import { judgeCsr } from "../CsrJudgement.ts"
import { finalizeProblem, judgeNames } from "../PolicyGate.ts"
import { refuseUnlessOrdering } from "./Accounts.ts"
import { refuseIfBlocked } from "./Authenticate.ts"
import type { OrderView } from "./Orders.ts"
import { find } from "./Orders.ts"
import { isPrevalidated, isRestricted, kindFault, scopeFault, scopeOfCaller } from "./Scope.ts"

// RFC 8555 requires base64url without padding. Padding is accepted only here, because some clients send it.
const decodeCsr = (text: string, kind: CertificateKind): Result.Result<Csr, CsrRefused> => {
  const unpadded = text.replace(/={1,2}$/, "")
  const der = decodeBase64url(unpadded)
  if (der === undefined) return refuse("undecodable", `The CSR is not base64url: ${base64urlFault(unpadded)}.`)
  return parseCsr(der, kind.keys)
}

const acceptCsr = Effect.fnUntraced(function*(caller: Caller, order: OrderView, kind: CertificateKind, text: string) {
  const csr = yield* Effect.fromResult(decodeCsr(text, kind))
  if (Buffer.compare(csr.spki, caller.pubkey) === 0) {
    return yield* new CsrRefused({ reason: "account_key", detail: "The account key cannot be certified." })
  }
  const { name, signer } = caller.profile
  yield* judgeCsr(csr, {
    names: namesOf(order),
    kind,
    mayCopySubject: signer.backend !== "local_ca",
    isForScripts: (yield* Policies).get(name)?.hasScriptsForNames === true
  })
  return csr
})

type FailureReason = "badCSR" | "invalidProfile" | "rejectedIdentifier" | "serverInternal" | "unauthorized"

const failed = (
  caller: Caller,
  order: OrderView,
  reason: FailureReason,
  detail: { readonly cause: IssueFailureCause; readonly error: string; readonly rule?: string }
) => audit.record(failureRow(caller, order, reason, detail))

const failureRow = (
  caller: Caller,
  order: OrderView,
  reason: FailureReason,
  detail: { readonly cause: IssueFailureCause; readonly error: string; readonly rule?: string }
) =>
  ({
    event: "certificate_issue_failed",
    actorKind: "acme",
    actorId: caller.accountId,
    accountId: caller.accountId,
    orderId: order.id,
    identifiers: namesOf(order),
    reason,
    ...auditFacts(caller.profile.name, caller.client),
    detail: { ...detail, error: detail.error.slice(0, 500) }
  }) as const

const refused = Effect.fnUntraced(function*(caller: Caller, order: OrderView, error: CsrRefused) {
  yield* failed(caller, order, "badCSR", { cause: "bad_csr", error: error.detail })
  yield* emit("csr_rejected", { order_id: order.id, reason: error.reason })
  return yield* new BadCsr({ detail: error.detail })
})

const ruleOf = ({ rule }: { readonly rule: string | undefined }) => rule === undefined ? {} : { rule }

/**
 * Applies the profile's policy to the names of a CSR. At this point the names of the CSR and of the order are equal. A
 * refusal does not change the order.
 */
const filtered = Effect.fnUntraced(function*(caller: Caller, order: OrderView, { subjectNames }: Csr) {
  const refusal = yield* judgeNames(caller, "CSR", kindName(order.kind), [
    ...namesOf(order).map((value) => ({ type: "dns" as const, value })),
    ...subjectNames.map((value) => ({ type: "cn" as const, value }))
  ])
  if (refusal === undefined) return
  yield* emit("order_finalize_rejected", { order_id: order.id, reason: "filter" })
  if (refusal._tag === "Undecided") {
    yield* failed(caller, order, "serverInternal", {
      cause: "filter_undecided",
      error: refusal.error,
      ...ruleOf(refusal)
    })
  } else {
    yield* failed(caller, order, "badCSR", {
      cause: "filter_denied",
      error: refusal.finding,
      ...ruleOf(refusal)
    })
  }
  return yield* finalizeProblem(refusal)
})

/**
 * Refuses an order that has no challenges because the credential made them unnecessary, if the credential does not do
 * so any more.
 */
const proofFault = Effect.fnUntraced(function*(caller: Caller, order: OrderView, scope: CredentialScope) {
  if (caller.eabKid === undefined || isPrevalidated(scope) || (yield* isChallenged(order.id))) return
  return new Unauthorized({
    detail: "The credential of this account does not make challenges unnecessary any more; place a new order."
  })
})

const credentialReasons = {
  InvalidProfile: "invalidProfile",
  RejectedIdentifier: "rejectedIdentifier",
  Compound: "rejectedIdentifier",
  Unauthorized: "unauthorized"
} as const

/** Refuses an order that the credential of the account does not permit any more. The order does not change. */
const refuseOutside = Effect.fnUntraced(function*(
  caller: Caller,
  order: OrderView,
  scope: CredentialScope,
  kind: CertificateKind
) {
  const names = order.identifiers.map(({ value }) => DnsName.make(value, { disableChecks: true }))
  const error = kindFault(scope, certificateKinds(caller.profile), kind.name) ??
    scopeFault(scope, names) ??
    (yield* proofFault(caller, order, scope))
  if (error === undefined) return
  const { detail = "" } = problemOf(error)
  yield* failed(caller, order, credentialReasons[error._tag], { cause: "credential_denied", error: detail })
  yield* emit("order_finalize_rejected", { order_id: order.id, reason: "credential" })
  return yield* error
})

/** Ends an order whose kind of certificate a reload has removed. */
const endWithoutKind = Effect.fnUntraced(function*(caller: Caller, order: OrderView) {
  const error = new KindRemoved({ kind: kindName(order.kind) })
  yield* transaction(Effect.gen(function*() {
    if ((yield* orders.fail(order.id, problemOf(error))) === undefined) return
    const detail = { cause: "kind_removed", error: problemOf(error).detail ?? "" } as const
    yield* audit.insert(failureRow(caller, order, "invalidProfile", detail))
  }))
  yield* emit("order_finalize_rejected", { order_id: order.id, reason: "kind_removed" })
  return yield* error
})

/**
 * Returns why an order cannot be finalized. An order that is `ready`, but cannot be claimed, has lost an authorization
 * or its account, and its next status is not stored yet.
 */
const notReady = (order: OrderView, { order: { validity_seconds } }: Caller["profile"], now: number) => {
  const status = statusShown(order, validity_seconds, now)
  return new OrderNotReady({
    ...(status === "ready" ? {} : { status }),
    expiredAt: isLapsed(order, validity_seconds, now) ? expiryOf(order, validity_seconds) : undefined,
    because: order.error?.detail
  })
}

/** Claims the order and queues its signing. Fails if another request has already claimed the order. */
const claimAndEnqueue = Effect.fnUntraced(function*(
  caller: Caller,
  order: OrderView,
  { csr, now, restricted, validityBound }: {
    readonly csr: Csr
    readonly now: number
    readonly restricted: 1 | undefined
    readonly validityBound: number | undefined
  }
) {
  const { profile } = caller
  const { id } = order
  const alive = { now, validity: profile.order.validity_seconds }
  if (
    (yield* orders.claim({ id, certPubkey: csr.spki, restricted, validityBound, ...alive, ...scopeOf(caller) })) ===
      undefined
  ) {
    const fault = yield* burntFault(csr.spki, caller.accountId)
    if (fault !== undefined) return yield* new CsrRefused(fault)
    // If the account was deleted, so was the order, and the caller gets the reason from the account.
    const found = yield* Effect.catchTag(find(caller, id), "NotFound", () => Effect.undefined)
    return yield* found === undefined ? new OrderNotReady({}) : notReady(found, profile, now)
  }
  const subject = { order_id: id, profile: profile.name }
  const ends = {
    dedupKey: id,
    deadline: expiryOf(order, profile.order.validity_seconds),
    share: shareOfCaller(caller)
  }
  if (profile.signer.backend === "relay") {
    yield* upstreamOrders.insert({ orderId: id, csr: csr.der, client: caller.client, now })
    const kind = restricted === undefined ? "signer_relay_issue" : "signer_relay_issue_restricted"
    yield* enqueueJob({ kind, payload: subject, ...ends })
  } else {
    const payload = { ...subject, csr: Buffer.from(csr.der).toString("base64url"), client: caller.client }
    yield* enqueueJob({ kind: restricted === undefined ? "signer_issue" : "signer_issue_restricted", payload, ...ends })
  }
  yield* afterCommit(emit("order_finalize_queued", { order_id: id }))
})

/**
 * Handles finalize (RFC 8555 section 7.4). First the whole CSR is checked. Then one transaction claims the order and
 * queues its signing. If another request has claimed the order, the request fails with orderNotReady.
 */
export const finalize = Effect.fnUntraced(function*(caller: Caller, id: OrderId, csrText: string) {
  yield* refuseIfBlocked(caller)
  const { profile } = caller
  const order = yield* find(caller, id)
  const now = yield* currentSeconds
  const expires = expiryOf(order, profile.order.validity_seconds)
  if (order.status !== "ready" || now >= expires) {
    yield* emit("order_finalize_rejected", { order_id: id, reason: now >= expires ? "expired" : "not_ready" })
    return yield* notReady(order, profile, now)
  }
  if ((yield* ProfileStates).of(profile.name) !== undefined) {
    yield* emit("order_finalize_rejected", { order_id: id, reason: "profile_degraded" })
    return yield* new ProfileDegraded()
  }
  const kind = kindOfOrder(certificateKinds(profile), order.kind)
  if (kind === undefined) {
    return yield* now < order.createdAt + rollingReloadSeconds
      ? new KindRemoved({ kind: kindName(order.kind) })
      : endWithoutKind(caller, order)
  }
  const scope = yield* scopeOfCaller(caller)
  yield* refuseOutside(caller, order, scope, kind)
  const csr = yield* Effect.catchTag(
    acceptCsr(caller, order, kind, csrText),
    "CsrRefused",
    (error) => refused(caller, order, error)
  )
  yield* filtered(caller, order, csr)
  const restricted = isRestricted(scope, kind) ? 1 : undefined
  const claim = { csr, now, restricted, validityBound: scope.validitySeconds } as const
  yield* transaction(claimAndEnqueue(caller, order, claim)).pipe(
    Effect.tapErrorTag(
      "OrderNotReady",
      () =>
        Effect.andThen(
          refuseUnlessOrdering(caller),
          emit("order_finalize_rejected", { order_id: id, reason: "claim_lost" })
        )
    ),
    Effect.catchTag("CsrRefused", (error) => refused(caller, order, error))
  )
  const processing: OrderView = { ...order, status: "processing", restricted }
  return processing
})
