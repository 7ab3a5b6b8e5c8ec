import * as Effect from "effect/Effect"
import type { ReceiverName } from "../../domain/ReceiverName.ts"
import { receiverNames } from "../../domain/ReceiverName.ts"
import { member, timeMember } from "../../engine/Members.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as receivers from "../../store/AuditReceiverRows.ts"
import { lastRow } from "../../store/AuditSignals.ts"
import { timeAfter } from "../../store/ChainedRows.ts"

/* How far the receivers of the audit trail are, as operators and monitoring see it. */

/** How far a receiver is behind. */
export interface Lag {
  readonly rows: number
  readonly seconds: number
}

const lagBehind = Effect.fnUntraced(function*(pushedId: number) {
  const [newest, next, now] = [yield* lastRow, yield* timeAfter(pushedId), yield* currentSeconds]
  return next === undefined
    ? { rows: 0, seconds: 0 }
    : { rows: Math.max(0, (newest?.id ?? 0) - pushedId), seconds: Math.max(0, now - next) }
})

/**
 * Returns how far a receiver is behind: the distance to the number of the newest row, and the age of the oldest row that
 * the receiver has not taken. Some numbers have no row, so the distance may be more than the number of rows.
 */
export const lag = (name: ReceiverName) => Effect.flatMap(receivers.find(name), (row) => lagBehind(row?.pushedId ?? 0))

/**
 * Lists the receivers that are configured, and those that rows were pushed to earlier. `configured` is undefined if the
 * configuration is not known.
 */
export const list = Effect.fn("AuditReceiverRecords.list")(function*(
  configured: ReadonlyArray<ReceiverName> | undefined
) {
  const rows = yield* receivers.list
  const wanted = receiverNames.filter((name) =>
    configured?.includes(name) === true || rows.some((row) => row.name === name)
  )
  return yield* Effect.forEach(wanted, (name) => {
    const row = rows.find((one) => one.name === name)
    return Effect.map(lagBehind(row?.pushedId ?? 0), ({ rows: lagRows, seconds: lagSeconds }) => ({
      name,
      ...member("configured", configured?.includes(name)),
      pushedId: row?.pushedId ?? 0,
      ...timeMember("pushedAt", row?.pushedAt),
      lagRows,
      lagSeconds,
      failures: row?.failures ?? 0,
      ...timeMember("failingSince", row?.failingSince),
      ...member("error", row?.error),
      ...member("lostUpto", row?.lostUpto)
    }))
  })
})

/** A receiver as operators see it. */
export type ReceiverObject = Effect.Success<ReturnType<typeof list>>[number]
