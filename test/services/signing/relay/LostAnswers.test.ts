import { it } from "@effect/vitest"
import { Clock, Duration, Effect, Layer } from "effect"
import { assert, describe } from "vitest"
import type { WebAnswer, WebRequest } from "../../../../src/engine/net/Web.ts"
import { Web, WebFailed } from "../../../../src/engine/net/Web.ts"
import type { Record as LogRecord } from "../../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../../src/engine/telemetry/EventLog.ts"
import * as AcmeClient from "../../../../src/services/signing/relay/AcmeClient.ts"
import { bypass } from "../../../../src/services/signing/relay/Strategy.ts"
import { fulfil } from "../../../../src/services/signing/relay/UpstreamOrder.ts"
import {
  accountKey,
  authorization,
  ca,
  challenge,
  directory,
  order,
  storedAt
} from "../../../support/ScriptedUpstream.ts"

/*
 * Whatever message is lost between the service and an upstream, each order of the service has exactly one order at the
 * upstream.
 */

/**
 * What happens to one request. With `lost` and `cut`, the upstream handles the request, but the answer is lost or cut
 * off. With `swallowed`, the request never arrives, which looks to the service like a lost answer. With `unsent`, the
 * request is not sent.
 */
type Damage = "lost" | "cut" | "swallowed" | "unsent"

interface Option {
  /**
   * Whether and how the upstream lists the orders of an account: in pages of three orders, in a bare array, or as
   * step-ca does, where reading the list harms the account.
   */
  readonly lists: boolean | "array" | "step-ca"
  /** The statuses of orders for the same name that exist before. */
  readonly before?: ReadonlyArray<string>
  /** Which requests are damaged, counted from 0. */
  readonly damage: ReadonlyMap<number, Damage>
  /** After how many milliseconds an order appears in the list, as at a slow upstream. */
  readonly slowMillis?: number
}

/** Makes a clock on which every wait ends at once, so that the test does not wait for the time limits of requests. */
const hurried = () => {
  let now = 0
  const nanos = () => BigInt(now) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillis: Effect.sync(() => now),
    currentTimeMillisUnsafe: () => now,
    currentTimeNanos: Effect.sync(nanos),
    currentTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    sleep: (duration) =>
      Duration.toMillis(duration) >= 30_000
        ? Effect.never
        : Effect.sync(() => void (now += Duration.toMillis(duration)))
  }
  return clock
}

/** Makes an upstream that remembers its orders and the requests that it got. */
const upstreamWith = ({ before = [], damage, lists, slowMillis = 0 }: Option) => {
  const orders = before.map((status) => ({ status, proved: status !== "pending", shownAt: 0 }))
  const asked: Array<string> = []
  const triggers: Array<number> = []
  const orderAt = (id: number) => {
    const status = orders[id]?.status ?? "invalid"
    return order(status, {
      authorizations: [`${ca}/authz/${id}`],
      finalize: `${ca}/finalize/${id}`,
      ...(status === "valid" ? { certificate: `${ca}/cert/${id}` } : {})
    })
  }
  const problem = (type: string, status = 400) => ({
    status,
    json: { type: `urn:ietf:params:acme:error:${type}`, detail: "no" },
    headers: {}
  })
  const done = (
    request: WebRequest,
    now: number
  ): { readonly status?: number; readonly json?: object; readonly text?: string; readonly headers?: object } => {
    const { pathname, searchParams } = request.url
    const [, what = "", text = ""] = pathname.split("/")
    const id = Number(text)
    const one = orders[id]
    switch (what) {
      case "directory":
        return { json: directory }
      case "nonce":
        return {}
      case "acct":
        return { json: { status: "valid", ...(lists !== false ? { orders: `${ca}/orders` } : {}) } }
      case "acme":
        return { json: pathname.endsWith("/orders") ? [] : { orders: `${ca}${pathname}/orders` } }
      case "orders": {
        const page = Number(searchParams.get("page") ?? 0)
        const shown = orders.flatMap(({ shownAt }, id) => shownAt <= now ? [`${ca}/order/${id}`] : [])
        if (lists === "array") return { json: shown }
        const rest = shown.length > 3 * (page + 1) ? { link: `<${ca}/orders?page=${page + 1}>;rel="next"` } : {}
        return { json: { orders: shown.slice(3 * page, 3 * page + 3) }, headers: rest }
      }
      case "order":
        if (text !== "") return one === undefined ? problem("malformed", 404) : { json: orderAt(id) }
        orders.push({ status: "pending", proved: false, shownAt: now + slowMillis })
        return {
          status: 201,
          json: orderAt(orders.length - 1),
          headers: { location: `${ca}/order/${orders.length - 1}` }
        }
      case "authz":
        return {
          json: authorization(one?.proved === true ? "valid" : "pending", {
            challenges: [{ ...challenge, url: `${ca}/chall/${id}`, status: one?.proved === true ? "valid" : "pending" }]
          })
        }
      case "chall":
        if (one === undefined || one.proved) return problem("malformed")
        triggers.push(id)
        orders[id] = { ...one, status: "ready", proved: true }
        return { json: challenge }
      case "finalize":
        if (one?.status !== "ready") return problem("orderNotReady", 403)
        orders[id] = { ...one, status: "valid" }
        return { json: orderAt(id) }
      case "cert":
        return { text: `the chain of ${id}` }
      default:
        return problem("malformed", 404)
    }
  }
  const web = Web.layerScripted((request) =>
    Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const turn = asked.length
      asked.push(`${request.method} ${request.url.pathname}`)
      const kind = damage.get(turn)
      if (kind === "unsent") return yield* new WebFailed({ detail: "connect ECONNREFUSED", unsent: true })
      if (kind === "swallowed") return yield* new WebFailed({ detail: "socket hang up" })
      const { headers = {}, json, status = 200, text = "" } = done(request, now)
      if (kind === "lost") return yield* new WebFailed({ detail: "socket hang up" })
      const head = { status, headers: { "replay-nonce": `nonce${turn}`, ...headers } }
      if (kind === "cut") return yield* new WebFailed({ detail: "aborted", head })
      return {
        ...head,
        body: Buffer.from(json === undefined ? text : JSON.stringify(json)),
        truncated: false
      } satisfies WebAnswer
    })
  )
  return { orders, asked, triggers, web }
}

const stepAccount = `${ca}/acme/web/account/1`

/** Attempts to fulfil an order until an attempt succeeds. Each attempt knows what the previous one stored. */
const attempted = (option: Option, attempts = 6) =>
  Effect.gen(function*() {
    const upstream = upstreamWith(option)
    const records: Array<LogRecord> = []
    const world = Layer.merge(upstream.web, layerMemory(records))
    const errors: Array<string> = []
    const asks: Array<number> = []
    let stored = storedAt(undefined)
    const client = yield* Effect.provide(AcmeClient.make(`${ca}/directory`, yield* accountKey, "web"), world)
    for (let attempt = 0; attempt < attempts; attempt++) {
      const begun = yield* Clock.currentTimeMillis
      const attempting = fulfil(
        { client, kid: option.lists === "step-ca" ? stepAccount : `${ca}/acct/1`, strategy: bypass, pollMillis: 2000 },
        {
          names: ["a.example"],
          validity: { notBefore: undefined, notAfter: undefined },
          upstreamProfile: "",
          csr: Buffer.from("csr"),
          stored,
          wasBegun: attempt > 0,
          deadline: begun + 300_000
        },
        {
          asked: (count) =>
            Effect.map(Clock.currentTimeMillis, (now) => {
              asks.push(count)
              stored = { ...stored, asks: count, askedAt: Math.floor(now / 1000) }
            }),
          opened: (orderUrl, finalizeUrl) =>
            Effect.sync(() => {
              stored = { ...stored, orderUrl, finalizeUrl }
              return true
            }),
          notReplaced: () => Effect.void,
          issued: () => Effect.void,
          unclaimed: (urls) => Effect.succeed(urls)
        }
      )
      const ended = yield* Effect.result(Effect.provide(attempting, world))
      // The service's check of the chain would require the same.
      if (ended._tag === "Success" && /^the chain of \d$/.test(ended.success.chain)) {
        return { ...upstream, chain: ended.success.chain, errors, asks, records }
      }
      errors.push(ended._tag === "Failure" ? `${ended.failure._tag}: ${ended.failure.detail}` : "a broken chain")
    }
    return { ...upstream, chain: undefined, errors, asks, records }
  }).pipe(Effect.provideService(Clock.Clock, hurried()))

const at = (turn: number, kind: Damage) => new Map([[turn, kind]])
const newOrders = (asked: ReadonlyArray<string>) => asked.filter((one) => one === "POST /order").length

/** The requests of an undisturbed attempt: directory, nonce, newOrder and so on up to the certificate. */
const undisturbed = attempted({ lists: true, damage: new Map() })

describe("an order has exactly one order at the upstream", () => {
  for (const kind of ["lost", "cut", "swallowed", "unsent"] as const) {
    for (const lists of [true, "array"] as const) {
      it.effect(`whichever of its requests is ${kind}, if orders are listed${lists === true ? "" : " as an array"}`, () =>
        Effect.gen(function*() {
          const { asked } = yield* undisturbed
          for (const [turn, request] of asked.entries()) {
            const { chain, errors, orders } = yield* attempted({ lists, damage: at(turn, kind) })
            assert.strictEqual(chain, "the chain of 0", `${request} ${kind}: ${errors.join("; ")}`)
            assert.lengthOf(orders, 1, `${request} ${kind}`)
          }
        }))
    }
  }

  it.effect("whichever two consecutive requests are lost or cut", () =>
    Effect.gen(function*() {
      const { asked } = yield* undisturbed
      for (const turn of asked.keys()) {
        for (const kind of ["lost", "cut"] as const) {
          const damage = new Map([...at(turn, kind), ...at(turn + 1, kind)])
          const { chain, errors, orders } = yield* attempted({ lists: true, damage })
          assert.deepStrictEqual([chain, orders.length], ["the chain of 0", 1], errors.join("; "))
        }
      }
    }))

  it.effect("even if that order is listed on a later page, after the orders of other requests", () =>
    Effect.gen(function*() {
      const before = ["valid", "valid", "processing", "invalid", "valid", "valid", "valid"]
      const { asked: requests } = yield* undisturbed
      const damage = at(requests.indexOf("POST /order"), "lost")
      const { chain, orders } = yield* attempted({ lists: true, before, damage })
      assert.strictEqual(chain, "the chain of 7")
      assert.lengthOf(orders, before.length + 1)
    }))

  it.effect("even if the list does not contain that order at first", () =>
    Effect.gen(function*() {
      const { asked: requests } = yield* undisturbed
      const damage = at(requests.indexOf("POST /order"), "lost")
      // The second attempt follows immediately, as if a worker took over from a killed worker.
      const { chain, orders } = yield* attempted({ lists: true, damage, slowMillis: 5000 })
      assert.deepStrictEqual([chain, orders.length], ["the chain of 0", 1])
    }))

  it.effect("even without a list of orders if the answer to newOrder arrived or the request was not sent", () =>
    Effect.gen(function*() {
      const { asked: requests } = yield* undisturbed
      for (const [turn, request] of requests.entries()) {
        for (const kind of ["lost", "cut", "unsent"] as const) {
          if (request === "POST /order" && kind === "lost") continue
          const { chain, errors, orders } = yield* attempted({ lists: false, damage: at(turn, kind) })
          assert.deepStrictEqual(
            [chain, orders.length],
            ["the chain of 0", 1],
            `${request} ${kind}: ${errors.join("; ")}`
          )
        }
      }
    }))

  it.effect("and triggers its challenge once, whichever request is lost", () =>
    Effect.gen(function*() {
      const { asked: requests } = yield* undisturbed
      for (const turn of requests.keys()) {
        const { triggers } = yield* attempted({ lists: true, damage: at(turn, "lost") })
        assert.deepStrictEqual(triggers, [0])
      }
    }))
})

describe("an upstream that does not list orders", () => {
  it.effect("gets a second newOrder if the answer to the first is lost, but no third newOrder", () =>
    Effect.gen(function*() {
      const { asked: requests } = yield* undisturbed
      const turn = requests.indexOf("POST /order")
      const once = yield* attempted({ lists: false, damage: at(turn, "lost") })
      assert.deepStrictEqual([once.chain, once.orders.length], ["the chain of 1", 2])
      assert.deepStrictEqual(once.asks, [1, 2])
      // The second attempt knows the directory and has a nonce. It reads the account and sends newOrder again.
      const again = once.asked.lastIndexOf("POST /order")
      const twice = yield* attempted({ lists: false, damage: new Map([...at(turn, "lost"), ...at(again, "lost")]) })
      assert.deepStrictEqual([twice.chain, newOrders(twice.asked)], [undefined, 2])
      assert.match(twice.errors.at(-1) ?? "", /^UpstreamUnavailable: .*asked 2 times .*it lists no orders/)
    }))

  it.effect("is not asked for its list if it is step-ca or Caddy, where such a request may make the account unusable", () =>
    Effect.gen(function*() {
      const { asked: requests } = yield* undisturbed
      const turn = requests.indexOf("POST /order")
      for (const kind of ["lost", "swallowed"] as const) {
        const damage = new Map(at(turn, kind))
        for (const _ of [2, 3]) {
          const { asked } = yield* attempted({ lists: "step-ca", damage })
          damage.set(asked.lastIndexOf("POST /order"), kind)
        }
        const { asked, chain, orders } = yield* attempted({ lists: "step-ca", damage })
        assert.strictEqual(chain, `the chain of ${orders.length - 1}`, "another is opened as often as it takes")
        assert.deepStrictEqual([newOrders(asked), asked.filter((one) => one.includes("account"))], [4, []])
      }
    }))

  it.effect("may be asked again and again if it is unreachable", () =>
    Effect.gen(function*() {
      const { asked: requests } = yield* undisturbed
      const turn = requests.indexOf("POST /order")
      const damage = new Map(Array.from({ length: 40 }, (_, index) => [turn + index, "unsent"] as const))
      const { asks, orders } = yield* attempted({ lists: false, damage }, 4)
      assert.isAtLeast(asks.length, 2)
      assert.strictEqual(asks.at(-1), 0)
      assert.lengthOf(orders, 0)
    }))
})
