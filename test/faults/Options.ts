import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import type { Fault } from "./Stage.ts"

/** The options of `npm run faults`. */
export interface Options {
  /** The number of repetitions, instead of the number of the fault. */
  readonly rounds: number | undefined
  /** The size of floods and waves, as a fraction of the full size. */
  readonly share: number
  /** Parts of the names of faults. If there is none, all faults run. */
  readonly only: ReadonlyArray<string>
  /** Parts of the names of faults that are left out. */
  readonly but: ReadonlyArray<string>
  readonly json: boolean
  readonly seed: string
  readonly clients: number
  /** How many minutes a fault may take. */
  readonly limit: number
}

const part = (text: string): number => {
  const value = Number(text)
  if (!(value > 0 && value <= 1)) throw new Error(`--share takes a number above 0 and up to 1, not ${text}`)
  return value
}

const positive = (name: string, text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} takes a positive number, not ${text}`)
  return value
}

/** Reads the options. Fails with a sentence that says what is wrong with them. */
export const readOptions = (words: ReadonlyArray<string>): Options => {
  const { values } = parseArgs({
    args: [...words],
    options: {
      rounds: { type: "string" },
      share: { type: "string", default: "1" },
      only: { type: "string", multiple: true, default: [] },
      but: { type: "string", multiple: true, default: [] },
      json: { type: "boolean", default: false },
      seed: { type: "string" },
      clients: { type: "string", default: "12" },
      limit: { type: "string", default: "60" }
    }
  })
  return {
    rounds: values.rounds === undefined ? undefined : positive("rounds", values.rounds),
    share: part(values.share),
    only: values.only,
    but: values.but,
    json: values.json,
    seed: values.seed ?? `${randomInt(1_000_000)}`,
    clients: positive("clients", values.clients),
    limit: positive("limit", values.limit)
  }
}

/** Returns the selected faults. */
export const chosen = (faults: ReadonlyArray<Fault>, { but, only }: Options): ReadonlyArray<Fault> => {
  for (const part of [...only, ...but]) {
    if (!faults.some(({ name }) => name.includes(part))) throw new Error(`no fault's name has ${part} in it`)
  }
  const has = (parts: ReadonlyArray<string>, { name }: Fault) => parts.some((part) => name.includes(part))
  return faults.filter((fault) => (only.length === 0 || has(only, fault)) && !has(but, fault))
}
