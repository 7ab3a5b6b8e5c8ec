import { Effect } from "effect"
import { calculateJwkThumbprint } from "jose"
import type { KeyObject } from "node:crypto"
import { generateKeyPairSync } from "node:crypto"
import { assert, describe } from "vitest"
import type { AcmeKey } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count } from "../../support/Graph.ts"
import type { Asked } from "../../support/Handle.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The setting `account.algorithms`, which says for each profile which keys accounts may have. */

const kinds: ReadonlyArray<readonly [alg: AcmeKey["alg"], make: () => KeyObject]> = [
  ["ES256", () => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey],
  ["RS256", () => generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey],
  ["ES384", () => generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey],
  ["ES512", () => generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey],
  ["EdDSA", () => generateKeyPairSync("ed25519").privateKey]
]

/** Profile `other` accepts all of them, and profile `default` accepts those that a profile accepts by default. */
const config = configOf(`[profiles.other.account]
algorithms = [${kinds.map(([alg]) => `"${alg}"`).join(", ")}]
`)
const surface = surfaceOf(config)
const there = "/profile/other"

describe.each(databases)("keys of accounts, on $name", (backend) => {
  const { test } = useWorld(backend)

  const registering = <R>(app: Asked<R>, key: AcmeKey, target = `${there}/newAccount`) =>
    Effect.flatMap(
      freshNonce,
      (nonce) => app.handle(posted(target, signed(key, { jwk: key.jwk, url: urlOf(target), nonce }, {})))
    )

  for (const [alg, make] of kinds) {
    test(`of ${alg} sign requests and can be rolled over if the profile accepts them`, () =>
      Effect.gen(function*() {
        const app = yield* surface
        const key = acmeKey(make())
        assert.strictEqual(key.alg, alg)
        assert.strictEqual(key.thumbprint, yield* Effect.promise(() => calculateJwkThumbprint(key.jwk)))
        const registered = yield* registering(app, key)
        assert.strictEqual(registered.status, 201, String(registered.body))
        const kid = headerOf(registered, "location")
        assert.strictEqual(headerOf(yield* registering(app, key), "location"), kid)
        const order = { identifiers: [{ type: "dns", value: "a.example" }] }
        const ask = (by: AcmeKey) =>
          Effect.flatMap(byAccount(by, kid, `${there}/newOrder`, order), (request) => app.handle(request))
        assert.strictEqual((yield* ask(key)).status, 201)
        assert.strictEqual((yield* ask({ ...key, privateKey: make() })).status, 401)
        for (const [, other] of kinds) {
          const [before, next] = [acmeKey(make()), acmeKey(other())]
          const of = headerOf(yield* registering(app, before), "location")
          const target = `${there}/keyChange`
          const inner = signed(next, { jwk: next.jwk, url: urlOf(target) }, { account: of, oldKey: before.jwk })
          const changed = yield* Effect.flatMap(byAccount(before, of, target, inner), (request) => app.handle(request))
          assert.strictEqual(changed.status, 200, String(changed.body))
          assert.strictEqual(headerOf(yield* registering(app, next), "location"), of)
        }
      }))
  }

  test("on the curve Ed25519 may sign with the alg that RFC 9864 names after the curve, where EdDSA is accepted", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const alg = "Ed25519"
      const key = acmeKey(generateKeyPairSync("ed25519").privateKey)
      const ask = (by: AcmeKey, target: string, member: object, payload: object) =>
        Effect.flatMap(
          freshNonce,
          (nonce) => app.handle(posted(target, signed(by, { alg, ...member, url: urlOf(target), nonce }, payload)))
        )
      const registered = yield* ask(key, `${there}/newAccount`, { jwk: key.jwk }, {})
      assert.strictEqual(registered.status, 201, String(registered.body))
      const kid = headerOf(registered, "location")
      const order = { identifiers: [{ type: "dns", value: "a.example" }] }
      assert.strictEqual((yield* ask(key, `${there}/newOrder`, { kid }, order)).status, 201)
      const next = acmeKey(generateKeyPairSync("ed25519").privateKey)
      const target = `${there}/keyChange`
      const inner = signed(next, { alg, jwk: next.jwk, url: urlOf(target) }, { account: kid, oldKey: key.jwk })
      const changed = yield* ask(key, target, { kid }, JSON.parse(inner) as object)
      assert.strictEqual(changed.status, 200, String(changed.body))
      assert.strictEqual(headerOf(yield* registering(app, next), "location"), kid, "the same key as with EdDSA")

      const ec = acmeKey()
      const wrong = bodyOf(yield* ask(ec, `${there}/newAccount`, { jwk: ec.jwk }, {}))
      assert.strictEqual(wrong.type, "urn:ietf:params:acme:error:badSignatureAlgorithm")
      const refused = bodyOf(yield* ask(key, at("/newAccount"), { jwk: key.jwk }, {}))
      assert.deepStrictEqual(refused.algorithms, ["ES256", "RS256"])
    }))

  test("for algorithms other than ES256 and RS256 are refused by default at newAccount and keyChange", () =>
    Effect.gen(function*() {
      const app = yield* surface
      for (const [alg, make] of kinds.slice(2)) {
        const key = acmeKey(make())
        const refused = bodyOf(yield* registering(app, key, at("/newAccount")))
        assert.strictEqual(refused.type, "urn:ietf:params:acme:error:badSignatureAlgorithm", alg)
        assert.deepStrictEqual(refused.algorithms, ["ES256", "RS256"])
        const old = acmeKey()
        const kid = headerOf(yield* registering(app, old, at("/newAccount")), "location")
        const inner = signed(key, { jwk: key.jwk, url: urlOf(at("/keyChange")) }, { account: kid, oldKey: old.jwk })
        const unchanged = yield* Effect.flatMap(
          byAccount(old, kid, at("/keyChange"), inner),
          (request) => app.handle(request)
        )
        assert.deepStrictEqual(bodyOf(unchanged).algorithms, ["ES256", "RS256"])
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), kinds.length - 2)
    }))

  test("are refused with badSignatureAlgorithm if the profile no longer accepts their algorithm", () =>
    Effect.gen(function*() {
      const [, , , , [, ed] = []] = kinds
      const key = acmeKey(ed?.())
      const app = yield* surface
      const kid = headerOf(yield* registering(app, key), "location")
      const stricter = yield* surfaceOf(configOf())
      const refused = bodyOf(yield* Effect.flatMap(byAccount(key, kid, kid.slice(urlOf("").length)), stricter.handle))
      assert.strictEqual(refused.type, "urn:ietf:params:acme:error:badSignatureAlgorithm")
      const x = String(key.jwk.x)
      for (
        const jwk of [{ ...key.jwk, crv: "Ed448" }, { ...key.jwk, x: x.slice(2) }, { ...key.jwk, x: `${x}=` }, {
          ...key.jwk,
          x: 7
        }]
      ) {
        const bad = { ...key, jwk } as AcmeKey
        assert.strictEqual(bodyOf(yield* registering(app, bad)).type, "urn:ietf:params:acme:error:badPublicKey")
      }
    }))
})
