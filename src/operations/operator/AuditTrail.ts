import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { auditEvents } from "../../domain/Audit.ts"
import { NoSuch, UnknownWord } from "../../domain/OperatorError.ts"
import type { ReceiverName } from "../../domain/ReceiverName.ts"
import { inBatches } from "../../engine/sql/Pages.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as receiverRows from "../../store/AuditReceiverRows.ts"
import type { AuditFilters, AuditRecord } from "../../store/AuditSearch.ts"
import * as auditSearch from "../../store/AuditSearch.ts"
import type { AtKeyboard } from "../Operator.ts"
import { deletable, prune, pruneLinks } from "../work/AuditSweep.ts"
import { readForOperator } from "./OperatorReads.ts"

/* What operators can do with the audit trail: read its rows, and delete its old rows. */

interface Page {
  readonly limit: number
  readonly offset: number
}

/** Finds one row. */
export const find = Effect.fn("AuditTrail.find")(function*(id: string) {
  const row = /^\d{1,15}$/.test(id) ? yield* auditSearch.find(Number(id)) : undefined
  return row ?? (yield* new NoSuch({ noun: "audit row", id }))
})

/**
 * Refuses an event that this version does not know and that no row has. An empty list would suggest that the event is
 * possible but never happened.
 */
export const checkEvent = Effect.fn("AuditTrail.checkEvent")(function*(event: string | undefined) {
  if (event === undefined || auditEvents.some((known) => known === event)) return
  if (yield* auditSearch.hasEvent(event)) return
  return yield* new UnknownWord({ name: "event", word: event.slice(0, 64), known: auditEvents })
})

/** The filters of a list: the filters of the store, and the id of the request that caused the rows. */
export type TrailFilters = AuditFilters & { readonly requestId?: string | undefined }

/** Returns whether a row meets all filters except the request. */
export const isMatch = (filters: AuditFilters) => (row: AuditRecord): boolean => {
  const { since = 0, until = Number.POSITIVE_INFINITY, ...exact } = filters
  return row.createdAt >= since && row.createdAt < until &&
    Object.entries(exact).every(([name, value]) => value === undefined || row[name as keyof typeof exact] === value)
}

const batch = 1000
const mostOfRequest = 10_000

/**
 * Returns the rows of one request, up to a limit. Usually a request has a few rows, but a proxy may give the same id to
 * every request (docs/contribute/decisions/audit-rows.md, "Reading").
 */
const ofRequest = Effect.fnUntraced(function*(filters: AuditFilters, requestId: string, { limit, offset }: Page) {
  const found: Array<AuditRecord> = []
  let [read, truncated] = [0, false]
  for (let before = { beforeTime: Number.MAX_SAFE_INTEGER, beforeId: Number.MAX_SAFE_INTEGER };;) {
    const rows = yield* auditSearch.ofRequest(requestId, { ...before, limit: batch })
    found.push(...rows.filter(isMatch(filters)))
    read += rows.length
    const last = rows.at(-1)
    if (last === undefined || rows.length < batch) break
    truncated = read >= mostOfRequest
    if (truncated) break
    before = { beforeTime: last.createdAt, beforeId: last.id }
    yield* Effect.yieldNow
  }
  return { items: found.slice(offset, offset + limit), total: found.length, truncated }
})

/**
 * Returns a page of the trail, newest first, and the number of matching rows. `truncated` is true if the search for the
 * rows of a request ended early.
 */
export const list = (filters: TrailFilters, page: Page) =>
  readForOperator(Effect.gen(function*() {
    const { requestId, ...indexed } = filters
    if (requestId !== undefined) return yield* ofRequest(indexed, requestId, page)
    const items = yield* auditSearch.search(indexed, page)
    return { items, total: yield* auditSearch.countMatches(indexed), truncated: false }
  }))

const daySeconds = 86_400

/**
 * Returns which rows older than `olderThanDays` days may be deleted. Rows that a receiver has not taken are kept. Without
 * `receivers`, every receiver counts that rows were ever pushed to.
 */
const deletableOf = Effect.fnUntraced(function*(
  olderThanDays: number,
  receivers: ReadonlyArray<ReceiverName> | undefined
) {
  const before = (yield* currentSeconds) - olderThanDays * daySeconds
  return yield* deletable(receivers ?? (yield* receiverRows.list).map(({ name }) => name), before)
})

/** Counts the rows that {@link cleanup} would delete. `waitsFor` is the receiver for which older rows are kept. */
export const preview = Effect.fn("AuditTrail.preview")(function*(
  olderThanDays: number,
  receivers?: ReadonlyArray<ReceiverName>
) {
  const { before, waitsFor } = yield* deletableOf(olderThanDays, receivers)
  return { rows: yield* auditSearch.countMatches({ until: before }), waitsFor }
})

/**
 * Deletes the rows that {@link preview} counts, a thousand in each transaction ({@link prune}). An interruption takes
 * effect between two transactions. After each transaction, `told` is called with the number of rows deleted so far.
 */
export const cleanup = Effect.fn("AuditTrail.cleanup")(function*(
  operator: AtKeyboard,
  olderThanDays: number,
  { receivers, told = () => Effect.void }: {
    readonly receivers?: ReadonlyArray<ReceiverName> | undefined
    readonly told?: (gone: number) => Effect.Effect<void>
  } = {}
) {
  const rows = yield* deletableOf(olderThanDays, receivers)
  const removed = yield* Ref.make(0)
  const pruned = prune({ actorKind: operator.kind, actorId: operator.id }, rows)
  const pass = (limit: number) =>
    Effect.uninterruptible(Effect.tap(pruned(limit), (gone) => Ref.update(removed, (sum) => sum + gone)))
  yield* inBatches(batch, (limit) => Effect.tap(pass(limit), Effect.flatMap(Ref.get(removed), told)))
  if ((yield* Ref.get(removed)) > 0) yield* pruneLinks(rows.before)
  return { removed: yield* Ref.get(removed), cutoff: rows.before }
})
