import { Effect } from "effect"
import type { KeyObject } from "node:crypto"
import type { Answer, App, Request, Routed } from "../../src/engine/http/Message.ts"
import { makeFairSemaphore } from "../../src/engine/net/FairSemaphore.ts"
import { Nonces } from "../../src/services/nonce/Nonces.ts"
import { Policies } from "../../src/services/policy/Policies.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import * as acme from "../../src/surfaces/acme/AcmeApp.ts"
import { Endpoint } from "../../src/surfaces/acme/Endpoint.ts"
import type { AcmeKey, ProblemBody } from "./AcmeSession.ts"
import { signJws } from "./AcmeSession.ts"
import { accountKeyOf, newPrivateKey, sender } from "./Graph.ts"

/* The ACME surface as the listener calls it, and requests that are made without a socket. */

/** Returns the surface over the profiles of a configuration. */
export const surfaceOf = ({ filter, profiles, server }: Config, slots = 100) =>
  Effect.gen(function*() {
    const endpoints = new Map(profiles.map((profile) => [profile.name, new Endpoint(profile, server.base_url)]))
    return asked(acme.make(endpoints, {
      corsOrigins: server.cors_origins,
      policies: yield* Policies,
      proxies: filter,
      slots: makeFairSemaphore(slots),
      waitMillis: server.admission_wait_ms
    }))
  })

/** An app that can be called without a listener. */
export type Asked<R> = App<R> & Pick<Routed<R>, "handle" | "late">

const asked = <R>(app: App<R>): Asked<R> => ({
  ...app,
  handle: (request) => app.route(request).handle(request),
  late: (request) => app.route(request).late(request)
})

/** The base URL of the profile `default`, unless another one is configured. */
export const defaultBase = "http://localhost:3000/profile/default"

/** Returns a path below the profile `default`. */
export const at = (path: string): string => `/profile/default${path}`

/** Returns the absolute URL of a target. */
export const urlOf = (target: string): string => `http://localhost:3000${target}`

/** Returns a request in the form in which the listener passes it on. */
export const requestOf = (method: string, target: string, more: Partial<Request> = {}): Request => ({
  id: sender.request_id ?? "",
  method,
  target,
  path: target.split("?")[0] ?? "",
  headers: {},
  clientIp: sender.ip ?? "",
  userAgent: sender.user_agent,
  body: Effect.succeed(Buffer.alloc(0)),
  ...more
})

/** Returns a signed POST with a body that is given as text. */
export const posted = (target: string, body: string, headers: Request["headers"] = {}): Request =>
  requestOf("POST", target, {
    headers: { "content-type": "application/jose+json", ...headers },
    body: Effect.succeed(Buffer.from(body))
  })

/** Returns a key that signs, by default a new P-256 key. */
export const acmeKey = (privateKey: KeyObject = newPrivateKey()): AcmeKey => {
  const { algorithm, key, thumbprint } = accountKeyOf(privateKey)
  const { crv = "", e = "", kty = "", n = "", x = "", y = "", ...more } = key.export({ format: "jwk" })
  const jwk = kty === "EC"
    ? { kty, crv, x, y }
    : kty === "OKP"
    ? { kty, crv, x }
    : kty === "AKP"
    ? { kty, ...more }
    : { kty, n, e }
  return { privateKey, jwk, alg: algorithm, thumbprint }
}

/**
 * Returns the body of a signed request. A payload that is an object is serialised, and `undefined` makes a POST-as-GET.
 */
export const signed = (key: AcmeKey, header: object, payload?: object | string): string =>
  JSON.stringify(signJws(
    key,
    JSON.stringify({ alg: key.alg, ...header }),
    typeof payload === "string" ? payload : payload === undefined ? "" : JSON.stringify(payload)
  ))

/** Returns a header that must occur once in an answer. */
export const headerOf = (answer: Answer, name: string): string => {
  const value = answer.headers[name]
  if (typeof value !== "string") throw new Error(`no single header ${name}: ${answer.status} ${String(answer.body)}`)
  return value
}

/** Returns the JSON of an answer. */
export const bodyOf = (answer: Answer): ProblemBody => JSON.parse(String(answer.body)) as ProblemBody

/** A nonce that no client has received. */
export const freshNonce: Effect.Effect<string, never, Nonces> = Effect.flatMap(
  Nonces,
  ({ issue }) => Effect.flatMap(issue, (nonce) => nonce === undefined ? Effect.die("no nonce") : Effect.succeed(nonce))
)

/** Registers a key, and returns the account's URL. */
export const register = <R>(surface: Asked<R>, key: AcmeKey): Effect.Effect<string, never, R | Nonces> =>
  Effect.gen(function*() {
    const target = at("/newAccount")
    const header = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
    const answer = yield* surface.handle(posted(target, signed(key, header, { termsOfServiceAgreed: true })))
    return headerOf(answer, "location")
  })

/** Returns a request of an account that is correct in every part. */
export const byAccount = (
  key: AcmeKey,
  kid: string,
  target: string,
  payload?: object | string
): Effect.Effect<Request, never, Nonces> =>
  Effect.map(freshNonce, (nonce) => posted(target, signed(key, { kid, url: urlOf(target), nonce }, payload)))

/** Makes a new account, and a function that sends its requests. `more` is added to each request. */
export const newClient = <R>(app: Asked<R>, more: Partial<Request> = {}) =>
  Effect.gen(function*() {
    const key = acmeKey()
    const kid = yield* register(app, key)
    /** Sends a signed request. The target may be a path or an absolute URL. */
    const send = (to: string, payload?: object | string) =>
      Effect.flatMap(
        byAccount(key, kid, to.startsWith("/") ? to : to.slice(urlOf("").length), payload),
        (request) => app.handle({ ...request, ...more })
      )
    return { key, kid, send }
  })
