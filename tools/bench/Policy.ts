import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import type { Service } from "./Service.ts"
import { startService } from "./Service.ts"

/* Measures the cost of a policy. A server without rules and a server with fifty rules get the same load by turns. */

const rules = 50

const kinds = [
  (n: number) => `type = "allowed_ip"\nallow = ["10.${n}.0.0/16", "192.0.2.${n}", "2001:db8:${n}::/48"]`,
  (n: number) => `type = "path"\nallow = ["/closed-${n}", "/closed-${n}/*", "/*/closed-${n}"]`,
  (n: number) =>
    `type = "identifiers"\nallow_wildcards = true\nallow = ["closed-${n}.example", "*.closed-${n}.example", "*.*.closed-${n}.example"]`
]

/** Makes rules that are checked for every request and never match. */
const policy = (): string => {
  const names = Array.from({ length: rules }, (_, index) => index + 1)
  return [
    `[filter]\ndefault = "allow"\nrules = [${names.map((n) => `"rule-${n}"`).join(", ")}]`,
    ...names.map((n) => `[filter.check.check-${n}]\n${kinds[n % kinds.length]?.(n) ?? ""}`),
    ...names.map((n) => `[filter.rule.rule-${n}]\nwhen = "check-${n}"\nthen = "deny"`)
  ].join("\n\n")
}

const rounds = 7

/**
 * Returns the length of the warm-up, after which V8 has compiled the code of both servers. If the options give a number
 * of issuances, the warm-up has the same number.
 */
const warmUpOf = ({ extent }: Options): Options["extent"] => extent.issuances === undefined ? { seconds: 10 } : extent

/** Runs one window and returns the CPU milliseconds per request. */
const window = async (
  service: Service,
  loader: Forked<typeof load>,
  extent: Options["extent"],
  concurrency: number
): Promise<{ readonly perRequest: number; readonly issuances: number }> => {
  await loader.call("target", service.directoryUrl)
  await loader.call("prepare", concurrency + (extent.issuances ?? (extent.seconds ?? 0) * 200))
  await loader.call("connect", concurrency)
  const before = Procfs.cpuOf(service.pid).total
  const { issuances, requests } = await loader.call("run", { ...extent, concurrency })
  return { perRequest: (Procfs.cpuOf(service.pid).total - before) / requests, issuances }
}

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, one) => sum + one, 0) / values.length

/** How much fifty rules add to the cost of a request. */
export interface PolicyCost {
  readonly rules: number
  readonly issuances: number
  /** CPU milliseconds per request, as means over the rounds. */
  readonly without: number
  readonly with: number
  readonly ratio: number
  /**
   * The standard error of the ratio. The goal is a ratio below 1.05. If the error is not small compared with 0.05, the
   * machine was too busy.
   */
  readonly error: number
}

/** Measures on SQLite, with the last concurrency of the options. */
export const measurePolicy = async (options: Options, progress: (text: string) => void): Promise<PolicyCost> => {
  const concurrency = options.concurrency.at(-1) ?? 1
  const loader = startForked<typeof load>("load")
  const common = { databaseUrl: "sqlite://bench.db", synchronous: options.synchronous, nodeWords: options.nodeWords }
  const plain = await startService(common)
  const filtered = await startService({ ...common, configuration: policy() })
  const pairs: Array<readonly [number, number]> = []
  let issuances = 0
  for (let round = 0; round <= rounds; round++) {
    progress(round === 0 ? "policy: warming up" : `policy: round ${round} of ${rounds}`)
    // The order changes in each round, so that no side always comes first.
    const order = round % 2 === 0 ? [plain, filtered] : [filtered, plain]
    const measured = new Map<Service, number>()
    for (const service of order) {
      const cell = await window(service, loader, round === 0 ? warmUpOf(options) : options.extent, concurrency)
      measured.set(service, cell.perRequest)
      issuances += cell.issuances
    }
    if (round > 0) pairs.push([measured.get(plain) ?? 0, measured.get(filtered) ?? 0])
  }
  loader.stop()
  await Promise.all([plain.stop(), filtered.stop()])
  const without = mean(pairs.map(([plainMs]) => plainMs))
  const withRules = mean(pairs.map(([, filteredMs]) => filteredMs))
  const ratio = withRules / without
  const residuals = pairs.map(([plainMs, filteredMs]) => (filteredMs - ratio * plainMs) ** 2)
  return {
    rules,
    issuances,
    without,
    with: withRules,
    ratio,
    error: Math.sqrt(mean(residuals) / (pairs.length - 1)) / without
  }
}

/** Describes the figures in words. */
export const policyReport = (cost: PolicyCost): string =>
  [
    `${cost.rules} rules of addresses, paths and names, none of them true, over ${cost.issuances} issuances on SQLite:`,
    `  CPU ms per request  ${cost.without.toFixed(3)} without, ${cost.with.toFixed(3)} with`,
    `  ratio               ${cost.ratio.toFixed(3)} ± ${cost.error.toFixed(3)} (goal: below 1.05)`
  ].join("\n")
