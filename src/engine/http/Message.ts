import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Span, Weight } from "../telemetry/EventLog.ts"
import type { BodyTooLarge, BodyTooSlow, Shed } from "./HttpRefused.ts"

/** A parsed request head. The body is read on demand. */
export interface Request {
  /**
   * The sender's `x-request-id` if it is usable, otherwise a new UUID. Anyone may choose an id: it helps to find
   * records and proves nothing.
   */
  readonly id: string
  readonly method: string
  /**
   * Path and query exactly as received, without the authority of an absolute form. Routing neither decodes nor
   * normalises anything.
   */
  readonly target: string
  /** The part of the target before its query. */
  readonly path: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /**
   * The address of the connection's peer. A mapped IPv4 address is written as plain IPv4. After routing, this is
   * {@link Routed.clientIp}.
   */
  readonly clientIp: string
  readonly userAgent: string | undefined
  /** Reads the body, within the listener's limits of octets and seconds. */
  readonly body: Effect.Effect<Buffer, BodyTooLarge | BodyTooSlow | Shed>
}

/** A complete answer. */
export interface Answer {
  readonly status: number
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> }
  readonly body?: string | Uint8Array
  /**
   * The body, if it is sent while it is produced. If the stream fails, the connection is cut, so that nobody mistakes a
   * part for the whole.
   */
  readonly stream?: Stream.Stream<Uint8Array, unknown>
}

/** How the requests of a route are answered. */
export interface Answering<R> {
  /** Makes the answer. The request already has {@link Routed.clientIp}. */
  readonly handle: (request: Request) => Effect.Effect<Answer, never, R>
  /** Makes the answer if the deadline of the whole request has interrupted `handle`. */
  readonly late: (request: Request) => Effect.Effect<Answer, never, R>
}

/**
 * The route of a request. It is determined when the request begins, and then used for the answer, the records and the
 * metrics.
 */
export interface Routed<R> extends Answering<R> {
  /** The facts of the request's span. Every record that is written while the request is handled has them too. */
  readonly facts: Span
  /** The pattern of the route that the request matches, or {@link unmatched}. */
  readonly pattern: string
  /** The address of the client: the address of the peer, or the address that a trusted proxy reports. */
  readonly clientIp: string
}

/**
 * What a listener serves. `route` is called with the parsed head of each request. It must have no effect, because it is
 * called twice for a request that came through a proxy.
 */
export interface App<R> {
  readonly route: (received: Request) => Routed<R>
}

/** The pattern for a request that matches no route. */
export const unmatched = "<unmatched>"

/** Returns a header that must occur only once. A repeated header counts as absent. */
export const header = (request: Request, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === "string" ? value : undefined
}

/** Returns the codings that a header lists, in lower case. */
const codings = (given: string | ReadonlyArray<string> | undefined): ReadonlyArray<string> =>
  [given ?? []].flat().flatMap((line) => line.split(","))
    .map((coding) => coding.replaceAll(/^[ \t]+|[ \t]+$/g, "").toLowerCase())
    .filter((coding) => coding !== "")

/**
 * Returns whether the body of a request is sent as it is. `identity` means that there is no coding (RFC 9110 section
 * 8.4.1). The runtime decodes `chunked`, but no other transfer coding (RFC 9112 section 6.1).
 */
export const isUncoded = ({ headers }: Request): boolean =>
  codings(headers["content-encoding"]).every((coding) => coding === "identity") &&
  codings(headers["transfer-encoding"]).every((coding) => coding === "chunked" || coding === "identity")

/** Makes a JSON answer. */
export const json = (status: number, value: unknown, headers: Answer["headers"] = {}): Answer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(value)
})

/** Adds headers to an answer. */
export const withHeaders = (answer: Answer, headers: Answer["headers"]): Answer => ({
  ...answer,
  headers: { ...answer.headers, ...headers }
})

/** Returns whether a request is a health check. Monitoring programs send such requests again and again. */
const isProbe = ({ method, path }: Pick<Request, "method" | "path">): boolean =>
  (method === "GET" || method === "HEAD") &&
  (path === "/health" || path === "/ready" || path === "/debug" || path.startsWith("/debug/"))

/**
 * Returns the level and the outcome of `request_completed`. This is the only event whose level depends on its content:
 * a 5xx is a failure, and any other answer to a health check is `debug`.
 */
export const accessWeight = (status: number, request?: Pick<Request, "method" | "path">): Weight => {
  if (status >= 500) return { level: "warn", outcome: "failure" }
  return { level: request !== undefined && isProbe(request) ? "debug" : "info", outcome: "success" }
}
