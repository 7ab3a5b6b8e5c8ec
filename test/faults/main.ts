import { inspect } from "node:util"
import { inParallel } from "../support/InParallel.ts"
import type { PostgresCluster } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import { faults } from "./faults.ts"
import type { Options } from "./Options.ts"
import { chosen, readOptions } from "./Options.ts"
import type { DatabaseName } from "./Site.ts"
import type { Fault } from "./Stage.ts"
import { NotPossible } from "./Stage.ts"
import type { Row } from "./Table.ts"
import { hasPassed, tableOf } from "./Table.ts"

/*
 * `npm run faults` kills, stops, disconnects and overloads processes of the built server while clients get
 * certificates. Then it checks everything that clients learned. See docs/contribute/faults.md.
 */

/** How many faults run at a time. Most of the time they wait for time-outs or for periodic work. */
const width = 3

const say = (text: string): void => {
  process.stderr.write(`${text}\n`)
}

/** Fails if a run takes longer than this many minutes. Its processes are ended with this one. */
const within = <A>(minutes: number, run: Promise<A>): Promise<A> => {
  const fault = new Error(`it did not end within ${minutes} minutes`)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(fault), minutes * 60_000)
  })
  return Promise.race([run, late]).finally(() => clearTimeout(timer))
}

const play = async (
  fault: Fault,
  database: DatabaseName,
  options: Options,
  cluster: () => Promise<PostgresCluster>
): Promise<Row> => {
  const begun = performance.now()
  const title = `${fault.name}, ${database}`
  const tell = (text: string) => say(`${title}: ${text}`)
  tell("begins")
  const row = { fault: fault.name, database }
  const seconds = () => (performance.now() - begun) / 1000
  try {
    const outcome = await within(
      options.limit,
      fault.run({
        database,
        rounds: fault.isSize ? Math.ceil(fault.rounds * options.share) : options.rounds ?? fault.rounds,
        seed: options.seed,
        clients: options.clients,
        freshPostgresUrl: async () => (await cluster()).createDatabase(),
        say: tell
      })
    )
    for (const one of outcome.lost) tell(`LOST ${one}`)
    for (const one of outcome.twice) tell(`TWICE ${one}`)
    tell(`ends after ${seconds().toFixed(0)} s`)
    return { ...row, outcome, seconds: seconds() }
  } catch (error) {
    if (error instanceof NotPossible) return { ...row, notRun: error.message, seconds: seconds() }
    const text = inspect(error, { depth: 4 })
    tell(`FAILED ${text}`)
    return { ...row, error: text, seconds: seconds() }
  }
}

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const options = readOptions(words)
  const runs = chosen(faults, options).flatMap((fault) => fault.databases.map((database) => ({ fault, database })))
  say(`seed ${options.seed}`)
  let shared: Promise<PostgresCluster> | undefined
  const cluster = () => (shared ??= startPostgres())
  try {
    const playAll = (isTimed: boolean, atOnce: number) =>
      inParallel(
        runs.filter(({ fault }) => (fault.isTimed ?? false) === isTimed),
        atOnce,
        ({ database, fault }) => play(fault, database, options, cluster)
      )
    const rows = [...await playAll(false, width), ...await playAll(true, 1)]
    const passed = rows.filter(hasPassed).length
    const failed = rows.filter((row) => row.notRun === undefined && !hasPassed(row)).length
    const text = options.json
      ? JSON.stringify({ seed: options.seed, rows }, undefined, 2)
      : `seed ${options.seed}\n\n${tableOf(rows)}`
    process.stdout.write(`${text}\n\n${passed} passed, ${failed} failed\n`)
    return failed === 0 && passed > 0
  } finally {
    await (await shared)?.stop()
  }
}

// Running programs are ended and disks are unmounted with this process.
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
  process.once(signal, () => process.exit(code))
}

main(process.argv.slice(2)).then(
  // Clients of a failed fault may still send requests.
  (passed) => process.stdout.write("", () => process.exit(passed ? 0 : 1)),
  (error: unknown) => {
    say(error instanceof Error ? error.message : String(error))
    process.stdout.write("0 passed, 1 failed\n")
    process.exitCode = 1
  }
)
