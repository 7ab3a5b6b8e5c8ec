import { assert, beforeAll, describe, it } from "vitest"
import { fullDisk } from "../faults/Disk.ts"
import { killApart } from "../faults/Kill.ts"
import { clientResets } from "../faults/Resets.ts"
import type { DatabaseName } from "../faults/Site.ts"
import type { Fault } from "../faults/Stage.ts"
import { NotPossible } from "../faults/Stage.ts"
import { builtServer, freshPostgresUrl } from "../support/Databases.ts"

/* A short version of `npm run faults`. The gate runs every fault on each of its databases. */

const little: ReadonlyArray<readonly [Fault, DatabaseName, rounds: number]> = [
  [killApart, "PostgreSQL", 2],
  [fullDisk, "SQLite", 1],
  [clientResets, "SQLite", 10]
]

const runs = little.map(([fault, database, rounds]) => ({ fault, rounds, database, name: fault.name }))

describe.concurrent("the service", () => {
  beforeAll(builtServer)

  it.each(runs)(
    "loses nothing that was acknowledged and does nothing twice, whatever fails ($name, $database)",
    async ({ database, fault, rounds }) => {
      const said: Array<string> = []
      const outcome = await fault.run({
        database,
        rounds,
        seed: "1",
        clients: 2,
        freshPostgresUrl,
        say: (text) => said.push(text)
      }).catch((error: unknown) => {
        // Without the right to mount, a disk cannot be filled, which `npm run faults` reports in its table.
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
    }
  )
})
