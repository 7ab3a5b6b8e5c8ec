import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { generateKeyPairSync, X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import { AccountId } from "../../../src/domain/Id.ts"
import type { Answer } from "../../../src/engine/http/Message.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import * as burntKeys from "../../../src/store/revocation/BurntKeys.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import type { AcmeKey, AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { accountKeyOf, column, configOf, count, eventsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  register,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * Key rollover (RFC 8555 section 7.3.5), with every attack on it that docs/contribute/attacks.md lists under "Key
 * rollover".
 */

const surface = surfaceOf(configOf())
const target = at("/keyChange")

/** Makes an inner JWS that is correct except for the changes in `more`. */
const innerOf = (
  next: AcmeKey,
  kid: string,
  old: AcmeKey,
  more: { readonly header?: object; readonly payload?: object | string; readonly signer?: AcmeKey } = {}
): string =>
  signed(
    more.signer ?? next,
    { alg: next.alg, jwk: next.jwk, url: urlOf(target), ...more.header },
    more.payload ?? { account: kid, oldKey: old.jwk }
  )

describe.each(databases)("keyChange on $name", (backend) => {
  const { database, records, test } = useWorld(backend)

  const change = (key: AcmeKey, kid: string, inner: object | string) =>
    Effect.flatMap(surface, (app) => Effect.flatMap(byAccount(key, kid, target, inner), app.handle))
  const read = (key: AcmeKey, kid: string) =>
    Effect.flatMap(surface, (app) => Effect.flatMap(byAccount(key, kid, kid.slice(urlOf("").length)), app.handle))
  const registered = (key: AcmeKey) => Effect.flatMap(surface, (app) => register(app, key))

  test("makes the other processes refuse the old key, even if they have cached it", () =>
    Effect.gen(function*() {
      const [key, next] = [acmeKey(), acmeKey()]
      const kid = yield* registered(key)
      assert.strictEqual((yield* read(key, kid)).status, 200)
      const { spki } = accountKeyOf(next.privateKey)
      yield* sql(
        `UPDATE accounts SET pubkey = ${
          backend.dialect === "sqlite" ? `X'${spki.toString("hex")}'` : `decode('${spki.toString("hex")}', 'hex')`
        }`
      )
      const before = yield* count("SELECT count(*) FROM nonces")
      const refused = yield* read(key, kid)
      assert.deepStrictEqual([refused.status, bodyOf(refused).type], [401, "urn:ietf:params:acme:error:unauthorized"])
      assert.strictEqual(yield* count("SELECT count(*) FROM nonces"), before, "its nonce is not spent")
      assert.strictEqual((yield* read(next, kid)).status, 200)
    }))

  const newKeys: ReadonlyArray<readonly [string, () => AcmeKey, readonly [number, string]]> = [
    ["another P-256 key", () => acmeKey(), [401, "unauthorized"]],
    // The algorithm is checked before the signature.
    [
      "an RSA key",
      () => acmeKey(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey),
      [400, "badSignatureAlgorithm"]
    ]
  ]
  for (const [name, make, [status, type]] of newKeys) {
    test(`replaces the old key by ${name}`, () =>
      Effect.gen(function*() {
        const [old, next] = [acmeKey(), make()]
        const kid = yield* registered(old)
        const answer = yield* change(old, kid, innerOf(next, kid, old))
        assert.deepStrictEqual([answer.status, headerOf(answer, "location")], [200, kid])
        assert.strictEqual((yield* read(next, kid)).status, 200)
        const refused = yield* read(old, kid)
        assert.deepStrictEqual(
          [refused.status, bodyOf(refused).type],
          [status, `urn:ietf:params:acme:error:${type}`]
        )
        assert.notStrictEqual(yield* registered(old), kid, "a new, empty account")
        assert.strictEqual(yield* registered(next), kid)
        assert.include(eventsOf(records), "key_change_completed")
        const [row] = yield* sql("SELECT event, detail FROM audit_log")
        assert.strictEqual(row?.event, "account_key_changed")
        assert.hasAllKeys(JSON.parse(String(row?.detail)), ["key_fp", "previous_key_fp"])
      }))
  }

  for (const [name, scope] of [["everybody", burntKeys.everybody], ["the account", undefined]] as const) {
    test(`refuses a new key that is blocked for ${name}`, () =>
      Effect.gen(function*() {
        const [old, next] = [acmeKey(), acmeKey()]
        const kid = yield* registered(old)
        const accountId = scope ?? AccountId(kid.split("/").at(-1) ?? "")
        yield* burntKeys.insert({ pubkey: accountKeyOf(next.privateKey).spki, accountId, now: 1 })
        const answer = yield* change(old, kid, innerOf(next, kid, old))
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [400, "urn:ietf:params:acme:error:badPublicKey"]
        )
        const rejected = records.find(({ event }) => event === "key_change_rejected")
        assert.deepInclude(rejected?.fields, { reason: "bad_key" })
        assert.strictEqual((yield* read(old, kid)).status, 200)
      }))
  }

  interface Refusal {
    readonly name: string
    readonly inner: (keys: { readonly old: AcmeKey; readonly next: AcmeKey; readonly kid: string }) => string
    readonly status: number
    readonly type: string
    readonly reason: string
  }
  const refusal = (
    name: string,
    reason: string,
    inner: Refusal["inner"],
    type = "malformed",
    status = 400
  ): Refusal => ({ name, inner, status, type, reason })

  const refusals: ReadonlyArray<Refusal> = [
    refusal("nothing", "bad_inner_jws", () => ""),
    refusal("no JSON", "bad_inner_jws", () => "not json"),
    refusal("a JWS without members", "bad_inner_jws", () => "{}"),
    refusal(
      "an alg that is a number",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { alg: 5 } })
    ),
    refusal(
      "a padded signature",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old).replace(/"signature":"[^"]+/, "$&=")
    ),
    refusal(
      "an unprotected header",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old).replace("{", `{"header":{},`)
    ),
    refusal(
      "a crit header",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { crit: ["exp"] } })
    ),
    refusal(
      "a kid beside the jwk",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { kid } })
    ),
    refusal(
      "a kid in place of the jwk",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { kid, jwk: undefined } })
    ),
    refusal(
      "a nonce inside",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { nonce: "AAAA" } })
    ),
    refusal(
      "the url of another resource",
      "url_mismatch",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { url: urlOf(at("/newOrder")) } })
    ),
    refusal("no url", "url_mismatch", ({ kid, next, old }) => innerOf(next, kid, old, { header: { url: undefined } })),
    refusal(
      "an unsupported key",
      "bad_key",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { jwk: { kty: "oct", k: "AAAA" } } }),
      "badPublicKey"
    ),
    refusal(
      "an algorithm that is not the key's",
      "bad_key",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { alg: "RS256" } }),
      "badSignatureAlgorithm"
    ),
    refusal(
      "no algorithm at all",
      "bad_key",
      ({ kid, next, old }) => innerOf(next, kid, old, { header: { alg: "none" } }),
      "badSignatureAlgorithm"
    ),
    refusal(
      "an unsupported key and algorithm",
      "bad_key",
      ({ kid, next, old }) =>
        innerOf(next, kid, old, { header: { alg: "EdDSA", jwk: { kty: "OKP", crv: "Ed25519", x: "AAAA" } } }),
      "badSignatureAlgorithm"
    ),
    refusal(
      "the signature of the old key",
      "bad_signature",
      ({ kid, next, old }) => innerOf(next, kid, old, { signer: old }),
      "unauthorized",
      401
    ),
    refusal("no payload", "bad_inner_jws", ({ kid, next, old }) => innerOf(next, kid, old, { payload: "" })),
    refusal(
      "a payload without oldKey",
      "bad_inner_jws",
      ({ kid, next, old }) => innerOf(next, kid, old, { payload: { account: kid } })
    ),
    refusal(
      "another account",
      "account_mismatch",
      ({ kid, next, old }) => innerOf(next, kid, old, { payload: { account: `${kid}0`, oldKey: old.jwk } })
    ),
    refusal(
      "another old key",
      "old_key_mismatch",
      ({ kid, next, old }) => innerOf(next, kid, old, { payload: { account: kid, oldKey: next.jwk } })
    ),
    refusal(
      "an old key that is not a key",
      "old_key_mismatch",
      ({ kid, next, old }) => innerOf(next, kid, old, { payload: { account: kid, oldKey: {} } })
    )
  ]
  for (const { inner, name, reason, status, type } of refusals) {
    test(`answers ${name} with ${type} and does not change the key`, () =>
      Effect.gen(function*() {
        const [old, next] = [acmeKey(), acmeKey()]
        const kid = yield* registered(old)
        const answer = yield* change(old, kid, inner({ old, next, kid }))
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [status, `urn:ietf:params:acme:error:${type}`],
          String(answer.body)
        )
        // The client must not look for the fault in its outer JWS.
        assert.match(String(bodyOf(answer).detail), /^(?:inner JWS: [a-z]|The inner |The payload |oldKey )/)
        assert.isString(headerOf(answer, "replay-nonce"))
        const told = records.find(({ event }) => event === "key_change_rejected")
        assert.strictEqual(told?.fields["reason"], reason)
        assert.strictEqual((yield* read(old, kid)).status, 200)
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 0)
      }))
  }

  test("says of an empty payload what the other resources say", () =>
    Effect.gen(function*() {
      const old = acmeKey()
      const kid = yield* registered(old)
      const answer = yield* change(old, kid, "")
      assert.strictEqual(bodyOf(answer).detail, "The payload is empty; this resource requires a JSON object.")
    }))

  test("names in its error the length of an inner signature that is an octet too short", () =>
    Effect.gen(function*() {
      const [old, next] = [acmeKey(), acmeKey()]
      const kid = yield* registered(old)
      const inner: { readonly signature: string } = JSON.parse(innerOf(next, kid, old))
      const signature = Buffer.from(inner.signature, "base64url").subarray(1).toString("base64url")
      const answer = yield* change(old, kid, { ...inner, signature })
      assert.strictEqual(bodyOf(answer).detail, "The inner signature has 63 octets, and one of ES256 has 64.")
    }))

  test("answers a key that already has an account at the profile with 409 and the Location of that account", () =>
    Effect.gen(function*() {
      const [old, taken] = [acmeKey(), acmeKey()]
      const kid = yield* registered(old)
      const owner = yield* registered(taken)
      for (const [next, location] of [[old, kid], [taken, owner]] as const) {
        const answer = yield* change(old, kid, innerOf(next, kid, old))
        assert.deepStrictEqual([answer.status, headerOf(answer, "location")], [409, location])
        assert.strictEqual(bodyOf(answer).type, "urn:ietf:params:acme:error:malformed")
      }
      assert.strictEqual((yield* read(old, kid)).status, 200)
    }))

  test("accepts a key that has an account at another profile", () =>
    Effect.gen(function*() {
      const [old, next] = [acmeKey(), acmeKey()]
      const kid = yield* registered(old)
      const elsewhere = "/profile/other/newAccount"
      const header = { jwk: next.jwk, url: urlOf(elsewhere), nonce: yield* freshNonce }
      const app = yield* surface
      assert.strictEqual((yield* app.handle(posted(elsewhere, signed(next, header, {})))).status, 201)
      assert.strictEqual((yield* change(old, kid, innerOf(next, kid, old))).status, 200)
    }))

  test("succeeds for only one of several simultaneous rollovers", () =>
    Effect.gen(function*() {
      const old = acmeKey()
      const kid = yield* registered(old)
      const nexts = [acmeKey(), acmeKey(), acmeKey(), acmeKey()]
      const fibers = yield* Effect.forEach(nexts, (next) => Effect.forkChild(change(old, kid, innerOf(next, kid, old))))
      const statuses = yield* Effect.forEach(fibers, (fiber) => Effect.map(Fiber.join(fiber), ({ status }) => status))
      assert.strictEqual(statuses.filter((status) => status === 200).length, 1, String(statuses))
      assert.isTrue(statuses.every((status) => status === 200 || status === 400 || status === 401), String(statuses))
      const winner = nexts[statuses.indexOf(200)]
      if (winner !== undefined) assert.strictEqual((yield* read(winner, kid)).status, 200)
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 1)
    }))

  test("commits one of two rollovers that were both verified before either was written", () =>
    Effect.gen(function*() {
      const old = acmeKey()
      const kid = yield* registered(old)
      const driver = database.driver()
      const both = yield* Deferred.make<void>()
      let arrived = 0
      // Neither request writes before both have reached this point.
      const together: Driver = {
        ...driver,
        transact: (body) =>
          Effect.andThen(
            Effect.suspend(() => ++arrived === 2 ? Deferred.succeed(both, undefined) : Deferred.await(both)),
            driver.transact(body)
          )
      }
      const nexts = [acmeKey(), acmeKey()]
      const answers = yield* Effect.provideService(
        Effect.forEach(nexts, (next) => change(old, kid, innerOf(next, kid, old)), { concurrency: 2 }),
        Database,
        together
      )
      assert.strictEqual(arrived, 2)
      assert.sameMembers(answers.map(({ status }) => status), [200, 400])
      const winner = nexts[answers.findIndex(({ status }) => status === 200)] ?? old
      assert.strictEqual((yield* read(winner, kid)).status, 200)
    }))

  test("takes away the old key's access to the account, its orders and its certificates", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const [old, next] = [acmeKey(), acmeKey()]
      const app = yield* surface
      const kid = yield* registered(old)
      const names = { identifiers: [{ type: "dns", value: "a.example" }] }
      const order = headerOf(yield* app.handle(yield* byAccount(old, kid, at("/newOrder"), names)), "location")
      const { issue } = yield* LocalCa.make(settingsIn(freshDirectory()))
      const { chain, notAfter, serial } = yield* issue(issueRequest(["a.example"]))
      yield* sql(
        `UPDATE orders SET status = 'valid', certificate = '${chain}', cert_serial = '${serial}',
           cert_not_after = ${notAfter}`
      )
      assert.strictEqual((yield* change(old, kid, innerOf(next, kid, old))).status, 200)

      const unauthorized = (answer: Answer) =>
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [401, "urn:ietf:params:acme:error:unauthorized"],
          String(answer.body)
        )
      const revokeCert = at("/revokeCert")
      const certificate = { certificate: new X509Certificate(chain).raw.toString("base64url") }
      for (const [to, payload] of [[order.slice(urlOf("").length), undefined], [revokeCert, certificate]] as const) {
        unauthorized(yield* app.handle(yield* byAccount(old, kid, to, payload)))
      }
      const header = { jwk: old.jwk, url: urlOf(revokeCert), nonce: yield* freshNonce }
      unauthorized(yield* app.handle(posted(revokeCert, signed(old, header, certificate))))
      const fresh = yield* registered(old)
      assert.notStrictEqual(fresh, kid)
      unauthorized(yield* app.handle(yield* byAccount(old, fresh, revokeCert, certificate)))
      const list = yield* app.handle(yield* byAccount(old, fresh, `${fresh.slice(urlOf("").length)}/orders`))
      assert.deepStrictEqual(JSON.parse(String(list.body)), { orders: [] })
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 0)
    }))

  const probed: Array<string> = []
  test(
    "lets a validation that was triggered before the rollover go on with the old key",
    () =>
      Effect.gen(function*() {
        probed.length = 0
        const [old, next] = [acmeKey(), acmeKey()]
        const app = yield* surface
        const kid = yield* registered(old)
        const ask = (url: string, payload?: object) =>
          Effect.flatMap(byAccount(old, kid, url.slice(urlOf("").length), payload), app.handle)
        const names = { identifiers: [{ type: "dns", value: "a.example" }] }
        const order = JSON.parse(String((yield* ask(urlOf(at("/newOrder")), names)).body)) as OrderBody
        const shown = JSON.parse(String((yield* ask(order.authorizations[0] ?? "")).body)) as AuthorizationBody
        const [challenge] = shown.challenges
        assert.strictEqual((yield* ask(challenge?.url ?? "", {})).status, 200)
        assert.strictEqual((yield* change(old, kid, innerOf(next, kid, old))).status, 200)
        const config = configOf()
        const { idle, pass } = yield* Runner.make({ ...config.jobs, owner: "host:1:a" }, yield* handlers(config))
        yield* pass
        yield* Effect.orDie(idle)
        assert.deepStrictEqual(probed, [`${challenge?.token}.${old.thumbprint}`])
        assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["ready"])
      }),
    {
      validate: ({ keyAuthorization }) => Effect.sync(() => void probed.push(keyAuthorization))
    }
  )

  test("gives a key that two accounts want at once to only one of them", () =>
    Effect.gen(function*() {
      const [one, two, next] = [acmeKey(), acmeKey(), acmeKey()]
      const kids = [yield* registered(one), yield* registered(two)] as const
      const answers = yield* Effect.all([
        change(one, kids[0], innerOf(next, kids[0], one)),
        change(two, kids[1], innerOf(next, kids[1], two))
      ], { concurrency: "unbounded" })
      assert.sameMembers(answers.map(({ status }) => status), [200, 409])
      const [first, second] = answers.map((answer) => headerOf(answer, "location"))
      assert.strictEqual(first, second)
      assert.strictEqual(new Set(yield* column("SELECT pubkey FROM accounts")).size, 2)
    }))

  const givenUp: ReadonlyArray<
    readonly [name: string, times: number, expected: readonly [number, string | undefined]]
  > = [
    ["replaces the key if another account gives up the new key during the write", 1, [200, undefined]],
    [
      "asks to try again if another account has and gives up the new key twice",
      2,
      [400, "Another account had the new key until now; send the request again."]
    ]
  ]
  for (const [name, times, expected] of givenUp) {
    test(name, () =>
      Effect.gen(function*() {
        const [old, other, next] = [acmeKey(), acmeKey(), acmeKey()]
        const kid = yield* registered(old)
        const otherId = (yield* registered(other)).split("/").at(-1) ?? ""
        const driver = database.driver()
        const give = ({ privateKey }: AcmeKey) => {
          const hex = accountKeyOf(privateKey).spki.toString("hex")
          const value = backend.dialect === "sqlite" ? `X'${hex}'` : `decode('${hex}', 'hex')`
          const id = backend.dialect === "sqlite" ? `X'${otherId.replaceAll("-", "")}'` : `'${otherId}'`
          const given = sql(`UPDATE accounts SET pubkey = ${value} WHERE id = ${id}`)
          return Effect.orDie(Effect.provideService(given, Database, driver))
        }
        let left = times
        const racing: Driver = {
          ...driver,
          transact: (body) =>
            Effect.suspend(() =>
              left-- > 0
                ? Effect.ensuring(Effect.andThen(give(next), driver.transact(body)), give(other))
                : driver.transact(body)
            )
        }
        const answer = yield* Effect.provideService(change(old, kid, innerOf(next, kid, old)), Database, racing)
        assert.isBelow(left, 1)
        assert.deepStrictEqual([answer.status, bodyOf(answer).detail], expected)
        assert.strictEqual((yield* read(times === 1 ? next : old, kid)).status, 200)
      }))
  }

  test("refuses a deactivated account", () =>
    Effect.gen(function*() {
      const [old, next] = [acmeKey(), acmeKey()]
      const kid = yield* registered(old)
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      assert.strictEqual((yield* change(old, kid, innerOf(next, kid, old))).status, 401)
    }))
})
