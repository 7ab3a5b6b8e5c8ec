import type { TlsFiles } from "./BareHttp.ts"
import type { Act } from "./Client.ts"
import type { Floor } from "./FloorRig.ts"
import type { Forked } from "./Forked.ts"
import type { Extent, load } from "./Load.ts"
import { percentilesOf } from "./Load.ts"
import type { Progress } from "./Measure.ts"
import type { Options } from "./Options.ts"
import * as Procfs from "./Procfs.ts"
import type { Ways } from "./Proof.ts"

/* Several servers take turns of a few seconds, so that other load on the machine affects each of them. */

/** The load, which is the same for all sides of the comparison. */
export interface Burden {
  readonly act: Act
  /** Whether names are proved by http-01. Otherwise validation is bypassed. */
  readonly isProved: boolean
  readonly concurrency: number
}

/**
 * The results of one turn of one side. CPU is in milliseconds per issuance, or per request if the burden is one
 * request.
 */
export interface Turn {
  readonly cpu: number
  readonly databaseCpu: number | undefined
  readonly floor: Floor | undefined
  readonly requests: number
  readonly perSecond: number
  /** How long whole issuances took, in milliseconds. Undefined if the burden is one request. */
  readonly durations: { readonly p50: number; readonly p99: number } | undefined
  readonly issuances: number
  /** How many issuances the server refused. */
  readonly refused: number
  /** The share of the machine's CPU that processes outside the measurement used. */
  readonly otherShare: number
}

/** One server of the comparison. */
export interface Side {
  readonly name: string
  /** Whether the server takes part under this burden. */
  readonly bears: (burden: Burden) => boolean
  /** Prepares the server for burdens of this kind. */
  readonly warmUp: (burden: Burden) => Promise<void>
  /** Makes one turn. The result is undefined if the server did not finish it. */
  readonly turn: (burden: Burden) => Promise<Turn | undefined>
}

/** What all sides share. */
export interface Ground {
  readonly options: Options
  readonly loader: Forked<typeof load>
  readonly tls: TlsFiles
  readonly proof: Ways
  readonly progress: Progress
}

const isSigned = (act: Act): boolean => act === "issue" || act === "newAccount"
// For each act, a number that no side reaches in a second.
const perSecond: { readonly [A in Act]: number } = { issue: 300, newAccount: 3000, newNonce: 0, directory: 0 }

/**
 * Returns how long a server that keeps running is warmed up. After this many issuances V8 has compiled most of the
 * service's code. A slow server ends earlier.
 */
export const warmUpOf = ({ act }: Burden, extent: Extent): Extent => {
  if (extent.issuances !== undefined) return extent
  return act === "issue" ? { issuances: 1500, seconds: 60 } : { seconds: 2 }
}

/** Runs one window, and measures what the process and its database use in the meantime. */
export const windowOf = async (
  loader: Forked<typeof load>,
  extent: Extent,
  { act, concurrency, isProved }: Burden,
  readServer: () => { readonly cpu: number; readonly database: number | undefined },
  mayRefuse = false
): Promise<Omit<Turn, "floor">> => {
  if (isSigned(act)) {
    await loader.call("prepare", concurrency + (extent.issuances ?? Math.ceil((extent.seconds ?? 0) * perSecond[act])))
  }
  await loader.call("connect", concurrency)
  const read = () => ({ ...readServer(), machine: Procfs.machineCpu() })
  const before = read()
  const window = await loader.call("run", { ...extent, act, concurrency, mayRefuse, withProof: isProved })
  const after = read()
  const { issuances, refused } = window
  if (issuances === 0) throw new Error(`everything was refused: ${window.refusal ?? "nothing was requested"}`)
  const cpu = after.cpu - before.cpu
  const database = before.database === undefined ? undefined : (after.database ?? 0) - before.database
  const busy = after.machine.busy - before.machine.busy
  const elapsed = after.machine.total - before.machine.total
  return {
    cpu: cpu / issuances,
    databaseCpu: database === undefined ? undefined : database / issuances,
    requests: window.requests / issuances,
    perSecond: issuances / window.elapsedMs * 1000,
    durations: act === "issue" ? percentilesOf(await loader.call("durations")) : undefined,
    issuances,
    refused,
    // A very short window is less than one tick of the machine.
    otherShare: elapsed === 0 ? 0 : Math.max(0, busy - cpu - (database ?? 0) - window.clientCpuMs) / elapsed
  }
}
