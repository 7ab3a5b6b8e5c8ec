import * as Effect from "effect/Effect"
import type { AuthorizationStatus } from "../../domain/Authorization.ts"
import type { ChallengeType } from "../../domain/Challenge.ts"
import type { AccountId, AuthorizationId, ChallengeId, OrderId } from "../../domain/Id.ts"
import type { OrderIdentifier } from "../../domain/Order.ts"
import { int, name, nullable, packedUuid, rows, text } from "../../engine/sql/Column.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { Database, transaction } from "../../engine/sql/Database.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { first, run } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { identifiersColumn } from "../Columns.ts"
import { orderColumns } from "./OrderRows.ts"

/*
 * Inserts an order with its names, authorizations and challenges. On PostgreSQL this is one statement, because each
 * statement is a round trip. SQLite cannot insert within a SELECT, so on SQLite each table has a statement of its own.
 */

/** A new order. Times are epoch seconds. */
export interface NewOrder {
  readonly id: OrderId
  readonly profile: string
  readonly accountId: AccountId
  /** The identifiers, in the order of the request. */
  readonly identifiers: ReadonlyArray<OrderIdentifier>
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
  readonly replaces: string | undefined
  readonly now: number
  readonly expiresAt: number
  /** The kind of certificate. Absent for the kind `default`. */
  readonly kind: string | undefined
  /** Whether the names need no challenge, so that the order is ready at once. */
  readonly isProved: boolean
  readonly ip: string | undefined
  readonly ptr: string | undefined
  /** The names, forwards and reversed, for searches. */
  readonly names: ReadonlyArray<readonly [name: string, reversed: string]>
  readonly authorizations: ReadonlyArray<{ readonly id: AuthorizationId; readonly identifier: OrderIdentifier }>
  readonly challenges: ReadonlyArray<{
    readonly id: ChallengeId
    readonly authzId: AuthorizationId
    readonly type: ChallengeType
    readonly position: number
    readonly token: string
  }>
}

const orderParams = {
  id: orderColumns.id,
  profile: name(),
  accountId: orderColumns.accountId,
  identifiers: identifiersColumn,
  notBefore: orderColumns.notBefore,
  notAfter: orderColumns.notAfter,
  replaces: orderColumns.replaces,
  now: int,
  expiresAt: int,
  kind: orderColumns.kind,
  status: orderColumns.status,
  proof: text<AuthorizationStatus>(),
  ip: nullable(text()),
  ptr: nullable(text())
}

// The account may have been deactivated or blocked since the request was accepted. If the account is being deleted at
// this moment, the lock on PostgreSQL waits until the deletion ends. Only an order that replaces a certificate can be in
// conflict with another order, and for an insert with ON CONFLICT PostgreSQL writes one record more to the WAL.
const insertOrder = ({ checked, dialect, typed }: Fragments, isReplacing: boolean) =>
  `INSERT INTO orders (id, profile, account_id, status, identifiers, not_before, not_after, replaces, created_at,
     expires_at, kind, created_ip, created_ptr)
   SELECT ${typed(":id", "uuid")}, :profile, c.id, :status, :identifiers, ${typed(":notBefore", "bigint")},
     ${typed(":notAfter", "bigint")}, :replaces, ${typed(":now", "bigint")}, ${
    typed(":expiresAt", "bigint")
  }, :kind, :ip,
     :ptr
   FROM accounts c WHERE c.id = :accountId AND ${checked("c.profile")} = :profile AND c.status = 'valid'
     AND c.blocked_at IS NULL${dialect === "postgres" ? " FOR KEY SHARE" : ""} ${
    isReplacing
      ? "ON CONFLICT (profile, replaces) WHERE replaces IS NOT NULL AND status <> 'invalid' DO NOTHING "
      : ""
  }RETURNING id`

/**
 * How the inserts of the other tables refer to the id of the order. `before` is the SQL that precedes the rows of the
 * insert.
 */
interface Inserted {
  readonly id: string
  readonly before: string
}

const insertNames = ({ at, each }: Fragments, { before, id }: Inserted) =>
  `INSERT INTO order_identifiers (order_id, profile, name, name_rev)
   SELECT ${id}, :profile, ${at(0, "text")}, ${at(1, "text")} FROM ${before}${each(":names")}`

const insertAuthorizations = ({ at, each, typed }: Fragments, { before, id }: Inserted) =>
  `INSERT INTO authorizations (id, order_id, identifier, status, created_at)
   SELECT ${at(0, "uuid")}, ${id}, ${at(1, "text")}, :proof, ${typed(":now", "bigint")}
   FROM ${before}${each(":authorizations")}`

const insertChallenges = ({ at, each, typed }: Fragments, { before }: Inserted) =>
  `INSERT INTO challenges (id, authz_id, type, position, token, status, created_at)
   SELECT ${at(0, "uuid")}, ${at(1, "uuid")}, ${at(2, "text")}, ${at(3, "int")}, ${at(4, "text")}, 'pending',
     ${typed(":now", "bigint")} FROM ${before}${each(":challenges")}`

const id = { id: orderColumns.id }

const together = perFilters(["replaces"], (used) =>
  statement({
    name: "order_create",
    params: { ...orderParams, names: rows, authorizations: rows, challenges: rows },
    row: id,
    only: "postgres",
    sql: (f) => {
      const inserted = { id: "inserted.id", before: "inserted, " }
      return `WITH inserted AS (${insertOrder(f, used.length > 0)}), names AS (${insertNames(f, inserted)}),
       authorized AS (${insertAuthorizations(f, inserted)}), offered AS (${insertChallenges(f, inserted)})
     SELECT id FROM inserted`
    }
  }))

const given = { id: ":id", before: "" }

const orderStatement = perFilters(["replaces"], (used) =>
  statement({
    name: "order_insert",
    params: orderParams,
    row: id,
    only: "sqlite",
    sql: (f) => insertOrder(f, used.length > 0)
  }))

const namesStatement = statement({
  name: "order_identifiers_insert",
  params: { ...id, profile: name(), names: rows },
  row: {},
  only: "sqlite",
  sql: (f) => insertNames(f, given)
})

const authorizationsStatement = statement({
  name: "authorizations_insert",
  params: { ...id, now: int, proof: text<AuthorizationStatus>(), authorizations: rows },
  row: {},
  only: "sqlite",
  sql: (f) => insertAuthorizations(f, given)
})

const challengesStatement = statement({
  name: "challenges_insert",
  params: { now: int, challenges: rows },
  row: {},
  only: "sqlite",
  sql: (f) => insertChallenges(f, given)
})

/**
 * Inserts a pending order with everything that belongs to it. Returns `undefined` and inserts nothing if the account
 * has ended or is blocked, or if another order that is not `invalid` replaces the same certificate.
 */
export const create = (
  order: NewOrder
): Effect.Effect<{ readonly id: OrderId } | undefined, StorageFailed, Database> => {
  const values = {
    ...order,
    status: order.isProved ? "ready" as const : "pending" as const,
    proof: order.isProved ? "valid" as const : "pending" as const,
    authorizations: order.authorizations.map((row) => [packedUuid(row.id), JSON.stringify(row.identifier)]),
    challenges: order.challenges.map((
      row
    ) => [packedUuid(row.id), packedUuid(row.authzId), row.type, row.position, row.token])
  }
  const oneByOne = Effect.gen(function*() {
    const inserted = yield* first(orderStatement(order), values)
    if (inserted === undefined) return undefined
    yield* run(namesStatement, values)
    yield* run(authorizationsStatement, values)
    if (values.challenges.length > 0) yield* run(challengesStatement, values)
    return inserted
  })
  return Database.use(({ dialect }) => dialect === "postgres" ? first(together(order), values) : transaction(oneByOne))
}
