import * as Effect from "effect/Effect"
import { authorizationMoves } from "../domain/Authorization.ts"
import { challengeMoves } from "../domain/Challenge.ts"
import type { AuthorizationId, ChallengeId, OrderId } from "../domain/Id.ts"
import { orderMoves } from "../domain/Order.ts"
import { int, uuid } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import { leaving, reached } from "../engine/sql/Guard.ts"
import { first } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { statement } from "../engine/sql/Statement.ts"
import * as authorizations from "./AuthorizationRows.ts"
import type { Alive } from "./orders/Lifetime.ts"
import { lifetimeParams } from "./orders/Lifetime.ts"
import { nameCountOf } from "./orders/NameCount.ts"
import * as orders from "./orders/OrderRows.ts"

/*
 * Stores an accepted proof in the rows of the challenge, its authorization and its order. On PostgreSQL this is one
 * statement, because each statement is a round trip. SQLite cannot update within a SELECT, so on SQLite each row has a
 * statement of its own.
 */

/** The records that one verdict changes. */
export interface Subject {
  readonly id: ChallengeId
  readonly authzId: AuthorizationId
  readonly orderId: OrderId
}

const ids = { id: uuid<ChallengeId>(), authzId: uuid<AuthorizationId>(), orderId: uuid<OrderId>() }

// All parts see the rows as they were before this statement, so the authorization that becomes valid here is counted
// separately. The order is locked, so no other transaction changes these rows in the meantime.
const together = (
  { checked }: Fragments,
  move: { readonly from: ReadonlyArray<string>; readonly to: string },
  but = ""
) =>
  `WITH accepted AS (UPDATE challenges SET status = ${reached(move)}, validated_at = :now
       WHERE id = :id AND ${leaving(move, checked("status"))}${but} RETURNING id),
     proved AS (UPDATE authorizations SET status = ${reached(authorizationMoves.accept)}
       WHERE id = :authzId AND ${
    leaving(authorizationMoves.accept, checked("status"))
  } AND EXISTS (SELECT 1 FROM accepted) RETURNING id),
     promoted AS (UPDATE orders SET status = ${reached(orderMoves.promote)}
       WHERE id = :orderId AND ${leaving(orderMoves.promote, checked("status"))} AND EXISTS (SELECT 1 FROM proved)
         AND ${nameCountOf("orders")} = ${orders.validOf("orders")} + 1)
   SELECT id FROM accepted`

const acceptTogether = statement({
  name: "proof_accept",
  params: { ...ids, now: int },
  row: { id: ids.id },
  only: "postgres",
  sql: (f) => together(f, challengeMoves.accept)
})

const bypassTogether = statement({
  name: "proof_bypass",
  params: { ...ids, ...lifetimeParams },
  row: { id: ids.id },
  only: "postgres",
  sql: (f) => together(f, challengeMoves.bypass, ` AND ${authorizations.claimable(f)}`)
})

type Accepted = Effect.Effect<{ readonly id: ChallengeId } | undefined, StorageFailed, Database>

const oneByOne = Effect.fnUntraced(function*({ authzId, orderId }: Subject, challenge: Accepted) {
  const accepted = yield* challenge
  if (accepted === undefined) return undefined
  if ((yield* authorizations.transition("accept", authzId)) !== undefined) yield* orders.promote(orderId)
  return accepted
})

/**
 * Moves a challenge from `processing` to `valid`, its authorization from `pending` to `valid`, and the order to `ready`
 * if all its authorizations are then valid. The caller must have locked the order. Returns `undefined` and changes
 * nothing if the challenge is no longer `processing`.
 */
export const accept = ({ authzId, id, orderId }: Subject, now: number): Accepted =>
  Database.use(({ dialect }) =>
    dialect === "postgres"
      ? first(acceptTogether, { id, authzId, orderId, now })
      : oneByOne({ id, authzId, orderId }, authorizations.accept(id, now))
  )

/**
 * Does the same as {@link accept}, but for a challenge that is still `pending` and will not be validated. Returns
 * `undefined` and changes nothing if the challenge can no longer be claimed.
 */
export const bypass = ({ authzId, id, orderId }: Subject, { now, validity }: Alive): Accepted =>
  Database.use(({ dialect }) =>
    dialect === "postgres"
      ? first(bypassTogether, { id, authzId, orderId, now, validity })
      : oneByOne({ id, authzId, orderId }, authorizations.bypass(id, { now, validity }))
  )
