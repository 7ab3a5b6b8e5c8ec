import type * as fc from "fast-check"
import { isFull } from "./Full.ts"

/*
 * The number of random attacks. They are the same in every run: the first few of those of a full run. `FUZZ_RUNS` sets
 * another number, `FUZZ_SEED` selects others.
 */

const asked = process.env["FUZZ_RUNS"]
const seed = Number(process.env["FUZZ_SEED"] ?? "0")

/** How many attacks to make if a full run makes `many`. */
export const runsOf = (many: number): number =>
  asked === undefined ? isFull ? many : Math.min(many, 50 + Math.ceil(many / 20)) : Number(asked)

/** The seed of a test that has its own. */
export const seedOf = (own: number): number => own + seed

/** The same for a property. */
export const fuzz = <T>(many: number): fc.Parameters<T> => ({ numRuns: runsOf(many), seed: seedOf(1) })
