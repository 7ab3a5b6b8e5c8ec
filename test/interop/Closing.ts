import type { Outcome } from "./Table.ts"
import { failuresOf, tableOf } from "./Table.ts"

/* Ends the programs that play cases, with a table, the failures, and the numbers that the gate adds up. */

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** Prints the results of all cases. Returns whether there were cases and all of them passed. */
export const tellOutcomes = (outcomes: ReadonlyArray<Outcome>, databases: ReadonlyArray<string>): boolean => {
  const failed = outcomes.filter(({ error }) => error !== undefined).length
  say(`\n${tableOf(outcomes, databases)}`)
  say(failuresOf(outcomes))
  say(`${outcomes.length - failed} passed, ${failed} failed`)
  return failed === 0 && outcomes.length > 0
}

/** Sets the exit code of this process when a run has ended. An aborted run counts as a failure. */
export const endWith = (run: Promise<boolean>): Promise<void> =>
  run.then(
    (passed) => {
      process.exitCode = passed ? 0 : 1
    },
    (error: unknown) => {
      say(`${error instanceof Error ? error.message : String(error)}\n0 passed, 1 failed`)
      // Work in progress does not keep this process alive, and its children end with it.
      process.exit(1)
    }
  )
