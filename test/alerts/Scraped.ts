import { alertRules, familiesIn } from "./AlertRules.ts"

/*
 * Reads a scrape into the form in which it is recorded, with only the series that the rules use and without values that
 * differ in every run.
 */

/** A series, with its labels in the order of their names. */
export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

/**
 * The families that are recorded. Durations of requests depend on the machine and are left out, so that the alert about
 * slow requests fires in no recording.
 */
const recorded = new Set(alertRules.flatMap(({ expr }) => familiesIn(expr)).filter((name) => !name.endsWith("_bucket")))

/** CAs are recorded without their ids, which are new in each run. */
export class Issuers {
  readonly #known = new Map<string, string>()

  /** Returns a stable name, which is `ca-1` for the first CA that was seen, and so on. */
  nameOf(id: string): string {
    const name = this.#known.get(id) ?? `ca-${this.#known.size + 1}`
    this.#known.set(id, name)
    return name
  }
}

/** Rounds ages and remaining times to whole minutes. */
const steady = (name: string, value: number): number => name.endsWith("_seconds") ? Math.round(value / 60) * 60 : value

/** Returns the text of a series, which is the same for the same labels. */
export const textOf = ({ labels, name }: Series): string =>
  `${name}{${Object.entries(labels).sort().map(([label, value]) => `${label}=${JSON.stringify(value)}`).join(",")}}`

/** Returns the samples of a scrape, by the text of their series. */
export const readScrape = (
  text: string,
  target: { readonly job: string; readonly instance: string },
  issuers: Issuers
): ReadonlyMap<string, number> => {
  const samples = new Map<string, number>()
  for (const line of text.split("\n")) {
    const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (!recorded.has(name)) continue
    const own = Object.fromEntries(
      [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = "", of = ""]) =>
        [label, label === "issuer" ? issuers.nameOf(of) : of] as const
      )
    )
    samples.set(textOf({ name, labels: { ...own, ...target } }), steady(name, Number(value)))
  }
  return samples
}
