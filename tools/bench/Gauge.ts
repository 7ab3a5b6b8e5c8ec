import type { FloorRig } from "./FloorRig.ts"
import { layFloor } from "./FloorRig.ts"
import type { Forked } from "./Forked.ts"
import { startForked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import * as Procfs from "./Procfs.ts"
import type { Service } from "./Service.ts"
import { startService } from "./Service.ts"

/*
 * The short bench measures the service and the floor in short turns, on SQLite with 16 clients. The length of each turn
 * is a number of issuances and not of seconds, so that V8 has compiled the same code on a slow machine and on a fast
 * one.
 */

/** The result of one attempt: the means of the cheapest turns of both sides, and the ratio of the means. */
export interface Try {
  /** CPU milliseconds per issuance. */
  readonly service: number
  readonly floor: number
  readonly ratio: number
}

export const gaugedClients = 16
// V8 counts calls before it optimizes a function, and optimizes in the background as soon as a processor is free. With
// these counts and without a background thread, the CPU per issuance is stable after the warm-up. Otherwise it would be
// stable only after many thousand issuances, and after even more on a busy machine.
const early = [
  "--invocation-count-for-turbofan=200",
  "--invocation-count-for-maglev=50",
  "--no-concurrent-recompilation"
]
const warmUpIssuances = 1500
const roundIssuances = 80
const rounds = 12
// The length of the floor's rounds, as a fraction of a full round.
const floorShare = 0.15

/** Returns the CPU milliseconds of one issuance, as the mean of `issuances` issuances. */
const issue = async (service: Service, loader: Forked<typeof load>, issuances: number): Promise<number> => {
  await loader.call("prepare", issuances)
  await loader.call("connect", gaugedClients)
  const before = Procfs.cpuOf(service.pid).total
  const window = await loader.call("run", { concurrency: gaugedClients, issuances })
  return (Procfs.cpuOf(service.pid).total - before) / window.issuances
}

/** Returns the mean of the cheapest third, because other load on the machine only makes turns more expensive. */
const calm = (turns: ReadonlyArray<number>): number => {
  const lowest = turns.toSorted((one, other) => one - other).slice(0, Math.ceil(turns.length / 3))
  return lowest.reduce((sum, one) => sum + one, 0) / lowest.length
}

const tryOnce = async (service: Service, loader: Forked<typeof load>, rig: FloorRig): Promise<Try> => {
  const measureFloor = async () => (await rig.measure({ concurrency: gaugedClients, share: floorShare })).total / 1000
  const [services, floors]: [Array<number>, Array<number>] = [[], []]
  for (let round = 0; round < rounds; round++) {
    floors.push(await measureFloor())
    services.push(await issue(service, loader, roundIssuances))
  }
  const [own, floor] = [calm(services), calm(floors)]
  return { service: own, floor, ratio: own / floor }
}

/** Describes the result of an attempt in words. */
export const shownTry = ({ floor, ratio, service }: Try): string =>
  `${ratio.toFixed(2)} (${service.toFixed(2)} to ${floor.toFixed(2)} ms)`

/** Makes one attempt after another while `goesOn` returns true for the attempts so far. */
export const gauge = async (
  { nodeWords }: { readonly nodeWords: ReadonlyArray<string> },
  progress: Progress,
  goesOn: (tries: ReadonlyArray<Try>) => boolean
): Promise<ReadonlyArray<Try>> => {
  const loader = startForked<typeof load>("load")
  progress("starting")
  const service = await startService({
    databaseUrl: "sqlite://bench.db",
    synchronous: "normal",
    nodeWords: [...early, ...nodeWords]
  })
  await loader.call("target", service.directoryUrl)
  await issue(service, loader, warmUpIssuances)
  const rig = await layFloor({ service, loader, synchronous: "normal", postgres: undefined })
  const tries: Array<Try> = []
  do {
    progress(`try ${tries.length + 1}`)
    const one = await tryOnce(service, loader, rig)
    progress(`try ${tries.length + 1}: ${shownTry(one)}`)
    tries.push(one)
  } while (goesOn(tries))
  rig.stop()
  await service.stop()
  loader.stop()
  return tries
}
