import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { spawnSync } from "node:child_process"
import { X509Certificate } from "node:crypto"
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Entropy } from "../../../src/crypto/Entropy.ts"
import type { Web } from "../../../src/engine/net/Web.ts"
import { generateIfAbsent } from "../../../src/services/signing/CaFiles.ts"
import type { LocalCaSettings } from "../../../src/services/signing/ConfiguredCas.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import { tryKey } from "../../../src/services/signing/RemoteCa.ts"
import { openssl } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { gateComesBackForTokens, isInstalled } from "../../support/Installed.ts"
import { foreignCa, issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { softhsmModule } from "../../support/Softhsm.ts"
import { useTests } from "../../support/UseTests.ts"

/* A local CA whose key is in a token of SoftHSM2. */

const hasToken = isInstalled("softhsm2-util")
const { records, test } = useTests({ startsAt: madeAt })

const run = (program: string, words: ReadonlyArray<string>) => {
  const { error, status, stderr, stdout } = spawnSync(program, words, { encoding: "utf8" })
  assert.strictEqual(status, 0, `${program} ${words.join(" ")}: ${stderr} ${error?.message}`)
  return stdout
}

/** Makes a CA, and moves its key into a new token. The environment names the token for every program that is started. */
const caInToken = (directory: string, key_type: LocalCaSettings["key_type"] = "ecdsa-p256") =>
  Effect.gen(function*() {
    const settings = settingsIn(directory, { key_type })
    yield* generateIfAbsent(settings)
    const [tokens, configuration] = [join(directory, "tokens"), join(directory, "softhsm2.conf")]
    mkdirSync(tokens)
    writeFileSync(configuration, `directories.tokendir = ${tokens}\nlog.level = ERROR\n`)
    process.env["SOFTHSM2_CONF"] = configuration
    run("softhsm2-util", ["--init-token", "--free", "--label", "ca", "--pin", "1234", "--so-pin", "5678"])
    importKey(settings.key_path, "a1b2")
    unlinkSync(settings.key_path)
    const pin_file = join(directory, "pin")
    writeFileSync(pin_file, "1234\n", { mode: 0o600 })
    const pkcs11 = {
      module_path: softhsmModule,
      token_label: "ca",
      slot_id: -1,
      key_label: "ca-key",
      key_id: "",
      pin_file
    }
    return { ...settings, key_source: "pkcs11" as const, pkcs11, tokens }
  })

const importKey = (path: string, id: string) =>
  run("softhsm2-util", [
    "--import",
    path,
    "--token",
    "ca",
    "--label",
    "ca-key",
    "--id",
    id,
    "--pin",
    "1234"
  ])

const tokenTest = (name: string, body: () => Effect.Effect<void, unknown, Entropy | Web>) =>
  test(name, () => hasToken ? body() : Effect.sync(gateComesBackForTokens))

const names = ["a.example.com"]

describe("a CA with a key in a token", () => {
  for (const key_type of ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "rsa-4096"] as const) {
    tokenTest(`signs leaves and lists with ${key_type}, which OpenSSL verifies`, () =>
      Effect.gen(function*() {
        const directory = freshDirectory()
        const settings = yield* caInToken(directory, key_type)
        yield* LocalCa.check(settings)
        yield* tryKey(settings)
        const signer = yield* LocalCa.make(settings)
        const all = yield* Effect.all(Array.from({ length: 12 }, () => signer.issue(issueRequest(names))), {
          concurrency: 12
        })
        const verified = ["verify", "-attime", String(madeAt + 60), "-CAfile", settings.cert_path]
        for (const [index, { chain }] of all.entries()) {
          const leaf = join(directory, `${index}.pem`)
          writeFileSync(leaf, new X509Certificate(chain).toString())
          assert.include(openssl([...verified, leaf]).toString(), "OK")
        }
        assert.isDefined(signer.crls?.[0])
        const list =
          yield* signer.crls?.[0]?.sign({ number: 1, thisUpdate: madeAt, nextUpdate: madeAt + 60, entries: [] }) ??
            Effect.die("no list")
        writeFileSync(join(directory, "list.der"), list)
        openssl(["crl", "-inform", "DER", "-in", join(directory, "list.der"), "-CAfile", settings.cert_path, "-noout"])
        assert.deepStrictEqual(eventsOf(records).filter((event) => event === "local_ca_key_permissive"), [])
      }))
  }

  tokenTest("is refused if the token has another key, two keys of the label, or none", () =>
    Effect.gen(function*() {
      const settings = yield* caInToken(freshDirectory())
      const refusal = (pkcs11: object) =>
        Effect.map(Effect.flip(LocalCa.make({ ...settings, pkcs11: { ...settings.pkcs11, ...pkcs11 } })), (error) => {
          assert.isFalse(error.isOutside ?? false)
          return error.detail
        })
      assert.include(yield* refusal({ key_label: "other" }), "no private key of that label and id")
      assert.include(yield* refusal({ key_id: "ff" }), "no private key of that label and id")
      const another = settingsIn(freshDirectory())
      yield* generateIfAbsent(another)
      importKey(another.key_path, "b2")
      assert.include(yield* refusal({}), "more than one such key; key_id tells them apart")
      yield* LocalCa.make({ ...settings, pkcs11: { ...settings.pkcs11, key_id: "A1B2" } })
      assert.include(yield* refusal({ key_id: "b2" }), "the key of the token and the CA certificate do not match")
    }))

  tokenTest(
    "is loaded but in trouble with a wrong PIN, and signs when the file has the right one",
    () =>
      Effect.gen(function*() {
        const settings = yield* caInToken(freshDirectory())
        writeFileSync(settings.pkcs11.pin_file, "wrong-pin")
        chmodSync(settings.pkcs11.pin_file, 0o644)
        const signer = yield* LocalCa.make(settings)
        assert.include(eventsOf(records), "local_ca_key_permissive")
        assert.include((yield* signer.trouble ?? Effect.succeed("")) ?? "", "C_Login failed with CKR_PIN_INCORRECT")
        const failed = yield* Effect.flip(signer.issue(issueRequest(names)))
        assert.deepInclude(failed, { _tag: "SigningFailed", cause: "signer_failed" })
        assert.include(JSON.stringify(failed), "CKR_PIN_INCORRECT")
        assert.notInclude(JSON.stringify([records, failed]), "wrong-pin")
        writeFileSync(settings.pkcs11.pin_file, "1234\n")
        assert.isUndefined(yield* signer.trouble ?? Effect.succeed(""))
        yield* signer.issue(issueRequest(names))
      })
  )

  tokenTest(
    "is loaded but in trouble while the token is away, and signs when it is back",
    () =>
      Effect.gen(function*() {
        const settings = yield* caInToken(freshDirectory())
        renameSync(settings.tokens, `${settings.tokens}.away`)
        mkdirSync(settings.tokens)
        const signer = yield* LocalCa.make(settings)
        const trouble = signer.trouble ?? Effect.succeed("")
        assert.strictEqual(yield* trouble, "signer.local_ca.pkcs11: no token has the label ca.")
        assert.strictEqual(statSync(settings.tokens).isDirectory(), true)
        renameSync(settings.tokens, `${settings.tokens}.empty`)
        renameSync(`${settings.tokens}.away`, settings.tokens)
        yield* TestClock.adjust("1 second")
        assert.isUndefined(yield* trouble)
        yield* signer.issue(issueRequest(names))
      })
  )

  tokenTest("needs its certificate, its module and its PIN file, and makes none of them", () =>
    Effect.gen(function*() {
      const settings = yield* caInToken(freshDirectory())
      assert.isFalse(yield* generateIfAbsent({ ...settings, cert_path: "/absent" }))
      const { pkcs11 } = settings
      const cases: ReadonlyArray<readonly [LocalCaSettings, string]> = [
        [{ ...settings, cert_path: "/absent" }, "signer.local_ca.cert_path: /absent cannot be used"],
        [
          { ...settings, pkcs11: { ...pkcs11, module_path: "/absent" } },
          "signer.local_ca.pkcs11.module_path: /absent cannot be used"
        ],
        [
          { ...settings, pkcs11: { ...pkcs11, pin_file: "/absent" } },
          "signer.local_ca.pkcs11.pin_file: /absent cannot be used"
        ]
      ]
      for (const [own, said] of cases) {
        const refused = yield* Effect.flip(LocalCa.check(own))
        assert.include(refused.detail, said)
        assert.isTrue(refused.isOutside)
      }
      writeFileSync(settings.cert_path, foreignCa({ name: "Other" }).certificatePem)
      assert.include((yield* Effect.flip(tryKey(settings))).detail, "do not match")
      assert.include(readFileSync(settings.cert_path, "utf8"), "CERTIFICATE")
    }))
})
