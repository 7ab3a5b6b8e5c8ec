import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Dgram from "node:dgram"
import type * as Net from "node:net"
import { Entropy } from "../../crypto/Entropy.ts"
import { currentSeconds } from "../Time.ts"
import { candidates, comparable, parseAddress } from "./Address.ts"
import { connect } from "./Connect.ts"
import type { DnsFault } from "./dns/DnsMessage.ts"
import { rcodeName, readMessage } from "./dns/DnsMessage.ts"
import type { TsigKey } from "./dns/Tsig.ts"
import { sign, verify } from "./dns/Tsig.ts"
import type { TxtChange } from "./dns/Update.ts"
import { encodeUpdate } from "./dns/Update.ts"
import { Resolver } from "./Resolver.ts"

/** The server that accepts updates of a zone, and the key that this service shares with the server. */
export interface UpdateServer {
  /** A name or an address literal. An IPv6 address has no brackets. */
  readonly host: string
  readonly port: number
  readonly key: TsigKey
}

/** The update failed. Either the zone is unchanged, or its state is unknown. `detail` contains no secret. */
export class DnsUpdateFailed extends Data.TaggedError("DnsUpdateFailed")<{
  readonly detail: string
  /** Whether a signed answer says that the server did not change the zone. */
  readonly isRefused?: boolean
}> {}

const failed = (detail: string) => new DnsUpdateFailed({ detail })

/** Hints for an operator, by RCODE (RFC 2136 section 2.2). */
const hints: ReadonlyMap<number, string> = new Map([
  [5, "the key may not change this name, or updates are turned off"],
  [9, "the server is no primary of this zone"],
  [10, "the name is in no zone of this server"]
])

/**
 * How many times a datagram is sent. After each time, the service waits for the answer. An exchange over TCP may take
 * as long as all these waits together.
 */
const tries = 3
const waitMillis = 2000
const connectMillis = 2000
const maxMessage = 65_535

const addressesOf = (host: string): Effect.Effect<ReadonlyArray<string>, DnsUpdateFailed, Resolver> => {
  const literal = comparable(host)
  if (literal !== undefined) return Effect.succeed([literal.text])
  return Effect.flatMap(Resolver, (resolver) =>
    resolver.addresses(host).pipe(
      Effect.mapError(({ code }) => failed(`${host} is not known: ${code}`)),
      Effect.map(candidates)
    ))
}

/**
 * Sends a datagram, and returns the first answer with the same id. The socket is connected, so it receives only what
 * this server sends.
 */
const byDatagram = (address: string, port: number, message: Buffer): Effect.Effect<Buffer, DnsUpdateFailed> =>
  Effect.callback((resume) => {
    const socket = Dgram.createSocket(address.includes(":") ? "udp6" : "udp4")
    const close = () => {
      clearInterval(timer)
      try {
        socket.close()
      } catch {
        // The socket is already closed.
      }
    }
    const settle = (result: Effect.Effect<Buffer, DnsUpdateFailed>) => {
      resume(result)
      close()
    }
    let sent = 0
    const send = () => {
      if (sent++ === tries) return settle(failed(`no answer over UDP within ${tries * waitMillis} ms`))
      socket.send(message, (error) => {
        if (error !== null) settle(failed(error.message))
      })
    }
    const timer = setInterval(send, waitMillis)
    socket.on("error", ({ message }) => settle(failed(message)))
    socket.on("message", (answer) => {
      if (answer.length >= 12 && answer.readUInt16BE(0) === message.readUInt16BE(0)) settle(Effect.succeed(answer))
    })
    socket.connect(port, address, send)
    return Effect.sync(close)
  })

const exchange = (socket: Net.Socket, message: Buffer): Effect.Effect<Buffer, DnsUpdateFailed> =>
  Effect.callback((resume) => {
    let received = Buffer.alloc(0)
    const settle = (result: Effect.Effect<Buffer, DnsUpdateFailed>) => {
      resume(result)
      socket.destroy()
    }
    socket.on("error", ({ message }) => settle(failed(message)))
    socket.once("close", () => settle(failed("the connection was closed without an answer")))
    socket.on("data", (part: Buffer) => {
      received = Buffer.concat([received, part])
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) {
        if (received.length > 2 + maxMessage) settle(failed("the answer is too long"))
        return
      }
      settle(Effect.succeed(received.subarray(2, 2 + received.readUInt16BE(0))))
    })
    const length = Buffer.alloc(2)
    length.writeUInt16BE(message.length)
    socket.write(Buffer.concat([length, message]))
    return Effect.sync(() => socket.destroy())
  })

const byStream = (
  address: string,
  port: number,
  message: Buffer
): Effect.Effect<Buffer, DnsUpdateFailed, Scope.Scope> =>
  Option.match(parseAddress(address), {
    onNone: () => failed(`${address} is not an address`),
    onSome: (literal) =>
      Effect.flatMap(
        Effect.mapError(connect({ address: literal, port, connectMillis }), ({ detail }) => failed(detail)),
        (socket) => exchange(socket, message)
      )
  }).pipe(Effect.timeoutOrElse({
    duration: tries * waitMillis,
    orElse: () => Effect.fail(failed(`no answer over TCP within ${tries * waitMillis} ms`))
  }))

const readable = <A>(read: Result.Result<A, DnsFault>): Effect.Effect<A, DnsUpdateFailed> =>
  Effect.mapError(Effect.fromResult(read), ({ detail }) => failed(detail))

/** Returns the answer that the server at one address sends. */
const answerOf = Effect.fnUntraced(function*(address: string, port: number, message: Buffer) {
  const first = yield* byDatagram(address, port, message)
  // The content of a truncated answer is not used. The query is repeated over TCP.
  const isTruncated = Result.match(readMessage(first), {
    onFailure: () => first.length >= 12 && (first.readUInt16BE(2) & 0x0200) !== 0,
    onSuccess: (message) => message.isTruncated
  })
  return isTruncated ? yield* byStream(address, port, message) : first
})

const update = Effect.fnUntraced(
  function*({ host, key, port }: UpdateServer, change: TxtChange) {
    const entropy = yield* Entropy
    const id = Buffer.from(yield* entropy.bytes(2)).readUInt16BE(0)
    const plain = yield* readable(encodeUpdate(id, change))
    const [first, ...others] = yield* addressesOf(host)
    if (first === undefined) return yield* failed(`${host} has no address`)
    const now = currentSeconds
    const { mac, signed } = yield* readable(sign(plain, key, yield* now))
    // The next address is tried even if the previous server may have made the update, because making the update twice
    // changes nothing.
    const answer = yield* others.reduce(
      (before, address) => Effect.catch(before, () => answerOf(address, port, signed)),
      answerOf(first, port, signed)
    )
    const { id: answered, isAnswer, opcode, rcode } = yield* readable(verify(answer, key, mac, yield* now))
    if (answered !== id || !isAnswer || opcode !== 5) return yield* failed("the answer is not one to this update")
    if (rcode !== 0) {
      const hint = hints.get(rcode)
      const detail = `the server refused the update: ${rcodeName(rcode)}${hint === undefined ? "" : `; ${hint}`}`
      return yield* new DnsUpdateFailed({ detail, isRefused: true })
    }
  },
  Effect.scoped
)

/**
 * Updates zones at their server (RFC 2136). The requests are signed (RFC 8945). Only a signed answer proves that an
 * update was made.
 */
export class DnsUpdate extends Context.Service<DnsUpdate, {
  readonly update: (server: UpdateServer, change: TxtChange) => Effect.Effect<void, DnsUpdateFailed>
}>()("acme/engine/net/DnsUpdate") {
  /** Uses UDP. Uses TCP if the answer is truncated. */
  static readonly layer: Layer.Layer<DnsUpdate, never, Resolver | Entropy> = Layer.effect(
    this,
    Effect.map(Effect.context<Resolver | Entropy>(), (context) => ({
      update: (server, change) => Effect.provide(update(server, change), context)
    }))
  )
}
