import type * as fc from "fast-check"
import { isFull } from "./Full.ts"

/*
 * The number of random attacks. Every run makes the same attacks, and a short run makes the first few of a full run.
 * `FUZZ_RUNS` sets another number, and `FUZZ_SEED` selects other attacks.
 */

const asked = process.env["FUZZ_RUNS"]
const seed = Number(process.env["FUZZ_SEED"] ?? "0")

/** Returns how many attacks to make if a full run makes `many`. */
export const runsOf = (many: number): number =>
  asked === undefined ? isFull ? many : Math.min(many, 50 + Math.ceil(many / 20)) : Number(asked)

/** Returns the seed of a test that has a number of its own. */
export const seedOf = (own: number): number => own + seed

/** Returns the parameters of a property with this many attacks in a full run. */
export const fuzz = <T>(many: number): fc.Parameters<T> => ({ numRuns: runsOf(many), seed: seedOf(1) })
