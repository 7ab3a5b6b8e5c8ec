import { writePebbleFiles } from "../../test/support/PebbleFiles.ts"
import { startPostgres } from "../../test/support/Postgres.ts"
import type { TlsFiles } from "./BareHttp.ts"
import { onEnd, temporaryDirectory } from "./Cleanup.ts"
import type { Act } from "./Client.ts"
import type { Floor, FloorRig } from "./FloorRig.ts"
import { layFloor } from "./FloorRig.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import { isInstalled, startPebble } from "./Pebble.ts"
import { postmasterOf } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { Ways } from "./Proof.ts"
import { provedConfiguration, provedProfile } from "./Proof.ts"
import { startService } from "./Service.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Compares the service on each database with Pebble and with the floor. All of them take turns of a few seconds, so
 * that other load on the machine affects each of them. Everything uses TLS.
 */

/** The load, which is the same for all sides of the comparison. */
export interface Burden {
  readonly act: Act
  /** Whether names are proved by http-01. Otherwise validation is bypassed. */
  readonly isProved: boolean
  readonly concurrency: number
}

/**
 * The results of one turn of one side. Times are CPU milliseconds per issuance, or per request if the burden is one
 * request.
 */
export interface Turn {
  readonly cpu: number
  readonly databaseCpu: number | undefined
  readonly floor: Floor | undefined
  readonly requests: number
}

export type SideName = Dialect | "pebble"

/** All turns under one burden. */
export interface Compared {
  readonly burden: Burden
  /** The turns of each side. A turn in which Pebble stopped answering is undefined. */
  readonly turns: { readonly [S in SideName]?: ReadonlyArray<Turn | undefined> }
  /** The share of the machine's CPU that processes outside the measurement used. */
  readonly otherShare: number
}

interface Side {
  readonly name: SideName
  readonly warmUp: (burden: Burden) => Promise<void>
  readonly turn: (burden: Burden) => Promise<(Turn & { readonly ownCpu: number }) | undefined>
  readonly stop: () => Promise<void>
}

const timedRounds = 5
const floorShare = 0.5
const singleClients = 8
const pebbleAttempts = 6
const pebbleWarmUp = 100

const isSigned = (act: Act): boolean => act === "issue" || act === "newAccount"
// For each act, a number that no side reaches in a second.
const perSecond: { readonly [A in Act]: number } = { issue: 300, newAccount: 3000, newNonce: 0, directory: 0 }

/** Runs one window, and measures what the process and its database use in the meantime. */
const windowOf = async (
  loader: Forked<typeof load>,
  extent: Options["extent"],
  { act, concurrency, isProved }: Burden,
  read: () => { readonly cpu: number; readonly database: number | undefined }
) => {
  if (isSigned(act)) {
    await loader.call("prepare", concurrency + (extent.issuances ?? Math.ceil((extent.seconds ?? 0) * perSecond[act])))
  }
  await loader.call("connect", concurrency)
  const before = read()
  const window = await loader.call("run", { ...extent, act, concurrency, withProof: isProved })
  const after = read()
  const ownCpu = after.cpu - before.cpu
  const database = before.database === undefined ? undefined : (after.database ?? 0) - before.database
  return {
    cpu: ownCpu / window.issuances,
    databaseCpu: database === undefined ? undefined : database / window.issuances,
    requests: window.requests / window.issuances,
    ownCpu: ownCpu + (database ?? 0) + window.clientCpuMs
  }
}

/** What all sides share. */
interface Ground {
  readonly options: Options
  readonly loader: Forked<typeof load>
  readonly tls: TlsFiles
  readonly proof: Ways
}

const serviceSide = async (name: Dialect, { loader, options, proof, tls }: Ground): Promise<Side> => {
  const { extent, nodeWords, serviceOnly, synchronous } = options
  const cluster = name === "postgres" ? await startPostgres({ durable: true }) : undefined
  const release = onEnd(() => void cluster?.stop())
  const postmaster = cluster === undefined ? undefined : await postmasterOf(cluster)
  const service = await startService({
    databaseUrl: await cluster?.createDatabase() ?? "sqlite://bench.db",
    synchronous,
    nodeWords,
    tls,
    configuration: provedConfiguration(proof)
  })
  const postgres = cluster === undefined || postmaster === undefined ? undefined : { cluster, postmaster }
  let rig: FloorRig | undefined
  const turnTo = ({ isProved }: Burden) =>
    loader.call("target", isProved ? service.directoryOf(provedProfile) : service.directoryUrl)
  const read = () => ({
    cpu: Procfs.cpuOf(service.pid).total,
    database: postmaster === undefined ? undefined : Procfs.cpuOfFamily(postmaster.pid)
  })
  return {
    name,
    warmUp: async (burden) => {
      await turnTo(burden)
      const seconds = burden.act === "issue" ? 8 : 2
      await windowOf(loader, extent.issuances === undefined ? { seconds } : extent, burden, read)
      if (!serviceOnly) rig ??= await layFloor({ service, loader, synchronous, tls, postgres })
    },
    turn: async (burden) => {
      const { act, concurrency, isProved } = burden
      const floor = await rig?.measure({
        act,
        concurrency,
        share: floorShare,
        proof: isProved ? proof : undefined
      })
      await turnTo(burden)
      return { floor, ...await windowOf(loader, extent, burden, read) }
    },
    stop: async () => {
      rig?.stop()
      await service.stop()
      await postmaster?.leave()
      release()
      await cluster?.stop()
    }
  }
}

/**
 * Starts a new Pebble for every turn, because each order makes Pebble's next order more expensive, and simultaneous
 * orders may make Pebble hang.
 */
const pebbleSide = ({ loader, options, proof }: Ground, progress: Progress): Side => {
  const once = async (burden: Burden) => {
    const pebble = await startPebble(burden.isProved ? proof : undefined)
    const read = () => ({ cpu: Procfs.cpuOf(pebble.pid).total, database: undefined })
    try {
      await loader.call("target", pebble.directoryUrl)
      const warmUp = { issuances: options.extent.issuances ?? pebbleWarmUp }
      await windowOf(loader, warmUp, burden, read)
      return { floor: undefined, ...await windowOf(loader, options.extent, burden, read) }
    } finally {
      await pebble.stop()
    }
  }
  return {
    name: "pebble",
    warmUp: () => Promise.resolve(),
    turn: async (burden) => {
      for (let attempt = 1; attempt <= pebbleAttempts; attempt++) {
        try {
          return await once(burden)
        } catch (error) {
          progress(`pebble: ${(error instanceof Error ? error.message : String(error)).split("\n", 1)[0]}`)
        }
      }
      return undefined
    },
    stop: () => Promise.resolve()
  }
}

const burdensOf = ({ concurrency }: Options, withProof: boolean): ReadonlyArray<Burden> => [
  ...(withProof ? [false, true] : [false]).flatMap((isProved) =>
    concurrency.map((clients): Burden => ({ act: "issue", isProved, concurrency: clients }))
  ),
  ...(["newAccount", "newNonce", "directory"] as const).map((act): Burden => ({
    act,
    isProved: false,
    concurrency: singleClients
  }))
]

/** Returns the name of a burden. */
export const nameOf = ({ act, concurrency, isProved }: Burden): string =>
  `${act === "issue" ? isProved ? "http-01" : "bypass" : act}, ${concurrency} client${concurrency === 1 ? "" : "s"}`

const compare = async (
  burden: Burden,
  sides: ReadonlyArray<Side>,
  { extent }: Options,
  progress: Progress
): Promise<Compared> => {
  const turns = new Map<SideName, Array<Turn | undefined>>(sides.map(({ name }) => [name, []]))
  const rounds = extent.issuances === undefined ? timedRounds : 1
  let other = 0
  let time = 0
  for (let round = 1; round <= rounds; round++) {
    progress(`${nameOf(burden)}, round ${round} of ${rounds}`)
    // The order is forward and then backward, so that no side always comes first.
    for (const side of round % 2 === 0 ? sides.toReversed() : sides) {
      const before = Procfs.machineCpu()
      const taken = await side.turn(burden)
      const after = Procfs.machineCpu()
      if (taken === undefined) {
        turns.get(side.name)?.push(undefined)
        continue
      }
      const { ownCpu, ...turn } = taken
      turns.get(side.name)?.push(turn)
      other += turn.floor === undefined ? Math.max(0, after.busy - before.busy - ownCpu) : 0
      time += turn.floor === undefined ? after.total - before.total : 0
    }
  }
  return { burden, turns: Object.fromEntries(turns), otherShare: time === 0 ? 0 : other / time }
}

/** Measures every burden on every side. The options may leave out Pebble and the burdens with proof. */
export const measureComparison = async (
  options: Options,
  progress: Progress,
  { withPebble = true, withProof = true }: { readonly withPebble?: boolean; readonly withProof?: boolean } = {}
): Promise<ReadonlyArray<Compared>> => {
  if (withPebble && !isInstalled()) throw new Error("pebble is not installed; on Debian: apt-get install pebble")
  const loader = startForked<typeof load>("load")
  const ground: Ground = {
    options,
    loader,
    tls: await writePebbleFiles(temporaryDirectory()),
    proof: await loader.call("prove")
  }
  const sides: Array<Side> = []
  try {
    for (const name of options.databases) sides.push(await serviceSide(name, ground))
    if (withPebble) sides.push(pebbleSide(ground, progress))
    const compared: Array<Compared> = []
    const warm = new Set<string>()
    for (const burden of burdensOf(options, withProof)) {
      const kind = `${burden.act} ${burden.isProved}`
      if (!warm.has(kind)) {
        progress(`${nameOf(burden)}: warming up`)
        for (const side of sides) await side.warmUp({ ...burden, concurrency: singleClients })
        warm.add(kind)
      }
      compared.push(await compare(burden, sides, options, progress))
    }
    return compared
  } finally {
    for (const side of sides) await side.stop()
    loader.stop()
  }
}
