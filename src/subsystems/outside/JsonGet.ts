import { Array, Context, Data, Effect, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import * as Http from "node:http"
import type * as Net from "node:net"
import * as Tls from "node:tls"
import type { ForwardProxy, ProxyOf } from "../../domain/Proxy.ts"
import { noProxies } from "../../domain/Proxy.ts"
import { ignore, sni } from "./Connect.ts"
import { reach, reachThrough } from "./Reach.ts"
import { Resolver } from "./Resolver.ts"

/** One GET of a JSON document from a service the operator trusts. */
export interface JsonGetRequest {
  /** `http` or `https`. */
  readonly url: URL
  /** Secrets go here and nowhere else: neither errors nor logs show them. */
  readonly headers: { readonly [name: string]: string }
  /** PEM roots beside the public ones. */
  readonly roots: ReadonlyArray<string>
  /** Any certificate will do. */
  readonly anyCertificate: boolean
  /** Bytes of body read at most; a longer answer is a failure. */
  readonly maxBytes: number
}

/** What came back. The body of anything but a 2xx is not read. */
export interface JsonAnswer {
  readonly status: number
  readonly json: unknown
}

/** No answer, or none that could be read. `detail` names neither URL nor headers. */
export class JsonGetFailed extends Data.TaggedError("JsonGetFailed")<{ readonly detail: string }> {}

const failed = (detail: string) => new JsonGetFailed({ detail })

/** A connection to the service, and the proxy it goes to instead where the request has to say so itself. */
const reached = Effect.fnUntraced(function*({ url }: JsonGetRequest, proxyOf: ProxyOf) {
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
    ({ detail }) => failed(over === undefined ? detail : `the proxy: ${detail}`)
  )
  return { socket, over }
})

const overTls = (socket: Net.Socket, request: JsonGetRequest): Tls.TLSSocket => {
  const host = request.url.hostname.replace(/^\[|\]$/g, "")
  return Tls.connect({
    socket,
    host,
    ...sni(host),
    minVersion: "TLSv1.2",
    ca: [...Tls.rootCertificates, ...request.roots],
    rejectUnauthorized: !request.anyCertificate
  })
}

const exchange = (
  { over, socket }: { readonly socket: Net.Socket; readonly over: ForwardProxy | undefined },
  request: JsonGetRequest,
  userAgent: string
) =>
  Effect.async<JsonAnswer, JsonGetFailed>((resume) => {
    const { maxBytes, url } = request
    const stream = url.protocol === "https:" ? overTls(socket, request).on("error", ignore) : socket
    const ask = () =>
      Http.request({
        createConnection: () => stream,
        path: over === undefined ? `${url.pathname}${url.search}` : url.href,
        setHost: false,
        insecureHTTPParser: false,
        headers: {
          ...request.headers,
          ...(over?.authorization === undefined ? {} : { "Proxy-Authorization": Redacted.value(over.authorization) }),
          Host: url.host,
          "User-Agent": userAgent,
          Accept: "application/json",
          "Accept-Encoding": "identity",
          Connection: "close"
        }
      })
    let outgoing: ReturnType<typeof ask>
    try {
      outgoing = ask()
    } catch {
      return resume(failed("the token is no text a header can hold"))
    }
    const close = () => {
      outgoing.destroy()
      stream.destroy()
      socket.destroy()
    }
    const settle = (result: Effect.Effect<JsonAnswer, JsonGetFailed>) => {
      resume(result)
      close()
    }
    const broken = (cause: Error) => settle(failed(cause.message))
    outgoing.on("error", broken)
    outgoing.once("close", () => settle(failed("closed without an answer")))
    outgoing.once("response", (incoming) => {
      const status = incoming.statusCode ?? 0
      incoming.on("error", broken)
      if (status < 200 || status > 299) return settle(Effect.succeed({ status, json: undefined }))
      const chunks: Array.NonEmptyArray<Buffer> = [Buffer.alloc(0)]
      let length = 0
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > maxBytes) settle(failed(`answers with more than ${maxBytes} bytes`))
      })
      incoming.once("end", () => settle(Effect.map(parse(Buffer.concat(chunks)), (json) => ({ status, json }))))
    })
    outgoing.end()
    return Effect.sync(close)
  })

// The parser's own words would quote the document.
const parse = (body: Buffer): Effect.Effect<unknown, JsonGetFailed> =>
  Effect.try({
    try: (): unknown => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)),
    catch: () => failed("answers with something that is no JSON")
  })

/**
 * Questions to inventories: one connection each, through a forward proxy where there is one for them, no redirect followed,
 * nothing decompressed, no bound of its own.
 */
export class JsonGet extends Context.Tag("acme/subsystems/outside/JsonGet")<JsonGet, {
  readonly get: (request: JsonGetRequest) => Effect.Effect<JsonAnswer, JsonGetFailed>
}>() {
  /** Over sockets, calling itself `acme-svc/<version>`. */
  static readonly layer = (version: string, proxyOf: ProxyOf = noProxies): Layer.Layer<JsonGet, never, Resolver> =>
    Layer.effect(
      this,
      Effect.map(Resolver, (resolver) => ({
        get: (request) =>
          Effect.scoped(Effect.flatMap(
            reached(request, proxyOf),
            (connection): Effect.Effect<JsonAnswer, JsonGetFailed, Scope.Scope> =>
              exchange(connection, request, `acme-svc/${version}`)
          )).pipe(Effect.provideService(Resolver, resolver))
      }))
    )
}
