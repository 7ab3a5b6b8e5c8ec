import { it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { flattenedVerify, importJWK } from "jose"
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { assert, describe } from "vitest"
import { Entropy } from "../../../../src/crypto/Entropy.ts"
import { newRequestKey, readRequestKey } from "../../../../src/crypto/jose/RequestKey.ts"
import { changeKey, keyInForce } from "../../../../src/services/signing/relay/UpstreamKey.ts"
import type { Paths } from "../../../support/ScriptedRelay.ts"
import { refusal, relayOf, relaySettings } from "../../../support/ScriptedRelay.ts"
import { ca, directory, payloadAt, postsOf, upstreamWith } from "../../../support/ScriptedUpstream.ts"

/* Tests the roll-over of the key of a relay's account (RFC 8555 section 7.3.5). */

interface Jws {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

const changing = { "/directory": [{ json: { ...directory, keyChange: `${ca}/change` } }] }
const known = { "/account": [{ json: {}, headers: { location: `${ca}/acct/1` } }] }
const unknown = { "/account": [refusal("accountDoesNotExist", 400)] }

/** Registers an account, and gives access to the contents of its files. */
const registered = Effect.gen(function*() {
  const settings = relaySettings()
  yield* relayOf({}, settings)
  const keyPath = settings.account_key_path
  const fileOf = (path: string) => existsSync(path) ? readFileSync(path, "utf8") : undefined
  const place = { directoryUrl: `${ca}/directory`, keyPath, profile: "web" }
  const run = <A, E>(paths: Paths, effect: Effect.Effect<A, E, Effect.Services<ReturnType<typeof keyInForce>>>) =>
    Effect.gen(function*() {
      const { asked, web } = upstreamWith({ ...changing, ...paths })
      const ended = yield* Effect.result(Effect.provide(effect, Layer.merge(web, Entropy.layerSeeded("key"))))
      return { asked, ended }
    })
  return {
    settings,
    keyPath,
    key: () => fileOf(keyPath),
    next: () => fileOf(`${keyPath}.next`),
    roll: (paths: Paths) =>
      run(paths, Effect.flatMap(keyInForce(place), (key) => changeKey(place, `${ca}/acct/1`, key))),
    find: (paths: Paths) => run(paths, keyInForce(place))
  }
})

const thumbprintOf = (pem = "") => Effect.map(Effect.orDie(readRequestKey(pem)), ({ thumbprint }) => thumbprint)

describe("the roll-over of the key of a relay's account", () => {
  it.effect("is signed with both keys, and the new key replaces the old key when the upstream knows the new key", () =>
    Effect.gen(function*() {
      const { key, keyPath, next, roll } = yield* registered
      const before = key()
      const { asked, ended } = yield* roll({ "/change": [{ json: {} }], ...known })
      assert.strictEqual(Result.getOrThrow(ended).thumbprint, yield* thumbprintOf(key()))
      assert.notStrictEqual(key(), before)
      assert.isUndefined(next())
      assert.strictEqual(statSync(keyPath).mode & 0o777, 0o600)
      assert.deepStrictEqual(postsOf(asked), ["/change", "/account"])
      const inner = payloadAt(asked, "/change") as Jws
      const header = JSON.parse(Buffer.from(inner.protected, "base64url").toString()) as {
        readonly jwk: object
        readonly url: string
      }
      const verified = yield* Effect.promise(async () => flattenedVerify(inner, await importJWK(header.jwk, "ES256")))
      const { jwk: oldKey } = yield* Effect.orDie(readRequestKey(before ?? ""))
      assert.deepStrictEqual(Object.keys(header).sort(), ["alg", "jwk", "url"])
      assert.deepInclude(header, { url: `${ca}/change`, jwk: Result.getOrThrow(ended).jwk })
      assert.deepStrictEqual(JSON.parse(Buffer.from(verified.payload).toString()), {
        account: `${ca}/acct/1`,
        oldKey
      })
    }))

  for (const [what, arrived] of [["arrived", true], ["did not arrive", false]] as const) {
    it.effect(`keeps both keys if its answer was lost, and the next start uses the key that is in force (the request ${what})`, () =>
      Effect.gen(function*() {
        const { find, key, next, roll, settings } = yield* registered
        const [lost, before] = [yield* roll({ "/change": [{ lost: true }] }), key()]
        assert.isTrue(Result.isFailure(lost.ended))
        const pending = next()
        assert.isDefined(pending)
        const away = yield* find({ "/account": [{ status: 503 }] })
        assert.deepInclude(Result.isFailure(away.ended) ? away.ended.failure : {}, {
          _tag: "AccountUnusable",
          mayPass: true,
          isOutside: true
        })
        assert.deepStrictEqual([key(), next()], [before, pending])
        const { made } = yield* relayOf({ ...changing, ...arrived ? known : unknown }, settings)
        assert.isTrue(Result.isSuccess(made))
        assert.deepStrictEqual([key(), next()], arrived ? [pending, undefined] : [before, pending])
        if (arrived) return
        const again = yield* roll({
          "/change": [{ json: {} }],
          "/account": [refusal("accountDoesNotExist"), known["/account"][0] ?? {}]
        })
        assert.isTrue(Result.isSuccess(again.ended))
        assert.deepStrictEqual([key(), next()], [pending, undefined], "with the same key")
      }))
  }

  it.effect("keeps the old key if the upstream refuses the roll-over or offers no keyChange", () =>
    Effect.gen(function*() {
      const { key, next, roll } = yield* registered
      const before = key()
      for (
        const paths of [{ "/change": [refusal("malformed")], ...unknown }, { "/directory": [{ json: directory }] }]
      ) {
        const { ended } = yield* roll(paths)
        assert.strictEqual(Result.isFailure(ended) ? ended.failure._tag : "", "UpstreamRefused")
        assert.deepStrictEqual([key(), next()], [before, undefined])
      }
    }))

  it.effect("by another process is noticed when a request is refused, and the request is repeated with the new key", () =>
    Effect.gen(function*() {
      const { keyPath, settings } = yield* registered
      const { asked, made, world } = yield* relayOf({ "/revoke": [refusal("malformed"), {}] }, settings)
      const content = yield* newRequestKey
      writeFileSync(keyPath, content)
      const { revoke } = Result.getOrThrow(made)
      yield* Effect.provide(revoke(Buffer.from("leaf"), undefined), world)
      const { jwk } = yield* Effect.orDie(readRequestKey(content))
      const bodies = asked.filter(({ url }) => url.pathname === "/revoke").map(({ body }) =>
        JSON.parse(String(body)) as Jws
      )
      assert.lengthOf(bodies, 2)
      yield* Effect.promise(async () => flattenedVerify(bodies[1] as Jws, await importJWK({ ...jwk }, "ES256")))
      const refused = yield* relayOf({ "/revoke": [refusal("malformed")] }, settings)
      const failed = yield* Effect.result(
        Effect.provide(Result.getOrThrow(refused.made).revoke(Buffer.from("leaf"), undefined), refused.world)
      )
      assert.isTrue(Result.isFailure(failed))
      assert.deepStrictEqual(postsOf(refused.asked), ["/revoke"], "with the one key there is, once")
    }))
})
