import * as Effect from "effect/Effect"
import { namedLeafOf } from "../../crypto/x509/CertId.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { AlreadyRevoked as RevokedBefore, RevocationStopped, ServerInternal } from "../../domain/AcmeError.ts"
import type { RevokeFailureCause } from "../../domain/Audit.ts"
import { defaultKind } from "../../domain/CertificateKind.ts"
import { explainEnd } from "../../domain/Explanation.ts"
import { isId, OrderId } from "../../domain/Id.ts"
import {
  AlreadyRevoked,
  IssuerStopped,
  IssuerUnknown,
  NoSuch,
  OrderNotIssued,
  ProfileNotMounted,
  UnknownWord
} from "../../domain/OperatorError.ts"
import { statusShown } from "../../domain/Order.ts"
import { problemType } from "../../domain/Problem.ts"
import { emit } from "../../domain/words/Log.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as audit from "../../store/AuditRows.ts"
import * as jobSearch from "../../store/jobs/JobSearch.ts"
import * as orderDetail from "../../store/orders/OrderDetail.ts"
import type { OrderFilters } from "../../store/orders/OrderSearch.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf } from "../Operator.ts"
import * as revocation from "../work/Revocation.ts"
import { kindNames } from "./KindRecords.ts"
import { hasName, isCommonEnd, search as searchNames } from "./NameSearch.ts"
import { readForOperator } from "./OperatorReads.ts"
import { everyOfSerial, noSuchOrder } from "./Serials.ts"

/**
 * Returns the lifetime of an order: the lifetime that its profile sets, or the process-wide lifetime if the profile no
 * longer exists.
 */
export const validityOf = ({ order, profiles }: Pick<Config, "order" | "profiles">, profile: string): number =>
  (profiles.find(({ name }) => name === profile)?.order ?? order).validity_seconds

/** Finds an order by its id, in any profile. Fails if there is no such order. */
export const find = Effect.fnUntraced(function*(id: string) {
  const order = isId(id) ? yield* orderSearch.findRecord(OrderId(id)) : undefined
  return order ?? (yield* noSuchOrder(id))
})

const everyJob = { limit: 1000, offset: 0 }

/** Returns an order with all its related records, and the reason for its failure if that reason is still stored. */
export const detail = Effect.fn("OrderRecords.detail")(
  function*(config: Pick<Config, "order" | "profiles">, id: string) {
    const order = yield* find(id)
    const now = yield* currentSeconds
    const challenges = yield* orderDetail.challengesOf(order.id)
    const ofOrder = yield* jobSearch.search({ orderId: order.id }, everyJob)
    const leaf = order.certificate === undefined ? undefined : namedLeafOf(order.certificate)
    const extensions = order.certificate === undefined ? undefined : yield* orderDetail.notGrantedOf(order.id)
    const successor = leaf === undefined ? undefined : yield* orderSearch.findSuccessor(order.profile, leaf.certId)
    const shown = statusShown(order, validityOf(config, order.profile), now)
    const failure = shown === "invalid" ? yield* orderDetail.failureOf(order.id) : undefined
    const explanation = shown === "invalid"
      ? explainEnd({
        orderError: order.error,
        challengeFailures: challenges.flatMap(({ cause, error }) => error === undefined ? [] : [{ cause, error }]),
        cause: failure?.detail.cause,
        requestId: failure?.requestId
      })
      : undefined
    return {
      order,
      status: shown,
      challenges,
      jobs: ofOrder,
      replacedBy: successor?.id,
      notGranted: extensions,
      explanation
    }
  }
)

/** The filters of a list: the filters of the store, and a part of a name. */
export type ListFilters = OrderFilters & { readonly identifierContains?: string | undefined }

/**
 * Returns what a search must walk for, or `undefined` if an index finds the orders. An index can find the end of a
 * name, but it is not used if so many names have this end that most of the index would be read.
 */
export const soughtBy = Effect.fn("OrderRecords.soughtBy")(function*({ identifierContains, ...filters }: ListFilters) {
  const { accountId, ends, identifierSuffix, kind, profile, since, status, until } = filters
  const narrowing = { accountId, ends, kind, profile, since, status, until }
  if (identifierContains !== undefined) {
    return { ...narrowing, comparison: "contains", text: identifierContains.toLowerCase() } as const
  }
  return identifierSuffix !== undefined && (yield* isCommonEnd(identifierSuffix))
    ? { ...narrowing, comparison: "endsWith", text: identifierSuffix } as const
    : undefined
})

/**
 * Refuses a kind of certificate that no profile of the configuration and no order has. An empty list would suggest that
 * nothing of this kind was ordered.
 */
export const checkKind = Effect.fn("OrderRecords.checkKind")(
  function*(config: Pick<Config, "profiles">, kind: string | undefined) {
    const known = kindNames(config)
    if (kind === undefined || kind === defaultKind || known.includes(kind)) return
    if (yield* readForOperator(orderSearch.hasKind(kind))) return
    return yield* new UnknownWord({ name: "kind", word: kind.slice(0, 64), known })
  }
)

/**
 * Returns a page of orders, newest first, and the number of matches. `truncated` means that a search for a part of a
 * name ended early. A caller that does not need the number should say so, because counting may take longer.
 */
export const list = (
  filters: ListFilters,
  page: { readonly limit: number; readonly offset: number },
  isTotalWanted = true
) =>
  readForOperator(Effect.gen(function*() {
    const sought = yield* soughtBy(filters)
    const { identifierContains: _, ...indexed } = filters
    if (sought === undefined) {
      const items = yield* orderSearch.search(indexed, page)
      const total = isTotalWanted ? yield* orderSearch.countMatches(indexed) : items.length
      return { items, total, truncated: false }
    }
    if (filters.certSerial === undefined) return yield* searchNames(sought, page, isTotalWanted)
    const found = yield* orderSearch.search({ ...indexed, identifierSuffix: undefined }, everyOfSerial)
    const items = found.filter(hasName(sought))
    return { items: items.slice(page.offset, page.offset + page.limit), total: items.length, truncated: false }
  }))

/** Finds an order that has a certificate. */
export const issuedOrder = Effect.fn("OrderRecords.issuedOrder")(function*(id: string) {
  const { certificate, ...order } = yield* find(id)
  return certificate === undefined ? yield* new NoSuch({ noun: "certificate of order", id }) : { ...order, certificate }
})

/** Returns the PEM chain of an order, leaf first. */
export const chain = (id: string) => Effect.map(issuedOrder(id), ({ certificate }) => certificate)

/**
 * Revokes an order's certificate for the operator, or queues its revocation. Returns the result of `revocation.revoke`.
 * Without a configuration, the signer of the order's profile is not known. A certificate of one of this service's CAs
 * is then revoked by that CA. For every other certificate, a worker asks the signer that it knows.
 */
export const revoke = Effect.fn("OrderRecords.revoke")(function*(
  config: Pick<Config, "profiles"> | undefined,
  operator: Operator,
  id: string,
  reason: number | undefined
) {
  const { accountId, certificate, certPubkey, certSerial, id: orderId, identifiers, profile, revokedAt } = yield* find(
    id
  )
  const served = config?.profiles.find(({ enabled, name }) => enabled && name === profile)
  if (config !== undefined && served === undefined) return yield* new ProfileNotMounted({ profile })
  if (certificate === undefined || certSerial === undefined) return yield* new OrderNotIssued({ id })
  const actor = actorOf(operator)
  const refused = (error: AcmeError, cause: RevokeFailureCause) =>
    audit.record({
      event: "certificate_revoke_failed",
      ...actor,
      profile,
      accountId,
      orderId,
      certSerial,
      identifiers: identifiers.map(({ value }) => value),
      reason: problemType(error),
      detail: { cause }
    })
  if (revokedAt !== undefined) {
    yield* refused(new RevokedBefore(), "already_revoked")
    return yield* new AlreadyRevoked()
  }
  const found = { orderId, accountId, profile, identifiers, certificate, serial: certSerial, certPubkey }
  const by = { ...actor, detail: { authorized_by: "operator" } } as const
  const burning = revocation.burn(found, reason, by)
  const done = yield* revocation.revoke(found, served?.signer.backend, reason, by, burning).pipe(
    Effect.catchTags({
      WasRevoked: () => Effect.andThen(refused(new RevokedBefore(), "already_revoked"), new AlreadyRevoked()),
      IssuerUnknown: () => Effect.andThen(refused(new ServerInternal({}), "issuer_mismatch"), new IssuerUnknown()),
      ListsStopped: ({ trouble }) =>
        Effect.andThen(refused(new RevocationStopped(), "list_stopped"), new IssuerStopped({ trouble }))
    })
  )
  const told = { ...actorFields(operator), order_id: orderId, cert_serial: certSerial }
  yield* done.isRevoked
    ? emit("admin_order_revoked", told)
    : emit("admin_order_revoke_queued", { ...told, job_id: done.job })
  return done
})
