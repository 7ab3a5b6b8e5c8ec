import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Fault, Outcome, Stage } from "./Stage.ts"
import { siteOn, under } from "./Stage.ts"

const dayMillis = 86_400_000

/** How long an order may take once the clock is right again, including a retry of a client. */
const promisedSeconds = 20

const shim = pathToFileURL(join(import.meta.dirname, "../support/ShiftedClock.ts")).href

/** The clocks of processes. Each clock is set by a file. */
class Clocks {
  private readonly directory = mkdtempSync(join(tmpdir(), "acme-clock-"))

  private file(index: number): string {
    return join(this.directory, `${index}`)
  }

  env(index: number): Readonly<Record<string, string>> {
    return { NODE_OPTIONS: `--import=${shim}`, ACME_TEST_CLOCK: this.file(index) }
  }

  /** Sets the clock of a process `millis` milliseconds ahead. */
  set(index: number, millis: number): void {
    writeFileSync(this.file(index), `${millis}`)
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}

/** Returns seconds until every client has received another acknowledging answer. */
const goesOn = async ({ load, means: { clients } }: Stage): Promise<number> => {
  const begun = performance.now()
  await load.ledger.acknowledged.more(clients)
  return (performance.now() - begun) / 1000
}

const heldTo = (stage: Stage, what: string, seconds: number): void => {
  stage.measured(`${what} ${seconds.toFixed(1)} s`)
  if (seconds > promisedSeconds) throw new Error(`${what}: it took ${seconds.toFixed(1)} s until work went on`)
}

const withClocks = async (run: (clocks: Clocks) => Promise<Outcome>): Promise<Outcome> => {
  const clocks = new Clocks()
  try {
    return await run(clocks)
  } finally {
    clocks.remove()
  }
}

/** The clock of the host is set a day ahead under load, and is then corrected. */
export const clockJumps: Fault = {
  name: "clock a day ahead and back",
  databases: ["SQLite", "PostgreSQL"],
  isTimed: true,
  rounds: 2,
  run: (means) =>
    withClocks(async (clocks) =>
      under(means, { ...await siteOn(means), env: clocks.env(0) }, async (stage) => {
        const { load, means: { clients, rounds } } = stage
        for (let round = 0; round < rounds; round++) {
          clocks.set(0, dayMillis)
          await load.ledger.acknowledged.more(8 * clients)
          clocks.set(0, 0)
          heldTo(stage, "went on after", await goesOn(stage))
          await load.ledger.acknowledged.more(2 * clients)
        }
        // The audit waits until the queue has only periodic jobs, and so finds a job that waits for a time of the wrong
        // clock.
        return 2 * rounds
      })
    )
}

/** The clock of the serving host is 40 s ahead of the clock of the working host, and then 40 s behind it. */
export const clocksApart: Fault = {
  name: "clocks of two hosts 40 s apart",
  databases: ["PostgreSQL"],
  isTimed: true,
  rounds: 1,
  run: (means) =>
    withClocks(
      async (clocks) =>
        under(means, { ...await siteOn(means), workers: 1, envOf: (index) => clocks.env(index) }, async (stage) => {
          for (let round = 0; round < means.rounds; round++) {
            for (const ahead of [40_000, -40_000]) {
              clocks.set(0, ahead)
              heldTo(stage, ahead > 0 ? "ahead" : "behind", await goesOn(stage))
              await stage.load.ledger.acknowledged.more(2 * means.clients)
            }
          }
          clocks.set(0, 0)
          return 2 * means.rounds
        })
    )
}
