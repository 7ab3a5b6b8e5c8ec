import * as Effect from "effect/Effect"
import { shownName } from "../../crypto/Character.ts"
import { AuthorizationDeactivated, Malformed, NotFound } from "../../domain/AcmeError.ts"
import type { AuthorizationStatus } from "../../domain/Authorization.ts"
import { authorizationMoves, statusShown } from "../../domain/Authorization.ts"
import type { Challenge } from "../../domain/Challenge.ts"
import { offeredTypes } from "../../domain/Challenge.ts"
import type { AuthorizationId, OrderId } from "../../domain/Id.ts"
import { ChallengeId } from "../../domain/Id.ts"
import { DnsName } from "../../domain/Identifier.ts"
import type { OrderIdentifier, OrderStatus } from "../../domain/Order.ts"
import { problemOf } from "../../domain/Problem.ts"
import { emit } from "../../domain/words/Log.ts"
import { afterCommit, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import * as authorizations from "../../store/AuthorizationRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { Caller } from "../Caller.ts"
import { scopeOf } from "../Caller.ts"

/**
 * An authorization with its challenges, in the order in which the challenges were offered. `status` is the status that
 * clients see.
 */
export interface AuthorizationView {
  readonly id: AuthorizationId
  readonly orderId: OrderId
  readonly orderStatus: OrderStatus
  readonly identifier: OrderIdentifier
  readonly status: AuthorizationStatus
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly challenges: ReadonlyArray<Challenge>
}

/**
 * Finds the caller's authorization. A missing authorization and another account's authorization get the same answer.
 */
export const find = Effect.fnUntraced(function*(caller: Caller, id: AuthorizationId) {
  const rows = yield* authorizations.find(id, scopeOf(caller))
  const [first] = rows
  if (first === undefined) return yield* new NotFound()
  const now = yield* currentSeconds
  const view: AuthorizationView = {
    id: first.authzId,
    orderId: first.orderId,
    orderStatus: first.orderStatus,
    identifier: first.identifier,
    status: statusShown(
      { ...first, status: first.authzStatus },
      caller.profile.order.validity_seconds,
      now
    ),
    createdAt: first.createdAt,
    expiresAt: first.expiresAt,
    challenges: rows.flatMap(({ authzId, error, id, status, token, type, validatedAt }) =>
      id === undefined || type === undefined || status === undefined || token === undefined
        ? []
        : [{ authzId, error, id, status, token, type, validatedAt }]
    )
  }
  return view
})

/**
 * Returns the challenges that clients are shown of an authorization that a credential made valid. None is stored, but
 * some clients look for a challenge before they read the status (docs/contribute/decisions/clients.md, "A name that
 * needs no challenge shows valid ones"). All of them have the id of the authorization.
 */
export const impliedChallenges = (
  { challenge: { enabled } }: ProfileConfig,
  { challenges, createdAt, id, identifier, status }: AuthorizationView
): ReadonlyArray<Challenge> =>
  status !== "valid" || challenges.length > 0
    ? []
    : offeredTypes(enabled, DnsName.make(identifier.value, { disableChecks: true })).map((type) => ({
      id: ChallengeId(id),
      authzId: id,
      type,
      status,
      token: id.replaceAll("-", ""),
      validatedAt: createdAt,
      error: undefined
    }))

const mayBeDeactivated = (view: AuthorizationView): boolean =>
  view.orderStatus !== "valid" && authorizationMoves.deactivate.from.some((status) => status === view.status)

/**
 * Refuses the deactivation of an authorization. The refusal says why, and what the client can do. The argument is the
 * present state of the authorization.
 */
const refuseDeactivation = ({ id, identifier, orderStatus, status }: AuthorizationView) => {
  const isIssued = orderStatus === "valid"
  const why = isIssued
    ? "the certificate of its order has been issued; revoke that one instead"
    : `it is ${status} already, and nothing can be issued by it`
  return Effect.andThen(
    emit("authz_deactivation_refused", { authz_id: id, reason: isIssued ? "order_valid" : status }),
    new Malformed({ detail: `The authorization of ${shownName(identifier.value)} cannot be deactivated: ${why}.` })
  )
}

/**
 * Deactivates an authorization (RFC 8555 section 7.5.2). This is possible even while the order is `processing`, but not
 * once the order is `valid`. A `pending` order becomes `invalid` (section 7.1.6). A `ready` order goes back to
 * `pending`, with an error that says why it stays there. A second deactivation changes nothing.
 */
export const deactivate = Effect.fnUntraced(function*(caller: Caller, id: AuthorizationId) {
  const view = yield* find(caller, id)
  if (view.status === "deactivated") return view
  if (!mayBeDeactivated(view)) return yield* refuseDeactivation(view)
  const moved = yield* transaction(Effect.gen(function*() {
    yield* orders.lock(view.orderId)
    const order = yield* orders.find({ id: view.orderId, ...scopeOf(caller) })
    if (order === undefined || order.status === "valid") return undefined
    const row = yield* authorizations.transition("deactivate", id)
    if (row === undefined) return undefined
    const problem = problemOf(new AuthorizationDeactivated({ name: view.identifier.value }))
    yield* order.status === "pending" ? orders.fail(view.orderId, problem) : orders.demote(view.orderId, problem)
    yield* afterCommit(emit("authz_deactivated", { authz_id: id, order_id: view.orderId }))
    return row
  }))
  if (moved === undefined) {
    const now = yield* find(caller, id)
    return now.status === "deactivated" ? now : yield* refuseDeactivation(now)
  }
  return { ...view, status: "deactivated" as const }
})
