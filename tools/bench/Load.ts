import type { Act, Counts, Directory, Exchange, Kind } from "./Client.ts"
import { Client, expect, kinds, madeLate, plainRequest, prepare, Refused } from "./Client.ts"
import type { Binding, Peer } from "./PeersFile.ts"
import type { Proof, ProofPorts } from "./Proof.ts"
import { startProof } from "./Proof.ts"
import type { Target } from "./Wire.ts"
import { Connection, targetOf } from "./Wire.ts"

/*
 * The load generator. Over connections that stay open, it makes whole issuances, each with a new account, or repeats
 * one kind of request. A window is a period in which it sends this load while the bench measures.
 */

/** Latencies of one kind of request, in milliseconds. */
export interface Percentiles {
  readonly count: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Returns percentiles of the measured values. */
export const percentilesOf = (values: ReadonlyArray<number>): Percentiles => {
  const sorted = Float64Array.from(values).sort()
  const at = (fraction: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * fraction) - 1)] ?? 0
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** The length of a window: a number of issuances, or of seconds. */
export interface Extent {
  readonly issuances?: number
  readonly seconds?: number
}

/** The result of a window, as measured by its clients. */
export interface Window extends Readonly<Counts> {
  readonly elapsedMs: number
  readonly latencies: { readonly [K in Kind]: Percentiles }
  readonly everyRequest: Percentiles
  /** The CPU that the load generator itself used. */
  readonly clientCpuMs: number
  /** How many credentials had to be made within the window, because none were left. */
  readonly madeInWindow: number
  /** What the server said when it first refused an issuance, if the window goes on after a refusal. */
  readonly refusal: string | undefined
}

let proof: Proof | undefined
let target: Target | undefined
let directoryUrl = ""
let directory: Directory | undefined
let binding: Binding | undefined
let clients: Array<Client> = []

const ready = async (count: number): Promise<ReadonlyArray<Client>> => {
  if (target === undefined || directory === undefined) throw new Error("no server to turn to")
  while (clients.length < count) clients.push(new Client(target, directory))
  const chosen = clients.slice(0, count)
  await Promise.all(chosen.map((client) => client.begin()))
  return chosen
}

const dismiss = (): void => {
  for (const client of clients) client.close()
  clients = []
}

/** The functions that the load process offers to the bench. */
export const load = {
  /** Makes the service with this directory the target of the load. */
  target: (url: string): Promise<void> => load.targetPeer({ directoryUrl: url, ca: undefined, binding: undefined }),

  /** Makes another server the target of the load. */
  targetPeer: async (peer: Pick<Peer, "directoryUrl" | "ca" | "binding">): Promise<void> => {
    dismiss()
    target = { ...targetOf(peer.directoryUrl), ca: peer.ca }
    directoryUrl = peer.directoryUrl
    binding = peer.binding
    const connection = new Connection(target)
    await connection.open()
    const answer = await connection.send(plainRequest("GET", `${target.host}:${target.port}`, directoryUrl))
    connection.close()
    directory = JSON.parse(expect(200, "directory", answer).body) as Directory
  },

  /** Makes credentials for `count` issuances in advance. */
  prepare: (count: number): void => prepare(count),

  /** Opens the connections of a window before it begins. */
  connect: async (concurrency: number): Promise<void> => void await ready(concurrency),

  /** Makes one issuance and returns its recorded exchanges. */
  sample: async (): Promise<ReadonlyArray<Exchange>> => {
    const [client] = await ready(1)
    if (client === undefined) throw new Error("no client")
    const record: Array<Exchange> = []
    client.record = record
    await client.issue()
    client.record = undefined
    return record
  },

  /** Starts the servers that prove control of names. Only then can clients of a window prove names. */
  prove: async (ports?: ProofPorts): Promise<Pick<Proof, "httpPort" | "resolver">> => {
    proof ??= await startProof(ports)
    const { httpPort, resolver } = proof
    return { httpPort, resolver }
  },

  /** Requests the directory and a nonce, and returns both requests with their answers. */
  plain: async (): Promise<{ readonly [A in "directory" | "newNonce"]: Pick<Exchange, "request" | "answer"> }> => {
    if (target === undefined || directory === undefined) throw new Error("no server to turn to")
    const connection = new Connection(target)
    const ask = async (method: "GET" | "HEAD", url: string) => {
      const request = plainRequest(method, `${target?.host}:${target?.port}`, url)
      await connection.open()
      return { request, answer: await connection.send(request, method === "HEAD") }
    }
    const asked = { directory: await ask("GET", directoryUrl), newNonce: await ask("HEAD", directory.newNonce) }
    connection.close()
    return asked
  },

  /**
   * Runs one window with `concurrency` clients at once. At the end of the window, each client finishes the issuance or
   * the request that it has begun. Patient clients obey Retry-After. With proof, the clients answer the challenges. A
   * refused issuance ends the window, unless `mayRefuse` is true. `credential` binds the accounts instead of the
   * binding of the server.
   */
  run: async (
    {
      act = "issue",
      concurrency,
      credential,
      isPatient = false,
      issuances,
      mayRefuse = false,
      seconds,
      withProof = false
    }:
      & Extent
      & {
        readonly act?: Act
        readonly concurrency: number
        readonly credential?: { readonly kid: string; readonly hmacKey: string }
        readonly isPatient?: boolean
        readonly mayRefuse?: boolean
        readonly withProof?: boolean
      }
  ): Promise<Window> => {
    const chosen = await ready(concurrency)
    for (const client of clients) client.reset()
    for (const client of chosen) {
      client.isPatient = isPatient
      client.proof = withProof ? proof : undefined
      client.binding = credential === undefined ? binding : { kid: credential.kid, key: credential.hmacKey }
    }
    const acts: { readonly [A in Act]: (client: Client) => Promise<void> } = {
      issue: (client) => client.issue(),
      newAccount: (client) => client.register(),
      newNonce: (client) => client.newNonce(),
      directory: (client) => client.directoryOf(directoryUrl)
    }
    const late = madeLate()
    let left = issuances ?? Number.POSITIVE_INFINITY
    let refusal: string | undefined
    const attempt = async (client: Client): Promise<void> => {
      try {
        await acts[act](client)
      } catch (error) {
        if (!mayRefuse || !(error instanceof Refused)) throw error
        client.counts.refused++
        refusal ??= error.message
      }
    }
    const cpu = process.cpuUsage()
    const begun = performance.now()
    const end = begun + (seconds ?? Number.POSITIVE_INFINITY) * 1000
    try {
      await Promise.all(chosen.map(async (client) => {
        while (left-- > 0 && performance.now() < end) await attempt(client)
      }))
    } catch (error) {
      // The other clients would go on beside the next measurement.
      dismiss()
      throw error
    }
    const elapsedMs = performance.now() - begun
    const { system, user } = process.cpuUsage(cpu)
    const sum = (of: keyof Counts) => chosen.reduce((total, { counts }) => total + counts[of], 0)
    const latenciesOf = (kind: Kind) => chosen.flatMap(({ latencies }) => latencies[kind])
    return {
      issuances: sum("issuances"),
      requests: sum("requests"),
      polls: sum("polls"),
      retries: sum("retries"),
      refused: sum("refused"),
      elapsedMs,
      latencies: Object.fromEntries(
        kinds.map((kind) => [kind, percentilesOf(latenciesOf(kind))])
      ) as Window["latencies"],
      everyRequest: percentilesOf(kinds.flatMap(latenciesOf)),
      clientCpuMs: (user + system) / 1000,
      madeInWindow: madeLate() - late,
      refusal
    }
  },

  /** Milliseconds from finalize to the answer that names the certificate, of each issuance of the last window. */
  waits: (): ReadonlyArray<number> => clients.flatMap(({ waits }) => waits),

  /** Milliseconds of each issuance of the last window, from newAccount to the chain. */
  durations: (): ReadonlyArray<number> => clients.flatMap(({ durations }) => durations),

  /** Milliseconds of each issuance of the last window, from newOrder to the chain. */
  ordered: (): ReadonlyArray<number> => clients.flatMap(({ ordered }) => ordered),

  /** Sends the requests of a recorded issuance repeatedly to a server with recorded answers. */
  replay: async (parameter: {
    readonly port: number
    readonly secure?: boolean
    readonly requests: ReadonlyArray<string>
    readonly concurrency: number
    readonly seconds: number
  }): Promise<{ readonly issuances: number }> => {
    const { concurrency, port, requests, seconds, secure = false } = parameter
    const end = performance.now() + seconds * 1000
    let rounds = 0
    await Promise.all(Array.from({ length: concurrency }, async () => {
      const connection = new Connection({ host: "127.0.0.1", port, secure })
      while (performance.now() < end) {
        for (const request of requests) {
          await connection.open()
          await connection.send(request, request.startsWith("HEAD "))
        }
        rounds++
      }
      connection.close()
    }))
    return { issuances: rounds }
  }
}
