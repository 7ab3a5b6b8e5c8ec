import { Context, Data, Effect, Layer } from "effect"
import * as Http from "node:http"
import type * as Net from "node:net"
import { codeOf } from "../host/Exhausted.ts"
import { traced } from "../telemetry/Tracing.ts"
import type { ConnectRequest, Dialer } from "./Connect.ts"
import { ConnectFailed, direct, ignore, secure, sni, TlsFailed } from "./Connect.ts"

/** One GET and where to send it. The address has been checked by the caller and is the one dialled. */
export interface HttpGetRequest extends ConnectRequest {
  /** TLS 1.2 or later, any certificate; SNI is the name of `host`. */
  readonly secure: boolean
  /** The Host header, verbatim: a name or a literal (IPv6 in brackets), with a port where the URL has one. */
  readonly host: string
  /** Path and query, percent-encoded ASCII. */
  readonly path: string
  /** Bytes of body returned at most; one more is read to see whether there was more. */
  readonly maxBytes: number
}

/** An answer. `location` is raw header text. The body of a redirect (3xx) is not read. */
export interface HttpAnswer {
  readonly status: number
  readonly location: string | undefined
  /** As sent: never decompressed, at most `maxBytes`. */
  readonly body: Buffer
  /** The body went on past `maxBytes`. */
  readonly truncated: boolean
}

/** The connection stood, but no complete, well-formed HTTP/1 answer came over it. */
export class ExchangeFailed extends Data.TaggedError("ExchangeFailed")<{
  readonly detail: string
  /** The system's code, where it has one. */
  readonly code?: string | undefined
}> {}

export type HttpGetFailed = ConnectFailed | TlsFailed | ExchangeFailed

/** Bytes of one response head (start line and headers). */
const maxHeadBytes = 16_384
/** Interim (1xx) answers before the final one. */
const maxInterim = 16

const exchange = (socket: Net.Socket, request: HttpGetRequest, userAgent: string) =>
  Effect.async<HttpAnswer, TlsFailed | ExchangeFailed>((resume) => {
    let secured = !request.secure
    let interim = 0
    // RFC 8555 section 8.3 leaves the certificate of a redirect target out of the proof
    const stream = request.secure ? secure(socket, sni(request.host)).on("error", ignore) : socket
    stream.once("secureConnect", () => {
      secured = true
    })
    const outgoing = Http.request({
      // no agent: neither pool nor proxy variables come into it
      createConnection: () => stream,
      path: request.path,
      setHost: false,
      maxHeaderSize: maxHeadBytes,
      insecureHTTPParser: false,
      headers: {
        Host: request.host,
        "User-Agent": userAgent,
        Accept: "*/*",
        "Accept-Encoding": "identity",
        Connection: "close"
      }
    })
    const close = () => {
      outgoing.destroy()
      stream.destroy()
      socket.destroy()
    }
    const settle = (result: Effect.Effect<HttpAnswer, TlsFailed | ExchangeFailed>) => {
      resume(result)
      close()
    }
    const failed = (detail: string, code?: string) =>
      settle(secured ? new ExchangeFailed({ detail, code }) : new TlsFailed({ detail, code }))
    const broken = (cause: Error) => failed(cause.message, codeOf(cause))
    outgoing.on("error", broken)
    outgoing.once("close", () => failed("closed without an answer"))
    outgoing.on("information", () => {
      if (++interim > maxInterim) failed("too many interim answers")
    })
    outgoing.once("response", (incoming) => {
      const status = incoming.statusCode ?? 0
      const answer = (body: Buffer) =>
        settle(Effect.succeed({
          status,
          location: incoming.headers.location,
          body: body.subarray(0, request.maxBytes),
          truncated: body.length > request.maxBytes
        }))
      incoming.on("error", broken)
      if (status >= 300 && status <= 399) return answer(Buffer.alloc(0))
      const chunks: Array<Buffer> = []
      let length = 0
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > request.maxBytes) answer(Buffer.concat(chunks))
      })
      incoming.once("end", () => answer(Buffer.concat(chunks)))
    })
    outgoing.end()
    return Effect.sync(close)
  })

/**
 * The outside world of http-01: one GET over one connection of its own. HTTP/1.1, no pool, no cookies, no proxy, no
 * redirects, no decompression, a bounded head and body, and nothing but the given address is dialled.
 */
export class HttpGet extends Context.Tag("acme/kernel/net/HttpGet")<HttpGet, {
  /** No timeout of its own beyond `connectMillis`; interruption destroys the socket. */
  readonly get: (request: HttpGetRequest) => Effect.Effect<HttpAnswer, HttpGetFailed>
}>() {
  /** Over sockets, calling itself `acme-svc/<version>`. */
  static readonly layer = (version: string, dialer: Dialer = direct): Layer.Layer<HttpGet> =>
    Layer.succeed(this, {
      get: (request) =>
        traced(
          "validation GET",
          () => ({ "server.address": request.host }),
          Effect.scoped(Effect.flatMap(
            dialer(request, request.secure ? "https" : "http", request.host.replace(/:[0-9]+$/, "")),
            (socket) => exchange(socket, request, `acme-svc/${version}`)
          )),
          ({ status }) => ({ "http.response.status_code": status })
        )
    })

  /** Answers from a function, which sees every request. */
  static readonly layerScripted = (
    script: (request: HttpGetRequest) => Effect.Effect<HttpAnswer, HttpGetFailed>
  ): Layer.Layer<HttpGet> => Layer.succeed(this, { get: script })
}
