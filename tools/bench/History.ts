import { execFileSync } from "node:child_process"
import { appendFileSync, readFileSync } from "node:fs"
import { cpus } from "node:os"
import { resolve } from "node:path"

/*
 * The ratios by commit, in `history.jsonl`. It has no absolute figures, because these depend on the machine. A ratio of
 * two things that were measured in one run is valid on other machines too.
 */

/** CPU of the service as a multiple of the floor's, at one commit. */
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

/** The commit of the present service. */
export const commitHere = (): string => {
  const changed = git("status", "--porcelain", "--", "src", "package-lock.json")
  if (changed !== "") throw new Error(`what is measured belongs to no commit, because of changes:\n${changed}`)
  return git("rev-parse", "--short=10", "HEAD")
}

/** The processor of this machine. */
export const processorHere = (): string => cpus()[0]?.model.trim() ?? "unknown"

/** The newest record of a processor of this kind. */
export const lastRecorded = (): Recorded | undefined =>
  readFileSync(file, "utf8").trimEnd().split("\n")
    .map((line) => JSON.parse(line) as Recorded)
    .findLast(({ processor }) => processor === processorHere())

/** Adds a record, with its ratios to three digits. */
export const append = (recorded: Recorded): void => {
  const rounded = Object.entries(recorded).map(([name, value]) => [
    name,
    typeof value === "number" ? Number(value.toFixed(3)) : value
  ])
  appendFileSync(file, `${JSON.stringify(Object.fromEntries(rounded))}\n`)
}
