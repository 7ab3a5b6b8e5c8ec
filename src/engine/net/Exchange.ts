import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Http from "node:http"
import type * as Net from "node:net"
import { codeOf } from "../host/Exhausted.ts"

/** One HTTP/1.1 request over a connection of its own, which is closed afterwards. */
export interface ExchangeRequest {
  readonly method: string
  /** Path and query as percent-encoded ASCII. If the request is sent to a proxy, this is the whole URL. */
  readonly path: string
  /** All headers, including `Host`. Only `Accept-Encoding: identity` and `Connection: close` are added. */
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | Uint8Array | undefined
  /**
   * The highest number of octets in the body of the answer. One more octet is read, to find out whether the body is
   * longer.
   */
  readonly maxBytes: number
  /** Whether the body of a redirect (3xx) is left unread. */
  readonly skipsRedirects?: boolean
  /** Called when the head of the answer has arrived. */
  readonly onHead?: (head: ExchangeHead) => void
}

/** The answer as the server sent it: nothing is decompressed. */
export interface ExchangeAnswer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly body: Buffer
  /** Whether the body was longer than `maxBytes`. */
  readonly truncated: boolean
}

/** The part of an answer before its body. */
export type ExchangeHead = Pick<ExchangeAnswer, "status" | "headers">

/** There was no complete, well-formed answer. */
export class ExchangeBroken extends Data.TaggedError("ExchangeBroken")<{
  readonly detail: string
  /** The system's error code, if there is one. */
  readonly code?: string | undefined
  /** A header value contains characters that HTTP does not allow. Nothing was sent. */
  readonly isUnsendable?: boolean
  /** The head of the answer, if all of it arrived before the body broke off. */
  readonly head?: ExchangeHead | undefined
}> {}

/** The highest number of octets in the head of an answer (start line and headers). */
const maxHeadBytes = 16_384
/** The highest number of interim (1xx) answers before the final answer. */
const maxInterim = 16

/**
 * Sends the request over `stream` and reads the answer. There is no pool, there are no cookies, and no redirect is
 * followed. The sizes of head and body are limited, but the time is not. An interruption destroys the stream.
 */
export const exchange = (
  stream: Net.Socket,
  request: ExchangeRequest
): Effect.Effect<ExchangeAnswer, ExchangeBroken> =>
  Effect.callback((resume) => {
    const { body, headers, maxBytes, method, onHead, path, skipsRedirects = false } = request
    const ask = () =>
      Http.request({
        // Without an agent, neither a pool nor the proxy variables of the environment apply.
        createConnection: () => stream,
        method,
        path,
        setHost: false,
        maxHeaderSize: maxHeadBytes,
        insecureHTTPParser: false,
        headers: { ...headers, "Accept-Encoding": "identity", Connection: "close" }
      })
    let outgoing: ReturnType<typeof ask>
    try {
      outgoing = ask()
    } catch {
      return resume(new ExchangeBroken({ detail: "a header value has a forbidden character", isUnsendable: true }))
    }
    const close = () => {
      outgoing.destroy()
      stream.destroy()
    }
    let isSettled = false
    // If a TLS stream closes at once while the client's event is still being handled, Node.js frees the parser twice.
    // Two requests then get the same parser, and an assertion ends the process (24.21: _http_client.js, socketOnEnd).
    const settle = (result: Effect.Effect<ExchangeAnswer, ExchangeBroken>) => {
      isSettled = true
      queueMicrotask(() => {
        resume(result)
        close()
      })
    }
    let head: ExchangeHead | undefined
    const failed = (detail: string, code?: string) => {
      if (!isSettled) settle(new ExchangeBroken({ detail, code, head }))
    }
    const broken = (cause: Error) => failed(cause.message, codeOf(cause))
    let interim = 0
    outgoing.on("error", broken)
    outgoing.once("close", () => failed("closed without an answer"))
    outgoing.on("information", () => {
      if (++interim > maxInterim) failed("too many interim answers")
    })
    outgoing.once("response", (incoming) => {
      const { headers, statusCode: status = 0 } = incoming
      head = { status, headers }
      onHead?.(head)
      const chunks: Array<Buffer> = []
      let length = 0
      const answer = () => {
        if (isSettled) return
        settle(Effect.succeed({
          status,
          headers,
          body: Buffer.concat(chunks).subarray(0, maxBytes),
          truncated: length > maxBytes
        }))
      }
      incoming.on("error", broken)
      if (skipsRedirects && status >= 300 && status <= 399) return answer()
      incoming.on("data", (chunk: Buffer) => {
        chunks.push(chunk)
        length += chunk.length
        if (length > maxBytes) answer()
      })
      incoming.once("end", answer)
    })
    outgoing.end(body)
    return Effect.sync(close)
  })
