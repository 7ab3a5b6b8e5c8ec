import * as Effect from "effect/Effect"
import type { AuthorizationStatus } from "../../domain/Authorization.ts"
import type { ChallengeStatus, ChallengeType } from "../../domain/Challenge.ts"
import type { AuthorizationId, ChallengeId, OrderId } from "../../domain/Id.ts"
import { int, members, nullable, text, texts, uuid } from "../../engine/sql/Column.ts"
import { first, lenient, lenientFirst } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { causeColumn, identifierColumn, problemColumn } from "../Columns.ts"

/* The details of one order, for operators who want to know why the order has its status. */

const challenge = {
  authzId: uuid<AuthorizationId>(),
  identifier: identifierColumn,
  authzStatus: text<AuthorizationStatus>(),
  createdAt: int,
  expiresAt: nullable(int),
  id: nullable(uuid<ChallengeId>()),
  type: nullable(text<ChallengeType>()),
  status: nullable(text<ChallengeStatus>()),
  validatedAt: nullable(int),
  error: nullable(problemColumn),
  cause: nullable(causeColumn)
}

const challengesStatement = statement({
  name: "order_detail_challenges",
  params: { orderId: uuid<OrderId>() },
  row: challenge,
  sql: () =>
    `SELECT a.id AS "authzId", a.identifier AS "identifier", a.status AS "authzStatus", a.created_at AS "createdAt",
       o.expires_at AS "expiresAt", c.id AS "id", c.type AS "type", c.status AS "status", c.validated_at AS "validatedAt", c.error AS "error", c.cause AS "cause"
     FROM orders o JOIN authorizations a ON a.order_id = o.id LEFT JOIN challenges c ON c.authz_id = a.id WHERE o.id = :orderId
     ORDER BY a.id, c.position`
})

const failureStatement = statement({
  name: "order_detail_failure",
  params: { orderId: text() },
  row: {
    detail: members<{ readonly cause?: string }>(),
    requestId: nullable(text())
  },
  sql: ({ checked }) =>
    `SELECT detail AS "detail", request_id AS "requestId" FROM audit_log
     WHERE order_id = :orderId AND ${checked("event")} = 'certificate_issue_failed' ORDER BY id DESC LIMIT 1`
})

const notGrantedStatement = statement({
  name: "order_detail_not_granted",
  params: { orderId: uuid<OrderId>() },
  row: { extensions: nullable(texts) },
  sql: () => `SELECT not_granted AS "extensions" FROM orders WHERE id = :orderId`
})

/** A challenge, with its authorization. An authorization that a credential made valid has no challenge. */
export type ChallengeRecord = Effect.Success<ReturnType<typeof challengesOf>>[number]

/** Returns the challenges of an order, grouped by authorization. */
export const challengesOf = (orderId: OrderId) => lenient(challengesStatement, { orderId })

const isChallengedStatement = statement({
  name: "order_is_challenged",
  params: { orderId: uuid<OrderId>() },
  row: { id: uuid<ChallengeId>() },
  sql: () =>
    `SELECT c.id AS "id" FROM authorizations a JOIN challenges c ON c.authz_id = a.id WHERE a.order_id = :orderId LIMIT 1`
})

/** Returns whether an order has challenges. It has none if a credential made its authorizations valid. */
export const isChallenged = (orderId: OrderId) =>
  Effect.map(first(isChallengedStatement, { orderId }), (row) => row !== undefined)

/** Returns the last failed issuance of an order in the audit trail. */
export const failureOf = (orderId: OrderId) => lenientFirst(failureStatement, { orderId })

/** Returns the extensions that the CSR requested but the certificate lacks, if there are any. */
export const notGrantedOf = (orderId: OrderId) =>
  Effect.map(lenientFirst(notGrantedStatement, { orderId }), (row) => row?.extensions)
