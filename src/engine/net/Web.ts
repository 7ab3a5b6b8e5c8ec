import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as Net from "node:net"
import * as Tls from "node:tls"
import { traced } from "../telemetry/Tracing.ts"
import { tlsFault } from "../TlsFault.ts"
import { ignore, sni } from "./Connect.ts"
import type { ExchangeAnswer, ExchangeHead } from "./Exchange.ts"
import { exchange } from "./Exchange.ts"
import type { ForwardProxy, ProxyOf } from "./Proxy.ts"
import { noProxies } from "./Proxy.ts"
import { reach, reachThrough } from "./Reach.ts"
import { Resolver } from "./Resolver.ts"

/** One request to a service that the operator has configured. */
export interface WebRequest {
  readonly method: string
  /** The scheme is `http` or `https`. */
  readonly url: URL
  /** The headers. Secrets may only be here. Neither errors nor logs show the headers. */
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | Uint8Array | undefined
  /** The roots that are trusted in addition to the public roots, as PEM. */
  readonly roots?: ReadonlyArray<string>
  /** The configuration key that names {@link roots}. It is shown if no trusted CA has signed the certificate. */
  readonly rootsKey?: string | undefined
  /** Whether any certificate is accepted. */
  readonly anyCertificate?: boolean
  /** The highest number of bytes of the body that are read. */
  readonly maxBytes: number
  /** How many milliseconds all of this may take. */
  readonly withinMillis?: number
}

/** What is needed to make a connection. */
type Handshake = Pick<WebRequest, "url" | "roots" | "rootsKey" | "anyCertificate">

/** The answer. Redirects are not followed. */
export type WebAnswer = ExchangeAnswer

/** There was no answer, or the answer could not be read. `detail` contains neither the URL nor any header. */
export class WebFailed extends Data.TaggedError("WebFailed")<{
  readonly detail: string
  /** Whether no part of the request was sent, so that the service does not know about the request. */
  readonly unsent?: boolean
  /** The head of the answer, if all of it arrived before the body broke off or the time was over. */
  readonly head?: ExchangeHead | undefined
}> {}

const failed = (detail: string, unsent = false, head?: ExchangeHead) => new WebFailed({ detail, unsent, head })

/**
 * Connects to the service. `over` is the proxy, if the connection is made to a proxy that handles the request itself,
 * without a tunnel.
 */
const reached = Effect.fnUntraced(function*({ url }: Pick<WebRequest, "url">, proxyOf: ProxyOf) {
  const isSecure = url.protocol === "https:"
  const host = url.hostname.replace(/^\[|\]$/g, "")
  const port = Number(url.port === "" ? isSecure ? 443 : 80 : url.port)
  const proxy = proxyOf(isSecure ? "https" : "http", url.hostname)
  const over = proxy === undefined || isSecure ? undefined : proxy
  const socket = yield* Effect.mapError(
    over !== undefined
      ? reach(over.host, over.port)
      : proxy !== undefined
      ? reachThrough(proxy, host, port)
      : reach(host, port),
    ({ detail }) => failed(over === undefined ? detail : `the proxy: ${detail}`, true)
  )
  return { socket, over }
})

/**
 * Lets the head of an answer decide. If only the body is broken, such as one that follows a 204, or does not end in
 * time, returns the answer with an empty body.
 */
export const decidedByHead = (self: Effect.Effect<WebAnswer, WebFailed>): Effect.Effect<WebAnswer, WebFailed> =>
  Effect.catch(
    self,
    (error) =>
      error.head === undefined
        ? Effect.fail(error)
        : Effect.succeed({ ...error.head, body: Buffer.alloc(0), truncated: false })
  )

type Send = (request: WebRequest, onHead: (head: ExchangeHead) => void) => Effect.Effect<WebAnswer, WebFailed>

/** Ends a request when its time is over. */
const inTime = (send: Send) => (request: WebRequest): Effect.Effect<WebAnswer, WebFailed> =>
  Effect.suspend(() => {
    let head: ExchangeHead | undefined
    const answer = send(request, (arrived) => head = arrived)
    const { withinMillis } = request
    return withinMillis === undefined ? answer : Effect.timeoutOrElse(answer, {
      duration: withinMillis,
      orElse: () => Effect.fail(failed(`no answer within ${withinMillis} ms`, false, head))
    })
  })

type Trusted = (roots: ReadonlyArray<string>) => Tls.SecureContext

/**
 * Makes the trust settings of connections. Without given roots, a connection trusts everything that the runtime trusts,
 * including NODE_EXTRA_CA_CERTS. With given roots, it trusts these roots and the public roots. Each context is made
 * only once, because reading all roots again would cost a request tens of milliseconds.
 */
const makeTrusted = (): Trusted => {
  const made = new Map<string, Tls.SecureContext>()
  return (roots) => {
    const key = roots.join("\n")
    const context = made.get(key) ??
      Tls.createSecureContext({
        minVersion: "TLSv1.2",
        ...(roots.length === 0 ? {} : { ca: [...Tls.rootCertificates, ...roots] })
      })
    made.set(key, context)
    return context
  }
}

/** Returns the message for a failed handshake. */
const handshakeFault = (message: string, { roots = [], rootsKey }: Pick<WebRequest, "roots" | "rootsKey">): string =>
  tlsFault(message, rootsKey === undefined ? undefined : { key: rootsKey, isSet: roots.length > 0 })

const overTls = (
  socket: Net.Socket,
  { anyCertificate = false, roots = [], url }: Handshake,
  trusted: Trusted
): Tls.TLSSocket => {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  return Tls.connect({
    socket,
    host,
    ...sni(host),
    secureContext: trusted(roots),
    rejectUnauthorized: !anyCertificate
  })
}

/** Waits for the end of a handshake. The socket is destroyed when its scope closes. */
const handshaken = (...connection: Parameters<typeof overTls>): Effect.Effect<void, WebFailed> =>
  Effect.callback((resume) => {
    const stream = overTls(...connection)
    const [, request] = connection
    stream.once("secureConnect", () => resume(Effect.void))
    stream.once("error", ({ message }) => resume(Effect.fail(failed(handshakeFault(message, request), true))))
    stream.once("close", () => resume(Effect.fail(failed("closed within the handshake", true))))
    return Effect.sync(() => stream.destroy())
  })

const ask = (
  { over, socket }: { readonly socket: Net.Socket; readonly over: ForwardProxy | undefined },
  request: WebRequest,
  { onHead, trusted, userAgent }: {
    readonly onHead: Parameters<Send>[1]
    readonly trusted: Trusted
    readonly userAgent: string
  }
): Effect.Effect<WebAnswer, WebFailed> => {
  const { body, maxBytes, method, url } = request
  const isSecure = url.protocol === "https:"
  const stream = isSecure ? overTls(socket, request, trusted).on("error", ignore) : socket
  let isOpen = !isSecure
  stream.once("secureConnect", () => isOpen = true)
  return exchange(stream, {
    method,
    path: over === undefined ? `${url.pathname}${url.search}` : url.href,
    headers: {
      "User-Agent": userAgent,
      ...request.headers,
      ...(over?.authorization === undefined ? {} : { "Proxy-Authorization": Redacted.value(over.authorization) }),
      ...(body === undefined ? {} : { "Content-Length": String(Buffer.byteLength(body)) }),
      Host: url.host
    },
    body,
    maxBytes,
    onHead
  }).pipe(
    Effect.mapError(({ detail, head, isUnsendable = false }) =>
      failed(isOpen ? detail : handshakeFault(detail, request), isUnsendable || !isOpen, head)
    ),
    // Only a proxy sends this status (RFC 9110 section 15.5.8). So the service itself has not received the request.
    Effect.filterOrFail(
      ({ status }) => over === undefined || status !== 407,
      ({ status }) => failed(`the proxy: answers ${status}`, true)
    )
  )
}

/**
 * Sends requests to services that the operator has chosen. Each request has a connection of its own. The connection
 * goes through a forward proxy if one is in force. Redirects are not followed, nothing is decompressed, and the only
 * time limit is that of the request.
 */
export class Web extends Context.Service<Web, {
  readonly send: (request: WebRequest) => Effect.Effect<WebAnswer, WebFailed>
  /** Connects as for a request, until the TLS handshake has ended, but sends no request. */
  readonly reach: (request: Handshake) => Effect.Effect<void, WebFailed>
}>()("acme/engine/net/Web") {
  /** Uses real sockets, with the user agent `acme-svc/<version>`. */
  static readonly layer = (version: string, proxyOf: ProxyOf = noProxies): Layer.Layer<Web, never, Resolver> =>
    Layer.effect(
      this,
      Effect.map(Resolver, (resolver) => {
        const trusted = makeTrusted()
        return {
          reach: (request) =>
            Effect.scoped(
              Effect.flatMap(reached(request, proxyOf), ({ socket }) =>
                request.url.protocol === "https:" ? handshaken(socket, request, trusted) : Effect.void)
            ).pipe(
              Effect.provideService(Resolver, resolver)
            ),
          send: inTime((request, onHead) =>
            traced(
              `${request.method} ${request.url.protocol}`,
              () => ({ "server.address": request.url.hostname }),
              Effect.scoped(Effect.flatMap(
                reached(request, proxyOf),
                (connection): Effect.Effect<WebAnswer, WebFailed, Scope.Scope> =>
                  ask(connection, request, { onHead, trusted, userAgent: `acme-svc/${version}` })
              )).pipe(Effect.provideService(Resolver, resolver)),
              ({ status }) => ({ "http.response.status_code": status })
            )
          )
        }
      })
    )

  /** Opens no socket. A function returns the answer to every request. */
  static readonly layerScripted = (
    script: (request: WebRequest) => Effect.Effect<WebAnswer, WebFailed>
  ): Layer.Layer<Web> => Layer.succeed(this, { send: inTime(script), reach: () => Effect.void })
}
