import { Effect, Layer, Stream } from "effect"
import type { Request } from "../../src/kernel/http/Message.ts"
import { BodyTooLarge } from "../../src/kernel/http/Refused.ts"
import { ReverseNames } from "../../src/kernel/net/ReverseNames.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { sessionCookie } from "../../src/surfaces/admin/Credentials.ts"
import { doorsOf } from "../../src/surfaces/admin/Doors.ts"
import { make } from "../../src/surfaces/api/App.ts"
import { declaredApp } from "../../src/surfaces/api/Declared.ts"
import type { Backend } from "./Databases.ts"
import type { World } from "./Graph.ts"
import { configOf, world } from "./Graph.ts"
import { made, password, startsAt } from "./Operators.ts"
import { useStore } from "./UseTests.ts"

/* The API of operators without a socket: requests are handed to the app that the listener serves. */

/** One request. */
export interface Ask {
  readonly method?: string
  /** Sent as JSON, unless it is a text or octets already. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** The value of the session's cookie. */
  readonly cookie?: string | undefined
  readonly csrf?: string | undefined
  readonly clientIp?: string
}

/** Its answer; `json` is undefined where the body is none. */
export interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly json: any
}

/** A session as a browser holds it. */
export interface Held {
  readonly cookie: string
  readonly csrf: string
}

const octetsOf = (body: unknown): Buffer =>
  body === undefined
    ? Buffer.alloc(0)
    : typeof body === "string"
    ? Buffer.from(body)
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

const surfaceOf = Effect.fnUntraced(function*(config: Config) {
  const sources = new Map<string, "default" | "file" | "env">()
  const declared = yield* declaredApp({ config, sources }, "0.0.0-test")
  const names = yield* ReverseNames
  const app = make(config.admin, doorsOf(config.admin, { policy: undefined, names }), declared)
  const ask = Effect.fnUntraced(function*(target: string, asked: Ask = {}) {
    const { body, clientIp = "192.0.2.1", cookie, csrf, headers = {}, method = "GET" } = asked
    const octets = octetsOf(body)
    const received: Request = {
      id: "request-1",
      givenId: undefined,
      method,
      target,
      path: target.split("?")[0] ?? "",
      headers: {
        ...body === undefined ? {} : { "content-type": "application/json" },
        ...cookie === undefined ? {} : { cookie: `${sessionCookie}=${cookie}` },
        ...csrf === undefined ? {} : { "x-csrf-token": csrf },
        ...headers
      },
      clientIp,
      userAgent: "test/1",
      body: octets.length > config.admin.max_body_bytes ? new BodyTooLarge() : Effect.succeed(octets)
    }
    const routed = app.route(received)
    const answer = yield* routed.handle({ ...received, clientIp: routed.clientIp })
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
  return { ask }
})

/** Tests over the API; `first` gives each the way to ask it. */
export const useApi = (backend: Backend, toml = "") => {
  const config = configOf(toml)
  return {
    config,
    ...useStore<Asking, World | Passwords>(backend, {
      startsAt,
      layer: ({ name, records }) =>
        Layer.provideMerge(
          Passwords.layer({ iterations: 2, recoveryIterations: 1 }),
          world({ seed: name, records })
        ),
      first: () => surfaceOf(config)
    })
  }
}

/** The cookie that an answer sets. */
export const cookieOf = ({ headers }: Told): string =>
  new RegExp(`${sessionCookie}=([^;]*)`).exec(headers["set-cookie"] ?? "")?.[1] ?? ""

/** What tests over the API are given. */
export type Asking = Effect.Effect.Success<ReturnType<typeof surfaceOf>>

/** Makes an operator and signs them in. */
export const signedIn = Effect.fnUntraced(function*(
  { ask }: Asking,
  username: string,
  role: "viewer" | "operator" | "admin"
) {
  yield* made(username, role)
  const told = yield* ask("/api/session", { method: "POST", body: { username, password } })
  const held: Held = { cookie: cookieOf(told), csrf: told.json.csrfToken }
  return held
})
