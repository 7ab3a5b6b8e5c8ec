import { assert, beforeAll, describe, it } from "vitest"
import { failedOver, restartedDatabase } from "../faults/DatabaseServer.ts"
import { fullDisk } from "../faults/Disk.ts"
import { nonceFlood } from "../faults/Floods.ts"
import { killApart } from "../faults/Kill.ts"
import { longQueue } from "../faults/LongQueue.ts"
import { clientResets, databaseResets } from "../faults/Resets.ts"
import type { DatabaseName } from "../faults/Site.ts"
import { slowHandshakes } from "../faults/SlowLoris.ts"
import type { Fault } from "../faults/Stage.ts"
import { NotPossible } from "../faults/Stage.ts"
import { stopWorker } from "../faults/Stop.ts"
import { builtServer, freshPostgresUrl } from "../support/Databases.ts"
import { isFull } from "../support/Full.ts"

/* What `npm run faults` does at length, each a little of it. */

type Little = readonly [Fault, DatabaseName, rounds: number]

/** What `npm test` has too. */
const least: ReadonlyArray<Little> = [
  [killApart, "PostgreSQL", 2],
  [fullDisk, "SQLite", 1],
  [clientResets, "SQLite", 10]
]

const little: ReadonlyArray<Little> = [
  ...least,
  [restartedDatabase, "PostgreSQL", 2],
  [stopWorker, "PostgreSQL", 1],
  [failedOver, "PostgreSQL", 1],
  [databaseResets, "PostgreSQL", 6],
  [slowHandshakes, "SQLite", 20],
  [nonceFlood, "SQLite", 300],
  [longQueue, "SQLite", 300],
  [longQueue, "PostgreSQL", 300]
]

const runs = (isFull ? little : least).map(([fault, database, rounds]) => ({
  fault,
  rounds,
  database,
  name: fault.name
}))

describe.concurrent("nothing acknowledged is lost and nothing happens twice", () => {
  beforeAll(builtServer)

  it.each(runs)("$name, $database", async ({ database, fault, rounds }) => {
    const said: Array<string> = []
    const outcome = await fault.run({
      database,
      rounds,
      seed: "1",
      clients: 2,
      freshPostgresUrl,
      say: (text) => said.push(text)
    }).catch((error: unknown) => {
      // A disk cannot be filled where nothing can be mounted; `npm run faults` says so in its table.
      if (error instanceof NotPossible) {
        process.stdout.write(`not run: ${fault.name} on ${database}, because ${error.message}\n`)
        return undefined
      }
      throw new Error(said.join("\n"), { cause: error })
    })
    if (outcome === undefined) return
    assert.deepStrictEqual([outcome.lost, outcome.twice], [[], []])
    assert.isAbove(outcome.acknowledged, 0)
    assert.isAtLeast(outcome.injected, rounds)
  })
})
