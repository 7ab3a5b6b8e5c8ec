import type { AlertRule } from "./AlertRules.ts"
import { alertRules, rendered } from "./AlertRules.ts"

/** The alerts that fire at one time, by name. Each has the labels that the expression of its rule returns. */
export type Firing = Readonly<Record<string, ReadonlyArray<Readonly<Record<string, string>>>>>

interface Moment {
  readonly minute: number
  readonly what: string
  readonly firing: Firing
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

/**
 * Returns a series in promtool's notation, as runs of samples with equal differences, with `_` for a missing sample and
 * `stale` where the series ended.
 */
const valuesOf = (samples: ReadonlyArray<number | undefined>): string => {
  const words: Array<string> = []
  for (let at = 0; at < samples.length;) {
    const [value, next] = [samples[at], samples[at + 1]]
    let length = 1
    if (value === undefined) {
      while (at + length < samples.length && samples[at + length] === undefined) length++
      // Prometheus marks a series as stale if a scrape lacks it and the previous scrape had it.
      const missing = at === 0 ? length : length - 1
      if (at > 0) words.push("stale")
      if (missing > 0) words.push(missing === 1 ? "_" : `_x${missing}`)
    } else {
      const step = next === undefined ? 0 : next - value
      while (at + length < samples.length && samples[at + length] === value + step * length) length++
      // A run has at least three samples unless its samples are equal.
      if (length === 2 && step !== 0) length = 1
      words.push(length === 1 ? `${value}` : `${value}${step < 0 ? "-" : "+"}${Math.abs(step)}x${length - 1}`)
    }
    at += length
  }
  return words.join(" ")
}

const labelLines = (labels: Readonly<Record<string, string>>, indent: string): ReadonlyArray<string> =>
  Object.entries(labels).map(([label, value]) => `${indent}${label}: ${quoted(value)}`)

const expectationOf = (rule: AlertRule, { firing, minute }: Moment): ReadonlyArray<string> => {
  const found = firing[rule.alert] ?? []
  return [
    `      - eval_time: ${minute}m`,
    `        alertname: ${rule.alert}`,
    ...found.length === 0 ? ["        exp_alerts: []"] : ["        exp_alerts:"],
    ...found.flatMap((labels) => [
      "          - exp_labels:",
      ...labelLines({ ...labels, ...rule.labels }, "              "),
      "            exp_annotations:",
      ...labelLines({
        summary: rendered(rule.annotations.summary, labels),
        runbook: rule.annotations.runbook
      }, "              ")
    ])
  ]
}

/**
 * The samples that were scraped during an incident, one for each series and minute, with the alerts that must fire at
 * certain minutes.
 */
export class Recording {
  readonly #series = new Map<string, Array<number | undefined>>()
  readonly #moments: Array<Moment> = []
  #minutes = 0

  /** Adds the samples of one minute. */
  add(samples: ReadonlyMap<string, number>): void {
    for (const name of samples.keys()) {
      if (!this.#series.has(name)) this.#series.set(name, Array<undefined>(this.#minutes).fill(undefined))
    }
    for (const [name, values] of this.#series) values.push(samples.get(name))
    this.#minutes++
  }

  /** Records that only these alerts fire at the minute that was added last. */
  expect(what: string, firing: Firing): void {
    const unknown = Object.keys(firing).filter((name) => !alertRules.some(({ alert }) => alert === name))
    if (unknown.length > 0) throw new Error(`no such alerts: ${unknown.join(", ")}`)
    this.#moments.push({ minute: this.#minutes - 1, what, firing })
  }

  /** The alerts that fired, and for how many minutes the incident lasted. */
  get summary(): { readonly alerts: ReadonlyArray<string>; readonly minutes: number } {
    const bad = this.#moments.filter(({ firing }) => Object.keys(firing).length > 0)
    const first = bad[0]?.minute ?? 0
    const end = this.#moments.find(({ minute }) => minute > (bad.at(-1)?.minute ?? Infinity))?.minute ?? this.#minutes
    return { alerts: [...new Set(bad.flatMap(({ firing }) => Object.keys(firing)))], minutes: end - first }
  }

  /** Returns a file for `promtool test rules`. `rules` is the path of the rules relative to that file. */
  text(title: string, rules: string): string {
    return [
      `# Recorded by \`npm run alerts -- --record ${title}\`; not written by hand.`,
      ...this.#moments.map(({ minute, what }) => `# Minute ${minute}: ${what}.`),
      `rule_files:`,
      `  - ${rules}`,
      `evaluation_interval: 1m`,
      `tests:`,
      `  - interval: 1m`,
      `    input_series:`,
      ...[...this.#series].sort(([one], [other]) => one < other ? -1 : 1).flatMap(([name, samples]) => [
        `      - series: ${quoted(name)}`,
        `        values: ${quoted(valuesOf(samples))}`
      ]),
      `    alert_rule_test:`,
      ...this.#moments.flatMap((moment) => alertRules.flatMap((rule) => expectationOf(rule, moment))),
      ""
    ].join("\n")
  }
}
