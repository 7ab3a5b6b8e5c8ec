import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Entropy } from "../../crypto/Entropy.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AlreadyReplaced, Malformed, NotFound, ProfileDegraded } from "../../domain/AcmeError.ts"
import type { CertificateKind } from "../../domain/CertificateKind.ts"
import { boundedKind, storedKind } from "../../domain/CertificateKind.ts"
import { offeredTypes } from "../../domain/Challenge.ts"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import type { AuthorizationId, OrderId } from "../../domain/Id.ts"
import { AuthorizationId as makeAuthorizationId, ChallengeId, OrderId as makeOrderId } from "../../domain/Id.ts"
import type { DnsName } from "../../domain/Identifier.ts"
import { reverseName } from "../../domain/Identifier.ts"
import type { Order } from "../../domain/Order.ts"
import { namesOf } from "../../domain/Order.ts"
import { problemType } from "../../domain/Problem.ts"
import { emit } from "../../domain/words/Log.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { ProfileStates } from "../../services/signing/ProfileStates.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as accounts from "../../store/AccountRows.ts"
import { remember } from "../../store/Acknowledged.ts"
import * as alternateChains from "../../store/orders/AlternateChains.ts"
import * as certificates from "../../store/orders/CertificateRows.ts"
import type { NewOrder } from "../../store/orders/OrderCreation.ts"
import * as orderCreation from "../../store/orders/OrderCreation.ts"
import * as orderList from "../../store/orders/OrderListRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { Caller } from "../Caller.ts"
import { scopeOf } from "../Caller.ts"
import { judgeNames, orderProblem } from "../PolicyGate.ts"
import { locate } from "../Renewal.ts"
import { isReadable, refuseChain } from "../StoredCertificate.ts"
import { refuseUnlessOrdering } from "./Accounts.ts"
import { refuseIfBlocked } from "./Authenticate.ts"
import * as limits from "./Limits.ts"
import { acceptAll } from "./OrderedNames.ts"
import { isPrevalidated, kindFor, scopeFault, scopeOfCaller } from "./Scope.ts"
import { unattainable } from "./Validity.ts"

/** A decoded newOrder request. Its dates are epoch seconds. */
export interface OrderRequest {
  readonly identifiers: ReadonlyArray<{ readonly type: string; readonly value: string }>
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
  /** The certID of the certificate that the order replaces (RFC 9773). */
  readonly replaces?: string | undefined
  /** The name of the certificate profile that the client requests (draft-ietf-acme-profiles). */
  readonly certificateProfile?: string | undefined
}

/** An order and the ids of its authorizations, in the order of the identifiers. */
export interface OrderView extends Order {
  readonly authorizationIds: ReadonlyArray<AuthorizationId>
}

interface Checked {
  readonly kind: CertificateKind
  readonly names: ReadonlyArray<DnsName>
}

const checkRequest = (
  profile: ProfileConfig,
  issuers: Issuers["Service"],
  scope: CredentialScope,
  request: OrderRequest,
  now: number
): Result.Result<Checked, AcmeError> => {
  const { certificateProfile, identifiers, notAfter, notBefore } = request
  const limit = limits.mostNames(profile)
  if (identifiers.length === 0) return Result.fail(new Malformed({ detail: "An order names at least one identifier." }))
  if (identifiers.length > limit) {
    return Result.fail(new Malformed({ detail: `An order names at most ${limit} identifiers.` }))
  }
  if (notAfter !== undefined && (notAfter <= now || (notBefore !== undefined && notAfter <= notBefore))) {
    return Result.fail(new Malformed({ detail: "notAfter must be in the future and after notBefore." }))
  }
  // If an unknown kind were ignored, the client would believe that its certificate is of this kind.
  const kind = kindFor(profile, scope, certificateProfile)
  if (Result.isFailure(kind)) return Result.fail(kind.failure)
  const fault = unattainable(profile, boundedKind(kind.success, scope.validitySeconds), issuers, request, now)
  if (fault !== undefined) return Result.fail(fault)
  const accepted = acceptAll(profile, issuers.of(profile.name, now), identifiers)
  return Result.map(accepted, (names) => ({ kind: kind.success, names }))
}

// A client must not learn whether another account has such a certificate, nor which account that is.
const nobodys = "names no certificate of this account"
const replacesFaults = {
  malformed: "is no certID: two base64url texts with a dot between them",
  unknown: nobodys,
  key_id_mismatch: "has the serial of a certificate of this account, but not its authority key identifier",
  other_account: nobodys,
  no_shared_identifier: "names a certificate that shares no name with the order"
}

/**
 * Finds the certificate that the order replaces. It must belong to the caller, and have a name in common with the order
 * (RFC 9773 section 5).
 */
const replacedBy = Effect.fnUntraced(function*(caller: Caller, certId: string, names: ReadonlyArray<string>) {
  const found = yield* locate(caller.profile.name, certId)
  const reason = typeof found === "string"
    ? found
    : "otherKeyOf" in found
    ? "key_id_mismatch"
    : found.accountId !== caller.accountId
    ? "other_account"
    : found.identifiers.some(({ value }) => names.includes(value))
    ? undefined
    : "no_shared_identifier"
  if (reason === undefined && typeof found !== "string" && "leaf" in found) return found
  yield* emit("order_replaces_rejected", { reason: reason ?? "unknown" })
  const isOthers = typeof found !== "string" && "otherKeyOf" in found && !found.otherKeyOf.includes(caller.accountId)
  const fault = isOthers ? nobodys : replacesFaults[reason ?? "unknown"]
  return yield* new Malformed({ detail: `The member replaces ${fault}.` })
})

/** Refuses an order, and logs the refusal. */
const rejected = (error: AcmeError, identifiers: ReadonlyArray<string>) =>
  Effect.andThen(emit("order_rejected", { reason: problemType(error), identifiers }), Effect.fail(error))

/**
 * Handles newOrder (RFC 8555 section 7.4): stores the order, its names, authorizations and challenges in one
 * transaction.
 */
export const create = Effect.fnUntraced(function*(caller: Caller, request: OrderRequest) {
  yield* refuseIfBlocked(caller)
  const { profile } = caller
  const now = yield* currentSeconds
  const scope = yield* scopeOfCaller(caller)
  const checked = checkRequest(profile, yield* Issuers, scope, request, now)
  if (Result.isFailure(checked)) {
    return yield* rejected(checked.failure, namesOf(request))
  }
  const { kind, names } = checked.success
  if ((yield* ProfileStates).of(profile.name) !== undefined) return yield* rejected(new ProfileDegraded(), names)
  const replaced = request.replaces === undefined ? undefined : yield* replacedBy(caller, request.replaces, names)
  const identifiers = names.map((value) => ({ type: "dns" as const, value }))
  const refusal = yield* judgeNames(caller, "newOrder", kind.name, identifiers)
  if (refusal !== undefined) return yield* rejected(orderProblem(refusal), names)
  const outside = scopeFault(scope, names)
  if (outside !== undefined) return yield* rejected(outside, names)
  const isProved = isPrevalidated(scope)
  const entropy = yield* Entropy
  const id = makeOrderId(yield* entropy.uuid)
  const wanted: Array<NewOrder["authorizations"][number]> = []
  const offered: Array<NewOrder["challenges"][number]> = []
  for (const identifier of identifiers) {
    const authzId = makeAuthorizationId(yield* entropy.uuid)
    wanted.push({ id: authzId, identifier })
    if (isProved) continue
    for (const [position, type] of offeredTypes(profile.challenge.enabled, identifier.value).entries()) {
      offered.push({ id: ChallengeId(yield* entropy.uuid), authzId, type, position, token: yield* entropy.token })
    }
  }
  const { notAfter, notBefore } = request
  const replaces = replaced?.leaf.certId
  const { ip, ptr } = caller.client
  const expiresAt = now + profile.order.validity_seconds
  const row: NewOrder = {
    id,
    identifiers,
    notBefore,
    notAfter,
    replaces,
    now,
    expiresAt,
    kind: storedKind(kind.name),
    isProved,
    ip,
    ptr,
    ...scopeOf(caller),
    names: names.map((name) => [name, reverseName(name)]),
    authorizations: wanted,
    challenges: offered
  }
  // If another order already replaces the certificate, the body returns a word and does not fail, because a failure
  // would make the other bodies of its group commit run again.
  const insert = Effect.gen(function*() {
    if ((yield* orderCreation.create(row)) === undefined) return "lost"
    yield* afterCommit(emit("order_created", { order_id: id, identifiers: names }))
    yield* remember({
      change: "order_created",
      at: now,
      profile: profile.name,
      accountId: caller.accountId,
      orderId: id
    })
    if (replaced === undefined) return "inserted"
    yield* afterCommit(emit("order_replaces_accepted", { order_id: id, cert_serial: replaced.serial }))
    return "inserted"
  })
  const isBounded = limits.boundsOrders(profile)
  const most = replaces === undefined ? scope.ordersPerDay : undefined
  const outcome = yield* Effect.uninterruptible(
    isBounded || replaces !== undefined || most !== undefined
      ? transaction(Effect.gen(function*() {
        const exhausted = most === undefined ? undefined : yield* limits.ofCredential(caller, most, now)
        if (exhausted !== undefined) return exhausted
        yield* accounts.lock(caller.accountId) // the account is locked before the row of an order
        // An order that replaces a certificate does not count towards the limit of the credential. So the number of
        // replacements is limited here, even if the profile has no limits.
        const isLimited = isBounded || (replaces !== undefined && scope.ordersPerDay !== undefined)
        const reached = isLimited ? yield* limits.ofNewOrder(caller, { names: names.length, now, replaces }) : undefined
        if (reached !== undefined) return reached
        if (replaces !== undefined) {
          yield* orders.releaseClaim(profile.name, replaces, { now, validity: profile.order.validity_seconds })
        }
        return yield* insert
      }))
      : insert
  )
  if (typeof outcome === "object") return yield* limits.refuse(profile.name, outcome, caller)
  if (outcome === "lost") {
    yield* refuseUnlessOrdering(caller)
    yield* emit("order_replaces_rejected", { reason: "already_claimed" })
    return yield* new AlreadyReplaced()
  }
  const view: OrderView = {
    id,
    ...scopeOf(caller),
    status: isProved ? "ready" : "pending",
    identifiers,
    notBefore,
    notAfter,
    replaces,
    error: undefined,
    createdAt: now,
    expiresAt,
    kind: storedKind(kind.name),
    restricted: undefined,
    authorizationIds: wanted.map((authorization) => authorization.id)
  }
  return view
})

/**
 * Finds the caller's order. A missing order, another account's order and another profile's order get the same answer.
 */
export const find = Effect.fnUntraced(function*(caller: Caller, id: OrderId) {
  const order = yield* orders.find({ id, ...scopeOf(caller) })
  return order ?? (yield* new NotFound())
})

const pageSize = 100
const longestWalk = 500
const beforeAll = makeOrderId("ffffffff-ffff-ffff-ffff-ffffffffffff")

/**
 * Returns one page of the caller's orders, newest first, and the cursor of the next page if there may be more. If many
 * orders have failed, a page may be short or even empty.
 */
export const list = Effect.fnUntraced(function*(caller: Caller, cursor: OrderId | undefined) {
  const now = yield* currentSeconds
  const walked = yield* orderList.list({
    ...scopeOf(caller),
    before: cursor ?? beforeAll,
    now,
    validity: caller.profile.order.validity_seconds,
    limit: longestWalk
  })
  const shown = walked.filter(({ isShown }) => isShown === 1).map(({ id }) => id)
  const ids = shown.slice(0, pageSize)
  const last = shown.length > pageSize ? ids.at(-1) : walked.length === longestWalk ? walked.at(-1)?.id : undefined
  return { ids, next: last }
})

const endOfLeaf = "-----END CERTIFICATE-----\n"

/**
 * Returns the PEM chain of a `valid` order, leaf first, and how many alternate chains there are. `position` is 0 for the
 * usual chain, or the position of an alternate chain, from 1 (RFC 8555 section 7.4.2). Fails if the chain cannot be
 * read, because a client would install it.
 */
export const certificate = Effect.fnUntraced(function*(caller: Caller, id: OrderId, position: number) {
  const row = yield* certificates.certificate({ id, ...scopeOf(caller) })
  if (row === undefined) return yield* new NotFound()
  const { alternates = [], certificate: usual } = row
  if (!isReadable(usual)) return yield* refuseChain("order_certificate", id)
  const served = emit("certificate_served", { order_id: id, account_id: caller.accountId })
  if (position === 0) return yield* Effect.as(served, { chain: usual, alternates: alternates.length })
  const other = alternates[position - 1]
  if (other === undefined) return yield* new NotFound()
  const found = yield* alternateChains.find(other)
  if (found === undefined) return yield* refuseChain("alternate_chain_find", id)
  yield* served
  const leaf = usual.slice(0, usual.indexOf(endOfLeaf) + endOfLeaf.length)
  return { chain: leaf + found.chain, alternates: alternates.length }
})
