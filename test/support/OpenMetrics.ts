import { assert } from "vitest"

/*
 * Reads a scrape by the rules of OpenMetrics 1.0 that a text of the service can break. Prometheus is laxer than other
 * readers, which refuse the whole scrape for one fault.
 */

/** What is added to the name of a family in the names of its samples, by the type of the family. */
const suffixes: Readonly<Record<string, ReadonlyArray<string>>> = {
  counter: ["_total", "_created"],
  gauge: [""],
  histogram: ["_bucket", "_count", "_sum", "_created"]
}

/** Returns every name that a family takes up: its own, and those of samples that it may have. */
const namesOf = (family: string, type: string): ReadonlyArray<string> =>
  [
    ...new Set(["", ...suffixes[type] ?? assert.fail(`${family} has the type ${type}`)])
  ].map((suffix) => `${family}${suffix}`)

/** Returns the name of the family of a series. */
export const familyOf = (series: string): string => series.replace(/_(?:total|created|bucket|count|sum)$/, "")

const escaped = String.raw`(?:[^"\\]|\\["n\\])*`
const head = new RegExp(String.raw`^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (${escaped})$`)
const sample = new RegExp(
  String
    .raw`^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="${escaped}",?)*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+Inf|-Inf|NaN)$`
)

/** A sample: the name of its series, its labels, and its value. */
interface Sample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

const readSample = (line: string): Sample => {
  const [, name = "", labels = "", value = ""] = sample.exec(line) ?? assert.fail(`no sample: ${line}`)
  const pairs = [...labels.matchAll(new RegExp(`(\\w+)="(${escaped})"`, "g"))]
  const found = new Map(pairs.map(([, label = "", of = ""]) => [label, of]))
  assert.strictEqual(found.size, pairs.length, `a label twice: ${line}`)
  return { name, labels: found, value: Number(value.replace("Inf", "Infinity")) }
}

const textOf = (labels: Iterable<readonly [string, string]>): string => JSON.stringify([...labels].sort())

/** Asserts that the samples of one histogram have rising buckets up to all values, then their number and their sum. */
const assertHistogram = (family: string, samples: ReadonlyArray<Sample>): void => {
  const buckets = samples.filter(({ name }) => name === `${family}_bucket`)
  const bounds = buckets.map(({ labels }) => Number(labels.get("le")?.replace("Inf", "Infinity")))
  assert.deepStrictEqual(bounds, [...new Set(bounds)].sort((one, other) => one - other), family)
  assert.strictEqual(bounds.at(-1), Infinity, family)
  const counts = buckets.map(({ value }) => value)
  assert.deepStrictEqual(counts, [...counts].sort((one, other) => one - other), family)
  const others = samples.filter((one) => !buckets.includes(one)).map(({ name }) => name)
  assert.sameMembers(others, [`${family}_count`, `${family}_sum`])
  assert.strictEqual(samples.find(({ name }) => name === `${family}_count`)?.value, counts.at(-1), family)
}

/** Asserts that a text is a scrape, and returns its families with their types. */
export const readOpenMetrics = (text: string): ReadonlyMap<string, string> => {
  const lines = text.split("\n")
  assert.deepStrictEqual(lines.splice(-2), ["# EOF", ""])
  const families = new Map<string, string>()
  const taken = new Set<string>()
  /** The samples of the family that is being read, by their labels except `le`. */
  let groups = new Map<string, Array<Sample>>()
  let [family, type, group] = ["", "", ""]
  const end = () => {
    if (type === "histogram") { for (const samples of groups.values()) assertHistogram(family, samples) }
  }
  for (const [index, line] of lines.entries()) {
    const [, word, name = "", rest = ""] = head.exec(line) ?? []
    if (word === "HELP") {
      end()
      family = name
      groups = new Map()
      assert.match(lines[index + 1] ?? "", new RegExp(`^# TYPE ${name} `))
    } else if (word === "TYPE") {
      assert.strictEqual(name, family)
      type = rest
      families.set(family, type)
      for (const one of namesOf(family, type)) {
        assert.isFalse(taken.has(one), `two families have the name ${one}`)
        taken.add(one)
      }
    } else {
      const read = readSample(line)
      assert.include((suffixes[type] ?? []).map((suffix) => `${family}${suffix}`), read.name, line)
      assert.isTrue(type === "gauge" || read.value >= 0, line)
      const isBucket = read.name === `${family}_bucket`
      const key = textOf([...read.labels].filter(([label]) => !(isBucket && label === "le")))
      const samples = groups.get(key) ?? []
      assert.isTrue(samples.length === 0 || key === group, `apart from its group: ${line}`)
      const isTwice = samples.some((one) => one.name === read.name && textOf(one.labels) === textOf(read.labels))
      assert.isFalse(isTwice, `twice: ${line}`)
      samples.push(read)
      groups.set(key, samples)
      group = key
    }
  }
  end()
  return families
}
