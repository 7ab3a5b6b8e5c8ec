import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Net from "node:net"
import { traced } from "../telemetry/Tracing.ts"
import type { ConnectFailed, ConnectRequest, Dialer } from "./Connect.ts"
import { direct, ignore, secure, sni, TlsFailed } from "./Connect.ts"
import { exchange } from "./Exchange.ts"

/** One GET request, and where it is sent. The caller has checked the address, and exactly this address is dialled. */
export interface HttpGetRequest extends ConnectRequest {
  /** Whether to use TLS 1.2 or later. Any certificate is accepted. The SNI is the name in `host`. */
  readonly secure: boolean
  /** The Host header, verbatim: a name or a literal (IPv6 in brackets), and the port if the URL has one. */
  readonly host: string
  /** Path and query as percent-encoded ASCII. */
  readonly path: string
  /**
   * The highest number of bytes of the body that are returned. One more byte is read, to find out whether the body is
   * longer.
   */
  readonly maxBytes: number
}

/** An answer. `location` is the text of the header as it was sent. The body of a redirect (3xx) is not read. */
export interface HttpAnswer {
  readonly status: number
  readonly location: string | undefined
  /** The body as the server sent it: never decompressed, and at most `maxBytes` long. */
  readonly body: Buffer
  /** Whether the body was longer than `maxBytes`. */
  readonly truncated: boolean
}

/** The connection was established, but there was no complete, well-formed HTTP/1 answer. */
export class ExchangeFailed extends Data.TaggedError("ExchangeFailed")<{
  readonly detail: string
  /** The system's error code, if there is one. */
  readonly code?: string | undefined
}> {}

export type HttpGetFailed = ConnectFailed | TlsFailed | ExchangeFailed

const ask = (socket: Net.Socket, request: HttpGetRequest, userAgent: string) => {
  let secured = !request.secure
  // by RFC 8555 section 8.3, the certificate of a redirect's target is not part of the proof
  const stream = request.secure ? secure(socket, sni(request.host)).on("error", ignore) : socket
  stream.once("secureConnect", () => {
    secured = true
  })
  return exchange(stream, {
    method: "GET",
    path: request.path,
    headers: { Host: request.host, "User-Agent": userAgent, Accept: "*/*" },
    maxBytes: request.maxBytes,
    skipsRedirects: true
  }).pipe(Effect.mapBoth({
    onSuccess: ({ body, headers, status, truncated }) => ({ status, location: headers.location, body, truncated }),
    onFailure: ({ code, detail }) => secured ? new ExchangeFailed({ detail, code }) : new TlsFailed({ detail, code })
  }))
}

/**
 * Makes one HTTP/1.1 GET request over a connection of its own, without pool, cookies, proxy, redirects or
 * decompression. The sizes of head and body are limited, and only the given address is dialled.
 */
export class HttpGet extends Context.Service<HttpGet, {
  /** Sends the request. The only timeout is `connectMillis`. An interruption destroys the socket. */
  readonly get: (request: HttpGetRequest) => Effect.Effect<HttpAnswer, HttpGetFailed>
}>()("acme/engine/net/HttpGet") {
  /** Uses real sockets, with the user agent `acme-svc/<version>`. */
  static readonly layer = (version: string, dialer: Dialer = direct): Layer.Layer<HttpGet> =>
    Layer.succeed(this, {
      get: (request) =>
        traced(
          "HTTP GET",
          () => ({ "server.address": request.host }),
          Effect.scoped(Effect.flatMap(
            dialer(request, request.secure ? "https" : "http", request.host.replace(/:[0-9]+$/, "")),
            (socket) => ask(socket, request, `acme-svc/${version}`)
          )),
          ({ status }) => ({ "http.response.status_code": status })
        )
    })

  /** Opens no socket. A function returns the answer to every request. */
  static readonly layerScripted = (
    script: (request: HttpGetRequest) => Effect.Effect<HttpAnswer, HttpGetFailed>
  ): Layer.Layer<HttpGet> => Layer.succeed(this, { get: script })
}
