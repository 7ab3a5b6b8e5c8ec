import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Span, Weight } from "../telemetry/EventLog.ts"
import type { BodyTooLarge, BodyTooSlow, Shed } from "./HttpRefused.ts"

/** A parsed request head, and its body on demand. */
export interface Request {
  /** The `x-request-id` of the sender if it is usable, or else a new UUID. Anybody may choose one: it finds records and proves nothing. */
  readonly id: string
  readonly method: string
  /** Path and query exactly as received, without the authority of an absolute form: routing decodes and normalises nothing. */
  readonly target: string
  /** The target up to its query. */
  readonly path: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /**
   * The address of the connection's peer, with a mapped IPv4 address as plain IPv4. After routing, {@link
   * Routed.clientIp}.
   */
  readonly clientIp: string
  readonly userAgent: string | undefined
  /** Reads the body, up to the listener's bound in octets and seconds. */
  readonly body: Effect.Effect<Buffer, BodyTooLarge | BodyTooSlow | Shed>
}

/** A complete answer. */
export interface Answer {
  readonly status: number
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> }
  readonly body?: string | Uint8Array
  /** The body, where it is sent while it is made. A failure cuts the connection, so that nobody takes a part for the whole. */
  readonly stream?: Stream.Stream<Uint8Array, unknown>
}

/** How requests of a route are answered. */
export interface Answering<R> {
  /** Makes the answer. The request holds {@link Routed.clientIp} by then. */
  readonly handle: (request: Request) => Effect.Effect<Answer, never, R>
  /** Makes the answer if the deadline of the whole request interrupted `handle`. */
  readonly late: (request: Request) => Effect.Effect<Answer, never, R>
}

/** The route of a request. It is found once, and the answer, the records and the metrics all use it. */
export interface Routed<R> extends Answering<R> {
  /** Facts that every record has that is written while it is handled, and its span. */
  readonly facts: Span
  /** The pattern of the route it matches, or {@link unmatched}. */
  readonly pattern: string
  /** The address of the client: that of the peer, or the one that a trusted proxy reports. */
  readonly clientIp: string
}

/** What a listener serves. `route` is called once for each request, with the parsed head. */
export interface App<R> {
  readonly route: (received: Request) => Routed<R>
}

/** The route of a request that matches none. */
export const unmatched = "<unmatched>"

/** A header that must occur once; a repeated one counts as absent. */
export const header = (request: Request, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === "string" ? value : undefined
}

/** A JSON answer. */
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

/** Whether a request asks whether the service is there, as monitors do again and again. */
const isProbe = ({ method, path }: Pick<Request, "method" | "path">): boolean =>
  (method === "GET" || method === "HEAD") &&
  (path === "/health" || path === "/ready" || path === "/debug" || path.startsWith("/debug/"))

/** Only `request_completed` is weighed by its content: a 5xx is a failure, another answer to a probe is `debug`. */
export const accessWeight = (status: number, request?: Pick<Request, "method" | "path">): Weight => {
  if (status >= 500) return { level: "warn", outcome: "failure" }
  return { level: request !== undefined && isProbe(request) ? "debug" : "info", outcome: "success" }
}
