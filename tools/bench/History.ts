import { execFileSync } from "node:child_process"
import { appendFileSync, readFileSync } from "node:fs"
import { cpus } from "node:os"
import { resolve } from "node:path"

/*
 * Ratios by commit, in `history.jsonl`. It has no absolute figures, because they depend on a machine; ratios of two
 * things measured in one run are valid on other machines.
 */

/** CPU of the service as a multiple of the floor's, at one commit. */
export interface Recorded {
  readonly commit: string
  readonly date: string
  readonly runtime: string
  /**
   * The kernel's name of the processor: between kinds of processors, ratios differ by more than the differences of
   * interest.
   */
  readonly processor: string
  /** From the short bench, which the gate also runs. */
  readonly short: number
  /** An issuance with 16 clients on each database, bypassed. */
  readonly sqlite: number
  readonly postgres: number
  /** Single requests on SQLite. */
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
