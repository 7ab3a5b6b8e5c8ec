import { Effect, Layer } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Request } from "../../../src/engine/http/Message.ts"
import { ProfileStates } from "../../../src/services/signing/ProfileStates.ts"
import * as burntKeys from "../../../src/store/revocation/BurntKeys.ts"
import type { AcmeKey } from "../../support/AcmeSession.ts"
import { bindingOf } from "../../support/Binding.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { accountKeyOf, column, configOf, count, eventsOf, sql, world } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  newClient,
  posted,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { policiesOf } from "../../support/Policies.ts"
import { shellScript } from "../../support/Script.ts"
import type { Making } from "../../support/UseTests.ts"
import { onSystemClock, useStore } from "../../support/UseTests.ts"

/*
 * A replayed request is answered badNonce, and nothing in it is judged, written or reported
 * (docs/contribute/decisions/acme-surface.md, "Order of the checks").
 */

const identifiers = [{ type: "dns", value: "a.example" }]
const csrFor = (...names: ReadonlyArray<string>) => makeCsr({ names }).csr.toString("base64url")

describe.each(databases)("the nonce of a request that writes on $name", (backend) => {
  let config = configOf()
  let ran = ""
  const { records, test } = useStore(backend, {
    layer: ({ name, records, script }: Making<() => string>) => {
      config = configOf(script?.() ?? "")
      return world({ records, seed: name, policies: Layer.fresh(policiesOf(config)) })
    },
    first: () => Effect.flatMap(surfaceOf(config), (app) => Effect.map(newClient(app), (client) => ({ app, client }))),
    around: onSystemClock
  })

  type App = Effect.Success<ReturnType<typeof surfaceOf>>

  /** Sends the same request twice. Returns the first answer, and whether the second one only refused the nonce. */
  const sentTwice = Effect.fnUntraced(function*(app: App, request: Request) {
    const first = yield* app.handle(request)
    const rows = Effect.all(["orders", "jobs", "audit_log"].map((table) => count(`SELECT count(*) FROM ${table}`)))
    const before = yield* rows
    records.length = 0
    const again = yield* app.handle(request)
    assert.deepStrictEqual([again.status, bodyOf(again).type], [400, "urn:ietf:params:acme:error:badNonce"])
    assert.deepStrictEqual(eventsOf(records), ["nonce_replayed"])
    assert.deepStrictEqual(yield* rows, before, "nothing was written")
    return first
  })

  const twice = (
    { app, client: { key, kid } }: {
      readonly app: App
      readonly client: Effect.Success<ReturnType<typeof newClient>>
    },
    to: string,
    payload: object
  ) =>
    Effect.flatMap(
      byAccount(key, kid, to.startsWith("/") ? to : to.slice(urlOf("").length), payload),
      (request) => sentTwice(app, request)
    )

  /** Sends newAccount twice, and returns the type of the first problem. */
  const refusedTwice = (app: App, key: AcmeKey, payload: object = {}, target = at("/newAccount")) =>
    Effect.gen(function*() {
      const header = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
      const { type = "" } = bodyOf(yield* sentTwice(app, posted(target, signed(key, header, payload))))
      return type.slice("urn:ietf:params:acme:error:".length)
    })

  test("is used up once, whether or not anything else was written", (given) =>
    Effect.gen(function*() {
      const { send } = given.client
      const order = yield* twice(given, at("/newOrder"), { identifiers })
      assert.strictEqual(order.status, 201)
      assert.strictEqual(
        (yield* twice(given, at("/newOrder"), { identifiers: [] })).status,
        400,
        "refused before a write"
      )
      const other = { identifiers, replaces: "AAAA.AAAA" }
      assert.strictEqual((yield* twice(given, at("/newOrder"), other)).status, 400, "replaces an unknown certificate")
      assert.strictEqual((yield* twice(given, at("/chall/nothing"), {})).status, 404)
      const { authorizations: [authz = ""], finalize } = bodyOf(order) as unknown as {
        readonly authorizations: ReadonlyArray<string>
        readonly finalize: string
      }
      const { challenges: [challenge] } = bodyOf(yield* send(authz)) as unknown as {
        readonly challenges: ReadonlyArray<{ readonly url: string }>
      }
      assert.strictEqual((yield* twice(given, challenge?.url ?? "", {})).status, 200)
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("a.example") })).status, 403, "not ready")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("b.example") })).status, 400)
      assert.deepStrictEqual(yield* column("SELECT event FROM audit_log"), ["certificate_issue_failed"])
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("a.example") })).status, 200)
    }))

  test("is used up before a refusal of newAccount is recorded", ({ app }) =>
    Effect.gen(function*() {
      const key = acmeKey()
      assert.strictEqual(yield* refusedTwice(app, key), "rateLimited")
      assert.strictEqual(yield* refusedTwice(app, key, { contact: ["tel:1"] }), "unsupportedContact")
      assert.strictEqual(yield* refusedTwice(app, key, { onlyReturnExisting: true }), "accountDoesNotExist")
      yield* burntKeys.insert({ pubkey: accountKeyOf(key.privateKey).spki, accountId: burntKeys.everybody, now: 1 })
      assert.strictEqual(yield* refusedTwice(app, key), "badPublicKey")
      const target = "/profile/bound/newAccount"
      assert.strictEqual(yield* refusedTwice(app, key, {}, target), "externalAccountRequired")
      assert.strictEqual(yield* refusedTwice(app, key, { externalAccountBinding: {} }, target), "malformed")
      const stranger = { kid: "01234567-89ab-7def-8123-456789abcdef", secret: Buffer.alloc(32) }
      const externalAccountBinding = bindingOf(stranger, key.jwk, urlOf(target))
      assert.strictEqual(yield* refusedTwice(app, key, { externalAccountBinding }, target), "unauthorized")
    }), () => "limits.accounts_per_network = 1\n[profiles.bound.eab]\nenabled = true\n")

  test("is used up before an existing account is reported", ({ app, client: { key } }) =>
    Effect.gen(function*() {
      for (const payload of [{}, { onlyReturnExisting: true }]) {
        const header = { jwk: key.jwk, url: urlOf(at("/newAccount")), nonce: yield* freshNonce }
        const request = posted(at("/newAccount"), signed(key, header, payload))
        assert.strictEqual((yield* sentTwice(app, request)).status, 200)
      }
    }))

  test("is used up before an account is refused, and before its last request is recorded", (given) =>
    Effect.gen(function*() {
      const { key, kid } = given.client
      const used = yield* byAccount(key, kid, at("/newOrder"), { identifiers })
      assert.strictEqual((yield* given.app.handle(used)).status, 201)
      yield* sql("UPDATE accounts SET last_seen_at = 1")
      assert.strictEqual(bodyOf(yield* given.app.handle(used)).type, "urn:ietf:params:acme:error:badNonce")
      assert.deepStrictEqual(yield* column("SELECT last_seen_at FROM accounts"), ["1"], "a replay was not seen")
      yield* sql("UPDATE accounts SET status = 'deactivated', last_seen_at = 4102444800")
      assert.strictEqual((yield* twice(given, at("/newOrder"), { identifiers })).status, 401)
    }))

  test("is used up before a profile without a working signer refuses", (given) =>
    Effect.gen(function*() {
      const { finalize } = bodyOf(yield* given.client.send(at("/newOrder"), { identifiers })) as unknown as {
        readonly finalize: string
      }
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      yield* ProfileStates.use(({ set }) =>
        Effect.sync(() => set(new Map([["default", { trouble: "the CA has ended", since: 0 }]])))
      )
      assert.strictEqual((yield* twice(given, at("/newOrder"), { identifiers })).status, 503)
      assert.strictEqual((yield* twice(given, finalize, { csr: csrFor("a.example") })).status, 503)
    }))

  test("is used up before a script checks the request", (given) =>
    Effect.gen(function*() {
      assert.strictEqual((yield* twice(given, at("/newOrder"), { identifiers })).status, 201)
      assert.strictEqual(readFileSync(ran, "utf8"), "x", "the script ran once")
    }), () => {
    ran = join(freshDirectory(), "ran")
    writeFileSync(ran, "")
    return `filter.check.counted = { type = "custom", script_path = "${
      shellScript(`printf x >> ${ran}`)
    }", stages = ["identifiers"] }
filter.rules = ["all"]
filter.rule.all = { when = "counted", then = "allow" }
`
  })
})
