import { assert } from "vitest"
import { commandsOf, documents, text } from "./Documents.ts"
import type { Ended } from "./Place.ts"
import { cloneInto, Place } from "./Place.ts"

/*
 * The slow programs of the documents, which are benchmarks, faults and simulations. The tests run them with less work.
 */

/** Commands that install something, are the test run itself or need the network. They are steps of `.ci/run`. */
export const ofTheGate: ReadonlyArray<string> = [
  "npm ci",
  "npm run check",
  "npm test",
  "npm run interop",
  "npm run packages",
  "npm run simulate -- --seeds 100",
  "npm run faults -- --rounds 1 --share 0.05 --limit 10 --but minute --but 'then the'",
  "npm run bench -- --check",
  "npm run bench -- --peers tools/bench/peers/pebble.toml --databases sqlite --concurrency 1 --issuances 5 --service-only",
  "npm run incidents",
  "npm run alerts",
  "npm run postgres",
  "npm test -- docs/"
]

const isRunOf = (program: string) => (command: string): boolean =>
  new RegExp(`^npm run ${program}(?: -- |$)`).test(command) && !ofTheGate.includes(command)

/**
 * Commands that run the faults at full length, with any options. The test runs them with one fault at its smallest
 * size.
 */
export const isFaultRun = isRunOf("faults")

/**
 * Commands in the documents that run the simulation, with any number of seeds. The test runs them with only a few seeds,
 * and with only the first planted bug.
 */
export const isSimulation = isRunOf("simulate")

/**
 * Commands that run benchmarks, with any options. The test runs them with a few issuances instead of for a few minutes,
 * and without the floor.
 */
export const isBenchmark = isRunOf("bench")

/** Returns the selected commands of all documents, each once. */
export const written = (chosen: (command: string) => boolean): ReadonlyArray<string> => [
  ...new Set(documents.flatMap(commandsOf).filter(chosen))
]

/** Returns the words after the name of a program, without these options. */
export const wordsOf = (command: string, without: RegExp): string =>
  (command.split(" -- ")[1] ?? "").replaceAll(without, "").replaceAll(/\s+/g, " ").trim()

const { scripts } = JSON.parse(text("package.json")) as { readonly scripts: Readonly<Record<string, string>> }

/** Returns the command that `npm run` executes for a program, after the build. */
const programOf = (name: string): string => {
  const [, program] = /^(?:npm run --silent build && )?(node \S+)$/.exec(scripts[name] ?? "") ?? []
  return program ?? assert.fail(`npm run ${name} is not a build and a program: ${scripts[name]}`)
}

/**
 * Runs a program in a clone. The first run uses npm, which builds first, and later runs use the existing build. The
 * caller may shorten long commands, so that several commands have the same words. The same words are run only once, and
 * the result counts for all of these commands.
 */
export const runsOf = (name: "bench" | "faults" | "simulate"): (words: string) => Promise<Ended> => {
  const runs = new Map<string, Promise<Ended>>()
  let clone: Place | undefined
  const begin = async (words: string): Promise<Ended> => {
    if (clone !== undefined) return clone.run(`PATH="$PWD/node_modules/.bin:$PATH" ${programOf(name)} ${words}`)
    clone = await Place.make()
    cloneInto(clone)
    return clone.run(`npm run ${name} -- ${words}`)
  }
  return (words) => {
    const run = runs.get(words) ?? begin(words)
    runs.set(words, run)
    return run
  }
}

/** Returns whether a command is a benchmark of what operators do. */
export const isOfOperators = (command: string): boolean => /--(?:lists|pages|sign-in)\b/.test(command)

const shortened = (command: string): string => {
  const kept = wordsOf(command, /--(?:seconds|issuances|concurrency|databases|part|attempts) \S+/g)
  const part = /--(?:grown|lists|memory|pages|queue|start)/.test(kept)
    ? "--part 0.0001"
    : /--sign-in/.test(kept)
    ? "--attempts 1"
    : ""
  // Clients wait as long as the service says, which is five seconds for a relay. Reads that run together with clients
  // last for a fixed time.
  const extent = /--(?:lists|pages)/.test(kept)
    ? "--seconds 0.3"
    : `--issuances ${/--(?:relay|until-certificate)/.test(kept) ? 1 : 5}`
  const database = /--statements/.test(kept) ? "postgres" : "sqlite"
  return `${kept} ${part} --databases ${database} --concurrency 1 ${extent} --service-only`
}

/** Runs benchmarks with little work. */
export const benchmarked = (): (command: string) => Promise<Ended> => {
  const run = runsOf("bench")
  return (command) => run(shortened(command))
}
