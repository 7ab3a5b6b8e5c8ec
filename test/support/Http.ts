import type { IncomingHttpHeaders } from "node:http"
import { Agent as HttpAgent, request as httpRequest } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import { patienceMs } from "./Patience.ts"

/** An answer that was read completely. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON, or `undefined` if it is not JSON. */
  readonly json: unknown
}

/** A request. A body that is given as a list is sent chunked, without a Content-Length. */
interface HttpRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | ReadonlyArray<Uint8Array>
  readonly timeoutMs?: number
  /** The target exactly as it is sent. A URL would be normalised. */
  readonly path?: string
}

/** Sends requests over kept-alive connections of its own, and accepts any certificate of the server. */
export interface HttpClient {
  readonly send: (url: string, request?: HttpRequest) => Promise<HttpAnswer>
  readonly close: () => void
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isList = (body: HttpRequest["body"]): body is ReadonlyArray<Uint8Array> => Array.isArray(body)

const piece = 65_536

const piecesOf = (body: HttpRequest["body"]): ReadonlyArray<Uint8Array> => {
  if (body === undefined) return []
  if (isList(body)) return body
  const bytes = Buffer.from(body)
  const count = Math.ceil(bytes.length / piece)
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * piece, (index + 1) * piece))
}

/** Returns a client that uses Node's own HTTP, adds nothing, follows no redirects and does not retry. */
export const makeHttpClient = (): HttpClient => {
  const plain = new HttpAgent({ keepAlive: true })
  const secure = new HttpsAgent({ keepAlive: true, rejectUnauthorized: false })

  const send = (url: string, request: HttpRequest = {}): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const { body, headers = {}, method = "GET", path, timeoutMs = patienceMs } = request
      const tls = url.startsWith("https:")
      const timer = setTimeout(() => outgoing.destroy(new Error(`no answer from ${url} in ${timeoutMs} ms`)), timeoutMs)
      const fail = (error: Error) => {
        clearTimeout(timer)
        reject(error)
      }
      const pieces = piecesOf(body)
      const length = body === undefined || isList(body) ? {} : { "content-length": `${Buffer.byteLength(body)}` }
      const options = {
        method,
        headers: { ...length, ...headers },
        agent: tls ? secure : plain,
        ...path === undefined ? {} : { path }
      }
      const outgoing = tls ? httpsRequest(url, options) : httpRequest(url, options)
      // An answer may come before the body is sent. A later fault on the sending side does not matter.
      let answered = false
      outgoing.on("error", (error) => {
        if (!answered) fail(error)
      })
      outgoing.on("response", (incoming) => {
        answered = true
        const chunks: Array<Buffer> = []
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
        incoming.on("error", fail)
        incoming.on("aborted", () => fail(new Error(`the answer of ${url} broke off`)))
        incoming.on("end", () => {
          clearTimeout(timer)
          const text = Buffer.concat(chunks).toString("utf8")
          const answer = { status: incoming.statusCode ?? 0, headers: incoming.headers, text, json: parseJson(text) }
          // Before this event, the connection is not free, and the next request would open another one.
          outgoing.once("close", () => resolve(answer))
          if (!outgoing.writableEnded) outgoing.destroy()
        })
      })
      // Sends piece by piece until the answer arrives, as a client does that watches for the answer.
      const sendFrom = (index: number): void => {
        if (answered) return
        const next = pieces[index]
        if (next === undefined || (pieces.length === 1 && !isList(body))) outgoing.end(next)
        else outgoing.write(next, () => sendFrom(index + 1))
      }
      sendFrom(0)
    })

  return {
    send,
    close: () => {
      plain.destroy()
      secure.destroy()
    }
  }
}
