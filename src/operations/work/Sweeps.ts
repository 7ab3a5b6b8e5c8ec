import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { importSpki } from "../../crypto/jose/Jwk.ts"
import { IssuanceAbandoned } from "../../domain/AcmeError.ts"
import { OrderId } from "../../domain/Id.ts"
import { expiryOf } from "../../domain/Order.ts"
import { problemOf, problemType } from "../../domain/Problem.ts"
import type { ReceiverName } from "../../domain/ReceiverName.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { clocks } from "../../engine/queue/Clocks.ts"
import * as jobs from "../../engine/queue/Job.ts"
import { shareOf } from "../../engine/queue/Job.ts"
import type { Queue } from "../../engine/queue/Queue.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { Database, transaction } from "../../engine/sql/Database.ts"
import { inBatches, pages } from "../../engine/sql/Pages.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config, ProfileConfig } from "../../settings/AppConfig.ts"
import * as audit from "../../store/AuditRows.ts"
import * as authorizations from "../../store/AuthorizationRows.ts"
import * as nonces from "../../store/NonceRows.ts"
import * as expiredOrders from "../../store/orders/ExpiredOrders.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as orphanedRows from "../../store/orders/OrphanedCertificateRows.ts"
import * as http01Tokens from "../../store/upstream/Http01Tokens.ts"
import * as upstreamOrders from "../../store/upstream/UpstreamOrderRows.ts"
import { deletable, prune, pruneLinks } from "./AuditSweep.ts"
import * as orphans from "./OrphanedCertificates.ts"
import * as unknownEnds from "./UnknownEnds.ts"

const daySeconds = 86_400

/** Deletes nonces that can no longer be used. */
export const sweepNonces = (ttlSeconds: number): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    const { earlier: now } = yield* clocks
    const rows_removed = yield* inBatches(1000, (limit) => nonces.sweep(now - ttlSeconds, limit))
    yield* emit("nonce_reaper_swept", { rows_removed })
  })

/** Deletes expired tokens of the relay that the relay itself did not remove. */
export const sweepHttp01Tokens: Effect.Effect<void, StorageFailed, Database> = Effect.gen(function*() {
  const { earlier: now } = yield* clocks
  const rows_removed = yield* inBatches(1000, (limit) => http01Tokens.sweep(now, limit))
  yield* emit("http_01_token_reaper_swept", { rows_removed })
})

const pageOfOrders = 500
/**
 * The highest number of orders that one transaction changes or deletes. Each order may have a hundred authorizations
 * with three challenges each.
 */
const ordersAtOnce = 20

/**
 * Moves the authorizations of orders that expired within the last day to `expired`. Each transaction handles a few
 * orders. Each order is visited only once, because an attacker can leave many orders behind.
 */
const expireAuthorizations = (
  profile: string,
  { createdBefore, now }: { readonly createdBefore: number; readonly now: number }
) =>
  Effect.forEach(["pending", "invalid"] as const, (status) =>
    pages({
      from: { afterTime: createdBefore - daySeconds, afterId: OrderId("00000000-0000-0000-0000-000000000000") },
      size: pageOfOrders,
      read: (after, limit) => expiredOrders.page({ profile, status, createdBefore, now, limit, ...after }),
      keyOf: ({ createdAt, id }) => ({ afterTime: createdAt, afterId: id })
    }).pipe(
      Stream.flattenIterable,
      Stream.grouped(ordersAtOnce),
      Stream.runForEach((some) =>
        Effect.tap(
          transaction(Effect.forEach(some, ({ id }) => authorizations.expire(id), { discard: true })),
          Effect.yieldNow
        )
      )
    ), { discard: true })

const sweepProfile = (name: string, order: ProfileConfig["order"]) =>
  Effect.gen(function*() {
    const { earlier: now } = yield* clocks
    const expiredBefore = now - order.validity_seconds
    yield* expireAuthorizations(name, { createdBefore: expiredBefore, now })
    const kept = order.retention_days * daySeconds
    const before = { createdBefore: expiredBefore - kept, expiredBefore: now - kept }
    yield* inBatches(500, () => unknownEnds.fill(name))
    const rows_removed = order.retention_days === 0
      ? 0
      : yield* inBatches(ordersAtOnce, (limit) => expiredOrders.sweep(name, { ...before, limit }))
    yield* emit("order_reaper_swept", { profile: name, rows_removed })
  })

/** The number of days for which an orphaned certificate is still listed after its expiry. */
const orphanDays = 30

/**
 * Runs the daily sweep of orders. Moves the authorizations of expired orders to `expired`. Deletes unfinished and
 * failed orders after their retention time, with everything that belongs to them. For a profile that is no longer
 * mounted, the process-wide settings are used.
 */
export const sweepOrders = (
  config: Pick<Config, "order" | "profiles">
): Effect.Effect<void, StorageFailed, Database | Queue> =>
  Effect.gen(function*() {
    yield* recover(config) // this comes first, because it is short and clients wait for its result
    const mounted = new Map(config.profiles.map((profile) => [profile.name, profile.order]))
    const stored = yield* orders.profiles
    const { earlier: now } = yield* clocks
    yield* inBatches(500, (limit) => orphanedRows.sweep(now - orphanDays * daySeconds, limit))
    for (const name of new Set([...mounted.keys(), ...stored.map(({ profile }) => profile)])) {
      yield* sweepProfile(name, mounted.get(name) ?? config.order)
    }
  })

/**
 * Deletes rows of the audit trail older than `audit.retention_days`. Rows that a receiver has not taken are kept, and
 * that is logged.
 */
export const sweepAudit = (
  retentionDays: number,
  receivers: ReadonlyArray<ReceiverName> = []
): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    const { earlier: now } = yield* clocks
    const rows = yield* deletable(receivers, now - retentionDays * daySeconds)
    if (rows.waitsFor !== undefined) {
      yield* emit("audit_reaper_waits", { receiver: rows.waitsFor, audit_row: rows.upto })
    }
    const rows_removed = yield* inBatches(1000, prune({ actorKind: "system", actorId: undefined }, rows))
    if (rows_removed > 0) yield* pruneLinks(rows.before)
    yield* emit("audit_reaper_swept", { rows_removed })
  })

/** Deletes settled jobs older than `jobs.retention_days`. */
export const sweepJobs = (retentionDays: number): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    const { earlier: now } = yield* clocks
    const rows_removed = yield* inBatches(1000, (limit) => jobs.sweep(now - retentionDays * daySeconds, limit))
    yield* emit("job_reaper_swept", { rows_removed })
  })

const youngSeconds = 60
const jobGone = "its signing job is gone"

/** Moves a `processing` order to `invalid`, and also the record of its upstream order. */
const failStuck = (orderId: OrderId, profile: string, now: number) =>
  Effect.tap(
    orders.failIssuance(orderId, problemOf(new IssuanceAbandoned())),
    (failed) =>
      failed === undefined
        ? Effect.void
        : endLeft(orderId, profile, now)
  )

/** Ends an order whose relaying job is gone. The upstream may have issued a certificate for the order. */
const endLeft = Effect.fnUntraced(function*(orderId: OrderId, profile: string, now: number) {
  const row = yield* upstreamOrders.find(orderId)
  if (row !== undefined) yield* orphans.lookAfter({ order_id: orderId, profile }, row)
  yield* upstreamOrders.end({ orderId, status: "invalid", error: jobGone, now })
})

/**
 * Repairs what a crash can leave behind (docs/contribute/decisions/job-outcomes.md, "After a crash"). If a challenge
 * under validation has no job, a job is queued for it, with the account's current key. If a processing order has no job
 * any more, the order becomes `invalid`. Rows younger than a minute are not touched.
 */
export const recover = (
  config: Pick<Config, "order" | "profiles">
): Effect.Effect<void, StorageFailed, Database | Queue> =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const validity = new Map(config.profiles.map((profile) => [profile.name, profile.order.validity_seconds]))
    for (const challenge of yield* authorizations.findOrphaned(now - youngSeconds, 1000)) {
      const { profile } = challenge
      yield* enqueueJob({
        kind: "challenge_validate",
        dedupKey: challenge.id,
        payload: { challenge_id: challenge.id, profile, thumbprint: importSpki(challenge.pubkey).thumbprint },
        deadline: expiryOf(challenge, validity.get(profile) ?? config.order.validity_seconds),
        share: shareOf(profile, challenge.accountId)
      })
    }
    for (const { accountId, id, identifiers, profile } of yield* orders.findStuck(now - youngSeconds, 1000)) {
      const row = audit.insert({
        event: "certificate_issue_failed",
        actorKind: "system",
        actorId: undefined,
        accountId,
        orderId: id,
        identifiers: identifiers.map(({ value }) => value),
        reason: problemType(new IssuanceAbandoned()),
        profile,
        detail: { cause: "attempts_exhausted", error: jobGone }
      })
      const failed = yield* audit.changing(Effect.andThen(orders.lock(id), failStuck(id, profile, now)), row)
      if (failed !== undefined) yield* emit("order_finalize_abandoned", { order_id: id, error: jobGone })
    }
  })
