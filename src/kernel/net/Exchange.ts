import { Data, Effect } from "effect"
import * as Http from "node:http"
import type * as Net from "node:net"
import { codeOf } from "../host/Exhausted.ts"

/** One HTTP/1.1 request over a connection of its own, which ends with it. */
export interface ExchangeRequest {
  readonly method: string
  /** Path and query, percent-encoded ASCII; the whole URL towards a proxy. */
  readonly path: string
  /** All of them, `Host` included; what is added is `Accept-Encoding: identity` and `Connection: close`. */
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | Uint8Array | undefined
  /** Octets of the answer's body at most; one more is read to see whether there was more. */
  readonly maxBytes: number
  /** Whether the body of a redirect (3xx) is left unread. */
  readonly skipsRedirects?: boolean
}

/** The answer, as it was sent: nothing is decompressed. */
export interface ExchangeAnswer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly body: Buffer
  /** The body went on past `maxBytes`. */
  readonly truncated: boolean
}

/** No complete, well-formed answer came. */
export class ExchangeBroken extends Data.TaggedError("ExchangeBroken")<{
  readonly detail: string
  /** The system's code, where it has one. */
  readonly code?: string | undefined
  /** A header has a value that no header can have; nothing was sent. */
  readonly isUnsendable?: boolean
}> {}

/** Octets of one response head (start line and headers). */
const maxHeadBytes = 16_384
/** Interim (1xx) answers before the final one. */
const maxInterim = 16

/**
 * Sends the request over `stream` and reads the answer: no pool, no cookies, no redirect followed. The head and the body
 * are bounded, the time is not. Interruption destroys the stream.
 */
export const exchange = (
  stream: Net.Socket,
  request: ExchangeRequest
): Effect.Effect<ExchangeAnswer, ExchangeBroken> =>
  Effect.async((resume) => {
    const { body, headers, maxBytes, method, path, skipsRedirects = false } = request
    const ask = () =>
      Http.request({
        // Without an agent neither a pool nor the proxy variables of the environment have a part in it.
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
      return resume(new ExchangeBroken({ detail: "a header has a value that no header can have", isUnsendable: true }))
    }
    const close = () => {
      outgoing.destroy()
      stream.destroy()
    }
    const settle = (result: Effect.Effect<ExchangeAnswer, ExchangeBroken>) => {
      resume(result)
      close()
    }
    const failed = (detail: string, code?: string) => settle(new ExchangeBroken({ detail, code }))
    const broken = (cause: Error) => failed(cause.message, codeOf(cause))
    let interim = 0
    outgoing.on("error", broken)
    outgoing.once("close", () => failed("closed without an answer"))
    outgoing.on("information", () => {
      if (++interim > maxInterim) failed("too many interim answers")
    })
    outgoing.once("response", (incoming) => {
      const { headers, statusCode: status = 0 } = incoming
      const chunks: Array<Buffer> = []
      let length = 0
      const answer = () =>
        settle(Effect.succeed({
          status,
          headers,
          body: Buffer.concat(chunks).subarray(0, maxBytes),
          truncated: length > maxBytes
        }))
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
