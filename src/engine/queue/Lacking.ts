import * as Effect from "effect/Effect"
import { int, text } from "../sql/Column.ts"
import { all } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"
import { clocks } from "./Clocks.ts"
import { here, isGone } from "./Workers.ts"

/* Processes of an older version, which do not know what this version knows. */

/** A process that was not seen for this number of seconds does not refresh its row. */
const presentSeconds = 30

/** A row that is this far in the future says nothing, because no clock can be that wrong. */
const wrongAfterSeconds = 172_800

const lackingStatement = statement({
  name: "worker_lacking",
  params: { word: text(), since: int, until: int },
  row: { owner: text() },
  sql: () =>
    `SELECT owner FROM workers
     WHERE (' ' || coalesce(knows, '') || ' ') NOT LIKE ('% ' || :word || ' %') AND last_seen_at BETWEEN :since AND :until ORDER BY owner`
})

/**
 * Returns a running process that does not know a word, or undefined if there is none. A process writes the words that
 * its version knows into its row of `workers`.
 */
export const lacking = (word: string) =>
  Effect.gen(function*() {
    const { later } = yield* clocks
    const found = yield* all(lackingStatement, {
      word,
      since: later - presentSeconds,
      until: later + wrongAfterSeconds
    })
    const gone = isGone(here())
    return found.find(({ owner }) => !gone(owner))?.owner
  })
