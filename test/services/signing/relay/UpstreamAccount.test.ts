import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted, Result } from "effect"
import { TestClock } from "effect/testing"
import { createHmac } from "node:crypto"
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../../src/crypto/Entropy.ts"
import { Web } from "../../../../src/engine/net/Web.ts"
import { registerAt } from "../../../../src/operations/operator/Upstream.ts"
import * as Relay from "../../../../src/services/signing/relay/Relay.ts"
import type { ProfileConfig } from "../../../../src/settings/AppConfig.ts"
import { rsaKey } from "../../../crypto/Pki.ts"
import { configOf, eventsOf } from "../../../support/Graph.ts"
import { noUpdates, refusal, relayOf, relaySettings } from "../../../support/ScriptedRelay.ts"
import { ca, directory, postsOf, upstreamWith } from "../../../support/ScriptedUpstream.ts"

/* Tests the relay's own account at the upstream (docs/configure/signers.md, "An upstream ACME CA"). */

const objectOf = (text: unknown): { readonly [member: string]: unknown } =>
  JSON.parse(Buffer.from(String(text), "base64url").toString()) as { readonly [member: string]: unknown }

describe("the account of a relay", () => {
  for (const hmacKey of ["-_8", "-_8=", "+/8="]) {
    it.effect(`is made at the first start with contacts, terms and credential (${hmacKey}), and stored next to its key`, () =>
      Effect.gen(function*() {
        const given = relaySettings({
          contact: ["mailto:pki@example.org"],
          eab: { kid: "kid-1", hmac_key: Redacted.make(hmacKey) }
        })
        const meta = { meta: { termsOfService: `${ca}/terms` } }
        const { asked, made, records } = yield* relayOf({
          "/directory": [{ json: { ...directory, ...meta } }],
          "/account": [refusal("accountDoesNotExist"), { status: 201, json: {}, headers: { location: `${ca}/acct/1` } }]
        }, given)
        assert.strictEqual(made._tag, "Success")
        assert.deepStrictEqual(postsOf(asked), ["/account", "/account"], "whether there is one, and then for one")
        assert.notInclude(eventsOf(records), "upstream_request_failed")
        const { payload, protected: header } = JSON.parse(String(asked.at(-1)?.body)) as {
          readonly [name: string]: string
        }
        const { externalAccountBinding, ...sent } = objectOf(payload)
        assert.deepStrictEqual(sent, { contact: ["mailto:pki@example.org"], termsOfServiceAgreed: true })
        const binding = externalAccountBinding as { readonly [name: string]: string }
        assert.deepStrictEqual(objectOf(binding["protected"]), { alg: "HS256", kid: "kid-1", url: `${ca}/account` })
        assert.deepStrictEqual(objectOf(binding["payload"]), objectOf(header)["jwk"])
        const mac = createHmac("sha256", Buffer.from("fbff", "hex")).update(
          `${binding["protected"]}.${binding["payload"]}`
        )
        assert.strictEqual(binding["signature"], mac.digest("base64url"))
        assert.strictEqual(readFileSync(`${given.account_key_path}.kid`, "utf8"), `${ca}/acct/1\n`)
        for (const name of ["", ".kid"]) assert.strictEqual(statSync(given.account_key_path + name).mode & 0o777, 0o600)
        assert.include(eventsOf(records), "upstream_registered")
        const again = yield* relayOf({}, given)
        assert.deepStrictEqual([again.made._tag, again.asked], ["Success", []])
        assert.include(eventsOf(again.records), "upstream_account_reused")
      }))
  }

  it.effect("causes an error that names the keys and how to use another credential if its credential was refused", () =>
    Effect.gen(function*() {
      for (const type of ["unauthorized", "malformed", "externalAccountRequired"]) {
        const given = relaySettings({ eab: { kid: "kid-1", hmac_key: Redacted.make("-_8") } })
        const { made } = yield* relayOf({ "/account": [refusal("accountDoesNotExist"), refusal(type)] }, given)
        const said = Result.isFailure(made) ? made.failure.detail : "made"
        assert.match(
          said,
          /credential kid-1 of signer\.relay\.eab: .*hmac_key .*`acme-svc upstream register --profile web --eab-kid KID`\.$/
        )
        assert.notInclude(said, "-_8")
      }
    }))

  it.effect("causes an error without the text of a proxy's page, and only the log has the beginning of the page", () =>
    Effect.gen(function*() {
      const style = `<style>${"x".repeat(300)}</style>`
      const page = `<!DOCTYPE html>\n<html>${style}<title>Blocked</title>\n<p>by \u001b[31mpolicy</p>${"y".repeat(500)}`
      for (
        const paths of [{ "/directory": [{ status: 403, text: page }] }, { "/account": [{ status: 407, text: page }] }]
      ) {
        const { made, records } = yield* relayOf(paths, relaySettings())
        assert.notInclude(Result.isFailure(made) ? made.failure.detail : "made", "Blocked")
        const previews = records.filter(({ event }) => event === "upstream_request_failed").map(({ fields }) =>
          String(fields["body_preview"])
        )
        assert.isNotEmpty(previews)
        for (const preview of previews) {
          assert.match(preview, /^Blocked by \[31mpolicy y+$/)
          assert.lengthOf(preview, 200)
        }
      }
    }))

  it.effect("prevents the startup if the upstream does not make the account, with an error that names the key", () =>
    Effect.gen(function*() {
      for (
        const [paths, says] of [
          [
            { "/account": [refusal("externalAccountRequired")] },
            /^signer\.relay\.directory_url: .* no account: no; the upstream requires a credential: .*`acme-svc upstream register --profile web .*signer\.relay\.eab\.$/
          ],
          [
            { "/account": [{ status: 503 }] },
            /^signer\.relay\.directory_url: .*: answers 503 without a problem document\.$/
          ],
          [{ "/account": [{ status: 201, json: {} }] }, /^signer\.relay\.directory_url: .*does not tell its URL\.$/],
          [{ "/directory": [{ status: 404 }] }, /^signer\.relay\.directory_url: .*the directory answers 404\.$/]
        ] as const
      ) {
        const given = relaySettings()
        const { made, records } = yield* relayOf(paths, given)
        assert.match(Result.isFailure(made) ? made.failure.detail : "made", says)
        assert.isTrue(
          records.every(({ fields }) => fields["body_preview"] === undefined),
          "an empty body, or a problem"
        )
        assert.isFalse(existsSync(`${given.account_key_path}.kid`))
      }
    }))

  it.effect("replaces a blank .kid file, and the log warns if others may read the key", () =>
    Effect.gen(function*() {
      const given = relaySettings()
      yield* relayOf({}, given)
      writeFileSync(`${given.account_key_path}.kid`, "\n")
      chmodSync(given.account_key_path, 0o640)
      const { made, records } = yield* relayOf({}, given)
      assert.strictEqual(made._tag, "Success")
      assert.strictEqual(readFileSync(`${given.account_key_path}.kid`, "utf8"), `${ca}/acct/1\n`)
      assert.include(eventsOf(records), "upstream_account_key_permissive")
    }))

  it.effect("is not made if the upstream never answers", () =>
    Effect.gen(function*() {
      const sent = yield* Deferred.make<void>()
      const silent = Web.layerScripted(() => Effect.andThen(Deferred.succeed(sent, undefined), Effect.never))
      const world = Layer.mergeAll(silent, noUpdates, Entropy.layerSeeded("relay"))
      const starting = yield* Effect.forkChild(Effect.result(Effect.provide(Relay.make("web", relaySettings()), world)))
      yield* Deferred.await(sent)
      yield* TestClock.adjust("10 minutes")
      const made = yield* Fiber.join(starting)
      assert.match(Result.isFailure(made) ? made.failure.detail : "made", /no answer within \d+ ms/)
    }))

  it.effect("is found by its key at the next start if the answer to the registration was lost", () =>
    Effect.gen(function*() {
      const given = relaySettings()
      const first = yield* relayOf({ "/account": [refusal("accountDoesNotExist"), { lost: true }] }, given)
      assert.deepInclude(Result.isFailure(first.made) ? first.made.failure : {}, { mayPass: true })
      const key = readFileSync(given.account_key_path, "utf8")
      const { asked, made } = yield* relayOf({}, given)
      assert.strictEqual(made._tag, "Success")
      assert.deepStrictEqual(postsOf(asked), ["/account"], "it is looked for, and there")
      assert.strictEqual(readFileSync(given.account_key_path, "utf8"), key)
      assert.strictEqual(readFileSync(`${given.account_key_path}.kid`, "utf8"), `${ca}/acct/1\n`)
    }))

  describe("that the upstream has lost", () => {
    const lost = refusal("accountDoesNotExist", 400)
    const profile = (relay: ReturnType<typeof relaySettings>) => ({
      name: "web",
      signer: { ...configOf().profiles[0]?.signer, backend: "relay", relay } as ProfileConfig["signer"]
    })
    const kidOf = (given: ReturnType<typeof relaySettings>) =>
      readFileSync(`${given.account_key_path}.kid`, "utf8").trim()

    it.effect("is registered again with its key by the command, once", () =>
      Effect.gen(function*() {
        const given = relaySettings({ contact: ["mailto:pki@example.org"] })
        yield* relayOf({}, given)
        const key = readFileSync(given.account_key_path, "utf8")
        const again = upstreamWith({
          "/acct/1": [lost],
          "/account": [lost, { status: 201, json: {}, headers: { location: `${ca}/acct/2` } }],
          "/acct/2": [{ json: { status: "valid" } }]
        })
        const world = Layer.merge(again.web, Entropy.layerSeeded("again"))
        const register = Effect.provide(registerAt(profile(given), undefined), world)
        assert.deepStrictEqual(yield* register, { accountUrl: `${ca}/acct/2`, was: "lost" })
        assert.strictEqual(kidOf(given), `${ca}/acct/2`)
        assert.strictEqual(statSync(`${given.account_key_path}.kid`).mode & 0o777, 0o600)
        assert.strictEqual(readFileSync(given.account_key_path, "utf8"), key)
        assert.deepStrictEqual(yield* register, { accountUrl: `${ca}/acct/2`, was: "known" })
      }))

    it.effect("is not changed if its key cannot be registered again, and the error names the files to move away", () =>
      Effect.gen(function*() {
        const given = relaySettings()
        yield* relayOf({}, given)
        const refusing = [
          { "/acct/1": [lost], "/account": [lost, refusal("externalAccountRequired")] },
          // The upstream has an account with this key, but refuses the account because it was deactivated.
          { "/acct/1": [refusal("unauthorized")], "/account": [{ json: {}, headers: { location: `${ca}/acct/1` } }] }
        ]
        for (const paths of refusing) {
          const world = Layer.merge(upstreamWith(paths).web, Entropy.layerSeeded("again"))
          const error = yield* Effect.flip(Effect.provide(registerAt(profile(given), undefined), world))
          assert.deepInclude(error, {
            _tag: "AccountRefused",
            url: `${ca}/acct/1`,
            keyPath: given.account_key_path,
            kidPath: `${given.account_key_path}.kid`
          })
          assert.strictEqual(kidOf(given), `${ca}/acct/1`)
        }
      }))
  })

  it.effect("is refused without its key or with a key of another type, and neither file is overwritten", () =>
    Effect.gen(function*() {
      const gone = relaySettings()
      writeFileSync(`${gone.account_key_path}.kid`, `${ca}/acct/1\n`)
      const other = relaySettings()
      writeFileSync(other.account_key_path, rsaKey.export({ type: "pkcs8", format: "pem" }))
      const none = relaySettings()
      writeFileSync(none.account_key_path, "no key")
      for (const given of [gone, other, none]) {
        const directory = dirname(given.account_key_path)
        const files = () => readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")])
        const before = files()
        const { asked, made } = yield* relayOf({}, given)
        assert.match(Result.isFailure(made) ? made.failure.detail : "made", /^signer\.relay\.account_key_path: /)
        assert.deepStrictEqual(asked, [])
        assert.deepStrictEqual(files(), before)
      }
    }))
})
