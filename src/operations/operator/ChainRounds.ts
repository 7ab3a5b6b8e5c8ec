import * as Effect from "effect/Effect"
import { nameOfHead, readHead } from "../../domain/AuditChain.ts"
import type { Busy } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as checks from "../../store/ChainChecks.ts"
import { verify } from "./ChainVerification.ts"

/*
 * Checks the chain of the audit trail each day, in steps that a job runs (docs/contribute/decisions/audit-chain.md,
 * "The daily check").
 */

/** From the begin of a check to the begin of the next one, in seconds. */
export const roundSeconds = 86_400

/** After about this number of rows a step ends, which takes less than a second. */
const rowsOfStep = 20_000

/** A check that began this far in the future was begun by a wrong clock. */
const aheadSeconds = 3600

/** Returns the last check. Begins one if that check has ended and began a day ago. */
const current = Effect.fnUntraced(function*(now: number) {
  const known = yield* checks.find
  const isEnded = known?.endedAt !== undefined && known.endedAt >= known.begunAt
  const isDue = known === undefined || (isEnded && now - known.begunAt >= roundSeconds) ||
    known.begunAt > now + aheadSeconds
  if (!isDue) return { check: known, isEnded }
  yield* checks.begin(now)
  return { check: yield* checks.find, isEnded: false }
})

/**
 * Makes one step of the check. Returns how many seconds to wait before the next step. `keyPath` is the value of
 * `audit.chain_key_path`.
 *
 * A whole check also compares the head that was newest at the end of the check before, so that links that were removed
 * from the end of the chain are found.
 */
export const checkStep = (
  keyPath: string,
  mostRows = rowsOfStep
): Effect.Effect<number, StorageFailed | Busy, Database> =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const { check, isEnded } = yield* current(now)
    if (check === undefined) return 0
    if (isEnded) return Math.min(roundSeconds, check.begunAt + roundSeconds - now)
    const { head, nextSequence: from } = check
    const held = from === undefined && head !== undefined ? readHead(head) : undefined
    const found = yield* Effect.catchTag(
      verify({ after: from, held, mostRows, keyPath, isBrief: true }),
      "NoSuch",
      () => Effect.succeed(undefined)
    )
    if (found === undefined) {
      // The retention has deleted the link after which this step should begin.
      yield* checks.begin(now)
      return 0
    }
    const { faultsFound: faults, next, verified } = found
    if (next !== undefined) {
      yield* checks.step({ from, next, verified, faults })
      return 0
    }
    const newest = found.head === undefined ? undefined : nameOfHead(found.head)
    const ended = yield* checks.end({ from, verified, faults, head: newest, now })
    if (ended !== undefined) {
      yield* emit("audit_chain_checked", { rows_verified: ended.verified, faults: ended.faults, head: newest })
    }
    return roundSeconds
  })
