import { describe, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import * as fc from "fast-check"
import { spawnSync } from "node:child_process"
import { createHash, createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as pkijs from "pkijs"
import { assert, beforeAll } from "vitest"
import { decode, Tag } from "../../../src/crypto/asn1/DerReader.ts"
import { makeCaKey } from "../../../src/crypto/x509/CaKey.ts"
import { isSigned, readCertificate, schemeOf } from "../../../src/crypto/x509/Certificate.ts"
import { keyPurposes } from "../../../src/crypto/x509/KeyPurpose.ts"
import type { LeafRequest } from "../../../src/crypto/x509/Leaf.ts"
import { keyIdentifier, serialFrom, validityWindow } from "../../../src/crypto/x509/Leaf.ts"
import { leafContent } from "../../../src/crypto/x509/LeafContent.ts"
import { lintLeaf } from "../../../src/crypto/x509/Lint.ts"
import { isFull } from "../../support/Full.ts"
import { prop } from "../../support/Property.ts"
import { CA_URLS, CRL_URLS, DAY, makeCa, newSerial, NOW, requestOf, type TestCa } from "../Ca.ts"
import { ecKey, openssl, pem, rsaKey, spkiOf, withDirectory } from "../Pki.ts"

const caTypes = ["ecdsa-p256", "ecdsa-p384", "rsa-2048"] as const
const cas = new Map<string, TestCa>()
beforeAll(async () => {
  for (const type of caTypes) cas.set(type, await makeCa(type))
})
const caOfType = (type: string): TestCa => cas.get(type) ?? assert.fail(`no CA of type ${type}`)

const leafKeys = {
  "RSA": { keyType: "rsa", spki: spkiOf(rsaKey) },
  "P-256": { keyType: "ecdsa", spki: spkiOf(ecKey) },
  "P-384": { keyType: "ecdsa", spki: spkiOf(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey) },
  "P-521": { keyType: "ecdsa", spki: spkiOf(generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey) },
  "Ed25519": { keyType: "ed25519", spki: spkiOf(generateKeyPairSync("ed25519").privateKey) }
} as const

const mlDsaKeys = (["ml-dsa-44", "ml-dsa-65", "ml-dsa-87"] as const).map((name) => {
  const spki = spkiOf(generateKeyPairSync(name).privateKey)
  return { keyType: name, spki }
})

const verify = (ca: TestCa, leaf: Uint8Array, host: string, at: number): string =>
  withDirectory((directory) => {
    const [caFile, leafFile] = [join(directory, "ca.pem"), join(directory, "leaf.pem")]
    writeFileSync(caFile, ca.certificatePem)
    writeFileSync(leafFile, pem("CERTIFICATE", leaf))
    return openssl([
      "verify",
      "-x509_strict",
      "-check_ss_sig",
      "-attime",
      String(at),
      "-purpose",
      "sslserver",
      "-verify_hostname",
      host,
      "-CAfile",
      caFile,
      leafFile
    ]).toString()
  })

/** Returns whether openssl accepts the chain of a leaf for a purpose. */
const isFor = (ca: TestCa, leaf: Uint8Array, purpose: string): boolean =>
  withDirectory((directory) => {
    const [caFile, leafFile] = [join(directory, "ca.pem"), join(directory, "leaf.pem")]
    writeFileSync(caFile, ca.certificatePem)
    writeFileSync(leafFile, pem("CERTIFICATE", leaf))
    const words = ["verify", "-attime", String(NOW), "-purpose", purpose, "-CAfile", caFile, leafFile]
    return spawnSync("openssl", words).status === 0
  })

const textOf = (leaf: Uint8Array): string =>
  openssl(["x509", "-inform", "DER", "-noout", "-text", "-nameopt", "RFC2253"], leaf).toString()

describe("leaves", () => {
  for (const type of caTypes) {
    for (const [name, key] of Object.entries(leafKeys)) {
      it.effect(`are verified by openssl in strict mode, by the lint and by pkijs (${name} under ${type})`, () =>
        Effect.gen(function*() {
          const ca = caOfType(type)
          for (const commonName of [undefined, "a.example.com"]) {
            const request = requestOf({ ...key, commonName })
            const leaf = yield* ca.issuer.build(request)
            assert.include(verify(ca, leaf, "a.example.com", NOW), "OK")
            assert.include(verify(ca, leaf, "x.b.example.com", NOW), "OK")
            assert.isUndefined(lintLeaf(leaf, { issuer: ca.lint, request }))
            const judged = pkijs.Certificate.fromBER(new Uint8Array(leaf))
            assert.deepStrictEqual(Buffer.from(judged.toSchema(true).toBER(false)), Buffer.from(leaf))
            assert.strictEqual(judged.version, 2)
            assert.strictEqual(
              Buffer.from(judged.serialNumber.valueBlock.valueHexView).toString("hex"),
              Buffer.from(request.serial).toString("hex")
            )
            assert.deepStrictEqual(
              judged.subject.typesAndValues.map(({ value }) => value.valueBlock.value),
              commonName === undefined ? [] : [commonName]
            )
          }
        }))
    }
  }

  for (const type of caTypes) {
    for (const key of mlDsaKeys) {
      it.effect(`are verified by Node.js and by the lint with a key of ML-DSA (${key.keyType} under ${type})`, () =>
        Effect.gen(function*() {
          const ca = caOfType(type)
          const request = requestOf(key)
          const leaf = yield* ca.issuer.build(request)
          assert.isUndefined(lintLeaf(leaf, { issuer: ca.lint, request }))
          const judged = new X509Certificate(leaf)
          const issuer = new X509Certificate(ca.certificatePem)
          assert.isTrue(judged.checkIssued(issuer) && judged.verify(issuer.publicKey))
          assert.strictEqual(judged.checkHost("x.b.example.com"), "*.b.example.com")
          assert.strictEqual(judged.publicKey.asymmetricKeyType, key.keyType)
          assert.deepStrictEqual(judged.publicKey.export({ type: "spki", format: "der" }), key.spki)
          const text = textOf(leaf)
          assert.match(text, /X509v3 Key Usage: critical\n +Digital Signature\n/)
          assert.strictEqual(text.match(/X509v3|Authority Information Access/g)?.length, 8)
        }))
    }
  }

  it.effect("have the documented extensions and no others", () =>
    Effect.gen(function*() {
      for (const [name, key] of Object.entries(leafKeys)) {
        const text = textOf(yield* caOfType("ecdsa-p256").issuer.build(requestOf(key)))
        const usage = name === "RSA" ? "Digital Signature, Key Encipherment" : "Digital Signature"
        assert.match(text, new RegExp(`X509v3 Key Usage: critical\\n +${usage}\\n`))
        assert.match(text, /X509v3 Extended Key Usage: ?\n +TLS Web Server Authentication\n/)
        assert.match(
          text,
          /X509v3 Subject Alternative Name: critical\n +DNS:a\.example\.com, DNS:\*\.b\.example\.com\n/
        )
        for (const url of CRL_URLS) assert.include(text, `URI:${url}`)
        for (const url of CA_URLS) assert.include(text, `CA Issuers - URI:${url}`)
        assert.strictEqual(text.match(/X509v3|Authority Information Access/g)?.length, 8)
        assert.notInclude(text, "Basic Constraints")
        assert.include(text, "Subject: \n")
      }
    }))

  it.effect("have a SAN that is not critical if they have a common name", () =>
    Effect.gen(function*() {
      const text = textOf(yield* caOfType("ecdsa-p256").issuer.build(requestOf({ commonName: "a.example.com" })))
      assert.include(text, "Subject: CN=a.example.com")
      assert.match(text, /X509v3 Subject Alternative Name: ?\n/)
    }))

  for (
    const [what, facts, shown] of [
      [
        "two usages, two policies and a subject",
        {
          usages: [keyPurposes.server_auth, keyPurposes.client_auth],
          policies: ["1.3.6.1.4.1.55555.1.300", "2.23.140.1.2.1"],
          subject: [
            { type: "2.5.4.6", value: "CH" },
            { type: "2.5.4.8", value: "Zürich" },
            { type: "2.5.4.10", value: "Bäcker, \"Söhne\" + Co = 🍞" }
          ]
        },
        [
          /Extended Key Usage: ?\n +TLS Web Server Authentication, TLS Web Client Authentication\n/,
          /Certificate Policies: ?\n +Policy: 1\.3\.6\.1\.4\.1\.55555\.1\.300\n +Policy: 2\.23\.140\.1\.2\.1\n/
        ]
      ],
      [
        "usages of which one is only a number",
        { usages: ["1.3.6.1.4.1.311.20.2.2", "2.999.1", keyPurposes.email_protection], policies: [], subject: [] },
        [/Extended Key Usage: ?\n +Microsoft Smartcard Login, 2\.999\.1, E-mail Protection\n/]
      ],
      [
        "time stamping",
        { usages: [keyPurposes.time_stamping], policies: [], subject: [] },
        [/Extended Key Usage: critical\n +Time Stamping\n/]
      ],
      [
        "time stamping and code signing",
        { usages: [keyPurposes.time_stamping, keyPurposes.code_signing], policies: [], subject: [] },
        [/Extended Key Usage: ?\n +Time Stamping, Code Signing\n/]
      ]
    ] as const
  ) {
    it.effect(`have the content of their kind, as openssl, pkijs and the lint read it (${what})`, () =>
      Effect.gen(function*() {
        const ca = caOfType("ecdsa-p256")
        for (const commonName of [undefined, "a.example.com"]) {
          const request = requestOf({ content: leafContent(facts), commonName })
          const leaf = yield* ca.issuer.build(request)
          assert.isUndefined(lintLeaf(leaf, { issuer: ca.lint, request }))
          assert.deepStrictEqual(new X509Certificate(leaf).keyUsage, [...facts.usages])
          const text = textOf(leaf)
          for (const pattern of shown) assert.match(text, pattern)
          const isCritical = facts.subject.length === 0 && commonName === undefined
          assert.match(text, isCritical ? /Alternative Name: critical\n/ : /Alternative Name: ?\n/)
          const judged = pkijs.Certificate.fromBER(new Uint8Array(leaf))
          assert.deepStrictEqual(Buffer.from(judged.toSchema(true).toBER(false)), Buffer.from(leaf))
          assert.deepStrictEqual(
            judged.subject.typesAndValues.map(({ type, value }) => ({ type, value: value.valueBlock.value })),
            [...facts.subject, ...commonName === undefined ? [] : [{ type: "2.5.4.3", value: commonName }]]
          )
          const parsed = (wanted: string) =>
            judged.extensions?.find(({ extnID }) => extnID === wanted)?.parsedValue as unknown
          assert.deepStrictEqual((parsed("2.5.29.37") as pkijs.ExtKeyUsage).keyPurposes, [...facts.usages])
          const policies = parsed("2.5.29.32") as pkijs.CertificatePolicies | undefined
          assert.deepStrictEqual(
            policies?.certificatePolicies.map(({ policyIdentifier }) => policyIdentifier) ?? [],
            [...facts.policies]
          )
        }
      }))
  }

  it.effect("of a kind are accepted by openssl for the purposes that they have, and for no others", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const accepted = Effect.fnUntraced(function*(...usages: ReadonlyArray<string>) {
        const content = leafContent({ usages, policies: [], subject: [] })
        const leaf = yield* ca.issuer.build(requestOf({ content }))
        return ["sslserver", "sslclient", "smimesign", "timestampsign"].filter((purpose) => isFor(ca, leaf, purpose))
      })
      assert.deepStrictEqual(yield* accepted(keyPurposes.server_auth), ["sslserver"])
      assert.deepStrictEqual(yield* accepted(keyPurposes.client_auth), ["sslclient"])
      assert.deepStrictEqual(yield* accepted(keyPurposes.client_auth, keyPurposes.server_auth), [
        "sslserver",
        "sslclient"
      ])
      assert.deepStrictEqual(yield* accepted(keyPurposes.email_protection), ["smimesign"])
      assert.deepStrictEqual(yield* accepted(keyPurposes.time_stamping), ["timestampsign"])
      assert.deepStrictEqual(yield* accepted(keyPurposes.time_stamping, keyPurposes.server_auth), ["sslserver"])
    }))

  it.effect("omit extensions that are not configured", () =>
    Effect.gen(function*() {
      const ca = yield* Effect.promise(() => makeCa("ecdsa-p256", false))
      const request = requestOf()
      const leaf = yield* ca.issuer.build(request)
      assert.strictEqual(textOf(leaf).match(/X509v3|Authority Information Access/g)?.length, 6)
      assert.isUndefined(lintLeaf(leaf, { issuer: ca.lint, request }))
    }))

  it.effect("contain dates before 2050 as UTCTime and later dates as GeneralizedTime", () =>
    Effect.gen(function*() {
      const end = Date.UTC(2050, 0, 1) / 1000
      const ca = caOfType("ecdsa-p256")
      const issuer = { ...ca.lint, notAfter: end + DAY }
      for (
        const [notAfter, encoded] of [[end - 1, "170d3439313233313233353935395a"], [
          end,
          "180f32303530303130313030303030305a"
        ]] as const
      ) {
        const request = requestOf({ notAfter })
        const leaf = yield* ca.issuer.build(request)
        assert.include(Buffer.from(leaf).toString("hex"), encoded)
        assert.isUndefined(lintLeaf(leaf, { issuer, request }))
        assert.strictEqual(Date.parse(new X509Certificate(leaf).validTo) / 1000, notAfter)
      }
    }))

  it.effect("have valid signatures and different serials in six hundred leaves", () =>
    Effect.gen(function*() {
      const ca = caOfType("ecdsa-p256")
      const serials = new Set<string>()
      for (let i = 0; i < 600; i++) {
        const request = requestOf({ names: [`n${i}.example.com`] })
        const leaf = yield* ca.issuer.build(request)
        assert.isUndefined(lintLeaf(leaf, { issuer: ca.lint, request }))
        const judged = new X509Certificate(leaf)
        assert.isTrue(judged.verify(ca.material.publicKey))
        assert.strictEqual(judged.subjectAltName, `DNS:n${i}.example.com`)
        assert.match(judged.serialNumber, /^[4-7][0-9A-F]{31}$/)
        serials.add(judged.serialNumber)
      }
      assert.strictEqual(serials.size, 600)
    }))

  it.effect("pass the lint when sixty of them are signed at once on the thread pool", () =>
    Effect.gen(function*() {
      const ca = caOfType("rsa-2048")
      const requests = Array.from({ length: 60 }, (_, i) => requestOf({ names: [`n${i}.example.com`] }))
      const leaves = yield* Effect.forEach(requests, ca.issuer.build, { concurrency: 16 })
      for (const [i, leaf] of leaves.entries()) {
        const request: LeafRequest | undefined = requests[i]
        if (request === undefined) return assert.fail("more leaves than requests")
        assert.isUndefined(lintLeaf(leaf, { issuer: ca.lint, request }))
      }
    }))

  it("can have a hundred names", async () => {
    const ca = caOfType("ecdsa-p256")
    const names = Array.from({ length: 100 }, (_, i) => `${"x".repeat(60)}.n${i}.example.com`)
    const leaf = await Effect.runPromise(ca.issuer.build(requestOf({ names })))
    assert.strictEqual(new X509Certificate(leaf).subjectAltName, names.map((name) => `DNS:${name}`).join(", "))
  })

  // One of the two numbers of an ECDSA signature is below 2^247 once in 256 times, and is then encoded in fewer octets.
  const many = isFull ? 10_000 : 500
  for (const [type, most] of [["ecdsa-p256", 32], ["ecdsa-p384", 48]] as const) {
    it.effect(`have signatures that verify and whose numbers are as short as DER requires (${many} leaves of ${type})`, () =>
      Effect.gen(function*() {
        const { issuer, privateKey } = caOfType(type)
        const publicKey = createPublicKey(privateKey)
        const digest = schemeOf(publicKey)?.digest ?? ""
        const request = requestOf()
        const sizes = new Set<number>()
        for (let made = 0; made < many; made++) {
          const leaf = yield* Effect.fromResult(
            readCertificate(yield* issuer.build({ ...request, serial: newSerial() }))
          )
          assert.isTrue(isSigned(leaf, publicKey, digest))
          const numbers = yield* Effect.fromResult(decode(leaf.signature, (whole) => {
            const both = whole.enter(Tag.sequence)
            const read = [both.positive(), both.positive()]
            both.end()
            return read
          }))
          for (const { length } of numbers) sizes.add(length)
        }
        assert.isAtMost(Math.max(...sizes), most)
        if (isFull) assert.include(sizes, most - 1)
      }))
  }
})

describe("a signature that takes a long time", () => {
  it.each(
    [
      ["RSA", rsaKey],
      ["P-384", generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey]
    ] as const
  )("is computed outside of the event loop with %s", async (_, key) => {
    const { sign } = Result.getOrThrow(makeCaKey(key))
    const signing = Effect.runFork(sign(Buffer.from("data")))
    assert.isUndefined(signing.pollUnsafe(), "it has not ended when others have their turn")
    assert.isNotEmpty(await Effect.runPromise(Fiber.join(signing)))
  })
})

describe("the parts of a leaf", () => {
  prop(
    "include a serial that is positive, minimal and sixteen octets long",
    [fc.uint8Array({ minLength: 16, maxLength: 16 })],
    ([random]) => {
      const serial = serialFrom(random)
      assert.strictEqual(serial.length, 16)
      assert.strictEqual((serial[0] ?? 0) >> 6, 1)
      assert.deepStrictEqual([...serial.subarray(1)], [...random.subarray(1)])
      assert.strictEqual((serial[0] ?? 0) & 0x3f, (random[0] ?? 0) & 0x3f)
    }
  )

  it("include key identifiers by method 1 of RFC 7093", () => {
    const spki = spkiOf(ecKey)
    const key = spki.subarray(spki.length - 65)
    assert.strictEqual(
      Buffer.from(keyIdentifier(spki)).toString("hex"),
      createHash("sha256").update(key).digest("hex").slice(0, 40)
    )
  })

  it("cannot be signed with a key of a type that no issuer may have", () => {
    for (
      const { privateKey } of [generateKeyPairSync("ed25519"), generateKeyPairSync("ec", { namedCurve: "P-521" })]
    ) assert.isTrue(Result.isFailure(makeCaKey(privateKey)))
  })
})

describe("validityWindow", () => {
  const base = {
    now: NOW,
    orderedAt: NOW,
    validitySeconds: 90 * DAY,
    requestedNotBefore: undefined,
    requestedNotAfter: undefined,
    issuerNotBefore: NOW - 1000 * DAY,
    issuerNotAfter: NOW + 1000 * DAY
  }
  const window = (changes: Partial<Parameters<typeof validityWindow>[0]>) => validityWindow({ ...base, ...changes })
  const right = (notBefore: number, notAfter: number, discardedRequest = false) =>
    Result.succeed({ notBefore, notAfter, discardedRequest })
  const [start, end] = [NOW - 3600, NOW + 90 * DAY]

  it("never ends after the requested end, whenever the leaf is signed (rule 2)", () => {
    const ordered = { orderedAt: NOW - 5 * DAY }
    assert.deepStrictEqual(window({ ...ordered, requestedNotAfter: NOW + 1000 * DAY }), right(start, end - 5 * DAY))
    assert.deepStrictEqual(window(ordered), right(start, end))
  })

  it("begins one hour ago and ends the configured number of days from now (rule 1)", () => {
    assert.deepStrictEqual(window({}), right(start, end))
    assert.deepStrictEqual(window({ now: NOW + 0.9 }), right(start, end))
  })
  it("can only be made shorter by requested dates (rule 2)", () => {
    assert.deepStrictEqual(window({ requestedNotBefore: NOW + 5 }), right(NOW + 5, end))
    assert.deepStrictEqual(window({ requestedNotBefore: start - 1 }), right(start, end))
    assert.deepStrictEqual(window({ requestedNotAfter: NOW + DAY }), right(start, NOW + DAY))
    assert.deepStrictEqual(window({ requestedNotAfter: end + 1 }), right(start, end))
    const both = { requestedNotBefore: NOW + 5.7, requestedNotAfter: NOW + 9.7 }
    assert.deepStrictEqual(window(both), right(NOW + 5, NOW + 9))
  })
  it("is limited to the validity of the issuer (rule 3)", () => {
    assert.deepStrictEqual(window({ issuerNotBefore: NOW - 5 }), right(NOW - 5, end))
    assert.deepStrictEqual(window({ issuerNotAfter: NOW + 5 }), right(start, NOW + 5))
    assert.deepStrictEqual(window({ issuerNotAfter: NOW + 5, requestedNotAfter: NOW + 3 }), right(start, NOW + 3))
  })
  it("ignores the requested dates if they leave no window (rule 4)", () => {
    assert.deepStrictEqual(window({ requestedNotBefore: end + 1 }), right(start, end, true))
    assert.deepStrictEqual(window({ requestedNotAfter: start - 1 }), right(start, end, true))
    assert.deepStrictEqual(window({ requestedNotAfter: NOW }), right(start, end, true))
    assert.deepStrictEqual(window({ requestedNotAfter: NOW + 1 }), right(start, NOW + 1))
    assert.deepStrictEqual(
      window({ requestedNotBefore: NOW + 10, requestedNotAfter: NOW + 10 }),
      right(start, end, true)
    )
    assert.deepStrictEqual(window({ requestedNotBefore: end + 1, issuerNotAfter: NOW }), right(start, NOW, true))
  })
  it("fails if the issuer leaves no window (rule 5)", () => {
    assert.deepStrictEqual(window({ issuerNotAfter: start - 1 }), Result.fail("issuer_expired"))
    assert.deepStrictEqual(window({ issuerNotAfter: start }), Result.fail("issuer_expired"))
    assert.deepStrictEqual(window({ issuerNotBefore: end }), Result.fail("issuer_expired"))
    assert.deepStrictEqual(
      window({ requestedNotBefore: NOW + 50, issuerNotAfter: NOW + 20 }),
      Result.fail("issuer_expired")
    )
  })
  prop(
    "never exceeds the default window or the validity of the issuer",
    [fc.record({
      now: fc.integer({ min: 0, max: 2 ** 33 }),
      orderedAt: fc.integer({ min: 0, max: 2 ** 33 }),
      validitySeconds: fc.integer({ min: 3600, max: 3653 * DAY }),
      requestedNotBefore: fc.option(fc.integer({ min: 0, max: 2 ** 34 }), { nil: undefined }),
      requestedNotAfter: fc.option(fc.integer({ min: 0, max: 2 ** 34 }), { nil: undefined }),
      issuerNotBefore: fc.integer({ min: 0, max: 2 ** 34 }),
      issuerNotAfter: fc.integer({ min: 0, max: 2 ** 34 })
    })],
    ([input]) => {
      const found = validityWindow(input)
      if (Result.isFailure(found)) return
      const { notAfter, notBefore } = found.success
      assert.isBelow(notBefore, notAfter)
      assert.isAtLeast(notBefore, Math.max(input.now - 3600, input.issuerNotBefore))
      assert.isAtMost(notAfter, Math.min(input.now + input.validitySeconds, input.issuerNotAfter))
    }
  )
})

it("every serial is new", () => assert.notDeepEqual(newSerial(), newSerial()))
