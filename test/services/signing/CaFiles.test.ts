import { it } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { createPrivateKey, generateKeyPairSync, hash, verify, X509Certificate } from "node:crypto"
import { once } from "node:events"
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import type { CaFileSettings } from "../../../src/services/signing/CaFiles.ts"
import {
  check,
  generateIfAbsent,
  isSuppliedRoot,
  loadForSigning,
  refuseFlaws
} from "../../../src/services/signing/CaFiles.ts"
import { der, ecKey, ext, openssl, seq } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import type { ForeignCa } from "../../support/LocalCa.ts"
import { daySeconds, foreignCa, keyPem, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { useTests } from "../../support/UseTests.ts"

/** Each test gets settings with a directory of its own. */
const { records, test } = useTests({
  startsAt: madeAt,
  first: () => Effect.sync(() => settingsIn(freshDirectory()))
})

const read = (path: string): string => readFileSync(path, "utf8")
const modeOf = (path: string): number => statSync(path).mode & 0o777

/** Returns whether the certificate and the key belong together. */
const isPair = ({ cert_path, key_path }: CaFileSettings): boolean =>
  new X509Certificate(read(cert_path)).checkPrivateKey(createPrivateKey(read(key_path)))

/** Replaces the pair of files in the settings by the pair of another party. */
const supply = (
  { cert_path, key_path }: CaFileSettings,
  { certificatePem, key }: Pick<ForeignCa, "certificatePem" | "key">,
  mode = 0o600
) => {
  writeFileSync(cert_path, certificatePem)
  writeFileSync(key_path, keyPem(key), { mode })
}

const refusalOf = (settings: CaFileSettings) =>
  Effect.map(Effect.flip(loadForSigning(settings)), ({ message }) => message)

describe("a CA that strict verifiers refuse", () => {
  const root = foreignCa({ name: "Root" })
  const cases: ReadonlyArray<readonly [reason: string, ca: ForeignCa, said: RegExp]> = [
    ["key_usage_missing", foreignCa({ name: "A", issuer: root, without: ["keyUsage"] }), /does not include key usage/],
    [
      "subject_key_identifier_missing",
      foreignCa({ name: "B", issuer: root, without: ["subjectKeyIdentifier"] }),
      /Missing Subject Key Identifier/
    ],
    [
      "authority_key_identifier_missing",
      foreignCa({ name: "C", issuer: root, without: ["authorityKeyIdentifier"] }),
      /Missing Authority Key Identifier/
    ],
    [
      "basic_constraints_not_critical",
      foreignCa({ name: "D", issuer: root, hasCriticalConstraints: false }),
      /Basic Constraints of CA cert not marked critical/
    ],
    [
      "critical_extension_unknown",
      foreignCa({ name: "E", issuer: root, more: [ext("1.3.6.1.4.1.99999.1", seq(), true)] }),
      /unhandled critical extension/
    ]
  ]

  test("is used, and an advisory names the file, the certificate and its flaw", (settings) =>
    Effect.gen(function*() {
      for (const [reason, ca] of cases) {
        supply(settings, { ...ca, certificatePem: ca.certificatePem + root.certificatePem })
        records.length = 0
        const { issuerId } = (yield* loadForSigning(settings)).ca
        const sha256 = new X509Certificate(ca.certificatePem).fingerprint256.replaceAll(":", "").toLowerCase()
        assert.deepStrictEqual(
          records.map(({ event, fields }) => ({ event, fields })),
          [{ event: "local_ca_incomplete", fields: { issuer: issuerId, path: settings.cert_path, sha256, reason } }]
        )
      }
    }))

  test("is reported even if it is above the CA that signs, but a root needs no authority key identifier", (settings) =>
    Effect.gen(function*() {
      const weak = foreignCa({ name: "Weak", without: ["subjectKeyIdentifier", "authorityKeyIdentifier"] })
      const ca = foreignCa({ name: "Below", issuer: weak })
      supply(settings, { ...ca, certificatePem: ca.certificatePem + weak.certificatePem })
      yield* loadForSigning(settings)
      assert.deepStrictEqual(records.map(({ fields }) => fields["reason"]), ["subject_key_identifier_missing"])
    }))

  test("is reported if its serial number is negative, which only Go refuses", (settings) =>
    Effect.gen(function*() {
      const ca = foreignCa({ name: "F", serial: der(0x02, Buffer.of(0xff)) })
      supply(settings, ca)
      yield* loadForSigning(settings)
      assert.deepStrictEqual(records.map(({ fields }) => fields["reason"]), ["serial_number_negative"])
      assert.isTrue(Exit.isFailure(
        yield* Effect.exit(refuseFlaws({ certificates: [new X509Certificate(ca.certificatePem).raw] }))
      ))
    }))

  test("is refused by OpenSSL for the reported reason, and this service makes no such CA", (settings) =>
    Effect.gen(function*() {
      const path = (name: string) => join(dirname(settings.cert_path), name)
      const verify = (ca: ForeignCa) => {
        writeFileSync(path("root.pem"), root.certificatePem)
        writeFileSync(path("one.pem"), ca.certificatePem)
        const words = [
          "verify",
          "-x509_strict",
          "-attime",
          String(madeAt),
          "-CAfile",
          path("root.pem"),
          path("one.pem")
        ]
        return openssl(words).toString()
      }
      assert.include(verify(foreignCa({ name: "Whole", issuer: root })), "OK")
      for (const [reason, ca, said] of cases) {
        assert.throws(() => verify(ca), said)
        const refused = yield* Effect.flip(refuseFlaws({ certificates: [new X509Certificate(ca.certificatePem).raw] }))
        assert.include(refused.detail, reason.replaceAll("_", " "))
      }
      for (const key_type of ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "ml-dsa-65", "ml-dsa-87"] as const) {
        const own = { ...settings, key_type, cert_path: path(`${key_type}.pem`), key_path: path(`${key_type}.key`) }
        yield* generateIfAbsent(own)
        yield* refuseFlaws((yield* loadForSigning(own)).ca)
      }
    }))
})

describe("a CA that does not exist yet", () => {
  test("is made once, with a key that only its owner can read, whatever the umask is", (settings) =>
    Effect.gen(function*() {
      const umask = process.umask(0o777)
      const made = yield* Effect.ensuring(
        generateIfAbsent(settings),
        Effect.sync(() => process.umask(umask))
      )
      assert.isTrue(made)
      assert.deepStrictEqual([modeOf(settings.key_path), modeOf(settings.cert_path)], [0o600, 0o644])
      assert.isTrue(isPair(settings))
      const certificate = new X509Certificate(read(settings.cert_path))
      assert.deepStrictEqual(
        records.map(({ event, fields }) => ({ event, fields })),
        [{
          event: "local_ca_generated",
          fields: {
            path: settings.cert_path,
            issuer: hash("sha256", certificate.publicKey.export({ type: "spki", format: "der" })),
            not_after: certificate.validToDate.toISOString(),
            key_type: "ecdsa-p256",
            sha256: certificate.fingerprint256.replaceAll(":", "").toLowerCase()
          }
        }]
      )

      const before = [read(settings.cert_path), read(settings.key_path)]
      assert.isFalse(yield* generateIfAbsent(settings))
      assert.deepStrictEqual([read(settings.cert_path), read(settings.key_path)], before)
      assert.sameMembers(readdirSync(dirname(settings.key_path)), ["ca.pem", "ca.key"])
      assert.strictEqual(records.length, 1)
    }))

  test("can be loaded after it is made, with every type of key, and does not count as a supplied root", (settings) =>
    Effect.forEach(
      ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "ml-dsa-65", "ml-dsa-87"] as const,
      (key_type) =>
        Effect.gen(function*() {
          const own = {
            ...settings,
            key_type,
            cert_path: `${settings.cert_path}.${key_type}`,
            key_path: `${settings.key_path}.${key_type}`
          } as CaFileSettings
          yield* generateIfAbsent(own)
          const { ca } = yield* loadForSigning(own)
          assert.isTrue(ca.selfSigned)
          assert.isFalse(isSuppliedRoot(ca, own))
        })
    ))

  test("is refused, and nothing is written, if only one of its two files exists", (settings) =>
    Effect.gen(function*() {
      for (const alone of ["cert_path", "key_path"] as const) {
        const own = settingsIn(join(dirname(settings.cert_path), alone))
        mkdirSync(dirname(own.cert_path))
        writeFileSync(own[alone], "kept")
        const { message } = yield* Effect.flip(generateIfAbsent(own))
        assert.include(message, own.cert_path)
        assert.include(message, own.key_path)
        assert.strictEqual(read(own[alone]), "kept")
        assert.strictEqual(readdirSync(dirname(own.cert_path)).length, 1)
      }
    }))

  test("is refused if its directory is missing or a link has no target, and the link is not followed", (settings) =>
    Effect.gen(function*() {
      const nowhere = settingsIn(join(dirname(settings.cert_path), "absent"))
      assert.include((yield* Effect.flip(generateIfAbsent(nowhere))).message, nowhere.key_path)

      const elsewhere = join(dirname(settings.cert_path), "elsewhere")
      for (const path of [settings.key_path, settings.cert_path]) {
        symlinkSync(elsewhere, path)
        yield* Effect.flip(generateIfAbsent(settings))
        assert.notInclude(readdirSync(dirname(path)), "elsewhere")
        assert.sameMembers(readdirSync(dirname(path)), [path === settings.key_path ? "ca.key" : "ca.pem"])
        unlinkSync(path)
      }
    }))

  test("is made completely by one of many fibers that try to make it at once", (settings) =>
    Effect.gen(function*() {
      const tries = yield* Effect.replicateEffect(Effect.result(generateIfAbsent(settings)), 12, {
        concurrency: "unbounded"
      })
      assert.strictEqual(tries.filter((one) => Result.isSuccess(one) && one.success).length, 1)
      assert.isTrue(isPair(settings))
      assert.deepStrictEqual(eventsOf(records), ["local_ca_generated"])
      assert.sameMembers(readdirSync(dirname(settings.key_path)), ["ca.pem", "ca.key"])
      yield* loadForSigning(settings)
    }))

  test("stays if another process makes it meanwhile", (settings) =>
    Effect.gen(function*() {
      const entropy = yield* Entropy
      // This is drawn when the CA is ready to be written.
      const token = Effect.andThen(Effect.orDie(generateIfAbsent(settings)), entropy.token)
      const late = Effect.provideService(generateIfAbsent(settings), Entropy, {
        ...entropy,
        token: Effect.provideService(token, Entropy, entropy)
      })
      assert.isFalse(yield* late)
      assert.isTrue(isPair(settings))
      assert.deepStrictEqual(eventsOf(records), ["local_ca_generated"])
    }))

  it("is made completely by one of two processes that try to make it at once", async () => {
    const settings = settingsIn(freshDirectory())
    const source = (path: string) => JSON.stringify(new URL(`../../../src/${path}`, import.meta.url).href)
    const code = `
      import { Effect } from "effect"
      import { Entropy } from ${source("crypto/Entropy.ts")}
      import { generateIfAbsent } from ${source("services/signing/CaFiles.ts")}
      process.stdin.once("data", () =>
        Effect.runPromise(Effect.provide(Effect.result(generateIfAbsent(${JSON.stringify(settings)})), Entropy.layer))
          .then((tried) => process.stdout.write(tried._tag === "Failure" ? "refused" : String(tried.success)))
          .then(() => process.exit(0)))
      process.stdout.write("ready")`
    const processes = [1, 2].map(() =>
      spawn(process.execPath, ["--input-type=module", "-e", code], {
        cwd: join(import.meta.dirname, "../../.."),
        stdio: ["pipe", "pipe", "inherit"]
      })
    )
    try {
      await Promise.all(processes.map(({ stdout }) => once(stdout, "data")))
      const answers = processes.map(({ stdout }) => once(stdout, "data"))
      for (const { stdin } of processes) stdin.write("go")
      const told = (await Promise.all(answers)).map(([text]) => String(text))
      assert.strictEqual(told.filter((one) => one === "true").length, 1, told.join())
      assert.isTrue(isPair(settings))
      assert.sameMembers(readdirSync(dirname(settings.key_path)), ["ca.pem", "ca.key"])
    } finally {
      for (const one of processes) one.kill()
    }
  })
})

describe("a CA that exists", () => {
  test("is reported if others may read its key, and only then", (settings) =>
    Effect.gen(function*() {
      const ca = foreignCa({ name: "Root" })
      for (const [index, mode] of [0o600, 0o400, 0o640, 0o604, 0o644].entries()) {
        records.length = 0
        const own = { ...settings, key_path: `${settings.key_path}.${index}` }
        supply(own, ca, mode)
        yield* loadForSigning(own)
        assert.deepStrictEqual(eventsOf(records), (mode & 0o044) === 0 ? [] : ["local_ca_key_permissive"])
      }
    }))

  test("is refused if the key belongs to another certificate, is unsupported, encrypted or missing", (settings) =>
    Effect.gen(function*() {
      const { certificatePem, key } = foreignCa({ name: "Root" })
      const encrypted = key.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "p" }).toString()
      const keys = {
        another: keyPem(ecKey),
        ed25519: keyPem(generateKeyPairSync("ed25519").privateKey),
        p521: keyPem(generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey),
        encrypted,
        certificate: certificatePem,
        empty: "",
        cut: keyPem(key).slice(0, 100)
      }
      writeFileSync(settings.cert_path, certificatePem)
      for (const [name, text] of Object.entries(keys)) {
        writeFileSync(settings.key_path, text)
        const message = yield* refusalOf(settings)
        assert.include(message, settings.key_path, name)
        for (const line of text.split("\n").filter((one) => one.length > 40)) assert.notInclude(message, line)
      }
    }))

  test("is reported before and after its validity, to the second, but is loaded nevertheless", (settings) =>
    Effect.gen(function*() {
      const [notBefore, notAfter] = [madeAt, madeAt + 10 * daySeconds]
      supply(settings, foreignCa({ name: "Root", notBefore, notAfter }))
      for (const [at, expected] of [[notBefore - 1, "is valid from"], [notAfter + 1, "ended at"]] as const) {
        yield* TestClock.setTime(at * 1000)
        yield* loadForSigning(settings)
        const told = yield* Effect.flip(check(settings))
        assert.include(told.detail, expected)
        assert.isTrue(told.isOutside)
      }
      for (const at of [notBefore, notAfter]) {
        yield* TestClock.setTime(at * 1000)
        yield* check(settings)
      }
    }))

  test("is refused, and the file is named, if a file is missing or invalid", (settings) =>
    Effect.gen(function*() {
      const ca = foreignCa({ name: "Root" })
      for (const missing of ["cert_path", "key_path"] as const) {
        supply(settings, ca)
        const own = { ...settings, [missing]: `${settings[missing]}.absent` }
        assert.include(yield* refusalOf(own), own[missing])
        assert.include(yield* refusalOf(own), `signer.local_ca.${missing}`)
        assert.include(
          yield* refusalOf({ ...settings, [missing]: dirname(settings[missing]) }),
          dirname(settings[missing])
        )
      }
    }))

  test("counts as a supplied root if it is self-signed and does not have the configured name", (settings) =>
    Effect.gen(function*() {
      const root = foreignCa({ name: "Corporate Root" })
      const intermediate = foreignCa({ name: "Issuing CA", issuer: root })
      const ownName = foreignCa({ name: settings.subject.common_name })
      const cases = [
        [root, root.certificatePem, true],
        [intermediate, intermediate.certificatePem, false],
        [intermediate, intermediate.certificatePem + root.certificatePem, false],
        [ownName, ownName.certificatePem, false]
      ] as const
      for (const [{ key, name }, certificatePem, expected] of cases) {
        supply(settings, { certificatePem, key })
        assert.strictEqual(isSuppliedRoot((yield* loadForSigning(settings)).ca, settings), expected, name)
      }
    }))
})

describe("a CA key with a passphrase", () => {
  const secret = "correct horse, battery"
  const withPassphrase = (settings: CaFileSettings, text: string, mode = 0o600) => {
    const key_passphrase_file = join(dirname(settings.key_path), "passphrase")
    writeFileSync(key_passphrase_file, text)
    chmodSync(key_passphrase_file, mode)
    return { ...settings, key_passphrase_file }
  }

  test("is written encrypted if the service makes it, and OpenSSL opens it with the passphrase alone", (settings) =>
    Effect.gen(function*() {
      for (const key_type of ["ecdsa-p256", "ecdsa-p384", "rsa-2048"] as const) {
        const path = (name: string) => join(dirname(settings.cert_path), `${key_type}.${name}`)
        const own = {
          ...withPassphrase(settings, `${secret}\r\n`),
          key_type,
          cert_path: path("pem"),
          key_path: path("key")
        }
        assert.isTrue(yield* generateIfAbsent(own))
        assert.match(read(own.key_path), /^-----BEGIN ENCRYPTED PRIVATE KEY-----/)
        assert.strictEqual(modeOf(own.key_path), 0o600)
        const publicKey = openssl(["pkey", "-in", own.key_path, "-passin", `pass:${secret}`, "-pubout"]).toString()
        assert.strictEqual(
          publicKey,
          new X509Certificate(read(own.cert_path)).publicKey.export({ type: "spki", format: "pem" }).toString()
        )
        assert.isDefined(yield* check(own))
        yield* loadForSigning(own)
      }
      assert.deepStrictEqual(
        eventsOf(records).filter((event) => event !== "local_ca_generated"),
        []
      )
    }))

  test("signs if OpenSSL encrypted it", (settings) =>
    Effect.gen(function*() {
      const { certificatePem, key } = foreignCa({ name: "Root" })
      const own = withPassphrase(settings, secret)
      supply(own, { certificatePem, key })
      for (const cipher of ["aes-128-cbc", "aes-256-cbc"]) {
        writeFileSync(own.key_path, keyPem(key))
        const encrypted = openssl(["pkcs8", "-topk8", "-v2", cipher, "-in", own.key_path, "-passout", `pass:${secret}`])
        writeFileSync(own.key_path, encrypted)
        const signing = yield* loadForSigning(own)
        const signature = yield* signing.key.sign(Buffer.from("signed"))
        assert.isTrue(verify("sha256", Buffer.from("signed"), signing.ca.publicKey, signature))
      }
    }))

  test("is reported if others may read the passphrase", (settings) =>
    Effect.gen(function*() {
      const ca = foreignCa({ name: "Root" })
      const own = withPassphrase(settings, secret, 0o640)
      supply(own, ca)
      writeFileSync(
        own.key_path,
        ca.key.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: secret })
      )
      yield* loadForSigning(own)
      assert.deepStrictEqual(
        records.map(({ event, fields }) => [event, fields["path"]]),
        [["local_ca_key_permissive", own.key_passphrase_file]]
      )
    }))

  test("is refused with the key of the configuration to change, and no message has the passphrase", (settings) =>
    Effect.gen(function*() {
      const { certificatePem, key } = foreignCa({ name: "Root" })
      const encrypted = key.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: secret })
      const old = openssl(
        ["ec", "-aes128", "-passout", `pass:${secret}`],
        key.export({ type: "sec1", format: "pem" }).toString()
      ).toString()
      const own = withPassphrase(settings, secret)
      const cases: ReadonlyArray<readonly [string, CaFileSettings, said: string]> = [
        [encrypted.toString(), settings, "signer.local_ca.key_passphrase_file names the file"],
        [keyPem(key), own, "not encrypted, but signer.local_ca.key_passphrase_file is set"],
        [old, own, "openssl pkcs8 -topk8"],
        [encrypted.toString(), withPassphrase(settings, "another"), "the passphrase does not open the CA key"],
        [encrypted.toString(), withPassphrase(settings, " \n"), `${own.key_passphrase_file} cannot be used: empty`],
        [
          encrypted.toString(),
          { ...settings, key_passphrase_file: `${own.key_passphrase_file}.absent` },
          "signer.local_ca.key_passphrase_file: "
        ]
      ]
      for (const [text, ofCase, said] of cases) {
        supply(settings, { certificatePem, key })
        writeFileSync(settings.key_path, text)
        if (ofCase !== settings) writeFileSync(own.key_passphrase_file, said.includes("empty") ? " \n" : secret)
        if (said.startsWith("the passphrase does")) writeFileSync(own.key_passphrase_file, "another")
        const message = yield* refusalOf(ofCase)
        assert.include(message, said)
        assert.notInclude(message, secret)
        assert.include((yield* Effect.flip(check(ofCase))).message, said)
      }
    }))

  test("is not made without the passphrase, and then nothing is written", (settings) =>
    Effect.gen(function*() {
      const own = { ...settings, key_passphrase_file: join(dirname(settings.key_path), "absent") }
      for (const refuse of [Effect.asVoid(generateIfAbsent(own)), Effect.asVoid(check(own))]) {
        const refused = yield* Effect.flip(refuse)
        assert.include(refused.message, "signer.local_ca.key_passphrase_file")
        assert.isTrue(refused.isOutside)
      }
      assert.deepStrictEqual(readdirSync(dirname(own.key_path)), [])
    }))
})
