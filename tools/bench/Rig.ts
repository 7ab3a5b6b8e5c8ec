import { setTimeout as delay } from "node:timers/promises"
import type { Forked } from "./Forked.ts"
import type { load } from "./Load.ts"
import type { Postmaster } from "./Postmaster.ts"
import * as Procfs from "./Procfs.ts"
import type { Service } from "./Service.ts"

/* Compares settings on one service. Each profile of the service has one of these settings. */

/** The service, its database server, and the process that generates the load. */
export interface Rig {
  readonly service: Service
  readonly loader: Forked<typeof load>
  /** The database server, or undefined on SQLite. */
  readonly postmaster: Postmaster | undefined
  readonly concurrency: number
}

/** What a rig has used up to one time. Times are in milliseconds. */
export interface Used {
  readonly cpu: number
  readonly database: number
  readonly machine: ReturnType<typeof Procfs.machineCpu>
  readonly at: number
}

/** Reads what a rig has used up to now. */
export const read = ({ postmaster, service }: Rig): Used => ({
  cpu: Procfs.cpuOf(service.pid).total,
  database: postmaster === undefined ? 0 : Procfs.cpuOfFamily(postmaster.pid),
  machine: Procfs.machineCpu(),
  at: performance.now()
})

const idleMillis = 4000

/** Measures the CPU milliseconds per second that the service uses while it gets no requests. */
export const idleCost = async (rig: Rig): Promise<number> => {
  const calm = read(rig)
  await delay(idleMillis)
  const rested = read(rig)
  return (rested.cpu - calm.cpu) / (rested.at - calm.at) * 1000
}

/** Returns the CPU milliseconds of the service between two readings, without the cost of an idle service. */
export const cpuBetween = (before: Used, after: Used, idle: number): number =>
  after.cpu - before.cpu - idle * (after.at - before.at) / 1000

/** Returns the share of the machine's CPU that was used between two readings. */
export const machineShareOf = ({ machine: before }: Used, { machine: after }: Used): number =>
  (after.busy - before.busy) / (after.total - before.total)

/**
 * Measures every way once in each round. A way is one of the compared settings. Each measurement gets the sums of its
 * way so far, and returns them with its own results added. The ways come in forward order in one round and in backward
 * order in the next, so that no way always comes first.
 */
export const summed = async <Way, Sums>(
  ways: ReadonlyArray<Way>,
  rounds: number,
  nothing: Sums,
  measure: (way: Way, round: number, so: Sums) => Promise<Sums>
): Promise<ReadonlyArray<readonly [Way, Sums]>> => {
  const sums = new Map<Way, Sums>()
  for (let round = 1; round <= rounds; round++) {
    for (const way of round % 2 === 0 ? ways.toReversed() : ways) {
      sums.set(way, await measure(way, round, sums.get(way) ?? nothing))
    }
  }
  return ways.map((way) => [way, sums.get(way) ?? nothing])
}
