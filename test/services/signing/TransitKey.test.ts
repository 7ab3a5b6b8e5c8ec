import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe } from "vitest"
import type { Entropy } from "../../../src/crypto/Entropy.ts"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import { Web } from "../../../src/engine/net/Web.ts"
import { makeAuthority } from "../../../src/operations/operator/authority/NewAuthority.ts"
import { findCaKey } from "../../../src/services/signing/CaPlace.ts"
import type { LocalCaSettings } from "../../../src/services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import { isRemote, tryKey } from "../../../src/services/signing/RemoteCa.ts"
import type { DirectSigner } from "../../../src/services/signing/Signer.ts"
import { signTrial } from "../../../src/services/signing/TrialSignature.ts"
import { openssl } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { gateComesBackForTokens } from "../../support/Installed.ts"
import { foreignCa, issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import type { Bao } from "../../support/OpenBao.ts"
import { hasBao, startBao } from "../../support/OpenBao.ts"
import { useTests } from "../../support/UseTests.ts"

/* A local CA whose key is in the Transit engine of a server of OpenBao. */

const { records, test } = useTests({
  startsAt: madeAt,
  layer: () => Layer.provide(Web.layer("1"), Resolver.layerStatic({}))
})

let bao: Bao | undefined
beforeAll(async () => {
  if (hasBao()) bao = await startBao()
}, 60_000)
afterAll(() => bao?.stop())

const transitTest = (name: string, body: (bao: Bao) => Effect.Effect<void, unknown, Entropy | Web>) =>
  test(name, () => bao === undefined ? Effect.sync(gateComesBackForTokens) : body(bao))

const call = (bao: Bao, ...words: Parameters<Bao["call"]>) => Effect.promise(() => bao.call(...words))

let mounts = 0

/** What the token of the service may do. */
const rights = (mount: string) =>
  `path "${mount}/keys/ca" { capabilities = ["read"] }
   path "${mount}/sign/ca" { capabilities = ["update"] }`

/** Mounts an engine with a key, and returns settings that name the key. There is no certificate yet. */
const keyIn = (bao: Bao, type = "ecdsa-p256", more: Partial<LocalCaSettings["transit"]> = {}) =>
  Effect.gen(function*() {
    const directory = freshDirectory()
    const mount = `engines/t${++mounts}`
    yield* call(bao, "POST", `sys/mounts/${mount}`, { type: "transit" })
    yield* call(bao, "POST", `${mount}/keys/ca`, { type })
    const token_file = join(directory, "token")
    writeFileSync(token_file, `${yield* Effect.promise(() => bao.tokenFor(rights(mount)))}\n`, { mode: 0o600 })
    const transit = {
      address: bao.address,
      mount,
      namespace: "",
      key: "ca",
      key_version: 0,
      token_file,
      ca_path: bao.caPath,
      ...more
    }
    return { directory, ...settingsIn(directory, { key_source: "transit", transit }) }
  })

/** Makes a CA below a root in a folder. */
const caFor = <S extends LocalCaSettings & { readonly directory: string }>(settings: S) =>
  Effect.as(
    makeAuthority(
      settings,
      {
        folder: join(settings.directory, "root"),
        rootName: undefined,
        rootDays: 3650,
        days: 365,
        keyType: undefined,
        permitted: []
      },
      "passphrase",
      () => ""
    ),
    settings
  )

const caIn = (bao: Bao, type?: string) => Effect.flatMap(keyIn(bao, type), caFor)

const contentOf = (file: string) => readFileSync(file, "utf8").trim()

const names = ["a.example.com"]
const issueOne = (signer: DirectSigner) => signer.issue(issueRequest(names))
const troubleOf = (signer: DirectSigner) =>
  Effect.map(signer.trouble ?? Effect.succeed(undefined), (text) => text ?? "")

/** OpenSSL verifies a chain with the CA of the settings and its root. */
const verify = (
  { cert_path, directory }: { readonly cert_path: string; readonly directory: string },
  chain: string
) => {
  const leaf = join(directory, "leaf.pem")
  writeFileSync(leaf, new X509Certificate(chain).toString())
  assert.include(openssl(["verify", "-attime", String(madeAt + 60), "-CAfile", cert_path, leaf]).toString(), "OK")
}

const refusalOf = (settings: LocalCaSettings) =>
  Effect.map(Effect.flip(LocalCa.make(settings)), (error) => {
    assert.isFalse(error.isOutside ?? false)
    return error.detail
  })

describe("a CA with a key in the Transit engine", () => {
  for (const type of ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-3072", "rsa-4096"]) {
    transitTest(`signs leaves and lists with ${type}, which OpenSSL verifies`, (bao) =>
      Effect.gen(function*() {
        const settings = yield* caIn(bao, type)
        yield* LocalCa.check(settings)
        if (isRemote(settings)) yield* tryKey(settings)
        const signer = yield* LocalCa.make(settings)
        const all = yield* Effect.all(Array.from({ length: 12 }, () => issueOne(signer)), { concurrency: 12 })
        for (const { chain } of all) verify(settings, chain)
        const [crl] = signer.crls ?? []
        const fields = { number: 1, thisUpdate: madeAt, nextUpdate: madeAt + 60, entries: [] }
        const list = yield* crl?.sign(fields) ?? Effect.die("no list")
        const file = join(settings.directory, "list.der")
        writeFileSync(file, list)
        openssl(["crl", "-inform", "DER", "-in", file, "-CAfile", settings.cert_path, "-noout"])
        assert.strictEqual((yield* signTrial(settings)).ca.issuerId, yield* signer.issuing ?? Effect.succeed(""))
        assert.deepStrictEqual(eventsOf(records).filter((event) => event === "local_ca_key_permissive"), [])
      }))
  }

  transitTest("finds its key in a namespace", (bao) =>
    Effect.gen(function*() {
      const namespace = "team"
      yield* call(bao, "POST", `sys/namespaces/${namespace}`, {})
      yield* call(bao, "POST", "sys/mounts/inner", { type: "transit" }, { namespace })
      yield* call(bao, "POST", "inner/keys/ca", { type: "ecdsa-p384" }, { namespace })
      const { directory, ...settings } = yield* keyIn(bao)
      writeFileSync(settings.transit.token_file, bao.rootToken)
      const own = { ...settings, directory, transit: { ...settings.transit, mount: "inner", namespace } }
      yield* caFor(own)
      assert.strictEqual((yield* signTrial(own)).ca.keyType, "ecdsa-p384")
    }))

  transitTest(
    "is refused if there is no such key, no such version, or a key that signs nothing",
    (bao) =>
      Effect.gen(function*() {
        const settings = yield* caIn(bao)
        const { mount } = settings.transit
        writeFileSync(settings.transit.token_file, bao.rootToken)
        yield* call(bao, "POST", `${mount}/keys/aes`, { type: "aes256-gcm96" })
        yield* call(bao, "POST", `${mount}/keys/other`, { type: "ecdsa-p256" })
        const refusal = (more: object) => refusalOf({ ...settings, transit: { ...settings.transit, ...more } })
        assert.include(yield* refusal({ key: "absent" }), `there is no key ${mount}/absent; the server answers 404`)
        assert.include(
          yield* refusal({ mount: "absent" }),
          "there is no key absent/ca; the server answers 404: no handler"
        )
        assert.include(yield* refusal({ key_version: 7 }), `the key ${mount}/ca has no version 7`)
        assert.include(yield* refusal({ key: "aes" }), "is of the type aes256-gcm96, which signs nothing")
        assert.include(yield* refusal({ key: "other" }), "no version of the key matches the CA certificate")
        const another = yield* caIn(bao)
        const mixed = { ...settings, cert_path: another.cert_path }
        assert.include(yield* refusalOf(mixed), "no version of the key matches the CA certificate")
      })
  )

  transitTest("signs with the version of its certificate after the key was rotated", (bao) =>
    Effect.gen(function*() {
      const settings = yield* caIn(bao)
      const { mount } = settings.transit
      const signer = yield* LocalCa.make(settings)
      yield* call(bao, "POST", `${mount}/keys/ca/rotate`)
      verify(settings, (yield* issueOne(signer)).chain)
      const again = yield* LocalCa.make(settings)
      verify(settings, (yield* issueOne(again)).chain)
      const newer = { ...settings, transit: { ...settings.transit, key_version: 2 } }
      assert.include(yield* refusalOf(newer), "version 2 of the key and the CA certificate do not match")
      // A request is for the key of the certificate, unless another version is named.
      const [known, other] = [yield* findCaKey(settings), yield* findCaKey(newer)]
      const { publicKey } = (yield* signTrial(settings)).ca
      assert.deepEqual(known?.spki, publicKey.export({ type: "spki", format: "der" }))
      assert.notDeepEqual(known?.spki, other?.spki)

      yield* call(bao, "POST", `${mount}/keys/ca/config`, { min_encryption_version: 2, min_decryption_version: 2 })
      const failed = yield* Effect.flip(issueOne(signer))
      assert.deepInclude(failed, { _tag: "SigningFailed", cause: "signer_failed" })
      assert.match(yield* troubleOf(signer), /^signer\.local_ca\.transit: no version of the key matches/)
      yield* call(bao, "POST", `${mount}/keys/ca/config`, { min_encryption_version: 1, min_decryption_version: 1 })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* troubleOf(signer), "")
      verify(settings, (yield* issueOne(signer)).chain)
    }))

  transitTest(
    "is in trouble if another key got the name, and uses none of its signatures",
    (bao) =>
      Effect.gen(function*() {
        const settings = yield* caIn(bao)
        const { mount } = settings.transit
        const signer = yield* LocalCa.make(settings)
        yield* call(bao, "POST", `${mount}/keys/ca/config`, { deletion_allowed: true })
        yield* call(bao, "DELETE", `${mount}/keys/ca`)
        yield* call(bao, "POST", `${mount}/keys/ca`, { type: "ecdsa-p256" })
        assert.include(JSON.stringify(yield* Effect.flip(issueOne(signer))), "does not fit the CA certificate")
        assert.include(yield* troubleOf(signer), "no version of the key matches the CA certificate")
      })
  )

  transitTest("reads a new token at once after the old one was revoked", (bao) =>
    Effect.gen(function*() {
      const settings = yield* caIn(bao)
      const { mount, token_file } = settings.transit
      const signer = yield* LocalCa.make(settings)
      const token = yield* Effect.promise(() => bao.tokenFor(rights(mount)))
      yield* call(bao, "POST", "auth/token/revoke", { token: contentOf(token_file) })
      writeFileSync(token_file, token)
      verify(settings, (yield* issueOne(signer)).chain)
      assert.strictEqual(yield* troubleOf(signer), "")

      yield* call(bao, "POST", "auth/token/revoke", { token })
      const failed = yield* Effect.flip(issueOne(signer))
      assert.deepInclude(failed, { _tag: "SigningFailed", cause: "signer_failed" })
      const trouble = yield* troubleOf(signer)
      assert.include(
        trouble,
        `the server answers 403: permission denied; the token in ${token_file} does not permit this`
      )
      assert.notInclude(JSON.stringify([records, failed, trouble]), token)
      writeFileSync(token_file, yield* Effect.promise(() => bao.tokenFor(rights(mount))))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* troubleOf(signer), "")
      verify(settings, (yield* issueOne(signer)).chain)
    }))

  transitTest("is in trouble while its token may read the key but not sign", (bao) =>
    Effect.gen(function*() {
      const settings = yield* caIn(bao)
      const { mount, token_file } = settings.transit
      const reading = `path "${mount}/keys/ca" { capabilities = ["read"] }`
      const signer = yield* LocalCa.make(settings)
      yield* call(bao, "POST", "auth/token/revoke", { token: contentOf(token_file) })
      writeFileSync(token_file, yield* Effect.promise(() => bao.tokenFor(reading)))
      yield* Effect.flip(issueOne(signer))
      for (const wait of ["1 second", "2 seconds", "4 seconds"] as const) {
        assert.include(yield* troubleOf(signer), "the server answers 403")
        yield* TestClock.adjust(wait)
      }
      writeFileSync(token_file, yield* Effect.promise(() => bao.tokenFor(rights(mount))))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* troubleOf(signer), "")
    }))

  transitTest(
    "is in trouble while the server is sealed, even in the middle of signatures, and signs afterwards",
    (bao) =>
      Effect.gen(function*() {
        const settings = yield* caIn(bao)
        const signer = yield* LocalCa.make(settings)
        const [ended] = yield* Effect.all([
          Effect.all(Array.from({ length: 60 }, () => Effect.result(issueOne(signer))), { concurrency: 20 }),
          Effect.promise(() => bao.seal())
        ], { concurrency: 2 })
        for (const one of ended) {
          if (Result.isSuccess(one)) verify(settings, one.success.chain)
          else assert.deepInclude(one.failure, { _tag: "SigningFailed", cause: "signer_failed" })
        }
        yield* Effect.flip(issueOne(signer))
        assert.strictEqual(
          yield* troubleOf(signer),
          "signer.local_ca.transit: the server answers 503: Vault is sealed."
        )
        // A service that starts meanwhile is in the same trouble, and is not refused.
        const started = yield* LocalCa.make(settings)
        assert.include(yield* troubleOf(started), "Vault is sealed")
        yield* Effect.promise(() => bao.unseal())
        yield* TestClock.adjust("1 minute")
        for (const one of [signer, started]) {
          assert.strictEqual(yield* troubleOf(one), "")
          verify(settings, (yield* issueOne(one)).chain)
        }
      })
  )

  transitTest(
    "is loaded but in trouble without its token or a CA that the server has",
    (bao) =>
      Effect.gen(function*() {
        const settings = yield* caIn(bao)
        const { transit } = settings
        const untrusted = { ...settings, transit: { ...transit, ca_path: "" } }
        assert.include(yield* troubleOf(yield* LocalCa.make(untrusted)), "ca_path may name a file with its CA")
        const tokenless = { ...settings, transit: { ...transit, token_file: "/absent" } }
        assert.include(yield* troubleOf(yield* LocalCa.make(tokenless)), "the token file /absent cannot be used")
        const away = { ...settings, transit: { ...transit, address: "https://127.0.0.1:1" } }
        assert.include(yield* troubleOf(yield* LocalCa.make(away)), "the server cannot be asked")
        chmodSync(transit.token_file, 0o644)
        yield* LocalCa.make(settings)
        assert.include(eventsOf(records), "local_ca_key_permissive")
      })
  )

  transitTest(
    "needs its certificate, its token and its CA file, and makes none of them",
    (bao) =>
      Effect.gen(function*() {
        const settings = yield* caIn(bao)
        const { transit } = settings
        const cases: ReadonlyArray<readonly [LocalCaSettings, string]> = [
          [{ ...settings, cert_path: "/absent" }, "signer.local_ca.cert_path: /absent cannot be used"],
          [
            { ...settings, transit: { ...transit, token_file: "/absent" } },
            "signer.local_ca.transit.token_file: /absent cannot be used"
          ],
          [
            { ...settings, transit: { ...transit, ca_path: "/absent" } },
            "signer.local_ca.transit.ca_path: /absent cannot be used"
          ],
          [
            { ...settings, transit: { ...transit, ca_path: transit.token_file } },
            "cannot be used: it holds no certificate in PEM"
          ]
        ]
        for (const [own, said] of cases) {
          const refused = yield* Effect.flip(LocalCa.check(own))
          assert.include(refused.detail, said)
          assert.isTrue(refused.isOutside)
        }
        writeFileSync(settings.cert_path, foreignCa({ name: "Other" }).certificatePem)
        if (isRemote(settings)) {
          assert.include((yield* Effect.flip(tryKey(settings))).detail, "matches the CA certificate")
        }
      })
  )
})
