import { FastCheck as fc } from "effect"

/*
 * Runs of a generated test. A test run has its seed and its number, so that it is the same one everywhere;
 * `ACME_FUZZ_SECONDS=600 npm test -- <file>` goes on for so long instead, with seeds of its own.
 */

const seconds = Number(process.env["ACME_FUZZ_SECONDS"] ?? "0")

/** How often a property is tried, and for how long a test may go on for it. */
export const fuzz = <T>(numRuns: number): fc.Parameters<T> =>
  seconds > 0
    ? { numRuns: Number.MAX_SAFE_INTEGER, interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false }
    : { numRuns, seed: 1 }

/** The time a test with such a property has, in ms. */
export const fuzzTimeout = 60_000 + seconds * 1000
