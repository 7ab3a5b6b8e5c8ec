import { Context, Data, Effect, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import * as Http from "node:http"
import type * as Net from "node:net"
import * as Tls from "node:tls"
import { traced } from "../telemetry/Tracing.ts"
import { ignore, sni } from "./Connect.ts"
import type { ForwardProxy, ProxyOf } from "./Proxy.ts"
import { noProxies } from "./Proxy.ts"
import { reach, reachThrough } from "./Reach.ts"
import { Resolver } from "./Resolver.ts"

/** One request to a service the operator has named. */
export interface WebRequest {
  readonly method: string
  /** `http` or `https`. */
  readonly url: URL
  /** Secrets go here and nowhere else: neither errors nor logs show them. */
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | Uint8Array | undefined
  /** PEM roots beside the public ones. */
  readonly roots?: ReadonlyArray<string>
  /** Any certificate will do. */
  readonly anyCertificate?: boolean
  /** Bytes of body read at most. */
  readonly maxBytes: number
}

/** What came back; redirects are answers like any other. */
export interface WebAnswer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly body: Buffer
  /** The body went on past `maxBytes`. */
  readonly truncated: boolean
}

/** No answer, or none that could be read. `detail` names neither URL nor headers. */
export class WebFailed extends Data.TaggedError("WebFailed")<{
  readonly detail: string
  /** Nothing of the request was sent: whoever was asked does not know of it. */
  readonly unsent?: boolean
}> {}

const failed = (detail: string, unsent = false) => new WebFailed({ detail, unsent })

/** A connection to the service, and the proxy it goes to instead where the request has to say so itself. */
const reached = Effect.fnUntraced(function*({ url }: WebRequest, proxyOf: ProxyOf) {
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

type Trusted = (roots: ReadonlyArray<string>) => Tls.SecureContext

/**
 * Whatever the runtime trusts, NODE_EXTRA_CA_CERTS included, and with roots of one's own the public ones beside them. Each is
 * made once: reading every root again costs a request tens of milliseconds.
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

const overTls = (
  socket: Net.Socket,
  { anyCertificate = false, roots = [], url }: WebRequest,
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

const exchange = (
  { over, socket }: { readonly socket: Net.Socket; readonly over: ForwardProxy | undefined },
  request: WebRequest,
  userAgent: string,
  trusted: Trusted
) =>
  Effect.async<WebAnswer, WebFailed>((resume) => {
    const { body, maxBytes, url } = request
    const isSecure = url.protocol === "https:"
    const stream = isSecure ? overTls(socket, request, trusted).on("error", ignore) : socket
    let isOpen = !isSecure
    stream.once("secureConnect", () => isOpen = true)
    const ask = () =>
      Http.request({
        createConnection: () => stream,
        method: request.method,
        path: over === undefined ? `${url.pathname}${url.search}` : url.href,
        setHost: false,
        insecureHTTPParser: false,
        headers: {
          "User-Agent": userAgent,
          ...request.headers,
          ...(over?.authorization === undefined ? {} : { "Proxy-Authorization": Redacted.value(over.authorization) }),
          ...(body === undefined ? {} : { "Content-Length": String(Buffer.byteLength(body)) }),
          Host: url.host,
          "Accept-Encoding": "identity",
          Connection: "close"
        }
      })
    let outgoing: ReturnType<typeof ask>
    try {
      outgoing = ask()
    } catch {
      return resume(failed("a header holds what no header can", true))
    }
    const close = () => {
      outgoing.destroy()
      stream.destroy()
      socket.destroy()
    }
    const settle = (result: Effect.Effect<WebAnswer, WebFailed>) => {
      resume(result)
      close()
    }
    const broken = (cause: Error) => settle(failed(cause.message, !isOpen))
    outgoing.on("error", broken)
    outgoing.once("close", () => settle(failed("closed without an answer", !isOpen)))
    outgoing.once("response", (incoming) => {
      const { headers, statusCode: status = 0 } = incoming
      const chunks: Array<Buffer> = []
      let length = 0
      const answer = (truncated: boolean) =>
        settle(Effect.succeed({ status, headers, body: Buffer.concat(chunks).subarray(0, maxBytes), truncated }))
      incoming.on("error", broken)
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > maxBytes) answer(true)
      })
      incoming.once("end", () => answer(false))
    })
    outgoing.end(body)
    return Effect.sync(close)
  })

/**
 * Requests to services of the operator's choice: one connection each, through a forward proxy where there is one for them,
 * no redirect followed, nothing decompressed, no bound of its own.
 */
export class Web extends Context.Tag("acme/kernel/net/Web")<Web, {
  readonly send: (request: WebRequest) => Effect.Effect<WebAnswer, WebFailed>
}>() {
  /** Over sockets, calling itself `acme-svc/<version>`. */
  static readonly layer = (version: string, proxyOf: ProxyOf = noProxies): Layer.Layer<Web, never, Resolver> =>
    Layer.effect(
      this,
      Effect.map(Resolver, (resolver) => {
        const trusted = makeTrusted()
        return {
          send: (request) =>
            traced(
              `${request.method} ${request.url.protocol}`,
              () => ({ "server.address": request.url.hostname }),
              Effect.scoped(Effect.flatMap(
                reached(request, proxyOf),
                (connection): Effect.Effect<WebAnswer, WebFailed, Scope.Scope> =>
                  exchange(connection, request, `acme-svc/${version}`, trusted)
              )).pipe(Effect.provideService(Resolver, resolver)),
              ({ status }) => ({ "http.response.status_code": status })
            )
        }
      })
    )

  /** Answers from a function, which sees every request. */
  static readonly layerScripted = (
    script: (request: WebRequest) => Effect.Effect<WebAnswer, WebFailed>
  ): Layer.Layer<Web> => Layer.succeed(this, { send: script })
}
