import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Outcome } from "../interop/Table.ts"

/** What all cases of a run share. */
export interface Shared {
  /** The published package, which `npm pack` made from this clone after it rebuilt `dist`. */
  readonly tarball: string
  readonly say: (text: string) => void
}

/** What a case gets. */
export interface Site extends Shared {
  /** The directory of the case, which every user may enter, and which is removed after the case. */
  readonly directory: string
  /** Runs a step of the case and records its result. Later steps may use what it returns. */
  readonly step: <A>(name: string, play: () => Promise<A>) => Promise<A>
}

/** One way to install the service, from its package to a certificate. */
export interface Installation {
  readonly name: string
  /** Programs and libraries that must be installed first, as `test/interop/Packages.ts` knows them. */
  readonly commands: ReadonlyArray<string>
  /** Runs the steps, and ends at the first one that fails. */
  readonly play: (site: Site) => Promise<void>
}

/** Fails with the given sentence unless a condition holds. */
export const check = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}

/** Runs a case in a directory of its own. A failure outside its steps counts as the step `set-up`. */
export const install = async (installation: Installation, shared: Shared): Promise<ReadonlyArray<Outcome>> => {
  const { name: client, play } = installation
  const outcomes: Array<Outcome> = []
  const directory = mkdtempSync(join(tmpdir(), "acme-package-"))
  chmodSync(directory, 0o755)
  const ended = (scenario: string, begun: number, error?: unknown) => {
    const outcome = { database: "SQLite", client, challenge: "", scenario, milliseconds: performance.now() - begun }
    outcomes.push(error === undefined ? outcome : { ...outcome, error: String(error) })
    if (error !== undefined) shared.say(`--- ${client}: ${scenario}\n${String(error)}\n---`)
  }
  const step: Site["step"] = async (name, work) => {
    const begun = performance.now()
    try {
      const answer = await work()
      ended(name, begun)
      return answer
    } catch (error) {
      ended(name, begun, error)
      throw error
    }
  }
  const begun = performance.now()
  try {
    await play({ ...shared, directory, step })
  } catch (error) {
    if (outcomes.every((outcome) => outcome.error === undefined)) ended("set-up", begun, error)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  return outcomes
}
