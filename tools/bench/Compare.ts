import { writePebbleFiles } from "../../test/support/PebbleFiles.ts"
import { temporaryDirectory } from "./Cleanup.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import { median } from "./Median.ts"
import type { Options } from "./Options.ts"
import type { Peers } from "./PeersFile.ts"
import { noPeers, readPeers } from "./PeersFile.ts"
import { peerSide } from "./PeerSide.ts"
import type { ServiceSide } from "./ServiceSide.ts"
import { serviceSide } from "./ServiceSide.ts"
import type { Burden, Ground, Side, Turn } from "./Turn.ts"

/*
 * Compares the service on each database with other servers and with the floor. All of them take turns, so that other
 * load on the machine affects each of them. The service uses TLS, as most other servers do.
 */

/** The turns of one side under one burden. A turn that the side did not finish is undefined. */
export interface SideTurns {
  readonly name: string
  readonly turns: ReadonlyArray<Turn | undefined>
}

/** All turns under one burden, those of the first database first. */
export interface Compared {
  readonly burden: Burden
  readonly sides: ReadonlyArray<SideTurns>
}

const timedRounds = 5
const singleClients = 8

/** Returns the burdens of a run: issuances with and without proof, and single requests. */
const burdensOf = ({ concurrency }: Options, ways: ReadonlyArray<boolean>): ReadonlyArray<Burden> => [
  ...ways.flatMap((isProved) =>
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

/** Returns a line with what a burden cost each side. A run takes long, and one that is ended early has told this much. */
const summaryOf = ({ burden, sides }: Compared): string => {
  const costs = sides.map(({ name, turns }) => {
    const finished = turns.filter((turn) => turn !== undefined)
    if (finished.length === 0) return `${name} finished no turn`
    const cpu = median(finished.map(({ cpu, databaseCpu = 0 }) => cpu + databaseCpu))
    return `${name} ${cpu.toFixed(2)} ms of CPU, ${
      median(finished.map(({ perSecond }) => perSecond)).toFixed(1)
    } a second`
  })
  return `${nameOf(burden)}: ${costs.join("; ")}`
}

const compare = async (
  burden: Burden,
  sides: ReadonlyArray<Side>,
  { extent }: Options,
  progress: Progress
): Promise<Compared> => {
  const turns = new Map<Side, Array<Turn | undefined>>(sides.map((side) => [side, []]))
  const rounds = extent.issuances === undefined ? timedRounds : 1
  for (let round = 1; round <= rounds; round++) {
    progress(`${nameOf(burden)}, round ${round} of ${rounds}`)
    // The order is forward and then backward, so that no side always comes first.
    for (const side of round % 2 === 0 ? sides.toReversed() : sides) turns.get(side)?.push(await side.turn(burden))
  }
  const compared = { burden, sides: [...turns].map(([{ name }, taken]) => ({ name, turns: taken })) }
  progress(summaryOf(compared))
  return compared
}

const measureSides = async (
  options: Options,
  progress: Progress,
  peers: Peers,
  burdens: ReadonlyArray<Burden>
): Promise<ReadonlyArray<Compared>> => {
  const loader = startForked<typeof load>("load")
  const ground: Ground = {
    options,
    loader,
    tls: await writePebbleFiles(temporaryDirectory()),
    proof: await loader.call("prove", { dnsPort: peers.dnsPort, httpPort: peers.httpPort }),
    progress
  }
  const services: Array<ServiceSide> = []
  try {
    // Peers come first, because a mistake in their file is more probable than a service that does not start.
    const others: Array<Side> = []
    for (const peer of peers.list) others.push(await peerSide(peer, ground))
    for (const name of options.databases) services.push(await serviceSide(name, ground))
    const sides = [...services, ...others]
    const compared: Array<Compared> = []
    const warm = new Set<string>()
    for (const burden of burdens) {
      const bearing = sides.filter((side) => side.bears(burden))
      const kind = `${burden.act} ${burden.isProved}`
      if (!warm.has(kind)) {
        progress(`${nameOf(burden)}: warming up`)
        for (const side of bearing) await side.warmUp({ ...burden, concurrency: singleClients })
        warm.add(kind)
      }
      compared.push(await compare(burden, bearing, options, progress))
    }
    return compared
  } finally {
    for (const side of services) await side.stop()
    loader.stop()
  }
}

/**
 * Measures every burden on the service and on the servers that the options name. With `--http-01` issuances without
 * proof are left out.
 */
export const measurePeers = (options: Options, progress: Progress): Promise<ReadonlyArray<Compared>> =>
  measureSides(
    options,
    progress,
    readPeers(options.peers),
    burdensOf(options, options.isProved ? [true] : [false, true])
  )

/** Measures the service beside the floor, without other servers, and without proof of names. */
export const measureToFloor = (options: Options, progress: Progress): Promise<ReadonlyArray<Compared>> =>
  measureSides(options, progress, noPeers, burdensOf(options, [false]))
