import type { FastCheck as fc } from "effect"

/*
 * How far random attacks go. In every run they are the same few; `FUZZ_RUNS` asks for any number of them, `FUZZ_SEED`
 * for others.
 */

const asked = process.env["FUZZ_RUNS"]
const seed = Number(process.env["FUZZ_SEED"] ?? "0")

/** How many attacks to make where `few` are made in every run. */
export const runsOf = (few: number): number => asked === undefined ? few : Number(asked)

/** The seed of a test that has one of its own. */
export const seedOf = (own: number): number => own + seed

/** For how long a test may run; 0, without end, for as many attacks as were asked for. */
export const timeoutOf = (millis: number): number => asked === undefined ? millis : 0

/** The same for a property. */
export const fuzz = <T>(few: number): fc.Parameters<T> => ({ numRuns: runsOf(few), seed: seedOf(1) })
