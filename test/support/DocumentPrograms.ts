import { assert } from "vitest"
import { commandsOf, documents, text } from "./Documents.ts"
import type { Ended } from "./Place.ts"
import { cloneInto, Place } from "./Place.ts"

/* The programs of the documents that take their time: benchmarks, faults, simulations. They are run with less to do. */

/** Commands that install, that are the test run itself or that need the network: steps of `.ci/run`. */
export const ofTheGate: ReadonlyArray<string> = [
  "npm ci",
  "npm run check",
  "npm test",
  "npm run interop",
  "npm run packages",
  "npm run simulate -- --seeds 100",
  "npm run faults -- --rounds 1 --share 0.05",
  "npm run bench -- --check",
  "npm run alerts",
  "npm test -- docs/"
]

const isRunOf = (program: string) => (command: string): boolean =>
  new RegExp(`^npm run ${program}(?: -- |$)`).test(command) && !ofTheGate.includes(command)

/** Runs of the fault suite at full length, in whatever words: they are run with the least of one fault. */
export const isFaultRun = isRunOf("faults")

/** Simulations, of however many seeds: they are run with a few, and with the first of the planted bugs. */
export const isSimulation = isRunOf("simulate")

/** Benchmarks, in whatever words: they are run with a few issuances instead of a few minutes, and without the floor. */
export const isBenchmark = isRunOf("bench")

/** The commands of all documents that are chosen, each once. */
export const written = (chosen: (command: string) => boolean): ReadonlyArray<string> => [
  ...new Set(documents.flatMap(commandsOf).filter(chosen))
]

/** The words behind the name of a program, without these options. */
export const wordsOf = (command: string, without: RegExp): string =>
  (command.split(" -- ")[1] ?? "").replaceAll(without, "").replaceAll(/\s+/g, " ").trim()

const { scripts } = JSON.parse(text("package.json")) as { readonly scripts: Readonly<Record<string, string>> }

/** What `npm run` does for a program, behind the build. */
const programOf = (name: string): string => {
  const [, program] = /^(?:npm run --silent build && )?(node \S+)$/.exec(scripts[name] ?? "") ?? []
  return program ?? assert.fail(`npm run ${name} is not a build and a program: ${scripts[name]}`)
}

/**
 * Runs a program in a clone: the first time as npm does, with the build before it, then on what was built. Commands that
 * differ in nothing but their extent come down to the same words; these are run once, and judged for each command.
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

/** Benchmarks of what operators do. */
export const isOfOperators = (command: string): boolean => /--(?:lists|pages|sign-in)\b/.test(command)

const shortened = (command: string): string => {
  const kept = wordsOf(command, /--(?:seconds|issuances|concurrency|databases|part|attempts) \S+/g)
  const part = /--(?:grown|lists|memory|pages|queue|start)/.test(kept)
    ? "--part 0.0001"
    : /--sign-in/.test(kept)
    ? "--attempts 1"
    : ""
  // Clients wait as long as they are told to, of a relay five seconds. Reads are beside clients for a time.
  const extent = /--(?:lists|pages)/.test(kept)
    ? "--seconds 0.3"
    : `--issuances ${/--(?:relay|until-certificate)/.test(kept) ? 1 : 5}`
  return `${kept} ${part} --databases sqlite --concurrency 1 ${extent} --service-only`
}

/** Runs benchmarks with little to do. */
export const benchmarked = (): (command: string) => Promise<Ended> => {
  const run = runsOf("bench")
  return (command) => run(shortened(command))
}
