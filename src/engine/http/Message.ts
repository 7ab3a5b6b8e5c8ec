import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Span, Weight } from "../telemetry/EventLog.ts"
import type { BodyTooLarge, BodyTooSlow, Shed } from "./HttpRefused.ts"

/** A parsed request head, and its body on demand. */
export interface Request {
  /**
   * The sender's `x-request-id` if it is usable, otherwise a new UUID. Anyone may choose an id: it helps to find
   * records and proves nothing.
   */
  readonly id: string
  readonly method: string
  /** Path and query exactly as received, without the authority of an absolute form: routing decodes and normalises nothing. */
  readonly target: string
  /** The target up to its query. */
  readonly path: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /**
   * The address of the connection's peer, with a mapped IPv4 address as plain IPv4. After routing it is
   * {@link Routed.clientIp}.
   */
  readonly clientIp: string
  readonly userAgent: string | undefined
  /** Reads the body, up to the listener's limits in octets and seconds. */
  readonly body: Effect.Effect<Buffer, BodyTooLarge | BodyTooSlow | Shed>
}

/** A complete answer. */
export interface Answer {
  readonly status: number
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> }
  readonly body?: string | Uint8Array
  /**
   * The body, if it is sent while it is produced. A failure cuts the connection, so that nobody mistakes a part for the
   * whole.
   */
  readonly stream?: Stream.Stream<Uint8Array, unknown>
}

/** How requests of a route are answered. */
export interface Answering<R> {
  /** Makes the answer. The request already has {@link Routed.clientIp}. */
  readonly handle: (request: Request) => Effect.Effect<Answer, never, R>
  /** Makes the answer if the deadline of the whole request interrupted `handle`. */
  readonly late: (request: Request) => Effect.Effect<Answer, never, R>
}

/** The route of a request. It is determined once, and the answer, the records and the metrics all use it. */
export interface Routed<R> extends Answering<R> {
  /** The facts of the request's span, and of every record that is written while the request is handled. */
  readonly facts: Span
  /** The pattern of the route it matches, or {@link unmatched}. */
  readonly pattern: string
  /** The address of the client: the peer's address, or the address that a trusted proxy reports. */
  readonly clientIp: string
}

/** What a listener serves. `route` is called once for each request, with the parsed head. */
export interface App<R> {
  readonly route: (received: Request) => Routed<R>
}

/** The route of a request that matches none. */
export const unmatched = "<unmatched>"

/** Returns a header that must occur only once. A repeated header counts as absent. */
export const header = (request: Request, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === "string" ? value : undefined
}

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

/** Returns whether a request is a health check, which monitors send again and again. */
const isProbe = ({ method, path }: Pick<Request, "method" | "path">): boolean =>
  (method === "GET" || method === "HEAD") &&
  (path === "/health" || path === "/ready" || path === "/debug" || path.startsWith("/debug/"))

/**
 * Returns the level and outcome of `request_completed`, the only event whose level depends on its content: a 5xx is a
 * failure, and any other answer to a health check is `debug`.
 */
export const accessWeight = (status: number, request?: Pick<Request, "method" | "path">): Weight => {
  if (status >= 500) return { level: "warn", outcome: "failure" }
  return { level: request !== undefined && isProbe(request) ? "debug" : "info", outcome: "success" }
}
