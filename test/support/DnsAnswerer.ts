import type { Answer, Packet, Question } from "dns-packet"
import * as Dns from "dns-packet"
import type { Scope } from "effect"
import { Effect } from "effect"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import type { AddressInfo, Socket } from "node:net"
import { createServer } from "node:net"
import type { Resolver } from "../../src/engine/net/Resolver.ts"

/** The answers for one name. If a name has an entry without records of the requested type, the answer is "no data". */
export interface Entry {
  readonly A?: ReadonlyArray<string>
  /** The names of an address, in the entry of its `in-addr.arpa` or `ip6.arpa` name. */
  readonly PTR?: ReadonlyArray<string>
  /** The seconds for which every record may be cached, by default 0. */
  readonly ttl?: number
  readonly AAAA?: ReadonlyArray<string>
  /** One item for each record. An array is one record of several strings. */
  readonly TXT?: ReadonlyArray<string | ReadonlyArray<string>>
  /** The target of an alias, which is followed within the zone for at most 8 steps. The answer includes the chain. */
  readonly CNAME?: string
  readonly rcode?: "NXDOMAIN" | "SERVFAIL" | "REFUSED"
  /** Queries of these types, or all of them, get no reply. */
  readonly drop?: true | ReadonlyArray<string>
  /** UDP replies contain no record and have the TC bit set, as all replies of more than 512 octets do. */
  readonly truncate?: true
  /**
   * UDP replies have an id other than that of the query, or come from a port other than the one to which the query was
   * sent.
   */
  readonly forged?: "id" | "port"
}

/** A query as it arrived. */
export interface Query {
  readonly name: string
  readonly type: string
  readonly transport: "udp" | "tcp"
  /** The port from which it was sent. */
  readonly from: number
}

/** An authoritative name server on 127.0.0.1, over UDP and TCP, whose zone may be changed while it runs. */
export interface DnsAnswerer {
  /** The value for dns.resolver: `127.0.0.1:<port>`. */
  readonly address: string
  readonly port: number
  /** The entries by name, in lower case and without a trailing dot. */
  readonly zone: Map<string, Entry>
  /** Every query so far, in order. */
  readonly queries: Array<Query>
  /** Resolves once `times` queries for the name, by default one, have arrived. */
  readonly queried: (name: string, times?: number) => Promise<void>
  readonly stop: () => Promise<void>
}

export interface DnsAnswererOptions {
  readonly zone?: Readonly<Record<string, Entry>>
  /** Called at every query for a name outside the zone. */
  readonly look?: (name: string) => Entry | undefined
  /** The entry of every name that has no other entry. By default, such a name is answered NXDOMAIN. */
  readonly fallback?: Entry
  /** The port. 0, the default, means any free port. */
  readonly port?: number
}

const rcodes = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 }

const records = (entry: Entry, name: string, type: string): Array<Answer> => {
  const ttl = entry.ttl ?? 0
  if (type === "A" || type === "AAAA" || type === "PTR") {
    return (entry[type] ?? []).map((data) => ({ type, name, ttl, data }))
  }
  if (type !== "TXT") return []
  return (entry.TXT ?? []).map((data) => ({
    type,
    name,
    ttl: 0,
    data: typeof data === "string" ? data : Array.from(data)
  }))
}

const listenOnce = async (options: DnsAnswererOptions): Promise<DnsAnswerer> => {
  const zone = new Map(Object.entries(options.zone ?? {}))
  const queries: Array<Query> = []
  const waiting: Array<{ readonly met: () => boolean; readonly resolve: () => void }> = []
  const entryOf = (name: string) =>
    zone.get(name.toLowerCase()) ?? options.look?.(name.toLowerCase()) ?? options.fallback ??
      { rcode: "NXDOMAIN" as const }

  const answer = (query: Packet, transport: "udp" | "tcp", from: number): Buffer | undefined => {
    const question: Question | undefined = query.questions?.[0]
    if (question === undefined) return undefined
    const { name, type } = question
    queries.push({ name, type, transport, from })
    for (const waiter of waiting) if (waiter.met()) waiter.resolve()
    let at = name
    let entry: Entry = entryOf(at)
    if (entry.drop === true || entry.drop?.includes(type)) return undefined
    const answers: Array<Answer> = []
    for (let step = 0; entry.CNAME !== undefined && step < 8; step++) {
      answers.push({ type: "CNAME", name: at, ttl: 0, data: entry.CNAME })
      at = entry.CNAME
      entry = entryOf(at)
    }
    answers.push(...records(entry, at, type))
    const reply = (extra: number, given: Array<Answer>) =>
      Dns.encode({
        type: "response",
        ...query.id === undefined ? {} : { id: query.id },
        flags: Dns.AUTHORITATIVE_ANSWER | ((query.flags ?? 0) & Dns.RECURSION_DESIRED) | extra,
        questions: [question],
        answers: given
      })
    const whole = reply(entry.rcode === undefined ? 0 : rcodes[entry.rcode], answers)
    const cut = transport === "udp" && (entry.truncate === true || whole.length > 512)
    return cut ? reply(Dns.TRUNCATED_RESPONSE, []) : whole
  }

  const open = new Set<Socket>()
  const tcp = createServer((socket) => {
    open.add(socket)
    let buffered = Buffer.alloc(0)
    socket.on("error", () => socket.destroy())
    socket.on("close", () => open.delete(socket))
    socket.on("data", (chunk) => {
      buffered = Buffer.concat([buffered, chunk])
      while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
        const end = 2 + buffered.readUInt16BE(0)
        const reply = answer(Dns.decode(buffered.subarray(2, end)), "tcp", socket.remotePort ?? 0)
        buffered = buffered.subarray(end)
        if (reply === undefined) continue
        const length = Buffer.alloc(2)
        length.writeUInt16BE(reply.length)
        socket.write(Buffer.concat([length, reply]))
      }
    })
  })
  tcp.listen(options.port ?? 0, "127.0.0.1")
  await once(tcp, "listening")
  const { port } = tcp.address() as AddressInfo

  const udp = createSocket("udp4")
  const stranger = createSocket("udp4")
  udp.on("message", (message, from) => {
    const query = Dns.decode(message)
    const reply = answer(query, "udp", from.port)
    const { forged } = entryOf(query.questions?.[0]?.name ?? "")
    if (forged === "id") reply?.writeUInt16BE(((query.id ?? 0) + 1) % 0x10000)
    if (reply !== undefined) (forged === "port" ? stranger : udp).send(reply, from.port, from.address)
  })
  udp.bind(port, "127.0.0.1")
  try {
    await once(udp, "listening")
    stranger.bind(0, "127.0.0.1")
    await once(stranger, "listening")
  } catch (cause) {
    tcp.close()
    throw cause
  }

  return {
    address: `127.0.0.1:${port}`,
    port,
    zone,
    queries,
    queried: (name, times = 1) =>
      new Promise((resolve) => {
        const met = () => queries.filter((query) => query.name.toLowerCase() === name).length >= times
        if (met()) resolve()
        else waiting.push({ met, resolve })
      }),
    stop: async () => {
      const closed = [once(udp, "close"), once(stranger, "close"), once(tcp, "close")]
      udp.close()
      stranger.close()
      tcp.close()
      for (const socket of open) socket.destroy()
      await Promise.all(closed)
    }
  }
}

/**
 * Starts a name server, which the caller stops. If the UDP port with the number of a free TCP port is in use, tries
 * another port.
 */
export const startDnsAnswerer = async (options: DnsAnswererOptions = {}): Promise<DnsAnswerer> => {
  for (let attempt = 1;; attempt++) {
    try {
      return await listenOnce(options)
    } catch (cause) {
      if (attempt === 10 || (options.port ?? 0) !== 0) throw cause
    }
  }
}

const never = () => Effect.die("not asked for")

/** A resolver that must not be called, for the parts of a double that do not matter. */
export const unasked: Resolver["Service"] = {
  addresses: never,
  timedAddresses: never,
  pointers: never,
  texts: never
}

/** Starts a name server that lives as long as its scope. */
export const dnsAnswerer = (options: DnsAnswererOptions = {}): Effect.Effect<DnsAnswerer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => startDnsAnswerer(options)),
    (answerer) => Effect.promise(() => answerer.stop())
  )
