import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type * as Http from "node:http"
import type { Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { Entropy } from "../../crypto/Entropy.ts"
import { makeAwake } from "../Awake.ts"
import type { Loops } from "../Loops.ts"
import { comparable } from "../net/Address.ts"
import type { Comparable } from "../net/Address.ts"
import { currentPeer } from "../net/FairSemaphore.ts"
import type { Peer } from "../net/Peer.ts"
import { peerOf } from "../net/Peer.ts"
import { supervised } from "../Supervised.ts"
import { emit, emitIn, withinSpan } from "../telemetry/EngineLog.ts"
import { traced } from "../telemetry/Tracing.ts"
import { currentMillis, millisOf } from "../Time.ts"
import type { BodyLimits } from "./Body.ts"
import { Body, leaveUnread } from "./Body.ts"
import type { BindFailed, BoundAddress, TlsSettings } from "./BoundSocket.ts"
import { BoundSocket, maxHeaderFields } from "./BoundSocket.ts"
import { HandshakeLate, linger } from "./Connections.ts"
import { ForwardingPeers } from "./ForwardingPeers.ts"
import type { BareStatus } from "./Head.ts"
import {
  bareAnswer,
  hardeningOf,
  hasOneHost,
  idOf,
  loggedTarget,
  readHead,
  readTarget,
  statusOf,
  unmapped,
  write,
  writeStream
} from "./Head.ts"
import type { Arrived, InFlight } from "./InFlight.ts"
import { handedOver, RequestsInFlight } from "./InFlight.ts"
import type { Answer, Answering, App, Request, Routed } from "./Message.ts"
import { accessWeight, unmatched } from "./Message.ts"
import { seldom } from "./Seldom.ts"

/**
 * The options of a socket: its address, and how many connections it accepts (docs/contribute/decisions/process.md,
 * "Bounds of a socket").
 */
export interface SocketOptions extends BoundAddress {
  /** The name of the socket in records. */
  readonly name: string
  readonly maxConnections: number
}

type TlsPair = Pick<TlsSettings, "cert" | "key">

/** Functions that are called for the requests of a listener. Each is called with the fiber that handles the request. */
export interface Watch {
  /** Called when the handling of a request begins. The handling is over when the fiber ends. */
  readonly begun: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /**
   * Called when a request is answered, with the facts and the pattern of its route. The seconds are counted from the
   * parsed head until the answer is handed to the socket. This function is also called for input that is not a request
   * and was never handled.
   */
  readonly answered: (
    fiber: Fiber.Fiber<unknown, unknown>,
    answered: Pick<Routed<never>, "facts" | "pattern"> & { readonly status: number },
    seconds: number
  ) => void
}

/** What a listener serves, and the settings for that: `server.*` of the configuration. */
export interface Serving<R> extends BodyLimits {
  readonly app: App<R>
  /** The paths that the listener itself answers, without the app. */
  readonly own: ReadonlyMap<string, Answering<never>>
  readonly tls: TlsSettings | undefined
  readonly requestTimeoutMillis: number
  readonly watch: Watch | undefined
  /** Returns whether an address is that of a proxy, which has many clients and so no share of its own. */
  readonly isProxy: (address: Comparable) => boolean
  /** The headers, in lower case, in which a proxy names its client. */
  readonly forwardedHeaders: ReadonlyArray<string>
}

const sweepMillis = 250
const cutMillis = 5000
const lastRequestMillis = 1000

/** A bound socket. */
export interface Listener {
  /** The bound address as `host:port`. */
  readonly address: string
  /**
   * Begins to serve, or changes to another app and other settings. Requests in flight keep the app and the settings
   * with which they began. A connection stays as it was accepted, with or without TLS.
   */
  readonly serve: <R>(serving: Serving<R>) => Effect.Effect<void, never, R | Entropy>
  /** Uses another key and certificate for the connections that are accepted from now on, if `former` is in force. */
  readonly renew: (former: TlsPair, next: TlsPair) => Effect.Effect<void>
  /**
   * Stops accepting connections, and lets the requests in flight finish within the request deadline. Their answers have
   * `connection: close`. If other processes accept connections at the same address, a connection without a request may
   * still send a request within a second. After the deadline, cuts off the remaining requests and waits for their
   * handlers. Returns how many requests were cut off.
   */
  readonly drain: Effect.Effect<number>
}

const panicked = (cause: Cause.Cause<never>): Effect.Effect<Answer> =>
  Effect.as(emit("request_handler_panicked", { error: String(Cause.squash(cause)) }), { status: 500, headers: {} })

/** Binds a socket until the scope closes. {@link Listener.drain} must be called before that. */
export const bind = (options: SocketOptions): Effect.Effect<Listener, BindFailed, Loops | Scope.Scope> =>
  Effect.gen(function*() {
    const bodies = new Body()
    const inFlight = new RequestsInFlight()
    const hardening = hardeningOf(options.name === "admin")
    let deadlineMillis = 0
    let draining = false
    let onRefused: (socket: Socket, status: BareStatus) => void = () => {}
    /** The server in force. Connections of another server are not kept alive. */
    let inForce: Http.Server | undefined
    let log: (records: Effect.Effect<void>) => void = () => {}
    /**
     * Answers input that is not a request, or that cannot be handled yet. The requests before it are answered first.
     */
    const refuse = (socket: Socket, status: BareStatus) =>
      inFlight.afterAll(socket, () => {
        socket.end(bareAnswer(status, hardening))
        linger(socket)
        // The fault may be in the body of a request in flight. Such a request has its own record.
        if (!inFlight.isOn(socket)) onRefused(socket, status)
      })

    const socket = new BoundSocket(options.maxConnections, (server) => {
      inForce = server
      server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
        const isGone = error.code === "ECONNRESET" || error instanceof HandshakeLate
        if (isGone || !(socket.writable || socket.writableEnded)) socket.destroy()
        else if (socket.writable) refuse(socket, statusOf(error))
      })
      // The interim answer 100 is sent only when the body is read.
      for (const event of ["request", "checkContinue", "checkExpectation"]) {
        server.on(event, (message: Http.IncomingMessage, response: Http.ServerResponse) => {
          connections.headSeen(message.socket)
          if (message.rawHeaders.length > maxHeaderFields * 2) return refuse(message.socket, 431)
          const target = hasOneHost(message) ? readTarget(message.url ?? "") : undefined
          if (target === undefined) return refuse(message.socket, 400)
          awake.wake()
          if (!inFlight.come({ message, response, server, target })) cutPipeline(message.socket)
        })
      }
      // This service is no proxy. Without this handler, the runtime would close the connection without an answer.
      server.on("connect", (_message: Http.IncomingMessage, socket: Socket) => {
        connections.headSeen(socket)
        socket.on("error", () => {}) // the server no longer handles the errors of this socket
        socket.resume()
        refuse(socket, 400)
      })
      server.on("tlsClientError", (error: Error, { remoteAddress }: TLSSocket) => {
        const isLate = error instanceof HandshakeLate
        const address = isLate ? error.address : remoteAddress
        const fields = { listener: options.name, client_ip: address && unmapped(address), error: error.message }
        log(emit(isLate ? "tls_handshake_timeout" : "tls_handshake_failed", fields))
      })
    })
    const { connections } = socket
    const awake = makeAwake(sweepMillis, () => inFlight.size === 0 && connections.pending === 0)
    const [logRefusal, logPipeline] = [seldom((record) => log(record)), seldom((record) => log(record))]
    connections.onRefused = (address, open, pending) =>
      logRefusal(
        emit("server_connection_refused", { listener: options.name, address: unmapped(address), open, pending })
      )
    const cutPipeline = (socket: Socket) => {
      const address = unmapped(socket.remoteAddress ?? "")
      logPipeline(emit("request_pipeline_cut", { listener: options.name, address }))
      socket.destroy()
    }
    const address = yield* socket.bind(options)

    // One timer serves all requests in flight.
    connections.onOpened = awake.wake
    const sweep = awake.repeat(Effect.map(currentMillis, (now) => {
      bodies.expire(now)
      connections.expire(now)
      inFlight.expire(now)
    }))
    yield* supervised("listener_sweep", sweep)

    const forwarding = new ForwardingPeers()
    const serve = <R>(
      { app, forwardedHeaders, isProxy, maxBodies, maxBodyBytes, own, requestTimeoutMillis, tls, watch }: Serving<R>
    ) =>
      Effect.gen(function*() {
        const entropy = yield* Entropy
        const fork = Effect.runForkWith(yield* Effect.context<R | Entropy>())
        const limits = { maxBodies, maxBodyBytes }
        const shareOf = (address: string): Peer | undefined => {
          const read = comparable(address)
          return read !== undefined && isProxy(read) ? undefined : peerOf(address)
        }

        /** A request through a proxy is routed to learn its client, and routed again when it begins. */
        const comesFrom = ({ message, target }: Arrived): Peer => {
          const own = shareOf(unmapped(message.socket.remoteAddress ?? ""))
          return own ?? peerOf(app.route(readHead("", message, target, Effect.never)).clientIp)
        }

        const answered = (
          one: InFlight,
          { handle, late }: Answering<R>,
          request: Request
        ): Effect.Effect<Answer | undefined, never, R> =>
          Effect.flatMap(Effect.exit(Effect.interruptible(handle(request))), (exit) => {
            if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
            // This fiber stays interrupted, so the late answer is made in a new fiber.
            if (one.ending === "late") {
              return Effect.andThen(
                emit("request_deadline_exceeded", {}),
                Effect.flatMap(Effect.forkChild(Effect.interruptible(late(request))), Fiber.join)
              )
            }
            return Cause.hasInterruptsOnly(exit.cause) ? Effect.succeed(undefined) : panicked(exit.cause)
          })

        const begin = (one: InFlight) =>
          fork(Effect.uninterruptible(Effect.withFiber<void, never, R>((fiber) => {
            watch?.begun(fiber)
            const startedAt = millisOf(fiber)
            one.endsAt = startedAt + requestTimeoutMillis
            const { message, response } = one
            const header = forwardedHeaders.find((name) => message.headers[name] !== undefined)
            if (header !== undefined) {
              const address = forwarding.told(message, header, isProxy)
              if (address !== undefined) {
                emitIn(fiber, "server_proxy_untrusted", { listener: options.name, address, header })
              }
            }
            const id = idOf(message, fiber) ?? entropy.uuidAt(startedAt)
            const received = readHead(id, message, one.target, bodies.read(message, response, limits))
            const { clientIp: peer, path } = received
            const ours = own.get(path)
            const routed = ours === undefined
              ? app.route(received)
              : { ...ours, facts: {}, pattern: path, clientIp: peer }
            const { clientIp, facts, pattern } = routed
            const request = { ...received, clientIp }
            const span = {
              request_id: request.id,
              client_ip: request.clientIp,
              method: request.method,
              uri: loggedTarget(request),
              version: `HTTP/${message.httpVersion}`,
              ...facts
            }
            const answer = traced(
              `${request.method} ${pattern}`,
              () => ({ "http.route": pattern, ...facts, request_id: request.id }),
              one.ending === undefined ? answered(one, routed, request) : Effect.undefined,
              (given) => ({ "http.response.status_code": given?.status })
            )
            const whole = Effect.flatMap(answer, (given): Effect.Effect<void> => {
              const now = millisOf(fiber)
              const took = now - startedAt
              const isSent = given !== undefined && one.ending !== "gone" && !response.destroyed
              const status = isSent ? given.status : 499
              // Every request gets one record. This includes malformed requests, and requests whose client has
              // disconnected (499, not sent).
              const ended = () => {
                watch?.answered(fiber, { facts, pattern, status }, took / 1000)
                emitIn(fiber, "request_completed", { status, latency_ms: took }, accessWeight(status, request))
              }
              const stream = isSent ? send(one, request, given, now) : undefined
              if (stream !== undefined) {
                return Effect.map(stream, ended)
              }
              ended()
              return Effect.void
            })
            return Effect.provideService(withinSpan(span, startedAt, whole), currentPeer, shareOf(clientIp))
          })))

        /** Hands the answer to the socket. If the body is a stream, the result is an effect that sends the stream. */
        const send = (
          one: InFlight,
          { id, method }: Request,
          answer: Answer,
          now: number
        ): Effect.Effect<void> | undefined => {
          const { message, response, server } = one
          leaveUnread(message, response)
          if (draining || server !== inForce) response.setHeader("connection", "close")
          write(response, id, answer, hardening)
          handedOver(one, now, requestTimeoutMillis)
          if (answer.stream === undefined) return undefined
          // Each chunk has a time limit of its own: a file may be long, but its client must keep reading.
          const goesOn = Effect.map(currentMillis, (at) => handedOver(one, at, requestTimeoutMillis))
          return writeStream(response, method, answer.stream, goesOn)
        }

        // All of this is one step, so that no request sees some old and some new settings.
        yield* Effect.sync(() => {
          log = fork
          onRefused = ({ remoteAddress }, status) => {
            const line = Effect.withFiber((fiber) => {
              watch?.answered(fiber, { facts: {}, pattern: unmatched, status }, 0)
              return emit("request_completed", { status, latency_ms: 0 }, accessWeight(status))
            })
            const span = { client_ip: unmapped(remoteAddress ?? "") }
            log(Effect.flatMap(currentMillis, (now) => withinSpan(span, now, line)))
          }
          inFlight.handle = begin
          inFlight.peerOf = comesFrom
          connections.peerOf = shareOf
          deadlineMillis = requestTimeoutMillis
          socket.speak(tls)
        })
      })

    const drain = Effect.gen(function*() {
      draining = true
      socket.close()
      inFlight.endAnswered()
      // The next request of a client may already be on its way to this process. Other processes serve the later
      // requests of this client.
      if (options.sharing !== "nobody") {
        yield* Effect.timeoutOption(Effect.interruptible(connections.none), lastRequestMillis)
      }
      inFlight.endIdle()
      yield* Effect.timeoutOption(Effect.interruptible(inFlight.none), deadlineMillis)
      const cut = inFlight.cut()
      socket.cut()
      // A statement cannot be interrupted while the database does not answer. The process ends without waiting for such
      // a statement.
      yield* Effect.timeoutOption(Effect.interruptible(inFlight.none), cutMillis)
      return cut
    })

    const renew = (former: TlsPair, next: TlsPair) => Effect.sync(() => socket.renew(former, next))

    return { address, serve, renew, drain }
  })
