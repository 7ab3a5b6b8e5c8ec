import { describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { X509Certificate } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { encodePem } from "../../../src/crypto/asn1/Pem.ts"
import { judgeAnswer } from "../../../src/crypto/x509/CaAnswer.ts"
import { encodeSubject, signIssuing, signRoot } from "../../../src/crypto/x509/CaCertificate.ts"
import { caFacts } from "../../../src/crypto/x509/CaFacts.ts"
import { makeCaKey } from "../../../src/crypto/x509/CaKey.ts"
import { loadCa } from "../../../src/crypto/x509/CaMaterial.ts"
import { newEcKey } from "../../support/Keys.ts"
import { daySeconds, foreignCa, keyPem, madeAt } from "../../support/LocalCa.ts"
import { newSerial } from "../Ca.ts"
import { ecKey, ext, hexed, openssl, seq, spkiOf, withDirectory } from "../Pki.ts"

const root = foreignCa({ name: "Root" })
const middle = foreignCa({ name: "Middle CA", issuer: root })
const issuing = foreignCa({ name: "Issuing", issuer: middle, key: ecKey })
const whole = issuing.certificatePem + middle.certificatePem + root.certificatePem

const refusal = (text: string, now = madeAt): string =>
  Result.match(judgeAnswer(text, spkiOf(ecKey), now), {
    onFailure: ({ detail }) => detail,
    onSuccess: () => "accepted"
  })

/** The certificate of a TLS server, from OpenSSL. */
const leafOf = (key: typeof ecKey): string =>
  withDirectory((directory) => {
    const file = join(directory, "key")
    writeFileSync(file, keyPem(key))
    const words = ["req", "-x509", "-key", file, "-subj", "/CN=www.example.org"]
    return openssl([...words, "-addext", "basicConstraints=critical,CA:FALSE"]).toString()
  })

describe("judgeAnswer", () => {
  it("accepts the certificates in any order, with text around them, CRLF and a repetition", () => {
    const [one, two, three] = [issuing, middle, root].map(({ certificatePem }) => certificatePem)
    for (const order of [[one, two, three], [three, two, one], [two, one, three, one], [three, one, two]]) {
      const text = `\ufeffHello,\n\n${order.join("subject=x\n")}\n-- \nyour root\n`
      for (const given of [text, text.replaceAll("\n", "\r\n")]) {
        assert.strictEqual(Result.getOrThrow(judgeAnswer(given, spkiOf(ecKey), madeAt)).chainPem, whole)
      }
    }
  })

  it("accepts a root of our key", () => {
    assert.strictEqual(refusal(foreignCa({ name: "Own", key: ecKey }).certificatePem), "accepted")
  })

  it("refuses what is not for our key, and says what it is", () => {
    assert.include(refusal(root.certificatePem), "holds only the root CN=Root, whose key is not the key of the profile")
    assert.include(refusal(leafOf(newEcKey())), "CN=www.example.org is that of a server or a client and not of a CA")
    assert.include(refusal(leafOf(ecKey)), "CN=www.example.org is not that of a CA: its basicConstraints lack cA TRUE")
    const other = foreignCa({ name: "Other", issuer: root })
    assert.include(
      refusal(other.certificatePem + root.certificatePem),
      "no certificate is for the key of the profile; there is: CN=Other; CN=Root"
    )
    const twice = foreignCa({ name: "Issuing", issuer: root, key: ecKey })
    assert.include(refusal(whole + twice.certificatePem), "two certificates for the key of the profile")
  })

  it("refuses a chain that lacks a certificate, has a wrong one, or has one too many", () => {
    assert.include(
      refusal(issuing.certificatePem + root.certificatePem),
      "the chain ends at CN=Issuing: the certificate of its issuer, CN=Middle CA, is missing"
    )
    const namesake = foreignCa({ name: "Middle CA", issuer: root })
    assert.include(
      refusal(issuing.certificatePem + namesake.certificatePem + root.certificatePem),
      "CN=Middle CA has the name of the issuer of CN=Issuing, but did not issue it"
    )
    const stranger = foreignCa({ name: "Stranger" })
    assert.include(refusal(whole + stranger.certificatePem), "CN=Stranger does not belong to the chain of CN=Issuing")
  })

  it("refuses a CA that may not issue, or whose form or dates are wrong", () => {
    const below = (more: Partial<Parameters<typeof foreignCa>[0]>, above = root) =>
      refusal(foreignCa({ name: "Issuing", issuer: above, key: ecKey, ...more }).certificatePem + above.certificatePem)
    assert.strictEqual(below({}), "accepted")
    assert.include(below({ without: ["keyUsage"] }), "CN=Issuing has no keyUsage")
    assert.include(below({ without: ["subjectKeyIdentifier"] }), "has no subjectKeyIdentifier")
    assert.include(below({ without: ["authorityKeyIdentifier"] }), "has no authorityKeyIdentifier")
    assert.include(below({ hasCriticalConstraints: false }), "basicConstraints that are not critical")
    const usage = (bits: string) => below({ without: ["keyUsage"], more: [ext("2.5.29.15", hexed(bits), true)] })
    assert.include(usage("03020102"), "lacks keyCertSign")
    assert.include(usage("03020204"), "lacks cRLSign")
    assert.include(below({ notAfter: madeAt - 1 }), "CN=Issuing ended at 2025-12-31T23:59:59.000Z")
    assert.include(below({ notBefore: madeAt + 60 }), "CN=Issuing is valid from 2026-01-01T00:01:00.000Z on")
    const ended = foreignCa({ name: "Ended", notAfter: madeAt - daySeconds })
    assert.include(below({}, ended), "CN=Ended ended at")
    const unreadable = ext("2.5.29.30", seq(hexed("a0083006820161800101")), true)
    assert.include(below({ more: [unreadable] }), "name constraints of the CA are not decodable")
  })

  it("refuses a text without a certificate, with a key, or that is cut short", () => {
    assert.include(refusal(""), "holds no certificate in PEM")
    assert.include(refusal("the certificate is attached"), "holds no certificate in PEM")
    assert.include(refusal(whole + keyPem(ecKey)), "holds a PRIVATE KEY and not only certificates")
    assert.notInclude(refusal(whole + keyPem(ecKey)), "MII")
    assert.include(refusal(whole.slice(0, -40)), "not closed")
    assert.include(
      refusal("-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"),
      "certificate 1 is not decodable"
    )
  })
})

describe("signRoot and signIssuing", () => {
  it.effect("make a chain whose constraints OpenSSL reads", () =>
    Effect.gen(function*() {
      const rootKey = Result.getOrThrow(makeCaKey(newEcKey()))
      const dates = { notBefore: madeAt - 3600, notAfter: madeAt + 365 * daySeconds }
      const above = yield* signRoot(rootKey, {
        subject: encodeSubject({ commonName: "Root" }),
        serial: newSerial(),
        ...dates
      })
      const rootPem = encodePem("CERTIFICATE", above)
      const { keyIdentifier, subject } = Result.getOrThrow(loadCa(rootPem, rootKey))
      const make = (permitted: ReadonlyArray<string>) =>
        signIssuing({ key: rootKey, keyIdentifier, subject }, {
          subject: encodeSubject({ commonName: "Issuing" }),
          spki: spkiOf(ecKey),
          serial: newSerial(),
          ...dates,
          permitted
        })
      const der = yield* make(["corp.example", "example.org"])
      const text = openssl(["x509", "-noout", "-text"], encodePem("CERTIFICATE", der)).toString()
      for (
        const part of [
          "CA:TRUE, pathlen:0",
          "Certificate Sign, CRL Sign",
          "X509v3 Name Constraints: critical",
          "DNS:corp.example",
          "DNS:example.org",
          "IP:0.0.0.0/0.0.0.0"
        ]
      ) assert.include(text, part)
      assert.strictEqual(refusal(rootPem + encodePem("CERTIFICATE", der)), "accepted")
      assert.deepStrictEqual(caFacts(der)?.permitted, ["corp.example", "example.org"])
      assert.deepInclude(caFacts(der), { subject: "CN=Issuing", pathLength: 0, keyType: "ecdsa-p256" })
      assert.deepInclude(caFacts(above), { pathLength: undefined, permitted: undefined })
      assert.strictEqual(caFacts(der)?.serial, new X509Certificate(der).serialNumber.toLowerCase())
      assert.isUndefined(caFacts(yield* make([]))?.permitted)
    }))

  it.effect("make a CA below which judgeAnswer refuses another CA", () =>
    Effect.gen(function*() {
      const [rootKey, middleKey] = [Result.getOrThrow(makeCaKey(newEcKey())), Result.getOrThrow(makeCaKey(newEcKey()))]
      const fields = (name: string) => ({
        subject: encodeSubject({ commonName: name }),
        serial: newSerial(),
        notBefore: madeAt - 3600,
        notAfter: madeAt + 365 * daySeconds
      })
      const rootPem = encodePem("CERTIFICATE", yield* signRoot(rootKey, fields("Root")))
      const above = { ...Result.getOrThrow(loadCa(rootPem, rootKey)), key: rootKey }
      const middlePem = encodePem(
        "CERTIFICATE",
        yield* signIssuing(above, { ...fields("Middle"), spki: middleKey.spki, permitted: [] })
      )
      const middle = { ...Result.getOrThrow(loadCa(middlePem, middleKey)), key: middleKey }
      const der = yield* signIssuing(middle, { ...fields("Issuing"), spki: spkiOf(ecKey), permitted: [] })
      assert.include(
        refusal(encodePem("CERTIFICATE", der) + middlePem + rootPem),
        "the pathLenConstraint 0 of CN=Middle forbids 1 certificates of CAs below it"
      )
    }))
})
