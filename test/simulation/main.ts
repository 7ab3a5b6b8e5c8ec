import { fork, spawnSync } from "node:child_process"
import { rmSync } from "node:fs"
import type { Options } from "./Options.ts"
import { readOptions } from "./Options.ts"
import type { PlantedBug } from "./Planted.ts"
import { plant, plantedBugs } from "./Planted.ts"
import type { Outcome } from "./Simulation.ts"
import { makeCa, simulate } from "./Simulation.ts"

/*
 * `npm run simulate` (see docs/contribute/simulation.md). The program starts itself once more for each process that
 * takes seeds.
 */

const shardOption = "--shard"

/** Runs the seeds that it receives, one after the other. */
const shard = async (): Promise<void> => {
  const ca = await makeCa()
  process.once("disconnect", () => {
    rmSync(ca, { recursive: true, force: true })
    process.exit(0)
  })
  process.on("message", (seed: number) => {
    simulate(String(seed), ca).then(
      (outcome) => process.send?.(outcome),
      (error: unknown) => {
        process.stderr.write(`seed ${seed}: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
        process.exit(1)
      }
    )
  })
  process.send?.("ready")
}

const isInteractive = process.stderr.isTTY === true
const progress = (text: string): void => {
  process.stderr.write(isInteractive ? `\r\u001B[K${text} …` : `${text}\n`)
}

/** Runs seeds in several processes, and returns the outcomes in the order of the seeds. */
const runAll = (options: Options): Promise<ReadonlyArray<Outcome>> =>
  new Promise((done, fail) => {
    const outcomes: Array<Outcome> = []
    let [next, failing, atWork] = [options.from, 0, 0]
    const last = options.from + options.seeds
    const everyOften = Math.max(1, Math.floor(options.seeds / 20))
    for (let count = Math.min(options.processes, options.seeds); count > 0; count--) {
      const child = fork(process.argv[1] ?? "", [shardOption], { execArgv: [...process.execArgv] })
      atWork++
      child.on("message", (message: "ready" | Outcome) => {
        if (message !== "ready") {
          outcomes.push(message)
          if (message.violations.length > 0) failing++
          if (outcomes.length % everyOften === 0) {
            progress(`${outcomes.length} of ${options.seeds} seeds, ${failing} failing`)
          }
        }
        if (next >= last || (options.first && failing > 0)) child.disconnect()
        else child.send(next++)
      })
      child.once("exit", (code) => {
        if (code !== 0) fail(new Error(`a process of the simulation ended with ${code}`))
        else if (--atWork === 0) done(outcomes.toSorted((one, other) => Number(one.seed) - Number(other.seed)))
      })
    }
  })

const sum = (outcomes: ReadonlyArray<Outcome>, of: (outcome: Outcome) => number): number =>
  outcomes.reduce((total, outcome) => total + of(outcome), 0)

const report = (outcomes: ReadonlyArray<Outcome>): string => {
  const faults = new Map<string, number>()
  for (const outcome of outcomes) {
    for (const [fault, times] of Object.entries(outcome.faults)) faults.set(fault, (faults.get(fault) ?? 0) + times)
  }
  const failing = outcomes.filter(({ violations }) => violations.length > 0)
  const lines = [
    `${outcomes.length} seeds, ${sum(outcomes, ({ steps }) => steps)} steps, ` +
    `${sum(outcomes, ({ acknowledged }) => acknowledged)} answers held to, ` +
    `${sum(outcomes, ({ certificates }) => certificates)} certificates, ` +
    `${sum(outcomes, ({ changes }) => changes)} changes of credentials, ` +
    `${sum(outcomes, ({ notified }) => notified)} notifications`,
    `faults: ${[...faults].sort().map(([fault, times]) => `${fault} ${times}`).join(", ")}`,
    ...failing.slice(0, 10).flatMap(({ seed, violations }) => [
      `seed ${seed}: ${violations[0] ?? ""}`,
      `  npm run simulate -- --seed ${seed} --trace`
    ]),
    `${outcomes.length - failing.length} passed, ${failing.length} failed`
  ]
  return lines.join("\n")
}

/**
 * Looks for one planted bug in a copy of the project. Returns the seed that found it, and the violation that the seed
 * found.
 */
const hunt = (bug: PlantedBug, options: Options) => {
  const { folder, remove } = plant(bug)
  try {
    const words = [
      "test/simulation/main.ts",
      "--from",
      String(options.from),
      "--seeds",
      String(options.seeds),
      "--first"
    ]
    const run = spawnSync(process.execPath, [...process.execArgv, ...words, "--json"], {
      cwd: folder,
      encoding: "utf8",
      maxBuffer: 2 ** 28,
      stdio: ["ignore", "pipe", "pipe"]
    })
    if (run.status !== 0 && run.status !== 1) throw new Error(`${bug.name}: ended with ${run.status}: ${run.stderr}`)
    const outcomes = JSON.parse(run.stdout) as ReadonlyArray<Outcome>
    const found = outcomes.find(({ violations }) => violations.length > 0)
    return { bug: bug.name, seed: found?.seed, saw: found?.violations[0] }
  } finally {
    remove()
  }
}

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const options = readOptions(words)
  if (options.planted) {
    if (options.bug > plantedBugs.length) throw new Error(`there are ${plantedBugs.length} planted bugs`)
    const wanted = options.bug === 0 ? plantedBugs : plantedBugs.slice(options.bug - 1, options.bug)
    const found = wanted.map((bug) => {
      progress(`planted: ${bug.name}`)
      return hunt(bug, options)
    })
    if (isInteractive) process.stderr.write("\r\u001B[K")
    const text = found.map(({ bug, saw, seed }) =>
      seed === undefined ? `NOT FOUND  ${bug}` : `seed ${seed.padStart(5)} ${bug}\n           ${saw ?? ""}`
    )
    const missed = found.filter(({ seed }) => seed === undefined).length
    process.stdout.write(
      options.json
        ? `${JSON.stringify(found, undefined, 2)}\n`
        : `${text.join("\n")}\n${found.length - missed} passed, ${missed} failed\n`
    )
    return missed === 0
  }
  if (options.trace) {
    const ca = await makeCa()
    const outcome = await simulate(String(options.from), ca, (line) => void process.stdout.write(`${line}\n`))
    rmSync(ca, { recursive: true, force: true })
    process.stdout.write(`${report([outcome])}\ndigest ${outcome.digest}\n`)
    return outcome.violations.length === 0
  }
  const outcomes = await runAll(options)
  if (isInteractive) process.stderr.write("\r\u001B[K")
  process.stdout.write(options.json ? `${JSON.stringify(outcomes)}\n` : `${report(outcomes)}\n`)
  return outcomes.every(({ violations }) => violations.length === 0)
}

const words = process.argv.slice(2)
if (words[0] === shardOption) await shard()
else {
  // Otherwise the waits of the simulated processes would keep the real process alive.
  const end = (code: number) => process.stdout.write("", () => process.exit(code))
  try {
    end(await main(words) ? 0 : 1)
  } catch (error) {
    process.stderr.write(`simulate: ${error instanceof Error ? error.message : String(error)}\n`)
    end(2)
  }
}
