import * as Effect from "effect/Effect"
import type { AuthorizationStatus } from "../domain/Authorization.ts"
import { authorizationMoves } from "../domain/Authorization.ts"
import type { ChallengeStatus, ChallengeType } from "../domain/Challenge.ts"
import { challengeMoves } from "../domain/Challenge.ts"
import type { AccountId, AuthorizationId, ChallengeId, OrderId } from "../domain/Id.ts"
import type { OrderStatus } from "../domain/Order.ts"
import type { ProblemDocument } from "../domain/ProblemDocument.ts"
import type { ValidationCause } from "../domain/ValidationCause.ts"
import { bytes, int, name, nullable, text, uuid } from "../engine/sql/Column.ts"
import { Database } from "../engine/sql/Database.ts"
import { leaving, reached } from "../engine/sql/Guard.ts"
import { all, first, lenient, run } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { statement } from "../engine/sql/Statement.ts"
import { causeColumn, identifierColumn, problemColumn } from "./Columns.ts"
import type { Alive } from "./orders/Lifetime.ts"
import { isAlive, lifetimeParams } from "./orders/Lifetime.ts"

/** A challenge with its authorization and order, in one row. */
const joined = {
  id: uuid<ChallengeId>(),
  type: text<ChallengeType>(),
  token: text(),
  status: text<ChallengeStatus>(),
  validatedAt: nullable(int),
  error: nullable(problemColumn),
  authzId: uuid<AuthorizationId>(),
  authzStatus: text<AuthorizationStatus>(),
  identifier: identifierColumn,
  createdAt: int,
  expiresAt: nullable(int),
  orderId: uuid<OrderId>(),
  orderStatus: text<OrderStatus>()
}

const joinedColumns = `c.id AS "id", c.type AS "type", c.token AS "token", c.status AS "status",
  c.validated_at AS "validatedAt", c.error AS "error", a.id AS "authzId", a.status AS "authzStatus",
  a.identifier AS "identifier", a.created_at AS "createdAt", o.expires_at AS "expiresAt", o.id AS "orderId", o.status AS "orderStatus"`

const joinedTables = `challenges c JOIN authorizations a ON a.id = c.authz_id JOIN orders o ON o.id = a.order_id`

// An authorization that a credential made valid has no challenge.
const ofAuthorization = statement({
  name: "authorization_with_challenges",
  params: { id: joined.authzId, profile: name(), accountId: uuid<AccountId>() },
  row: {
    ...joined,
    id: nullable(joined.id),
    type: nullable(joined.type),
    token: nullable(joined.token),
    status: nullable(joined.status)
  },
  sql: ({ checked }) =>
    `SELECT ${joinedColumns}
     FROM authorizations a JOIN orders o ON o.id = a.order_id LEFT JOIN challenges c ON c.authz_id = a.id
     WHERE a.id = :id AND ${checked("o.profile")} = :profile AND ${checked("o.account_id")} = :accountId
     ORDER BY c.position`
})

const byId = statement({
  name: "challenge_by_id",
  params: { id: joined.id, profile: name(), accountId: uuid<AccountId>() },
  row: joined,
  sql: ({ checked }) =>
    `SELECT ${joinedColumns} FROM ${joinedTables}
     WHERE c.id = :id AND ${checked("o.profile")} = :profile AND ${checked("o.account_id")} = :accountId`
})

const pendingOf = ({ checked }: Fragments) =>
  `SELECT ${joinedColumns} FROM ${joinedTables}
   WHERE c.id = :id AND ${checked("c.status")} = 'pending' AND ${checked("o.profile")} = :profile
     AND ${checked("o.account_id")} = :accountId`

const pending = { params: { id: joined.id, profile: name(), accountId: uuid<AccountId>() }, row: joined }

const pendingStatement = statement({ name: "challenge_pending", ...pending, only: "sqlite", sql: pendingOf })

const holdStatement = statement({
  name: "challenge_hold",
  ...pending,
  only: "postgres",
  sql: (f) => `${pendingOf(f)} FOR NO KEY UPDATE OF o`
})

// The account is locked before the order, as in every transaction, so that no two transactions wait for each other. If
// the challenge is not pending, nothing is locked.
const holdWithAccount = statement({
  name: "challenge_hold_with_account",
  ...pending,
  only: "postgres",
  sql: (f) =>
    `WITH found AS MATERIALIZED (${pendingOf(f)}),
       account AS MATERIALIZED (SELECT 1 FROM accounts WHERE id = :accountId AND EXISTS (SELECT 1 FROM found)
         FOR NO KEY UPDATE)
     SELECT found.* FROM found JOIN orders o ON o.id = found."orderId" WHERE EXISTS (SELECT 1 FROM account)
     FOR NO KEY UPDATE OF o`
})

const forValidation = statement({
  name: "challenge_for_validation",
  params: { id: joined.id, profile: name() },
  row: { ...joined, accountId: uuid<AccountId>() },
  sql: ({ checked }) =>
    `SELECT ${joinedColumns}, o.account_id AS "accountId" FROM ${joinedTables}
     WHERE c.id = :id AND ${checked("o.profile")} = :profile`
})

// The status of the orders does not matter, because any validation in progress costs the same. SQLite keeps the order
// of cross joins, so it visits only the few challenges in progress, and not all orders of the account.
const inFlight = `(SELECT count(*) FROM challenges fc CROSS JOIN authorizations fa CROSS JOIN orders fo
  WHERE fc.status = 'processing' AND fa.id = fc.authz_id AND fo.id = fa.order_id AND fo.account_id = :accountId)`

/**
 * Returns the condition under which a pending challenge may still be claimed: its authorization and its order are
 * pending, and the order has not expired.
 */
export const claimable = (f: Fragments) =>
  `EXISTS (SELECT 1 FROM authorizations a JOIN orders o ON o.id = a.order_id
     WHERE a.id = challenges.authz_id AND a.status = 'pending' AND ${isAlive(f, "o")}
       AND ${f.checked("o.status")} = 'pending')`

// One guarded write checks every condition of a claim. If it changes no row, the caller finds out why with another
// read.
const claimStatement = statement({
  name: "challenge_claim",
  params: { id: joined.id, accountId: uuid<AccountId>(), cap: int, ...lifetimeParams },
  row: { id: joined.id },
  sql: (f) =>
    `UPDATE challenges SET status = ${reached(challengeMoves.claim)}
     WHERE id = :id AND ${leaving(challengeMoves.claim, f.checked("status"))} AND ${claimable(f)}
       AND (${f.typed(":cap", "bigint")} = 0 OR ${inFlight} < ${f.typed(":cap", "bigint")})
     RETURNING id`
})

const inFlightStatement = statement({
  name: "challenge_in_flight",
  params: { accountId: uuid<AccountId>() },
  row: { count: int },
  sql: () => `SELECT ${inFlight} AS "count"`
})

const acceptChallenge = statement({
  name: "challenge_accept",
  params: { id: joined.id, now: int },
  row: { id: joined.id },
  sql: ({ checked }) =>
    `UPDATE challenges SET status = ${reached(challengeMoves.accept)}, validated_at = :now
     WHERE id = :id AND ${leaving(challengeMoves.accept, checked("status"))} RETURNING id`
})

const bypassChallenge = statement({
  name: "challenge_bypass",
  params: { id: joined.id, ...lifetimeParams },
  row: { id: joined.id },
  only: "sqlite",
  sql: (f) =>
    `UPDATE challenges SET status = ${reached(challengeMoves.bypass)}, validated_at = :now
     WHERE id = :id AND ${leaving(challengeMoves.bypass, f.checked("status"))} AND ${claimable(f)} RETURNING id`
})

const refuseChallenge = statement({
  name: "challenge_refuse",
  params: { id: joined.id, error: problemColumn, cause: causeColumn },
  row: { id: joined.id },
  sql: ({ checked }) =>
    `UPDATE challenges SET status = ${reached(challengeMoves.refuse)}, error = :error, cause = :cause
     WHERE id = :id AND ${leaving(challengeMoves.refuse, checked("status"))} RETURNING id`
})

const move = (name: keyof typeof authorizationMoves) =>
  statement({
    name: `authorization_${name}`,
    params: { id: joined.authzId },
    row: { id: joined.authzId },
    sql: () =>
      `UPDATE authorizations SET status = ${reached(authorizationMoves[name])}
       WHERE id = :id AND ${leaving(authorizationMoves[name])} RETURNING id`
  })

const moves = {
  accept: move("accept"),
  refuse: move("refuse"),
  expire: move("expire"),
  deactivate: move("deactivate")
}

const expireStatement = statement({
  name: "authorizations_expire",
  params: { orderId: joined.orderId },
  row: {},
  sql: () =>
    `UPDATE authorizations SET status = ${reached(authorizationMoves.expire)}
     WHERE order_id = :orderId AND ${leaving(authorizationMoves.expire)}`
})

const orphaned = statement({
  name: "challenge_without_job",
  params: { createdBefore: int, limit: int },
  row: { ...joined, profile: name(), accountId: uuid<AccountId>(), pubkey: bytes },
  sql: ({ idText }) =>
    `SELECT ${joinedColumns}, o.profile AS "profile", o.account_id AS "accountId", k.pubkey AS "pubkey" FROM ${joinedTables}
       JOIN accounts k ON k.id = o.account_id
     WHERE c.status = 'processing' AND c.created_at < :createdBefore
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.status IN ('ready', 'running') AND j.kind = 'challenge_validate'
         AND j.dedup_key = ${idText("c.id")})
     ORDER BY c.created_at, c.id LIMIT :limit`
})

type Account = { readonly profile: string; readonly accountId: AccountId }

/**
 * Returns the challenges of an authorization, in the order in which they were offered. Each row also contains the
 * authorization. If another account owns the authorization, there are no rows.
 */
export const find = (id: AuthorizationId, account: Account) => all(ofAuthorization, { id, ...account })

/** Finds a challenge of this account, with its authorization and order. */
export const findChallenge = (id: ChallengeId, account: Account) => first(byId, { id, ...account })

/**
 * Finds a pending challenge of this account, and locks its order until the transaction ends. With `withAccount`, also
 * locks the account. SQLite needs no locks, because it has only one writer.
 */
export const holdPending = (id: ChallengeId, account: Account, { withAccount }: { readonly withAccount: boolean }) =>
  Database.use(({ dialect }) =>
    first(dialect === "sqlite" ? pendingStatement : withAccount ? holdWithAccount : holdStatement, { id, ...account })
  )

/**
 * Finds a challenge with its authorization and order. This is for the validation job, which does not act for an
 * account.
 */
export const findForValidation = (id: ChallengeId, profile: string) => first(forValidation, { id, profile })

/**
 * Moves a challenge from `pending` to `processing`. Does nothing if the challenge is expired or no longer pending, or
 * if the account has reached its limit. A limit of 0 means no limit.
 */
export const claim = (
  params: Parameters<typeof first<typeof claimStatement.params, typeof claimStatement.row>>[1]
) => first(claimStatement, params)

/** Returns how many challenges of the account are being validated. */
export const countInFlight = (accountId: AccountId) =>
  Effect.map(first(inFlightStatement, { accountId }), (row) => row?.count ?? 0)

/** Moves a challenge from `processing` to `valid`. Returns `undefined` if this verdict came too late. */
export const accept = (id: ChallengeId, now: number) => first(acceptChallenge, { id, now })

/**
 * Moves a challenge that could be claimed now from `pending` straight to `valid`. Returns `undefined` if it could not
 * be claimed.
 */
export const bypass = (id: ChallengeId, alive: Alive) => first(bypassChallenge, { id, ...alive })

/** Moves a challenge from `processing` to `invalid`, with the error for the client and the cause for operators. */
export const refuse = (id: ChallengeId, error: ProblemDocument, cause: ValidationCause) =>
  first(refuseChallenge, { id, error, cause })

/**
 * Makes one of the moves in {@link authorizationMoves}. Returns `undefined` if the authorization is no longer in a
 * status from which the move is possible.
 */
export const transition = (name: keyof typeof authorizationMoves, id: AuthorizationId) => first(moves[name], { id })

/** Moves the pending authorizations of an order to `expired`. */
export const expire = (orderId: OrderId) => run(expireStatement, { orderId })

/** Finds `processing` challenges that have no live job, with the current keys of their accounts. */
export const findOrphaned = (createdBefore: number, limit: number) => lenient(orphaned, { createdBefore, limit })
