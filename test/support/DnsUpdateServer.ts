import * as Dns from "dns-packet"
import { createHmac } from "node:crypto"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import type { AddressInfo, Socket } from "node:net"
import { createServer } from "node:net"

/*
 * A server for updates (RFC 2136) that verifies and signs (RFC 8945). It was written independently of the service's
 * client, so that it can judge the client. dns-packet reads the content of an update.
 */

/** The faults that answers to updates can have. */
export type UpdateFault =
  | "unsigned"
  | "badkey"
  | "badsig"
  | "badtime"
  | "skewed"
  | "replayed"
  | "tampered"
  | "other-key"
  | "other-algorithm"
  | "other-id"
  | "other-sender"
  | "short-mac"
  | "trailing"
  | "garbage"
  | "silent"

/** A key that a primary server knows. */
export interface ServerKey {
  readonly name: string
  readonly algorithm: "hmac-sha256" | "hmac-sha384" | "hmac-sha512"
  /** The secret in standard base64. */
  readonly secret: string
}

/** A primary server of one zone on 127.0.0.1, over UDP and TCP. */
export interface DnsUpdateServer {
  readonly port: number
  /** The TXT values by name, in lower case and without a final dot. */
  readonly texts: Map<string, Array<string>>
  /** The updates that had a good signature, in their order. */
  readonly made: ReadonlyArray<{
    readonly transport: "udp" | "tcp"
    readonly action: "add" | "delete"
    readonly name: string
    readonly value: string
  }>
  /** The fault that answers have from now on. The zone is changed even so. */
  fault: UpdateFault | undefined
  /** The RCODE with which updates are refused, 0 for none. */
  refuse: number
  /** Whether answers over UDP are truncated. */
  truncate: boolean
  readonly stop: () => Promise<void>
}

const u16 = (value: number) => Buffer.of(value >> 8 & 0xff, value & 0xff)
const u48 = (value: number) => Buffer.from(value.toString(16).padStart(12, "0"), "hex")
const nameOf = (name: string) =>
  Buffer.concat([
    ...name.replace(/\.$/, "").split(".").filter((label) => label !== "").flatMap((label) => [
      Buffer.of(label.length),
      Buffer.from(label.toLowerCase())
    ]),
    Buffer.of(0)
  ])

/** Returns the end of an uncompressed name. */
const endOfName = (octets: Buffer, at: number): number => {
  for (let next = at;;) {
    const size = octets[next] ?? 0
    next += size + 1
    if (size === 0) return next
  }
}

/** Returns everything before the last record of the additional section, and that record. */
const splitSignature = (octets: Buffer) => {
  const counts = [4, 6, 8, 10].map((at) => octets.readUInt16BE(at))
  let at = 12
  for (let index = 0; index < (counts[0] ?? 0); index++) at = endOfName(octets, at) + 4
  const records = (counts[1] ?? 0) + (counts[2] ?? 0) + (counts[3] ?? 0)
  let start = at
  for (let index = 0; index < records; index++) {
    start = at
    const end = endOfName(octets, at)
    at = end + 10 + octets.readUInt16BE(end + 8)
  }
  const plain = Buffer.from(octets.subarray(0, start))
  plain.writeUInt16BE((counts[3] ?? 1) - 1, 10)
  const nameEnd = endOfName(octets, start)
  const rdata = nameEnd + 10
  const algorithmEnd = endOfName(octets, rdata)
  const macLength = octets.readUInt16BE(algorithmEnd + 8)
  return {
    plain,
    keyName: octets.subarray(start, nameEnd),
    algorithm: octets.subarray(rdata, algorithmEnd),
    time: octets.readUIntBE(algorithmEnd, 6),
    fudge: octets.readUInt16BE(algorithmEnd + 6),
    mac: octets.subarray(algorithmEnd + 10, algorithmEnd + 10 + macLength)
  }
}

const mac = (key: ServerKey, ...parts: ReadonlyArray<Uint8Array>) =>
  createHmac(key.algorithm.slice(5), Buffer.from(key.secret, "base64")).update(Buffer.concat(parts)).digest()

const variables = (key: ServerKey, time: number, error = 0, other = Buffer.alloc(0), fudge = 300) =>
  Buffer.concat([
    nameOf(key.name),
    Buffer.of(0, 255, 0, 0, 0, 0),
    nameOf(key.algorithm),
    u48(time),
    u16(fudge),
    u16(error),
    u16(other.length),
    other
  ])

const signature = (key: ServerKey, time: number, made: Buffer, id: Buffer, error = 0, other = Buffer.alloc(0)) => {
  const rdata = Buffer.concat([
    nameOf(key.algorithm),
    u48(time),
    u16(300),
    u16(made.length),
    made,
    id,
    u16(error),
    u16(other.length),
    other
  ])
  return Buffer.concat([nameOf(key.name), Buffer.of(0, 250, 0, 255, 0, 0, 0, 0), u16(rdata.length), rdata])
}

const withRecord = (plain: Buffer, record: Buffer): Buffer => {
  const whole = Buffer.concat([plain, record])
  whole.writeUInt16BE(plain.readUInt16BE(10) + 1, 10)
  return whole
}

/** Starts a server that knows these keys. */
export const startDnsUpdateServer = async (
  zone: string,
  keys: ReadonlyArray<ServerKey>,
  /** Called after every change with a name and its present values. */
  changed: (name: string, values: ReadonlyArray<string>) => void = () => {}
): Promise<DnsUpdateServer> => {
  const made: Array<DnsUpdateServer["made"][number]> = []
  const texts = new Map<string, Array<string>>()
  const state: Pick<DnsUpdateServer, "fault" | "refuse" | "truncate"> = { fault: undefined, refuse: 0, truncate: false }
  let earlier: Buffer | undefined

  const change = (plain: Buffer, transport: "udp" | "tcp") => {
    const { authorities = [] } = Dns.decode(plain)
    for (const record of authorities) {
      if (record.type !== "TXT") throw new Error(`an update of ${record.type}`)
      const name = record.name.toLowerCase()
      const value = [record.data].flat().map((part) => Buffer.from(part as Buffer).toString("latin1")).join("")
      const action = record.class === "IN" ? "add" : "delete"
      made.push({ transport, action, name, value })
      const values = (texts.get(name) ?? []).filter((one) => one !== value)
      if (action === "add") values.push(value)
      if (values.length === 0) texts.delete(name)
      else texts.set(name, values)
      changed(name, values)
    }
  }

  /** Returns the answer to a message, or `undefined` if there is none. */
  const answerTo = (octets: Buffer, transport: "udp" | "tcp"): Buffer | undefined => {
    const { fault } = state
    if (fault === "silent") return undefined
    const request = splitSignature(octets)
    const now = Math.floor(Date.now() / 1000)
    const id = octets.subarray(0, 2)
    const head = (rcode: number, flags = 0) =>
      Buffer.concat([id, u16(0x8000 | 5 << 11 | flags | rcode), Buffer.alloc(8)])
    const key = keys.find((one) =>
      nameOf(one.name).equals(request.keyName) && nameOf(one.algorithm).equals(request.algorithm)
    )
    const unsigned = (key: ServerKey, error: number) =>
      withRecord(head(9), signature(key, now, Buffer.alloc(0), id, error))
    const asked = { name: "asked.", algorithm: "hmac-sha256", secret: "" } as const
    if (key === undefined || fault === "badkey") return unsigned(key ?? asked, 17)
    const expected = mac(key, request.plain, variables(key, request.time, 0, Buffer.alloc(0), request.fudge))
    if (!expected.equals(request.mac) || fault === "badsig") return unsigned(key, 16)
    if (transport === "udp" && state.truncate) return withSignature(head(0, 0x200), key, request.mac, now, id)
    if (fault === "badtime" || Math.abs(now - request.time) > request.fudge) {
      return withSignature(head(9), key, request.mac, request.time, id, 18, u48(now + 900))
    }
    if (state.refuse === 0) change(request.plain, transport)
    const answer = head(state.refuse)
    switch (fault) {
      case "unsigned":
        return answer
      case "garbage":
        return Buffer.concat([id, Buffer.from("no message at all")])
      case "skewed":
        return withSignature(answer, key, request.mac, now - 3600, id)
      case "other-key":
        return withSignature(answer, { ...key, name: "other." }, request.mac, now, id)
      case "other-algorithm":
        return withSignature(
          answer,
          { ...key, algorithm: key.algorithm === "hmac-sha256" ? "hmac-sha512" : "hmac-sha256" },
          request.mac,
          now,
          id
        )
      case "short-mac": {
        const whole = mac(key, u16(request.mac.length), request.mac, answer, variables(key, now))
        return withRecord(answer, signature(key, now, whole.subarray(0, 16), id))
      }
      case "other-id": {
        const whole = withSignature(answer, key, request.mac, now, id)
        whole[0] = (whole[0] ?? 0) ^ 0xff
        return whole
      }
      case "tampered": {
        const whole = withSignature(head(5), key, request.mac, now, id)
        whole.writeUInt16BE(whole.readUInt16BE(2) & 0xfff0, 2)
        return whole
      }
      case "trailing":
        return Buffer.concat([withSignature(answer, key, request.mac, now, id), Buffer.of(0)])
      case "replayed": {
        // This is the answer to the previous update, with the id of the present update.
        const copy = Buffer.from(earlier ?? withSignature(answer, key, Buffer.alloc(32), now, id))
        id.copy(copy)
        return copy
      }
      default:
        return earlier = withSignature(answer, key, request.mac, now, id)
    }
  }

  const withSignature = (
    plain: Buffer,
    key: ServerKey,
    requestMac: Buffer,
    time: number,
    id: Buffer,
    error = 0,
    other = Buffer.alloc(0)
  ): Buffer => {
    const own = mac(key, u16(requestMac.length), requestMac, plain, variables(key, time, error, other))
    return withRecord(plain, signature(key, time, own, id, error, other))
  }

  const udp = createSocket("udp4")
  const stranger = createSocket("udp4")
  udp.on("message", (message, { address, port }) => {
    const answer = answerTo(message, "udp")
    const from = state.fault === "other-sender" ? stranger : udp
    if (answer !== undefined) from.send(answer, port, address)
  })
  const sockets = new Set<Socket>()
  const tcp = createServer((socket) => {
    sockets.add(socket)
    let received = Buffer.alloc(0)
    socket.on("error", () => {}).once("close", () => sockets.delete(socket))
    socket.on("data", (part: Buffer) => {
      received = Buffer.concat([received, part])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      const answer = answerTo(received.subarray(2), "tcp")
      if (answer === undefined) return socket.destroy()
      socket.end(Buffer.concat([u16(answer.length), answer]))
    })
  })
  stranger.bind(0, "127.0.0.1")
  tcp.listen(0, "127.0.0.1")
  await Promise.all([once(stranger, "listening"), once(tcp, "listening")])
  const { port } = tcp.address() as AddressInfo
  udp.bind(port, "127.0.0.1")
  await once(udp, "listening")
  return Object.assign(state, {
    port,
    zone,
    texts,
    made,
    stop: async () => {
      udp.close()
      stranger.close()
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => tcp.close(() => resolve()))
    }
  })
}
