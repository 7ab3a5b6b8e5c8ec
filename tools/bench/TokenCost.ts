import { join } from "node:path"
import { makeToken } from "../../test/support/TokenPlace.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import type { Paint } from "./Report.ts"
import { fixed, table } from "./Report.ts"
import { summed } from "./Rig.ts"
import type { Service } from "./Service.ts"
import { configured, runCommand, startService } from "./Service.ts"

/*
 * Measures what an issuance costs if the key of the CA is in a PKCS#11 token (SoftHSM2) and not in a file. One service
 * has a profile of each kind, and they get the same load by turns.
 */

const rounds = 10
const keyType = "ecdsa-p256"

/** The results of one place of the key. CPU is in milliseconds per issuance, and includes the process of the module. */
export interface KeyCost {
  readonly name: string
  readonly profile: string
  readonly issuances: number
  /** The medians over all windows. */
  readonly cpu: number
  readonly moduleCpu: number
  readonly perSecond: number
  /** `cpu` divided by the CPU of an issuance with the key in a file. */
  readonly ratio: number
}

const profileText = (more: string): string =>
  [
    `[profiles.default.signer.local_ca]`,
    `key_type = "${keyType}"`,
    `[profiles.token.signer.local_ca]`,
    `key_type = "${keyType}"`,
    `cert_path = "token.pem"`,
    `crl_path = "token.crl"`,
    more
  ].join("\n")

/** Makes the CAs of both profiles, and moves the key of the second one into a new token. */
const prepared = (common: { readonly databaseUrl: string; readonly synchronous: Options["synchronous"] }) => {
  const directory = configured(temporaryDirectory(), profileText(`key_path = "token.key"`))
  runCommand({ ...common, directory, nodeWords: [] }, ["init"])
  const { env: variables, toml } = makeToken(directory, join(directory, "token.key"))
  configured(directory, profileText(`key_source = "pkcs11"\n\n[profiles.token.signer.local_ca.pkcs11]\n${toml}`))
  return { directory, variables }
}

interface Window {
  readonly cpu: number
  readonly moduleCpu: number
  readonly perSecond: number
  readonly issuances: number
}

const used = ({ pid }: Service) => ({ own: Procfs.cpuOf(pid).total, children: Procfs.cpuOfChildren(pid) })

/** Measures on SQLite, with the last concurrency of the options. */
export const measureTokenCost = async (options: Options, progress: Progress): Promise<ReadonlyArray<KeyCost>> => {
  const { extent, nodeWords, synchronous } = options
  const concurrency = options.concurrency.at(-1) ?? 1
  const common = { databaseUrl: "sqlite://bench.db", synchronous }
  const service = await startService({ ...common, nodeWords, ...prepared(common) })
  const loader = startForked<typeof load>("load")
  const window = async (profile: string, extent: Options["extent"]): Promise<Window> => {
    await loader.call("target", service.directoryOf(profile))
    await loader.call("prepare", concurrency + (extent.issuances ?? (extent.seconds ?? 0) * 300))
    await loader.call("connect", concurrency)
    const before = used(service)
    const { elapsedMs, issuances } = await loader.call("run", { ...extent, concurrency })
    const after = used(service)
    const moduleCpu = (after.children - before.children) / issuances
    return {
      cpu: (after.own - before.own) / issuances + moduleCpu,
      moduleCpu,
      perSecond: issuances / elapsedMs * 1000,
      issuances
    }
  }
  try {
    const ways = [{ name: "a file", profile: "default" }, { name: "a token", profile: "token" }]
    for (const { name, profile } of ways) {
      progress(`warming up, the key in ${name}`)
      await window(profile, extent.issuances === undefined ? { seconds: 6 } : extent)
    }
    const measured = await summed(ways, rounds, [] as ReadonlyArray<Window>, async ({ name, profile }, round, so) => {
      progress(`the key in ${name}, round ${round} of ${rounds}`)
      return [...so, await window(profile, extent)]
    })
    const costs = measured.map(([way, windows]) => ({
      ...way,
      issuances: windows.reduce((sum, one) => sum + one.issuances, 0),
      cpu: median(windows.map(({ cpu }) => cpu)),
      moduleCpu: median(windows.map(({ moduleCpu }) => moduleCpu)),
      perSecond: median(windows.map(({ perSecond }) => perSecond))
    }))
    return costs.map((cost) => ({ ...cost, ratio: cost.cpu / (costs[0]?.cpu ?? Number.NaN) }))
  } finally {
    loader.stop()
    await service.stop()
  }
}

/** Prints the figures as a table. */
export const tokenCostReport = (paint: Paint, costs: ReadonlyArray<KeyCost>, options: Options): string =>
  [
    paint.strong(`The key of the CA (${keyType}), ${options.concurrency.at(-1)} clients, medians of ${rounds} turns`),
    table(
      paint,
      ["", "issuances", "CPU ms", "of it the module", "to a file", "issuances/s"],
      costs.map((cost) => [
        `in ${cost.name}`,
        String(cost.issuances),
        paint.strong(fixed(cost.cpu, 2)),
        fixed(cost.moduleCpu, 2),
        fixed(cost.ratio, 2),
        fixed(cost.perSecond, 1)
      ])
    )
  ].join("\n\n")
