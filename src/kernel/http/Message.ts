import type { Effect } from "effect"
import type { BodyTooLarge, BodyTooSlow, Shed } from "./Refused.ts"

/** A parsed request head, and its body on demand. */
export interface Request {
  /** A new UUID, or the usable `x-request-id` of a trusted proxy. */
  readonly id: string
  /** A usable `x-request-id`, whoever sent it. */
  readonly givenId: string | undefined
  readonly method: string
  /** The request target exactly as received: routing decodes and normalises nothing. */
  readonly target: string
  /** The target up to its query. */
  readonly path: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** Address of the connection's peer, IPv4 unwrapped from its mapped form; once it is routed, {@link Routed.clientIp}. */
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
}

/** Where a request has arrived, found once for all that asks: its answer, its records and its metrics. */
export interface Routed<R> {
  /** The profile it is for, named in every record written while it is handled. */
  readonly profile: string | undefined
  /** The pattern of the route it matches, or {@link unmatched}. */
  readonly pattern: string
  /** The address of whoever sent it: that of the peer, or what a trusted proxy says. */
  readonly clientIp: string
  /** Whether the peer is a proxy whose word is taken. */
  readonly isProxied: () => boolean
  /** Its answer; the request names the client by then. */
  readonly handle: (request: Request) => Effect.Effect<Answer, never, R>
  /** The answer when `handle` ran into the whole-request deadline and was interrupted. */
  readonly late: (request: Request) => Effect.Effect<Answer, never, R>
}

/** What a listener serves: it is asked once for each request, with what the head says. */
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
