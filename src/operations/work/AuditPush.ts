import * as Effect from "effect/Effect"
import { emit } from "../../domain/words/Log.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds, lifeMillis } from "../../engine/Time.ts"
import type { AuditReceiver, PushedRow, PushFailed } from "../../services/audit/AuditReceiver.ts"
import type { ReceiverRow } from "../../store/AuditReceiverRows.ts"
import * as receivers from "../../store/AuditReceiverRows.ts"
import { auditObject } from "../AuditRowObject.ts"
import { settledAfter } from "./SettledRows.ts"

/* Pushes the rows of the audit trail to a receiver (docs/contribute/decisions/audit-push.md). */

/** The highest number of rows that are sent at once. */
const mostRows = 500
/** About how many octets of rows are sent at once, if there is more than one row. */
const mostOctets = 1_048_576
/** A pass begins no further attempt after this time. */
const passMillis = 30_000

/** How long a pass may take if each attempt takes up to its time limit, in milliseconds. */
export const passBudgetMillis = ({ timeoutMillis }: AuditReceiver): number => passMillis + timeoutMillis + 15_000

/** The first wait after a failure, and the longest wait, also if a receiver asks for a longer one. */
const waits = { first: 5, growsTo: 300, longest: 3600 }

/** The longest time until a receiver is tried again, in seconds. */
export const longestPushWait = waits.longest

const waitAfter = (failures: number, { afterSeconds = 0 }: PushFailed): number =>
  Math.max(
    Math.min(waits.first * 2 ** Math.min(failures - 1, 10), waits.growsTo),
    Math.min(afterSeconds, waits.longest)
  )

/** Returns the first rows that are not too many octets together, but at least one row. */
const within = (rows: ReadonlyArray<PushedRow>): ReadonlyArray<PushedRow> => {
  let octets = 0
  const end = rows.findIndex((row) => {
    octets += JSON.stringify(row).length
    return octets > mostOctets
  })
  return end < 0 ? rows : rows.slice(0, Math.max(1, end))
}

/** Sends rows. If they are too many octets for the receiver, sends fewer, down to one. Returns the rows that were sent. */
const sendSome = Effect.fnUntraced(function*(receiver: AuditReceiver, all: ReadonlyArray<PushedRow>) {
  for (let rows = all;; rows = rows.slice(0, Math.floor(rows.length / 2))) {
    const sent = yield* Effect.result(receiver.send(rows))
    if (sent._tag === "Success") return rows
    if (sent.failure.isTooLarge !== true || rows.length <= 1) return yield* sent.failure
  }
})

/** Tells once that the retention has deleted rows that the receiver never got. */
const tellLost = Effect.fnUntraced(function*({ lostUpto, name, pushedId }: ReceiverRow) {
  if (lostUpto === undefined) return
  yield* emit("audit_push_rows_lost", { receiver: name, audit_row: pushedId, last_row: lostUpto })
  yield* receivers.told(name, lostUpto)
})

/** Stores a failed attempt. Returns the wait before the next one, in seconds. */
const refused = Effect.fnUntraced(function*(receiver: AuditReceiver, at: ReceiverRow, failure: PushFailed) {
  const { name, pushedId, repeatFrom } = at
  const to = receiver.confirms ? pushedId : repeatFrom
  const error = failure.detail
  const failures = yield* receivers.failed({ name, from: pushedId, to, now: yield* currentSeconds, error })
  if (failures === undefined) return undefined // another process pushes
  const wait = waitAfter(failures, failure)
  yield* emit("audit_push_failed", { receiver: name, audit_row: to, failures, wait_ms: wait * 1000, error })
  return wait
})

/** What a pass has done. */
export interface Pushed {
  readonly rows: number
  /** Whether there may be more rows that can be sent at once. */
  readonly hasMore: boolean
  /** How long to wait after a failure, in seconds. */
  readonly waitSeconds?: number
}

/**
 * Sends the committed rows that a receiver has not taken, in the order of their ids. The position of the receiver moves
 * only after it has taken the rows, so an interruption or a crash sends rows twice but loses none. No insert waits for
 * this.
 */
export const pushRows = (receiver: AuditReceiver): Effect.Effect<Pushed, StorageFailed, Database> =>
  Effect.gen(function*() {
    const { confirms, name } = receiver
    const begun = yield* lifeMillis
    let rows = 0
    if ((yield* receivers.find(name)) === undefined) {
      yield* receivers.begin(name)
      yield* emit("audit_push_begun", { receiver: name, audit_row: 0 })
    }
    const first = yield* receivers.find(name)
    if (first === undefined) return { rows, hasMore: true } // a restored database has forgotten it meanwhile
    yield* tellLost(first)
    const { isSettled, upto } = yield* settledAfter(first.pushedId)
    if (!isSettled) {
      yield* emit("audit_push_postponed", { receiver: name, audit_row: first.pushedId })
      return { rows, hasMore: false }
    }
    for (let at: ReceiverRow = first; (yield* lifeMillis) - begun < passMillis;) {
      const page = yield* receivers.rows({ after: at.pushedId, upto, limit: mostRows })
      if (page.length === 0) return { rows, hasMore: false }
      const sent = yield* Effect.result(sendSome(receiver, within(page.map(auditObject))))
      if (sent._tag === "Failure") {
        const waitSeconds = yield* refused(receiver, at, sent.failure)
        return { rows, hasMore: false, ...waitSeconds === undefined ? {} : { waitSeconds } }
      }
      const [from, to] = [at.pushedId, sent.success.at(-1)?.id ?? at.pushedId]
      const repeatFrom = confirms ? to : from
      const isMoved = yield* receivers.moved({ name, from, to, repeatFrom, now: yield* currentSeconds })
      if (!isMoved) return { rows, hasMore: false } // another process pushes
      if (at.failures > 0) yield* emit("audit_push_recovered", { receiver: name, audit_row: to, failures: at.failures })
      rows += sent.success.length
      at = { ...at, pushedId: to, repeatFrom, failures: 0 }
      yield* Effect.yieldNow
    }
    return { rows, hasMore: true }
  })
