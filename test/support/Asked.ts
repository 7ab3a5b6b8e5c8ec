import { Effect, Stream } from "effect"
import { BodyTooLarge } from "../../src/engine/http/HttpRefused.ts"
import type { App, Request } from "../../src/engine/http/Message.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { sessionCookie } from "../../src/surfaces/operator/gate/Credentials.ts"

/*
 * The listener of operators without a socket. Tests send their requests directly to the app that the listener serves.
 */

/** One request. */
export interface Ask {
  readonly method?: string
  /** The body, which is sent as JSON unless it is a form, a text or octets. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** The value of the session's cookie. */
  readonly cookie?: string | undefined
  readonly csrf?: string | undefined
  readonly clientIp?: string
  /** Whether the request's time is over before the answer. */
  readonly isLate?: boolean
}

/** The answer to a request. `json` is undefined if the body is not JSON. */
export interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any
}

/** A session in the form that a browser stores. */
export interface Held {
  readonly cookie: string
  readonly csrf: string
}

const octetsOf = (body: unknown): Buffer =>
  body === undefined
    ? Buffer.alloc(0)
    : typeof body === "string"
    ? Buffer.from(body)
    : body instanceof URLSearchParams
    ? Buffer.from(body.toString())
    : body instanceof Uint8Array
    ? Buffer.from(body)
    : Buffer.from(JSON.stringify(body))

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the function that sends requests to an app. */
export const asking = <R>(app: App<R>, { admin }: Pick<Config, "admin">) =>
  Effect.fnUntraced(function*(target: string, asked: Ask = {}) {
    const { body, clientIp = "192.0.2.1", cookie, csrf, headers = {}, isLate = false, method = "GET" } = asked
    const octets = octetsOf(body)
    const isForm = body instanceof URLSearchParams
    const received: Request = {
      id: "request-1",
      method,
      target,
      path: target.split("?")[0] ?? "",
      headers: {
        ...body === undefined
          ? {}
          : { "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json" },
        ...cookie === undefined ? {} : { cookie: `${sessionCookie}=${cookie}` },
        ...csrf === undefined ? {} : { "x-csrf-token": csrf },
        ...headers
      },
      clientIp,
      userAgent: "test/1",
      body: octets.length > admin.max_body_bytes ? new BodyTooLarge() : Effect.succeed(octets)
    }
    const routed = app.route(received)
    const request = { ...received, clientIp: routed.clientIp }
    const answer = yield* isLate ? routed.late(request) : routed.handle(request)
    const sent = answer.stream === undefined
      ? [Buffer.from((answer.body as Uint8Array | undefined) ?? [])]
      : yield* Effect.orDie(Stream.runCollect(answer.stream))
    const text = Buffer.concat([...sent]).toString()
    const told: Told = {
      status: answer.status,
      headers: Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join()])),
      text,
      json: parsed(text)
    }
    return told
  })

/** Returns the cookie that an answer sets. */
export const cookieOf = ({ headers }: Told): string =>
  new RegExp(`${sessionCookie}=([^;]*)`).exec(headers["set-cookie"] ?? "")?.[1] ?? ""
