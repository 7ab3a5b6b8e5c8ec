import { describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { sign } from "node:crypto"
import { assert } from "vitest"
import { checkChain, faultText } from "../../../src/crypto/x509/Chain.ts"
import { checkCsrNames, parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import type { ForeignCa } from "../../support/LocalCa.ts"
import { daySeconds, foreignCa, madeAt } from "../../support/LocalCa.ts"
import {
  algorithms,
  bitString,
  cn,
  csrOf,
  der,
  dns,
  ecKey,
  ext,
  hexed,
  int,
  oid,
  pem,
  sanOf,
  seq,
  set,
  spkiOf,
  utf8
} from "../Pki.ts"

/* Tests the check of chains that a program or an upstream made, perhaps with fields copied from a request. */

const name = "a.example"
const date = (at: number) =>
  der(0x17, Buffer.from(`${new Date(at * 1000).toISOString().slice(2, 19).replace(/[-:T]/g, "")}Z`))
const organisation = (value: Uint8Array) => set(seq(oid("2.5.4.10"), value))
const usage = (bits: string) => ext("2.5.29.15", hexed(bits), true)
const purposes = (...uses: ReadonlyArray<string>) => ext("2.5.29.37", seq(...uses.map((use) => oid(use))))
const constraints = (content: string) => ext("2.5.29.19", hexed(content), true)
const [serverAuth, clientAuth, codeSigning] = ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.3"]

const root = foreignCa({ name: "Root" })
const issuing = foreignCa({ name: "Issuing", issuer: root })

const leafBy = (
  issuer: ForeignCa,
  { extensions = [], issuerName = seq(cn(utf8(issuer.name))), subject = seq() }: {
    readonly extensions?: ReadonlyArray<Uint8Array>
    readonly issuerName?: Uint8Array
    readonly subject?: Uint8Array
  } = {}
): string => {
  const signed = seq(
    der(0xa0, int(2n)),
    int(0x41n),
    algorithms.ecdsa,
    issuerName,
    seq(date(madeAt - daySeconds), date(madeAt + daySeconds)),
    subject,
    spkiOf(ecKey),
    der(0xa3, seq(sanOf(dns(name)), ...extensions))
  )
  return pem("CERTIFICATE", seq(signed, algorithms.ecdsa, bitString(sign("sha256", signed, issuer.key))))
}

const check = (chain: string, csrSubject: Uint8Array = seq(), mayLackServerAuth = false) =>
  checkChain(chain, {
    spki: spkiOf(ecKey),
    names: [name],
    now: madeAt,
    request: { csr: csrOf({ subject: csrSubject, extensions: [sanOf(dns(name))] }), mayLackServerAuth }
  })

/** Returns the fault of a leaf with these extensions. */
const withExtensions = (...extensions: ReadonlyArray<Uint8Array>) => check(leafBy(root, { extensions }))

/** Returns the fault of a leaf with this subject. */
const withSubject = (subject: Uint8Array, csrSubject?: Uint8Array) => check(leafBy(root, { subject }), csrSubject)

describe("a signer that copies the subject", () => {
  const point = (width: number) => (text: string) =>
    Buffer.concat(Array.from(text, (character) => {
      const unit = Buffer.alloc(width)
      unit.writeUIntBE(character.codePointAt(0) ?? 0, 0, width)
      return unit
    }))
  const forms: ReadonlyArray<readonly [tag: number, (text: string) => Buffer]> = [
    [0x0c, (text) => Buffer.from(text)],
    [0x13, (text) => Buffer.from(text, "latin1")],
    [0x14, (text) => Buffer.from(text, "latin1")],
    [0x16, (text) => Buffer.from(text, "latin1")],
    [0x1c, point(4)],
    [0x1e, point(2)]
  ]
  const text = fc.oneof(
    fc.constantFrom(
      "",
      "a",
      "localhost",
      "router",
      name,
      `${name}.`,
      ` ${name}`,
      "A.Example",
      `${name}\u00a0`,
      "evil.test",
      "plain words",
      "10.0.0.5"
    ),
    fc.stringOf(fc.constantFrom("a", ".", "A", " ", "é", "-"), { maxLength: 12 })
  )
  const commonName = fc.tuple(fc.nat({ max: forms.length - 1 }), text).map(([at, value]) => {
    const [tag, octets] = forms[at] ?? assert.fail("no form")
    return cn(der(tag, octets(value)))
  })

  it("never gets a request whose certificate would then fail the check of its names", () => {
    const seen = new Set<boolean>()
    fc.assert(
      fc.property(fc.array(commonName, { maxLength: 3 }), (names) => {
        const subject = seq(...names)
        const read = parseCsr(csrOf({ subject, extensions: [sanOf(dns(name))] }))
        const isTaken = Result.isSuccess(read) && Result.isSuccess(checkCsrNames(read.success, [name], true))
        seen.add(isTaken)
        if (isTaken) assert.isUndefined(withSubject(subject, subject))
      }),
      { numRuns: runsOf(500), seed: seedOf(56) }
    )
    assert.strictEqual(seen.size, 2)
  })
})

describe("a leaf that another CA made", () => {
  it("is accepted in the forms that small and large CAs use for TLS servers", () => {
    assert.isUndefined(withExtensions())
    assert.isUndefined(withExtensions(constraints("3000"), usage("030205a0"), purposes(serverAuth, clientAuth)))
    assert.isUndefined(withExtensions(constraints("3003010100"), usage("03020780"), purposes(serverAuth)))
    assert.isUndefined(withExtensions(usage("030204f0")))
    assert.isUndefined(withExtensions(usage("03020308")))
  })

  it("is refused if it is a CA, or may sign certificates or lists", () => {
    assert.strictEqual(withExtensions(constraints("30030101ff")), "authority")
    assert.strictEqual(withExtensions(constraints("30060101ff020100")), "authority")
    assert.strictEqual(withExtensions(constraints("0500")), "authority")
    assert.strictEqual(withExtensions(usage("03020204")), "authority")
    assert.strictEqual(withExtensions(usage("03020284")), "authority")
    assert.strictEqual(withExtensions(usage("03020186")), "authority")
    assert.strictEqual(withExtensions(usage("0500")), "authority")
  })

  it("is refused if it may be used for anything other than TLS", () => {
    assert.strictEqual(withExtensions(usage("03020640")), "usages")
    assert.strictEqual(withExtensions(purposes(serverAuth, codeSigning)), "usages")
    assert.strictEqual(withExtensions(purposes(clientAuth)), "usages")
    assert.strictEqual(withExtensions(purposes("2.5.29.37.0")), "usages")
    assert.strictEqual(withExtensions(ext("2.5.29.37", hexed("0500"))), "usages")
    assert.strictEqual(withExtensions(constraints("3000"), constraints("30030101ff")), "usages")
  })

  it("may be for TLS clients alone only if the kind allows that, and then for nothing else", () => {
    const ofAnotherKind = (...uses: ReadonlyArray<string>) =>
      check(leafBy(root, { extensions: [purposes(...uses)] }), seq(), true)
    assert.strictEqual(withExtensions(purposes(clientAuth)), "usages")
    assert.isUndefined(ofAnotherKind(clientAuth))
    assert.isUndefined(ofAnotherKind(serverAuth))
    assert.isUndefined(ofAnotherKind(clientAuth, serverAuth))
    assert.strictEqual(ofAnotherKind(codeSigning), "usages")
    assert.strictEqual(ofAnotherKind(clientAuth, codeSigning), "usages")
    assert.strictEqual(ofAnotherKind(), "usages")
    assert.strictEqual(ofAnotherKind("2.5.29.37.0"), "usages")
  })

  it("is refused if its common name is not a name of the order", () => {
    assert.isUndefined(withSubject(seq(cn(utf8(name)))))
    assert.isUndefined(withSubject(seq(cn(der(0x13, Buffer.from("A.Example"))))))
    assert.strictEqual(withSubject(seq(cn(utf8("b.example")))), "subject")
    assert.strictEqual(withSubject(seq(cn(utf8(`${name}\u00a0`)))), "subject")
    assert.strictEqual(withSubject(seq(cn(utf8(name)), cn(utf8("The Bank")))), "subject")
    assert.strictEqual(withSubject(seq(cn(der(0x1e, Buffer.from("\0b\0.\0e"))))), "subject")
    assert.strictEqual(withSubject(seq(set(seq()))), "subject")
  })

  it("may name an organisation that its CA chose, but not one that the client asked for", () => {
    const subject = seq(organisation(utf8("The Bank")), cn(utf8(name)))
    assert.isUndefined(withSubject(subject))
    assert.isUndefined(withSubject(subject, seq(organisation(utf8("Another")))))
    assert.strictEqual(withSubject(subject, subject), "subject")
    assert.strictEqual(withSubject(subject, seq(organisation(der(0x13, Buffer.from("THE BANK"))))), "subject")
    const issuerName = seq(organisation(utf8("The Bank")), cn(utf8("Its CA")))
    assert.isUndefined(check(leafBy(root, { subject, issuerName }), subject))
  })
})

describe("the chain above a leaf from another CA", () => {
  it("must be signed by a CA at every step", () => {
    const leaf = leafBy(issuing)
    assert.isUndefined(check(leaf + issuing.certificatePem))
    assert.isUndefined(check(leaf + issuing.certificatePem + root.certificatePem))
    const another = foreignCa({ name: "Root" })
    assert.strictEqual(check(leaf + issuing.certificatePem + another.certificatePem), "sequence")
    assert.strictEqual(check(leaf + root.certificatePem + issuing.certificatePem), "sequence")
    const noCa = { name: "An end entity", key: ecKey }
    const below = leafBy(root, { subject: seq(cn(utf8(noCa.name))), extensions: [constraints("3000")] })
    assert.strictEqual(check(leafBy({ ...noCa, certificatePem: below }) + below), "sequence")
  })
})

describe("the message about a failed check", () => {
  it("names the check, and says how to solve the problem", () => {
    assert.match(
      faultText("authority", "program"),
      /^the chain failed the check authority: .*CA:FALSE.*copy_extensions/
    )
    assert.match(faultText("subject", "program"), /^the chain failed the check subject: .*-subj/)
    for (const check of ["undecodable", "key", "names", "sequence", "authority", "usages", "subject"] as const) {
      assert.match(faultText(check, "upstream"), /; the profile at the upstream decides that; ask who runs it$/)
      assert.notMatch(faultText(check, "upstream"), /script|OpenSSL/)
    }
    assert.match(faultText("usages", "program"), /^the chain failed the check usages: .*serverAuth/)
  })
})
