import { Effect, Schema } from "effect"
import type { AuthorizationStatus } from "../../domain/Authorization.ts"
import type { ChallengeStatus, ChallengeType } from "../../domain/Challenge.ts"
import type { AuthorizationId, ChallengeId, JobId, OrderId } from "../../domain/Id.ts"
import type { JobKind, JobStatus } from "../../domain/Job.ts"
import { int, json, nullable, text, uuid } from "./Column.ts"
import { all, first } from "./Database.ts"
import { storedProblem } from "./orders.ts"
import { statement } from "./Statement.ts"

/* What belongs to one order, for the people who ask why it is as it is. */

const challenge = {
  authzId: uuid<AuthorizationId>(),
  identifier: json(Schema.Struct({ type: Schema.Literal("dns"), value: Schema.String })),
  authzStatus: text<AuthorizationStatus>(),
  createdAt: int,
  id: uuid<ChallengeId>(),
  type: text<ChallengeType>(),
  status: text<ChallengeStatus>(),
  validatedAt: nullable(int),
  error: nullable(storedProblem)
}

const challengesStatement = statement({
  name: "order_detail_challenges",
  params: { orderId: uuid<OrderId>() },
  row: challenge,
  sql: () =>
    `SELECT a.id AS "authzId", a.identifier AS "identifier", a.status AS "authzStatus", a.created_at AS "createdAt",
       c.id AS "id", c.type AS "type", c.status AS "status", c.validated_at AS "validatedAt", c.error AS "error"
     FROM authorizations a JOIN challenges c ON c.authz_id = a.id WHERE a.order_id = :orderId
     ORDER BY a.id, c.position`
})

const job = {
  id: uuid<JobId>(),
  kind: text<JobKind>(),
  dedupKey: text(),
  status: text<JobStatus>(),
  runAt: int,
  attempts: int,
  maxAttempts: int,
  deadline: nullable(int),
  leaseUntil: nullable(int),
  leaseOwner: nullable(text()),
  lastError: nullable(text()),
  createdAt: int,
  updatedAt: int
}

const jobColumns = `id AS "id", kind AS "kind", dedup_key AS "dedupKey", status AS "status", run_at AS "runAt",
  attempts AS "attempts", max_attempts AS "maxAttempts", deadline AS "deadline", lease_until AS "leaseUntil",
  lease_owner AS "leaseOwner", last_error AS "lastError", created_at AS "createdAt", updated_at AS "updatedAt"`

const jobsStatement = statement({
  name: "order_detail_jobs",
  params: { orderId: uuid<OrderId>(), key: text() },
  row: job,
  sql: ({ idText }) =>
    `SELECT ${jobColumns} FROM jobs WHERE dedup_key = :key OR dedup_key IN (SELECT ${idText("c.id")}
       FROM authorizations a JOIN challenges c ON c.authz_id = a.id WHERE a.order_id = :orderId)
     ORDER BY created_at DESC, id DESC`
})

const jobStatement = statement({
  name: "job_by_id",
  params: { id: job.id },
  row: job,
  sql: () => `SELECT ${jobColumns} FROM jobs WHERE id = :id`
})

const failureStatement = statement({
  name: "order_detail_failure",
  params: { orderId: text() },
  row: {
    detail: json(Schema.Struct({ cause: Schema.optional(Schema.String) })),
    requestId: nullable(text())
  },
  sql: () =>
    `SELECT detail AS "detail", request_id AS "requestId" FROM audit_log
     WHERE order_id = :orderId AND event = 'certificate_issue_failed' ORDER BY id DESC LIMIT 1`
})

/** A row of the queue as operators are shown it, without its payload. */
export type JobRecord = NonNullable<Effect.Effect.Success<ReturnType<typeof findJob>>>

/** A challenge with its authorization. */
export type ChallengeRecord = Effect.Effect.Success<ReturnType<typeof challengesOf>>[number]

/** Challenges of an order, authorization by authorization. */
export const challengesOf = (orderId: OrderId) => all(challengesStatement, { orderId })

/** Jobs about an order or one of its challenges, newest first. */
export const jobsOf = (orderId: OrderId) => all(jobsStatement, { orderId, key: orderId })

/** One job. */
export const findJob = (id: JobId) => first(jobStatement, { id })

/** The last audited failure to issue. */
export const failureOf = (orderId: OrderId) => first(failureStatement, { orderId })
