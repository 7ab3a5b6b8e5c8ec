import { execFileSync } from "node:child_process"
import { appendFileSync, readFileSync } from "node:fs"
import { cpus } from "node:os"
import { resolve } from "node:path"

/*
 * Reads and writes `history.jsonl`, which has the ratios of commits. It has no absolute figures, because these depend
 * on the machine. A ratio of two things that were measured in one run is also valid on other machines.
 */

/** The ratios of one commit: the CPU of the service, divided by the CPU of the floor. */
export interface Recorded {
  readonly commit: string
  readonly date: string
  readonly runtime: string
  /**
   * The kernel's name of the processor. Ratios differ more between kinds of processors than between the commits that
   * are compared.
   */
  readonly processor: string
  /** The ratio of the short bench, which the gate also runs. */
  readonly short: number
  /** The ratio for an issuance on each database, with 16 clients and validation bypassed. */
  readonly sqlite: number
  readonly postgres: number
  /** The ratios for single requests on SQLite. */
  readonly newAccount: number
  readonly newNonce: number
  readonly directory: number
}

const repository = resolve(import.meta.dirname, "../..")
const file = resolve(import.meta.dirname, "history.jsonl")

const git = (...words: ReadonlyArray<string>): string =>
  execFileSync("git", [...words], { cwd: repository, encoding: "utf8" }).trim()

/** Returns the commit that is checked out. */
export const commitHere = (): string => {
  const changed = git("status", "--porcelain", "--", "src", "package-lock.json")
  if (changed !== "") throw new Error(`what is measured belongs to no commit, because of changes:\n${changed}`)
  return git("rev-parse", "--short=10", "HEAD")
}

/** Returns the name of this machine's processor. */
export const processorHere = (): string => cpus()[0]?.model.trim() ?? "unknown"

/** Returns the newest record that was made on the same kind of processor. */
export const lastRecorded = (): Recorded | undefined =>
  readFileSync(file, "utf8").trimEnd().split("\n")
    .map((line) => JSON.parse(line) as Recorded)
    .findLast(({ processor }) => processor === processorHere())

/** Adds a record to the history, with its ratios rounded to three digits. */
export const append = (recorded: Recorded): void => {
  const rounded = Object.entries(recorded).map(([name, value]) => [
    name,
    typeof value === "number" ? Number(value.toFixed(3)) : value
  ])
  appendFileSync(file, `${JSON.stringify(Object.fromEntries(rounded))}\n`)
}
