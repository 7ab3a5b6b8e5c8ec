import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { createHash, generateKeyPairSync, sign } from "node:crypto"
import { assert, beforeAll } from "vitest"
import { readCertificate } from "../../../src/crypto/x509/Certificate.ts"
import { checkChain } from "../../../src/crypto/x509/Chain.ts"
import { keyPurposes } from "../../../src/crypto/x509/KeyPurpose.ts"
import type { LeafRequest } from "../../../src/crypto/x509/Leaf.ts"
import { leafContent } from "../../../src/crypto/x509/LeafContent.ts"
import type { LintCheck } from "../../../src/crypto/x509/Lint.ts"
import { lintLeaf } from "../../../src/crypto/x509/Lint.ts"
import {
  nameConstraintsViolation,
  permitsSubject,
  readNameConstraints
} from "../../../src/crypto/x509/NameConstraints.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import { CA_URLS, CRL_URLS, DAY, makeCa, NOW, requestOf, type TestCa } from "../Ca.ts"
import {
  algorithms,
  bitString,
  cn,
  der,
  dns,
  ext,
  hexed,
  int,
  mutate,
  oid,
  pem,
  rsaKey,
  sanOf,
  seeded,
  seq,
  set,
  spkiOf,
  utf8
} from "../Pki.ts"

let ca: TestCa
let rsaCa: TestCa
beforeAll(async () => {
  ca = await makeCa("ecdsa-p256")
  rsaCa = await makeCa("rsa-2048")
})

const timeStamping = "1.3.6.1.5.5.7.3.8"
const policiesOf = (...policies: ReadonlyArray<string>) =>
  ext("2.5.29.32", seq(...policies.map((policy) => seq(oid(policy)))))

/** Every part of a leaf by name. The encoding does not use the service's code. */
const partsOf = (request: LeafRequest) => {
  const digits = (at: number) => Buffer.from(`${new Date(at * 1000).toISOString().slice(2, 19).replace(/[-:T]/g, "")}Z`)
  const keyId = (octets: Uint8Array) => createHash("sha256").update(octets).digest().subarray(0, 20)
  const uris = (urls: ReadonlyArray<string>) => urls.map((url) => der(0x86, Buffer.from(url)))
  const spki: Uint8Array = request.spki
  const { policies, subject, usages } = request.content
  const subjects = [
    ...subject.map(({ type, value }) =>
      set(seq(oid(type), type === "2.5.4.6" ? der(0x13, Buffer.from(value)) : utf8(value)))
    ),
    ...request.commonName === undefined ? [] : [cn(utf8(request.commonName))]
  ]
  return {
    version: der(0xa0, int(2n)) as Uint8Array,
    serial: der(0x02, request.serial) as Uint8Array,
    inner: algorithms.ecdsa as Uint8Array,
    outer: algorithms.ecdsa as Uint8Array,
    issuer: ca.material.subject,
    notBefore: der(0x17, digits(request.notBefore)) as Uint8Array,
    notAfter: der(0x17, digits(request.notAfter)) as Uint8Array,
    subject: seq(...subjects) as Uint8Array,
    spki,
    keyUsage: ext("2.5.29.15", hexed("03020780"), true) as Uint8Array,
    extKeyUsage: ext("2.5.29.37", seq(...usages.map(oid)), usages.join() === timeStamping) as Uint8Array,
    policies: (policies.length === 0 ? Buffer.alloc(0) : policiesOf(...policies)) as Uint8Array,
    ski: ext("2.5.29.14", der(0x04, keyId(spki.subarray(spki.length - 65)))) as Uint8Array,
    aki: ext("2.5.29.35", seq(der(0x80, ca.material.keyIdentifier))) as Uint8Array,
    crldp: ext("2.5.29.31", seq(seq(der(0xa0, der(0xa0, ...uris(CRL_URLS)))))) as Uint8Array,
    aia: ext(
      "1.3.6.1.5.5.7.1.1",
      seq(...uris(CA_URLS).map((url) => seq(oid("1.3.6.1.5.5.7.48.2"), url)))
    ) as Uint8Array,
    san: ext("2.5.29.17", seq(...request.names.map(dns)), subjects.length === 0) as Uint8Array,
    more: [] as ReadonlyArray<Uint8Array>
  }
}
type Parts = ReturnType<typeof partsOf>

const assemble = (parts: Parts, key = ca.privateKey): Buffer => {
  const { aia, aki, crldp, extKeyUsage, keyUsage, more, policies, san, ski } = parts
  const signed = seq(
    parts.version,
    parts.serial,
    parts.inner,
    parts.issuer,
    seq(parts.notBefore, parts.notAfter),
    parts.subject,
    parts.spki,
    der(0xa3, seq(keyUsage, extKeyUsage, policies, ski, aki, crldp, aia, san, ...more))
  )
  return seq(signed, parts.outer, bitString(sign("sha256", signed, key)))
}

describe("lintLeaf", () => {
  const request = requestOf()
  const lint = (der: Uint8Array, one: LeafRequest = request) => lintLeaf(der, { issuer: ca.lint, request: one })
  const none = new Uint8Array()

  it("accepts a leaf that other code has built", () => {
    assert.isUndefined(lint(assemble(partsOf(request))))
    const named = requestOf({ commonName: "a.example.com" })
    assert.isUndefined(lint(assemble(partsOf(named)), named))
  })

  const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey
  const cases: ReadonlyArray<readonly [string, LintCheck, (parts: Parts) => Partial<Parts>]> = [
    ["version 1", "version", () => ({ version: none })],
    ["version 2", "version", () => ({ version: der(0xa0, int(1n)) })],
    ["another serial", "serial", () => ({ serial: der(0x02, Buffer.alloc(16, 0x41)) })],
    ["a short serial", "serial", () => ({ serial: der(0x02, Buffer.alloc(15, 0x41)) })],
    ["a negative serial", "serial", () => ({ serial: der(0x02, Buffer.alloc(16, 0x81)) })],
    ["a padded serial", "der", ({ serial }) => ({ serial: der(0x02, Buffer.alloc(1), serial.subarray(2)) })],
    ["another issuer", "issuer", () => ({ issuer: seq(cn(utf8("Test CA"))) })],
    ["an issuer in another string type", "issuer", () => ({ issuer: seq(cn(der(0x13, Buffer.from("Test CA")))) })],
    ["another start", "validity", () => ({ notBefore: der(0x17, Buffer.from("260101000000Z")) })],
    ["another end", "validity", () => ({ notAfter: der(0x17, Buffer.from("260601000000Z")) })],
    ["a date of the wrong type", "der", () => ({ notAfter: der(0x18, Buffer.from("20260401000000Z")) })],
    ["a common name that was not requested", "subject", () => ({ subject: seq(cn(utf8("a.example.com"))) })],
    ["another key", "key", () => ({ spki: spkiOf(other) })],
    ["key usage not critical", "key_usage", () => ({ keyUsage: ext("2.5.29.15", hexed("03020780")) })],
    ["an additional key usage", "key_usage", () => ({ keyUsage: ext("2.5.29.15", hexed("030205a0"), true) })],
    ["no key usage", "key_usage", () => ({ keyUsage: none })],
    ["clientAuth in addition", "extended_key_usage", () => ({
      extKeyUsage: ext("2.5.29.37", seq(oid("1.3.6.1.5.5.7.3.1"), oid("1.3.6.1.5.5.7.3.2")))
    })],
    ["critical extended key usage", "extended_key_usage", () => ({
      extKeyUsage: ext("2.5.29.37", seq(oid("1.3.6.1.5.5.7.3.1")), true)
    })],
    ["no extended key usage", "extended_key_usage", () => ({ extKeyUsage: none })],
    ["another SKI", "subject_key_identifier", () => ({ ski: ext("2.5.29.14", der(0x04, Buffer.alloc(20))) })],
    ["no SKI", "subject_key_identifier", () => ({ ski: none })],
    ["another AKI", "authority_key_identifier", () => ({ aki: ext("2.5.29.35", seq(der(0x80, Buffer.alloc(20)))) })],
    ["AKI with issuer and serial", "authority_key_identifier", () => ({
      aki: ext(
        "2.5.29.35",
        seq(der(0x80, ca.material.keyIdentifier), der(0xa1, der(0xa4, seq())), der(0x82, hexed("01")))
      )
    })],
    ["no AKI", "authority_key_identifier", () => ({ aki: none })],
    ["another CRL", "crl_distribution_points", () => ({
      crldp: ext("2.5.29.31", seq(seq(der(0xa0, der(0xa0, der(0x86, Buffer.from("http://x/crl")))))))
    })],
    ["two distribution points", "crl_distribution_points", () => {
      const point = (url: string) => seq(der(0xa0, der(0xa0, der(0x86, Buffer.from(url)))))
      return { crldp: ext("2.5.29.31", seq(...CRL_URLS.map(point))) }
    }],
    ["no distribution point", "crl_distribution_points", () => ({ crldp: none })],
    ["an OCSP URL", "authority_info_access", () => ({
      aia: ext("1.3.6.1.5.5.7.1.1", seq(seq(oid("1.3.6.1.5.5.7.48.1"), der(0x86, Buffer.from(CA_URLS[0] ?? "")))))
    })],
    ["no AIA", "authority_info_access", () => ({ aia: none })],
    ["a SAN that is not critical", "san", () => ({ san: sanOf(...request.names.map(dns)) })],
    ["one name too many", "san", () => ({ san: ext("2.5.29.17", seq(...[...request.names, "c"].map(dns)), true) })],
    ["one name too few", "san", () => ({ san: ext("2.5.29.17", seq(dns("a.example.com")), true) })],
    [
      "another order of names",
      "san",
      () => ({ san: ext("2.5.29.17", seq(...request.names.toReversed().map(dns)), true) })
    ],
    ["another type of name", "san", () => ({
      san: ext("2.5.29.17", seq(...request.names.map(dns), der(0x87, hexed("0a000001"))), true)
    })],
    ["no SAN", "san", () => ({ san: none })],
    ["basic constraints", "extensions", () => ({ more: [ext("2.5.29.19", seq(), true)] })],
    ["a policy", "extensions", () => ({ more: [ext("2.5.29.32", seq(seq(oid("2.23.140.1.2.1"))))] })],
    ["an extension twice", "extensions", ({ extKeyUsage }) => ({ more: [extKeyUsage] })],
    ["a SAN twice", "extensions", ({ san }) => ({ more: [san] })],
    ["a default value that is encoded", "der", () => ({
      extKeyUsage: seq(oid("2.5.29.37"), hexed("010100"), der(0x04, seq(oid("1.3.6.1.5.5.7.3.1"))))
    })],
    ["another inner algorithm", "algorithm", () => ({ inner: seq(oid("1.2.840.10045.4.3.3")) })],
    ["another outer algorithm", "algorithm", () => ({ outer: seq(oid("1.2.840.10045.4.3.3")) })],
    ["another algorithm in both places", "algorithm", () => ({ inner: algorithms.rsa, outer: algorithms.rsa })],
    ["parameters that are not for ECDSA", "algorithm", () => {
      const algorithm = seq(oid("1.2.840.10045.4.3.2"), hexed("0500"))
      return { inner: algorithm, outer: algorithm }
    }]
  ]
  for (const [name, check, change] of cases) {
    it(`reports as ${check} a leaf with ${name}`, () => {
      const parts = partsOf(request)
      assert.strictEqual(lint(assemble({ ...parts, ...change(parts) })), check)
    })
  }

  it("reports as subject a common name that is missing, different, not among the names, or too long", () => {
    const named = requestOf({ commonName: "a.example.com" })
    const parts = partsOf(named)
    const withSubject = (subject: Uint8Array, one = named) => lint(assemble({ ...parts, subject }), one)
    assert.strictEqual(withSubject(seq()), "subject")
    assert.strictEqual(withSubject(seq(cn(utf8("b.example.com")))), "subject")
    assert.strictEqual(withSubject(seq(cn(utf8("a.example.com")), cn(utf8("a.example.com")))), "subject")
    assert.strictEqual(withSubject(seq(set(seq(oid("2.5.4.10"), utf8("a.example.com"))))), "subject")
    const foreign = { ...named, commonName: "x.example.com" }
    assert.strictEqual(lint(assemble(partsOf(foreign)), foreign), "subject")
    const long = `${"a".repeat(60)}.example.com`
    const tooLong = { ...named, names: [long], commonName: long }
    assert.strictEqual(lint(assemble(partsOf(tooLong)), tooLong), "subject")
  })

  const kinds = {
    mutual: {
      usages: [keyPurposes.server_auth, keyPurposes.client_auth],
      policies: ["1.3.6.1.4.1.55555.1", "2.23.140.1.2.1"],
      subject: [{ type: "2.5.4.6", value: "CH" }, { type: "2.5.4.10", value: "Bäcker & Söhne" }]
    },
    stamps: { usages: [keyPurposes.time_stamping], policies: [], subject: [] }
  }
  const ofKind = (kind: keyof typeof kinds, more: Partial<LeafRequest> = {}) =>
    requestOf({ content: leafContent(kinds[kind]), ...more })

  it("accepts a leaf of another kind that other code has built", () => {
    for (const one of [ofKind("mutual"), ofKind("mutual", { commonName: "a.example.com" }), ofKind("stamps")]) {
      assert.isUndefined(lint(assemble(partsOf(one)), one))
    }
  })

  const [server, client] = kinds.mutual.usages.map(oid)
  const [first, second] = kinds.mutual.policies
  const usagesOf = (...usages: ReadonlyArray<Uint8Array | undefined>) =>
    ext("2.5.29.37", seq(...usages.map((usage) => usage ?? none)))
  const [country, organization] = [
    set(seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH")))),
    set(seq(oid("2.5.4.10"), utf8("Bäcker & Söhne")))
  ]
  const ofMutual: ReadonlyArray<readonly [string, LintCheck, (parts: Parts) => Partial<Parts>]> = [
    ["its usages in another order", "extended_key_usage", () => ({ extKeyUsage: usagesOf(client, server) })],
    ["one usage more", "extended_key_usage", () => ({ extKeyUsage: usagesOf(server, client, oid(timeStamping)) })],
    ["one usage less", "extended_key_usage", () => ({ extKeyUsage: usagesOf(server) })],
    ["a usage twice", "extended_key_usage", () => ({ extKeyUsage: usagesOf(server, server) })],
    ["critical usages", "extended_key_usage", () => ({
      extKeyUsage: ext("2.5.29.37", seq(server ?? none, client ?? none), true)
    })],
    ["no policies", "certificate_policies", () => ({ policies: none })],
    ["a missing policy", "certificate_policies", () => ({ policies: policiesOf(first ?? "") })],
    ["its policies in another order", "certificate_policies", () => ({
      policies: policiesOf(second ?? "", first ?? "")
    })],
    ["one policy more", "certificate_policies", () => ({
      policies: policiesOf(first ?? "", second ?? "", "2.5.29.32.0")
    })],
    ["critical policies", "certificate_policies", () => ({
      policies: ext("2.5.29.32", seq(...kinds.mutual.policies.map((policy) => seq(oid(policy)))), true)
    })],
    ["a policy with qualifiers", "certificate_policies", () => ({
      policies: ext(
        "2.5.29.32",
        seq(seq(oid(first ?? ""), seq(seq(oid("1.3.6.1.5.5.7.2.2"), seq()))), seq(oid(second ?? "")))
      )
    })],
    ["an empty subject", "subject", () => ({ subject: seq() })],
    ["another organization", "subject", () => ({
      subject: seq(country, set(seq(oid("2.5.4.10"), utf8("Other"))))
    })],
    ["its subject in another order", "subject", () => ({ subject: seq(organization, country) })],
    ["one attribute of the subject less", "subject", () => ({ subject: seq(organization) })],
    ["a common name that is not of the request", "subject", () => ({
      subject: seq(country, organization, cn(utf8("a.example.com")))
    })],
    ["a country in another string type", "subject", () => ({
      subject: seq(set(seq(oid("2.5.4.6"), utf8("CH"))), organization)
    })],
    ["its subject in one relative name", "subject", () => ({
      subject: seq(set(seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH"))), seq(oid("2.5.4.10"), utf8("Bäcker & Söhne"))))
    })],
    ["another attribute in a relative name", "subject", () => ({
      subject: seq(set(seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH"))), seq(oid("2.5.4.7"), utf8("x"))), organization)
    })],
    ["a third part in an attribute", "subject", () => ({
      subject: seq(country, set(seq(oid("2.5.4.10"), utf8("Bäcker & Söhne"), hexed("0500"))))
    })],
    ["a critical SAN beside a subject", "san", () => ({
      san: ext("2.5.29.17", seq(...request.names.map(dns)), true)
    })]
  ]
  for (const [name, check, change] of ofMutual) {
    it(`reports as ${check} a leaf of another kind with ${name}`, () => {
      const one = ofKind("mutual")
      const parts = partsOf(one)
      assert.strictEqual(lint(assemble({ ...parts, ...change(parts) }), one), check)
    })
  }

  it("reports as extended_key_usage time stamping that is not critical, and critical usages beside time stamping", () => {
    const alone = ofKind("stamps")
    const parts = partsOf(alone)
    assert.strictEqual(
      lint(assemble({ ...parts, extKeyUsage: usagesOf(oid(timeStamping)) }), alone),
      "extended_key_usage"
    )
    const usages = [keyPurposes.time_stamping, keyPurposes.server_auth]
    const beside = requestOf({ content: leafContent({ usages, policies: [], subject: [] }) })
    assert.isUndefined(lint(assemble(partsOf(beside)), beside))
    const extKeyUsage = ext("2.5.29.37", seq(...usages.map(oid)), true)
    assert.strictEqual(lint(assemble({ ...partsOf(beside), extKeyUsage }), beside), "extended_key_usage")
  })

  it("reports what a leaf of one kind has if the request is for another kind", () => {
    for (
      const [made, wanted, check] of [
        ["mutual", "stamps", "subject"],
        ["stamps", "mutual", "subject"]
      ] as const
    ) {
      const serial = request.serial
      const leaf = assemble(partsOf(ofKind(made, { serial })))
      assert.strictEqual(lint(leaf, ofKind(wanted, { serial })), check)
    }
    assert.strictEqual(lint(assemble(partsOf(ofKind("stamps", { serial: request.serial })))), "extended_key_usage")
  })

  it("reports as key_usage a leaf with a key of ML-DSA and any other usage than digitalSignature, whatever the request says", () => {
    const spki = spkiOf(generateKeyPairSync("ml-dsa-44").privateKey)
    const keyId = createHash("sha256").update(spki.subarray(spki.length - 1312)).digest().subarray(0, 20)
    const named = requestOf({ spki, keyType: "ml-dsa-44" })
    const parts = { ...partsOf(named), ski: ext("2.5.29.14", der(0x04, keyId)) }
    assert.isUndefined(lint(assemble(parts), named))
    for (const bits of ["030205a0", "03020490", "03020388", "03020640", "03020284", "03020081", "0303078080"]) {
      const leaf = assemble({ ...parts, keyUsage: ext("2.5.29.15", hexed(bits), true) })
      for (const keyType of ["ml-dsa-44", "rsa"] as const) {
        assert.strictEqual(lint(leaf, { ...named, keyType }), "key_usage")
      }
    }
  })

  it("reports as san a SAN that is critical although the subject is not empty", () => {
    const named = requestOf({ commonName: "a.example.com" })
    const san = ext("2.5.29.17", seq(...named.names.map(dns)), true)
    assert.strictEqual(lint(assemble({ ...partsOf(named), san }), named), "san")
  })

  it("reports as validity dates that are inverted or outside the issuer's dates, even if they were requested", () => {
    for (
      const one of [
        requestOf({ notAfter: ca.material.notAfter + 1 }),
        requestOf({ notBefore: ca.material.notBefore - 1 }),
        requestOf({ notBefore: NOW + 10, notAfter: NOW })
      ]
    ) assert.strictEqual(lint(assemble(partsOf(one)), one), "validity")
  })

  it("finds a signature that was made with another key", () => {
    const parts = partsOf(request)
    assert.strictEqual(lint(assemble(parts, other)), "signature")
    assert.strictEqual(lintLeaf(assemble(parts), { issuer: { ...ca.lint, publicKey: other }, request }), "signature")
  })

  it("reports as der a leaf that is truncated, is empty or has trailing bytes", () => {
    const leaf = assemble(partsOf(request))
    assert.strictEqual(lint(Buffer.concat([leaf, Buffer.from([0])])), "der")
    assert.strictEqual(lint(leaf.subarray(0, -1)), "der")
    assert.strictEqual(lint(none), "der")
    const issuer = { ...ca.lint, crlDistributionPoints: [] }
    assert.strictEqual(lintLeaf(leaf, { issuer, request }), "extensions")
  })

  it("accepts no damaged leaf", () => {
    const random = seeded(3)
    const leaf = assemble(partsOf(request))
    for (let i = 0; i < 4000; i++) {
      const damaged = mutate(leaf, random)
      if (!damaged.equals(leaf)) assert.isDefined(lint(damaged), damaged.toString("hex"))
    }
  })
})

describe("name constraints", () => {
  const subtree = (...bases: ReadonlyArray<Uint8Array>) => bases.map((base) => seq(base))
  const read = (permitted: ReadonlyArray<Uint8Array>, excluded: ReadonlyArray<Uint8Array>) =>
    readNameConstraints(seq(
      ...(permitted.length === 0 ? [] : [der(0xa0, ...subtree(...permitted))]),
      ...(excluded.length === 0 ? [] : [der(0xa1, ...subtree(...excluded))])
    ))
  const ip = der(0x87, Buffer.alloc(8))

  it("are read for DNS and directory names, and ignored for other types", () => {
    assert.deepStrictEqual(
      read([dns("Example.com"), ip], [dns(".x")]),
      Result.succeed({
        permitted: ["example.com"],
        excluded: [".x"],
        permittedSubjects: undefined,
        excludedSubjects: []
      })
    )
    assert.deepStrictEqual(
      read([ip], []),
      Result.succeed({ permitted: undefined, excluded: [], permittedSubjects: undefined, excludedSubjects: [] })
    )
    assert.isTrue(Result.isFailure(readNameConstraints(seq(der(0xa0, seq(dns("a"), der(0x80, hexed("01"))))))))
    assert.isTrue(Result.isFailure(readNameConstraints(hexed("0500"))))
  })

  it("allow names below a permitted base", () => {
    const permitted = (base: string, name: string) =>
      nameConstraintsViolation([{ permitted: [base], excluded: [] }], [name]) === undefined
    assert.isTrue(permitted("example.com", "example.com"))
    assert.isTrue(permitted("example.com", "a.b.example.com"))
    assert.isTrue(permitted("example.com", "*.example.com"))
    assert.isFalse(permitted("example.com", "evilexample.com"))
    assert.isFalse(permitted("example.com", "example.com.evil"))
    assert.isFalse(permitted(".example.com", "example.com"))
    assert.isTrue(permitted(".example.com", "a.example.com"))
    assert.isFalse(permitted("a.example.com", "*.example.com"))
    assert.isTrue(permitted("", "any.test"))
  })

  it("refuse names below an excluded base, and wildcards that include such names", () => {
    const excluded = (base: string, name: string) =>
      nameConstraintsViolation([{ permitted: undefined, excluded: [base] }], [name]) !== undefined
    assert.isTrue(excluded("example.com", "example.com"))
    assert.isTrue(excluded("example.com", "*.a.example.com"))
    assert.isTrue(excluded("a.example.com", "*.example.com"))
    assert.isFalse(excluded("b.a.example.com", "*.example.com"))
    assert.isFalse(excluded(".a.example.com", "*.example.com"))
    assert.isFalse(excluded("example.com", "evilexample.com"))
    assert.isFalse(excluded("com", "example.org"))
    assert.isTrue(excluded("", "any.test"))
  })

  it("apply to the subject if they are for directory names", () => {
    const directory = (...relatives: ReadonlyArray<Uint8Array>) => der(0xa4, seq(...relatives))
    const country = set(seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH"))))
    const both = set(seq(oid("2.5.4.3"), utf8("a.test")), seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH"))))
    const permits = (permitted: ReadonlyArray<Uint8Array>, excluded: ReadonlyArray<Uint8Array> = []) =>
      permitsSubject([Result.getOrThrow(read(permitted, excluded))], [{ type: "2.5.4.3", value: "a.test" }])
    assert.isTrue(permits([dns("b.test"), ip]), "those of other types do not")
    assert.isFalse(permits([directory(country)]))
    assert.isFalse(permits([directory(cn(utf8("b.test")))]))
    assert.isFalse(permits([directory(cn(utf8("a.test")), country)]), "a longer base covers no shorter name")
    assert.isFalse(permits([directory(both)]))
    assert.isTrue(permits([directory(country), directory(cn(utf8(" A.Test ")))]))
    assert.isTrue(permits([directory()]), "an empty base covers all")
    assert.isTrue(permits([], [directory(country)]))
    assert.isFalse(permits([], [directory(cn(utf8("a.test")))]))
    assert.isFalse(permits([], [directory()]))
    assert.isFalse(permits([directory()], [directory()]))
    assert.isTrue(permitsSubject([], [{ type: "2.5.4.3", value: "a.test" }]))
    assert.isTrue(Result.isFailure(read([der(0xa4, hexed("0500"))], [])))
  })

  it("for directory names cover subjects of several attributes that begin with theirs", () => {
    const organization = (value: Uint8Array) => set(seq(oid("2.5.4.10"), value))
    const country = set(seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH"))))
    const subject = [
      { type: "2.5.4.6", value: "CH" },
      { type: "2.5.4.10", value: "Bäcker  &  Söhne" },
      { type: "2.5.4.3", value: "a.test" }
    ]
    const covers = (...relatives: ReadonlyArray<Uint8Array>) => {
      const base = der(0xa4, seq(...relatives))
      const [isPermitted, isExcluded] = [
        permitsSubject([Result.getOrThrow(read([base], []))], subject),
        !permitsSubject([Result.getOrThrow(read([], [base]))], subject)
      ]
      assert.strictEqual(isPermitted, isExcluded)
      return isPermitted
    }
    assert.isTrue(covers())
    assert.isTrue(covers(country))
    assert.isTrue(covers(country, organization(utf8(" bäcker & söhne "))))
    assert.isTrue(covers(country, organization(utf8("BäCKER & SöHNE")), cn(utf8("A.test"))))
    assert.isFalse(covers(organization(utf8("Bäcker & Söhne"))), "it is not the first attribute")
    assert.isFalse(covers(cn(utf8("a.test"))), "a fixed subject precedes the common name")
    assert.isFalse(covers(country, organization(utf8("Bäcker"))))
    assert.isFalse(covers(set(seq(oid("2.5.4.6"), der(0x13, Buffer.from("CH"))), seq(oid("2.5.4.10"), utf8("x")))))
    const refusesAll = [Result.getOrThrow(read([], [der(0xa4, seq())]))]
    assert.isFalse(permitsSubject(refusesAll, subject))
    assert.isTrue(permitsSubject(refusesAll, []), "an empty subject")
  })

  it("apply from every certificate of the chain, and the name that violates them is returned", () => {
    const both = [{ permitted: ["example.com"], excluded: [] }, { permitted: undefined, excluded: ["x.example.com"] }]
    assert.strictEqual(nameConstraintsViolation(both, ["a.example.com", "y.x.example.com"]), "y.x.example.com")
    assert.isUndefined(nameConstraintsViolation(both, ["a.example.com"]))
    assert.isUndefined(nameConstraintsViolation([], ["any.test"]))
  })
})

describe("checkChain", () => {
  const request = requestOf()
  const expected = { spki: request.spki, names: request.names, now: NOW }
  const chain = (leaf: Uint8Array, rest: string) => pem("CERTIFICATE", leaf) + rest

  it.effect("accepts good chains, whether the issuer is known or not and the leaf was linted or not", () =>
    Effect.gen(function*() {
      for (const one of [ca, rsaCa]) {
        const leaf = yield* one.issuer.build(request)
        const whole = chain(leaf, one.material.chainPem)
        assert.isUndefined(checkChain(whole, expected))
        assert.isUndefined(checkChain(whole, { ...expected, issuer: one.material }))
        assert.isUndefined(checkChain(whole, { ...expected, issuer: one.material, lintedLeaf: leaf }))
        assert.isUndefined(checkChain(pem("CERTIFICATE", leaf), expected))
        assert.isUndefined(checkChain(whole, { ...expected, names: ["*.b.example.com", "a.example.com"] }))
      }
    }))

  it.effect("names the fault of a bad chain", () =>
    Effect.gen(function*() {
      const leaf = yield* ca.issuer.build(request)
      const whole = chain(leaf, ca.material.chainPem)
      for (const issuer of [undefined, ca.material]) {
        const check = (text: string, changes: Partial<typeof expected> = {}) =>
          checkChain(text, { ...expected, ...changes, issuer })
        assert.strictEqual(check(""), "undecodable")
        assert.strictEqual(check("hello"), "undecodable")
        assert.strictEqual(check(`hello\n${whole}`), "undecodable")
        assert.strictEqual(check(`${whole}hello`), "undecodable")
        assert.strictEqual(check(pem("PRIVATE KEY", leaf) + ca.material.chainPem), "undecodable")
        assert.strictEqual(check(chain(Buffer.concat([leaf, Buffer.from([0])]), ca.material.chainPem)), "undecodable")
        assert.strictEqual(check(chain(leaf, pem("CERTIFICATE", hexed("3000")) + ca.material.chainPem)), "undecodable")
        assert.strictEqual(check(whole, { spki: spkiOf(rsaKey) }), "key")
        assert.strictEqual(check(whole, { names: ["a.example.com"] }), "names")
        assert.strictEqual(check(whole, { names: [...request.names, "c.example.com"] }), "names")
        assert.strictEqual(check(whole, { names: ["a.example.com", "c.example.com"] }), "names")
        assert.strictEqual(check(whole, { now: request.notAfter + 1 }), "validity")
        assert.strictEqual(check(whole, { now: request.notBefore - 1 }), "validity")
        assert.isUndefined(check(whole, { now: request.notAfter }))
        assert.strictEqual(check(chain(leaf, rsaCa.material.chainPem)), "sequence")
        assert.strictEqual(check(chain(leaf, pem("CERTIFICATE", leaf) + ca.material.chainPem)), "sequence")
        assert.strictEqual(check(chain(leaf, ca.material.chainPem.repeat(99))), "sequence")
      }
    }))

  it.effect("verifies the signature of a leaf that was not linted", () =>
    Effect.gen(function*() {
      const forged = assemble(partsOf(request), generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey)
      const leaf = yield* ca.issuer.build(request)
      const whole = chain(forged, ca.material.chainPem)
      assert.strictEqual(checkChain(whole, { ...expected, issuer: ca.material }), "sequence")
      assert.strictEqual(checkChain(whole, { ...expected, issuer: ca.material, lintedLeaf: leaf }), "sequence")
      assert.strictEqual(checkChain(whole, expected), "sequence")
    }))

  it("refuses a SAN that also has names which are not DNS names", () => {
    const parts = partsOf(request)
    const san = ext("2.5.29.17", seq(...request.names.map(dns), der(0x87, hexed("0a000001"))), true)
    assert.strictEqual(checkChain(chain(assemble({ ...parts, san }), ca.material.chainPem), expected), "names")
    const twice = { ...parts, more: [parts.san] }
    assert.strictEqual(checkChain(chain(assemble(twice), ca.material.chainPem), expected), "names")
    const upper = ext("2.5.29.17", seq(...request.names.map((name) => dns(name.toUpperCase()))), true)
    assert.isUndefined(checkChain(chain(assemble({ ...parts, san: upper }), ca.material.chainPem), expected))
  })
})

describe("readCertificate", () => {
  it("never throws an exception on damaged certificates, in 10 000 mutations", () => {
    const random = seeded(seedOf(4))
    const leaf = assemble(partsOf(requestOf({ notAfter: NOW + DAY })))
    for (let i = runsOf(10_000); i > 0; i--) assert.isTrue(Result.isResult(readCertificate(mutate(leaf, random))))
  })
})
