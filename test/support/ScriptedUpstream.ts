import { Clock, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { sign } from "node:crypto"
import type { RequestKey } from "../../src/crypto/jose/RequestKey.ts"
import { readRequestKey } from "../../src/crypto/jose/RequestKey.ts"
import { privateKeyPem } from "../../src/crypto/x509/SelfSigned.ts"
import type { WebAnswer, WebRequest } from "../../src/engine/net/Web.ts"
import { Web, WebFailed } from "../../src/engine/net/Web.ts"
import type { Record as LogRecord } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import * as AcmeClient from "../../src/services/signing/relay/AcmeClient.ts"
import type { Strategy } from "../../src/services/signing/relay/Strategy.ts"
import { bypass } from "../../src/services/signing/relay/Strategy.ts"
import type { UpstreamFailed } from "../../src/services/signing/relay/UpstreamFailed.ts"
import type { Wanted } from "../../src/services/signing/relay/UpstreamOrder.ts"
import { fulfil } from "../../src/services/signing/relay/UpstreamOrder.ts"
import type { StoredUpstreamOrder } from "../../src/services/signing/relay/UpstreamRecord.ts"
import { newEcKey } from "./Keys.ts"
import { sleptThrough } from "./Watched.ts"

/* A simulated upstream, with answers for each of its paths. */

/** The base URL of the upstream. */
export const ca = "https://ca.example"

/** The account key. */
export const privateKey = newEcKey()

const base64url = (content: string | Uint8Array): string => Buffer.from(content).toString("base64url")

/**
 * The account key in the form that the service uses. The key signs synchronously, because simulated time must not
 * advance while a thread signs.
 */
export const accountKey: Effect.Effect<RequestKey> = Effect.map(
  Effect.orDie(Effect.flatMap(privateKeyPem(privateKey), readRequestKey)),
  (key) => ({
    ...key,
    sign: (header, payload) =>
      Effect.sync(() => {
        const [head, body] = [base64url(JSON.stringify({ alg: "ES256", ...header })), base64url(payload)]
        const signature = sign("sha256", Buffer.from(`${head}.${body}`), { key: privateKey, dsaEncoding: "ieee-p1363" })
        return { protected: head, payload: body, signature: base64url(signature) }
      })
  })
)

/** A JSON body. */
export type Json = { readonly [member: string]: unknown }

/** An answer of a path, with a status, a body and headers. */
export interface Said {
  /** Whether the request takes effect but the answer never arrives. */
  readonly lost?: boolean
  /** Whether the request never arrives. */
  readonly unsent?: boolean
  /** Whether the answer is longer than the service reads. */
  readonly truncated?: boolean
  readonly status?: number
  readonly json?: Json
  readonly text?: string
  readonly headers?: { readonly [name: string]: string }
}

/** The directory of the upstream. */
export const directory: Json = {
  newNonce: `${ca}/nonce`,
  newAccount: `${ca}/account`,
  newOrder: `${ca}/order`,
  revokeCert: `${ca}/revoke`
}

/** Returns an order for `a.example`. */
export const order = (status: string, more: Json = {}): Json => ({
  status,
  identifiers: [{ type: "dns", value: "a.example" }],
  authorizations: [`${ca}/authz`],
  finalize: `${ca}/finalize`,
  ...more
})

/** A challenge. */
export const challenge = { type: "http-01", url: `${ca}/chall`, status: "pending", token: "token" }
/** Returns an authorization of `a.example`. */
export const authorization = (status: string, more: Json = {}): Json => ({
  status,
  identifier: { type: "dns", value: "a.example" },
  challenges: [challenge],
  ...more
})

/** An honest upstream, as the answers of each path in order. The last answer of a path is repeated. */
export const honest: { readonly [path: string]: ReadonlyArray<Said> } = {
  "/directory": [{ json: directory }],
  "/nonce": [{}],
  "/order": [{ status: 201, json: order("pending"), headers: { location: `${ca}/order/1` } }],
  "/order/1": [
    { json: order("ready") },
    { json: order("processing") },
    { json: order("valid", { certificate: `${ca}/cert` }) }
  ],
  "/authz": [{ json: authorization("pending") }, { json: authorization("valid") }],
  "/chall": [{ json: challenge }],
  "/finalize": [{ json: order("processing") }],
  "/cert": [{ text: "the chain" }]
}

/** Returns an upstream that is {@link honest} except at some paths, with the requests that it got. */
export const upstreamWith = (paths: { readonly [path: string]: ReadonlyArray<Said> }) => {
  const asked = new Array<WebRequest>()
  const said = { ...honest, ...paths }
  const turns = new Map<string, number>()
  const web = Web.layerScripted((request) => {
    asked.push(request)
    const path = request.url.href.startsWith(ca) ? request.url.pathname : request.url.href
    const answers = said[path]
    if (answers === undefined) return new WebFailed({ detail: `nobody at ${path}` })
    const turn = turns.get(path) ?? 0
    turns.set(path, turn + 1)
    const { headers = {}, json, lost = false, status = 200, text = "", truncated = false, unsent = false } =
      answers[Math.min(turn, answers.length - 1)] ?? {}
    if (lost || unsent) return new WebFailed({ detail: lost ? "socket hang up" : "connect ECONNREFUSED", unsent })
    const answer: WebAnswer = {
      status,
      headers: { "replay-nonce": `nonce${asked.length}`, ...headers },
      body: Buffer.from(json === undefined ? text : JSON.stringify(json)),
      truncated
    }
    return Effect.succeed(answer)
  })
  return { asked, web }
}

/**
 * Returns the record of an order at the upstream, which is complete if the URL of the order is known, and otherwise has
 * only the number of requests.
 */
export const storedAt = (orderUrl: string | undefined, asks = 0, askedAt?: number): StoredUpstreamOrder => ({
  orderUrl,
  finalizeUrl: orderUrl === undefined ? undefined : `${ca}/finalize`,
  certificateUrl: undefined,
  asks,
  askedAt
})

/** Returns the targets of signed requests, in order. */
export const postsOf = (asked: ReadonlyArray<WebRequest>): ReadonlyArray<string> =>
  asked.filter(({ method }) => method === "POST").map(({ url }) => url.href.replace(ca, ""))

/** Returns the payload of the last signed request at a path. */
export const payloadAt = (asked: ReadonlyArray<WebRequest>, path: string): unknown => {
  const request = asked.findLast(({ method, url }) => method === "POST" && url.href === `${ca}${path}`)
  const { payload } = JSON.parse(String(request?.body)) as { readonly payload: string }
  return JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as unknown
}

/** Returns the result of a run against an upstream. */
export const play = (
  paths: { readonly [path: string]: ReadonlyArray<Said> },
  more: Partial<Wanted> & { readonly claimed?: ReadonlyArray<string>; readonly strategy?: Strategy } = {}
) =>
  Effect.gen(function*() {
    const [kept, records] = [new Array<string>(), new Array<LogRecord>()]
    const { asked, web } = upstreamWith(paths)
    const wanted: Wanted = {
      names: ["a.example"],
      validity: { notBefore: undefined, notAfter: undefined },
      upstreamProfile: "",
      csr: Buffer.from("csr"),
      stored: storedAt(undefined),
      wasBegun: false,
      deadline: 300_000,
      ...more
    }
    const key = yield* accountKey
    const running = Effect.gen(function*() {
      const client = yield* AcmeClient.make(`${ca}/directory`, key, "web")
      const { chain } = yield* fulfil(
        { client, kid: `${ca}/acct/1`, strategy: more.strategy ?? bypass, pollMillis: 2000 },
        wanted,
        {
          asked: (asks) => Effect.sync(() => kept.push(`asked ${asks}`)),
          opened: (url, finalize) =>
            Effect.sync(() => {
              kept.push(`opened ${url} ${finalize}`)
              return !(more.claimed ?? []).includes(url)
            }),
          notReplaced: (error) => Effect.sync(() => kept.push(`not replaced: ${error}`)),
          issued: (url) => Effect.sync(() => kept.push(`issued ${url}`)),
          unclaimed: (urls) => Effect.succeed(urls.filter((url) => !(more.claimed ?? []).includes(url)))
        }
      )
      return chain
    }).pipe(Effect.provide(Layer.merge(web, layerMemory(records))))
    const begun = yield* Clock.currentTimeMillis
    const ended = yield* sleptThrough(Effect.result(running))
    yield* TestClock.setTime(begun + 600_000)
    return { ended, asked, kept, posts: postsOf(asked), records }
  })

/** Returns the result of {@link play} for a run that must fail. */
export const failureOf = (...parameters: Parameters<typeof play>) =>
  Effect.map(play(...parameters), (played) => {
    const { ended } = played
    if (ended._tag === "Success") throw new Error("it was fulfilled")
    return { ...played, failure: ended.failure as UpstreamFailed }
  })
