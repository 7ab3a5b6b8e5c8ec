import { Cause, Clock, Data, Deferred, Effect, Exit, Fiber, FiberId, Runtime, Schedule } from "effect"
import type { Scope } from "effect"
import * as Http from "node:http"
import * as Https from "node:https"
import type { AddressInfo, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { accessWeight } from "../../domain/Event.ts"
import { Entropy } from "../../subsystems/crypto/Entropy.ts"
import { emit, enterSpan } from "../../subsystems/log/EventLog.ts"
import { Body, leaveUnread } from "./Body.ts"
import { Connections, linger } from "./Connections.ts"
import type { BareStatus } from "./Head.ts"
import { bareAnswer, readHead, unmapped, write } from "./Head.ts"
import type { Answer, App, Request } from "./Message.ts"

/** A socket could not be bound. */
export class BindFailed extends Data.TaggedError("BindFailed")<{ readonly address: string; readonly detail: string }> {
  override get message(): string {
    return `Cannot listen on ${this.address}: ${this.detail}.`
  }
}

/** `server.*` of the configuration, and the constants of `process.md`. */
export interface ListenerOptions {
  readonly name: "acme" | "admin" | "metrics"
  readonly host: string
  readonly port: number
  readonly tls: { readonly cert: string; readonly key: string; readonly handshakeTimeoutMillis: number } | undefined
  readonly maxConnections: number
  readonly requestTimeoutMillis: number
  readonly maxBodyBytes: number
  /** Bodies being read at once; beyond it a request is shed. */
  readonly maxBodies: number
}

const headTimeoutMillis = 10_000
const maxHeadBytes = 16_384
const maxHeaderFields = 100
const keepAliveMillis = 65_000
const requestsPerConnection = 1000
const sweepMillis = 250
const cutMillis = 5000

/** A bound socket. */
export interface Listener {
  /** `host:port` as bound. */
  readonly address: string
  /** Begins to serve, or goes over to another app: requests in flight finish on the one they began with. */
  readonly serve: <R>(app: App<R>) => Effect.Effect<void, never, R | Entropy | Scope.Scope>
  /**
   * Stops accepting and lets requests in flight finish within the request deadline, while answers say
   * `connection: close`; then cuts what is left and waits for its handlers. Answers how many were cut.
   */
  readonly drain: Effect.Effect<number>
}

interface InFlight {
  readonly socket: Socket
  startedAt: number
  fiber: Fiber.RuntimeFiber<void> | undefined
  /** Why its handler was interrupted, when it was. */
  ending: "late" | "gone" | "cut" | undefined
}

const makeServer = (options: ListenerOptions): Http.Server => {
  const settings: Http.ServerOptions = {
    maxHeaderSize: maxHeadBytes,
    headersTimeout: headTimeoutMillis,
    requestTimeout: 0, // the whole-request deadline and the body's own are kept by the sweep below
    keepAliveTimeout: keepAliveMillis,
    connectionsCheckingInterval: 1000,
    insecureHTTPParser: false,
    requireHostHeader: false // refused below like everything else that is no request
  }
  const server = options.tls === undefined
    ? Http.createServer(settings)
    : Https.createServer({
      ...settings,
      cert: options.tls.cert,
      key: options.tls.key,
      handshakeTimeout: options.tls.handshakeTimeoutMillis,
      minVersion: "TLSv1.2",
      ALPNProtocols: ["http/1.1"]
    })
  server.maxHeadersCount = maxHeaderFields + 1
  server.maxRequestsPerSocket = requestsPerConnection
  return server
}

const listening = (server: Http.Server, options: ListenerOptions): Effect.Effect<void, BindFailed> =>
  Effect.async((resume) => {
    const address = `${options.host}:${options.port}`
    const failed = (error: Error) => resume(Effect.fail(new BindFailed({ address, detail: error.message })))
    server.once("error", failed)
    server.listen({ host: options.host, port: options.port, backlog: 1024 }, () => {
      server.off("error", failed)
      resume(Effect.void)
    })
  })

/** One line for every request, those of clients that went away (status 499, not sent) and malformed ones included. */
const accessLine = (status: number, latency: number, probe: boolean): Effect.Effect<void> =>
  emit("request_completed", { status, latency_ms: latency }, accessWeight(status, probe))

const isProbe = ({ method, path }: Request): boolean => path === "/health" && (method === "GET" || method === "HEAD")

const statusOf = ({ code }: NodeJS.ErrnoException) =>
  code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : code === "HPE_HEADER_OVERFLOW" ? 431 : 400

const panicked = (cause: Cause.Cause<never>): Effect.Effect<Answer> =>
  Effect.as(emit("request_handler_panicked", { error: String(Cause.squash(cause)) }), { status: 500, headers: {} })

/** Binds a socket for as long as the scope lives; call {@link Listener.drain} before the scope ends. */
export const bind = (options: ListenerOptions): Effect.Effect<Listener, BindFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const server = makeServer(options)
    const connections = new Connections(options.maxConnections)
    const bodies = new Body(options.maxBodyBytes, options.maxBodies)
    const inFlight = new Set<InFlight>()
    let whenIdle: Deferred.Deferred<void> | undefined
    let draining = false
    let onRefused: (socket: Socket, status: BareStatus) => void = () => {}
    /** Answers what is no request, or cannot be one yet. */
    const refuse = (socket: Socket, status: BareStatus) => {
      socket.end(bareAnswer(status))
      linger(socket)
      // What is wrong may be the body of a request that has a record of its own to come.
      for (const one of inFlight) if (one.socket === socket) return
      onRefused(socket, status)
    }
    let onRequest: Http.RequestListener = ({ socket }) => refuse(socket, 503)

    const interrupt = (one: InFlight, ending: InFlight["ending"]) => {
      if (one.ending !== undefined) return
      one.ending = ending
      one.fiber?.unsafeInterruptAsFork(FiberId.none)
    }
    const finished = (one: InFlight) => {
      inFlight.delete(one)
      if (inFlight.size === 0 && whenIdle !== undefined) Deferred.unsafeDone(whenIdle, Exit.void)
    }

    server.on("connection", (socket: Socket) => connections.opened(socket))
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      if (error.code === "ECONNRESET" || !socket.writable) socket.destroy()
      else refuse(socket, statusOf(error))
    })
    // The interim 100 is sent once the body is wanted, not before.
    for (const event of ["request", "checkContinue", "checkExpectation"]) {
      server.on(event, (message: Http.IncomingMessage, response: Http.ServerResponse) => onRequest(message, response))
    }
    yield* Effect.acquireRelease(listening(server, options), () =>
      Effect.async<void>((resume) => {
        server.close(() => resume(Effect.void))
        server.closeAllConnections()
        connections.closePending()
      }))
    const bound = server.address() as AddressInfo
    const address = bound.family === "IPv6" ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`

    const serve = <R>(app: App<R>) =>
      Effect.gen(function*() {
        const runtime = yield* Effect.runtime<R | Entropy>()
        const entropy = yield* Entropy
        const fork = Runtime.runFork(runtime)

        const answered = (one: InFlight, request: Request): Effect.Effect<Answer | undefined, never, R> =>
          Effect.flatMap(Effect.exit(Effect.interruptible(app.handle(request))), (exit) => {
            if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
            // This fiber stays interrupted, so the late answer is made by one of its own.
            if (one.ending === "late") {
              return Effect.zipRight(
                emit("request_deadline_exceeded", {}),
                Effect.flatMap(Effect.fork(Effect.interruptible(app.late(request))), Fiber.join)
              )
            }
            return Cause.isInterruptedOnly(exit.cause) ? Effect.succeed(undefined) : panicked(exit.cause)
          })

        const program = Effect.fnUntraced(
          function*(one: InFlight, message: Http.IncomingMessage, response: Http.ServerResponse) {
            const startedAt = yield* Clock.currentTimeMillis
            one.startedAt = startedAt
            const received = yield* readHead(message, entropy, bodies.read(message, response))
            const clientIp = app.clientIpOf(received)
            const request = clientIp === received.clientIp ? received : { ...received, clientIp }
            yield* enterSpan({
              request_id: request.id,
              client_ip: request.clientIp,
              method: request.method,
              uri: request.target.slice(0, 512),
              version: `HTTP/${message.httpVersion}`,
              profile: app.profileOf(request)
            })
            const answer = yield* answered(one, request)
            const now = yield* Clock.currentTimeMillis
            const sent = answer !== undefined && one.ending !== "gone" && !response.destroyed
            if (draining) response.setHeader("connection", "close")
            if (sent) {
              leaveUnread(message, response)
              write(response, request.id, answer)
            }
            yield* accessLine(sent ? answer.status : 499, now - startedAt, isProbe(request))
          }
        )

        onRefused = ({ remoteAddress }, status) => {
          fork(Effect.zipRight(enterSpan({ client_ip: unmapped(remoteAddress ?? "") }), accessLine(status, 0, false)))
        }

        onRequest = (message, response) => {
          connections.headSeen(message.socket)
          if (message.rawHeaders.length > maxHeaderFields * 2) return refuse(message.socket, 431)
          if (message.headers.host === undefined && message.httpVersion !== "1.0") {
            return refuse(message.socket, 400)
          }
          const one: InFlight = { socket: message.socket, startedAt: 0, fiber: undefined, ending: undefined }
          inFlight.add(one)
          response.once("close", () => {
            if (!response.writableFinished) interrupt(one, "gone")
          })
          one.fiber = fork(Effect.uninterruptible(program(one, message, response)))
          one.fiber.addObserver(() => finished(one))
        }

        // One timer for every request in flight, instead of one each.
        yield* Effect.forkScoped(Effect.repeat(
          Effect.map(Clock.currentTimeMillis, (now) => {
            bodies.expire(now)
            connections.expire(now)
            for (const one of inFlight) {
              if (one.startedAt + options.requestTimeoutMillis > now) break
              interrupt(one, "late")
            }
          }),
          Schedule.spaced(sweepMillis)
        ))
        let refusalsLoggedAt = 0
        connections.onRefused = (open, pending) => {
          fork(Effect.flatMap(Clock.currentTimeMillis, (now) => {
            if (now - refusalsLoggedAt < 1000) return Effect.void
            refusalsLoggedAt = now
            return emit("server_connection_refused", { listener: options.name, open, pending })
          }))
        }
        server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
          const fields = { listener: options.name, address: socket.remoteAddress }
          fork(
            error.code === "ERR_TLS_HANDSHAKE_TIMEOUT"
              ? emit("tls_handshake_timeout", fields)
              : emit("tls_handshake_failed", { ...fields, error: error.message })
          )
        })
      })

    const drain = Effect.gen(function*() {
      draining = true
      server.close()
      server.closeIdleConnections()
      if (inFlight.size === 0) return 0
      const done = Deferred.unsafeMake<void>(FiberId.none)
      whenIdle = done
      yield* Effect.timeoutOption(Effect.interruptible(Deferred.await(done)), options.requestTimeoutMillis)
      const cut = inFlight.size
      for (const one of inFlight) interrupt(one, "cut")
      server.closeAllConnections()
      // A statement that the database does not answer is not interrupted: the process ends without it.
      if (inFlight.size > 0) yield* Effect.timeoutOption(Effect.interruptible(Deferred.await(done)), cutMillis)
      return cut
    })

    return { address, serve, drain }
  })
