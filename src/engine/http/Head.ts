import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { IncomingMessage, ServerResponse } from "node:http"
import { STATUS_CODES } from "node:http"
import { emitIn } from "../telemetry/EngineLog.ts"
import type { Answer, Request } from "./Message.ts"

/** The target of a request. */
export interface Target {
  /** Path and query, exactly as received. */
  readonly target: string
  /** The authority, if the target names one. In that case it replaces the Host field (RFC 9112 section 3.2.2). */
  readonly host: string | undefined
}

const scheme = /^https?:\/\//i
const authority = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::[0-9]{0,5})?$/i
const slash = 0x2f

/**
 * Reads a request target in origin or absolute form (RFC 9112 sections 3.2.1 and 3.2.2). Both forms give the same path
 * and query. Routes, policies and signatures use nothing else. Any other text is kept unchanged, and matches no route.
 * Returns `undefined` for an absolute form without a host or with a user part, because this is an error (RFC 9110
 * sections 4.2.1 and 4.2.4).
 */
export const readTarget = (text: string): Target | undefined => {
  if (text.charCodeAt(0) === slash) return { target: text, host: undefined }
  const prefix = scheme.exec(text)?.[0]
  if (prefix === undefined) return { target: text, host: undefined }
  const rest = text.slice(prefix.length)
  const end = rest.search(/[/?#]/)
  const host = end < 0 ? rest : rest.slice(0, end)
  if (!authority.test(host)) return undefined
  const behind = rest.slice(host.length)
  return { target: behind.startsWith("/") ? behind : `/${behind}`, host }
}

/**
 * Returns whether a head names its host exactly once, as HTTP/1.1 requires. If there are two hosts, programs may
 * disagree about which of them counts.
 */
export const hasOneHost = ({ httpVersion, rawHeaders }: IncomingMessage): boolean => {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++
  }
  return hosts === 1 || (hosts === 0 && httpVersion === "1.0")
}

/**
 * Returns the plain IPv4 address of an IPv4 peer. On a dual-stack socket, the address of such a peer has the form
 * `::ffff:192.0.2.1`.
 */
export const unmapped = (address: string): string => address.startsWith("::ffff:") ? address.slice(7) : address

/**
 * The headers that may occur only once. If there is a second line, Node.js drops it for some of these headers, and
 * joins it to the first line for others. But a proxy in front of this service may have used the second line.
 */
const single: ReadonlySet<string> = new Set([
  "authorization",
  "content-type",
  "origin",
  "sec-fetch-site",
  "x-csrf-token"
])

/**
 * Returns the headers of a message. If a header that may occur only once was sent several times, its value is a list of
 * its lines.
 */
const headersOf = (message: IncomingMessage): Request["headers"] => {
  const { headers, rawHeaders } = message
  let surplus = 0
  for (let at = 0; at < rawHeaders.length; at += 2) if (single.has(rawHeaders[at]?.toLowerCase() ?? "")) surplus++
  for (const name of single) if (headers[name] !== undefined) surplus--
  if (surplus === 0) return headers
  const repeated = [...single].filter((name) => (message.headersDistinct[name]?.length ?? 0) > 1)
  return { ...headers, ...Object.fromEntries(repeated.map((name) => [name, message.headersDistinct[name]])) }
}

const longestAgent = 256

/**
 * Returns the User-Agent of the client, or undefined if it is blank. The runtime reads headers as Latin-1, but programs
 * write them as UTF-8.
 */
const agentOf = (given: string | undefined): string | undefined => {
  if (given === undefined || given.trim() === "") return undefined
  if (!/[\x80-\xff]/.test(given)) return given.slice(0, longestAgent)
  const octets = Buffer.from(given, "latin1")
  const text = octets.toString("utf8")
  return (Buffer.from(text).equals(octets) ? text : given).slice(0, longestAgent)
}

/** Matches a usable id. It has only characters that logs, headers and terminals treat as plain text. */
const usableId = /^[A-Za-z0-9._:-]{1,128}$/

/** Returns the sender's `x-request-id`, or undefined if there is none. Logs an id that is not usable. */
export const idOf = ({ headers }: IncomingMessage, fiber: Fiber.Fiber<unknown, unknown>): string | undefined => {
  const given = headers["x-request-id"]
  if (typeof given === "string" && usableId.test(given)) return given
  if (given !== undefined) emitIn(fiber, "request_id_header_invalid", {})
  return undefined
}

/** Returns the facts of a request head. */
export const readHead = (
  id: string,
  message: IncomingMessage,
  { host, target }: Target,
  body: Request["body"]
): Request => {
  const headers = headersOf(message)
  const query = target.indexOf("?")
  return {
    id,
    method: message.method ?? "",
    target,
    path: query < 0 ? target : target.slice(0, query),
    headers: host === undefined ? headers : { ...headers, host },
    clientIp: unmapped(message.socket.remoteAddress ?? ""),
    userAgent: agentOf(message.headers["user-agent"]),
    body
  }
}

const longestLogged = 512

const masked = (parameter: string): string => {
  const equals = parameter.indexOf("=")
  return equals < 0 ? "***" : `${parameter.slice(0, equals)}=***`
}

/**
 * Returns path and query for the log, at most 512 characters. The values of the query are masked. These values may
 * contain a password if a form was sent with the wrong method, or if a user confused two fields.
 */
export const loggedTarget = ({ path, target }: { readonly path: string; readonly target: string }): string => {
  if (target.length === path.length) return target.slice(0, longestLogged)
  const query = target.slice(path.length + 1, path.length + longestLogged)
  return `${path}?${query.split("&").map(masked).join("&")}`.slice(0, longestLogged)
}

/**
 * The headers for every answer of a listener. Names and values alternate (docs/contribute/decisions/process.md, "Bounds
 * of a socket").
 */
export type Hardening = ReadonlyArray<string>

const everywhere: Hardening = ["x-content-type-options", "nosniff", "x-frame-options", "DENY"]

/**
 * Returns the headers for every answer of a listener. `isForOperators` means that the host name of the listener is used
 * for nothing else. In that case the headers tell browsers to use only TLS for this name and for all names below it.
 */
export const hardeningOf = (isForOperators: boolean): Hardening =>
  isForOperators ? ["strict-transport-security", "max-age=31536000; includeSubDomains", ...everywhere] : everywhere

/** The statuses that are sent to a peer whose request cannot be handled at all. */
export type BareStatus = 400 | 408 | 431 | 503

/** Returns the status for input that Node.js could not parse or that did not arrive in time. */
export const statusOf = ({ code }: NodeJS.ErrnoException): BareStatus =>
  code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : code === "HPE_HEADER_OVERFLOW" ? 431 : 400

/**
 * Returns the whole text of the answer to input that cannot be handled as a request. The connection ends with this
 * answer.
 */
export const bareAnswer = (status: BareStatus, hardening: Hardening): string => {
  const headers = ["connection", "close", "content-length", "0", ...hardening]
  const lines = headers.flatMap((name, index) => index % 2 === 0 ? [`${name}: ${headers[index + 1] ?? ""}`] : [])
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`, ...lines, "", ""].join("\r\n")
}

/** Sends an answer. If its body is a stream, only the head is sent. */
export const write = (response: ServerResponse, id: string, answer: Answer, hardening: Hardening): void => {
  const headers = [...hardening, "x-request-id", id]
  for (const name in answer.headers) {
    const given = answer.headers[name] ?? []
    if (typeof given === "string") headers.push(name, given)
    else for (const value of given) headers.push(name, value)
  }
  if (answer.stream !== undefined) return void response.writeHead(answer.status, headers)
  if (answer.status !== 204 && answer.status !== 304) {
    headers.push("content-length", String(answer.body === undefined ? 0 : Buffer.byteLength(answer.body)))
  }
  response.writeHead(answer.status, headers).end(answer.body)
}

/**
 * Hands a chunk to the socket. Returns whether the caller must wait for the peer before it hands over the next chunk.
 */
const handOver = (response: ServerResponse, chunk: Uint8Array): Effect.Effect<boolean> =>
  Effect.sync(() => !response.write(chunk))

const taken = (response: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const go = () => resume(Effect.void)
    // The peer may have received the chunk by now, because a fiber can pause between two steps.
    if (!response.writableNeedDrain) return go()
    response.once("drain", go)
    return Effect.sync(() => void response.off("drain", go))
  })

/**
 * Sends the body of a streamed answer. `goesOn` runs each time a chunk was handed to the socket, each time a wait for
 * the peer has ended, and at the end. If the stream fails or is interrupted, the connection is cut.
 */
export const writeStream = (
  response: ServerResponse,
  method: string,
  stream: NonNullable<Answer["stream"]>,
  goesOn: Effect.Effect<void>
): Effect.Effect<void> =>
  Stream.runForEach(
    method === "HEAD" ? Stream.empty : stream,
    (chunk) =>
      Effect.flatMap(handOver(response, chunk), (isSlower) =>
        isSlower ? Effect.andThen(goesOn, Effect.andThen(taken(response), goesOn)) : goesOn)
  ).pipe(
    Effect.interruptible,
    Effect.exit,
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) {
        response.end()
      } else response.destroy()
      return goesOn
    })
  )
