import * as Result from "effect/Result"
import { X509Certificate } from "node:crypto"
import { decode, sameBytes } from "../asn1/DerReader.ts"
import { encodePem, splitPem } from "../asn1/Pem.ts"
import { readAlgorithm } from "../keys/WeakKey.ts"
import type { CaFlaw } from "./CaForm.ts"
import { basicConstraintsOf, caFlaws } from "./CaForm.ts"
import type { CaMaterial } from "./CaMaterial.ts"
import { CaUnusable, loadCa } from "./CaMaterial.ts"
import type { Certificate } from "./Certificate.ts"
import { issued, readCertificate } from "./Certificate.ts"
import { brokenDigests } from "./CsrSignature.ts"

/*
 * Judges what a root elsewhere answered to the request of a CA. The answer may have its certificates in any order. This
 * is done rarely, so its speed does not matter.
 */

interface Read {
  readonly der: Uint8Array
  readonly fields: Certificate
  /** The subject in one line. */
  readonly name: string
  readonly isCa: boolean
  readonly isSelfSigned: boolean
}

const unusable = (detail: string) => Result.fail(new CaUnusable({ detail }))

/** No honest answer has so many certificates, so this only limits the work. */
const mostCertificates = 20

const lineOf = (name: string | undefined): string => (name ?? "").split("\n").join(", ") || "without a name"

const readOne = (der: Uint8Array, number: number): Result.Result<Read, CaUnusable> =>
  Result.gen(function*() {
    const fields = yield* Result.mapError(
      readCertificate(der),
      (fault) => new CaUnusable({ detail: `certificate ${number} is not decodable: ${fault.detail}` })
    )
    const x509 = yield* Result.try({
      try: () => new X509Certificate(der),
      catch: () => new CaUnusable({ detail: `certificate ${number} is not decodable` })
    })
    return {
      der,
      fields,
      name: lineOf(x509.subject),
      isCa: basicConstraintsOf(fields).isCa,
      isSelfSigned: issued(der, der)
    }
  })

/** Reads the certificates of a text, with whatever is around the blocks. A repeated certificate counts once. */
const readAll = (text: string): Result.Result<ReadonlyArray<Read>, CaUnusable> =>
  Result.gen(function*() {
    const blocks = yield* Result.mapError(
      splitPem(text, "around"),
      ({ detail }) => new CaUnusable({ detail: `it is not readable PEM: ${detail}` })
    )
    const other = blocks.find(({ label }) => label !== "CERTIFICATE")
    if (other !== undefined) return yield* unusable(`it holds a ${other.label} and not only certificates`)
    const ders = blocks.map(({ der }) => der).filter((der, at, all) =>
      all.findIndex((one) => sameBytes(one, der)) === at
    )
    if (ders.length === 0) return yield* unusable("it holds no certificate in PEM")
    if (ders.length > mostCertificates) return yield* unusable(`it holds more than ${mostCertificates} certificates`)
    return yield* Result.all(ders.map((der, at) => readOne(der, at + 1)))
  })

/** Finds the certificate of our key. Otherwise says which certificates are there instead. */
const ownOf = (all: ReadonlyArray<Read>, spki: Uint8Array): Result.Result<Read, CaUnusable> => {
  const [own, another] = all.filter(({ fields }) => sameBytes(fields.spki, spki))
  const [only, ...more] = all
  if (own !== undefined && another !== undefined) {
    return unusable("it holds two certificates for the key of the profile, and only one of them can be used")
  }
  if (own !== undefined) {
    return own.isCa
      ? Result.succeed(own)
      : unusable(`the certificate of ${own.name} is not that of a CA: its basicConstraints lack cA TRUE`)
  }
  if (only?.isSelfSigned === true && only.isCa && more.length === 0) {
    return unusable(
      `it holds only the root ${only.name}, whose key is not the key of the profile; the certificate of the issuing CA is missing`
    )
  }
  const leaf = all.find(({ isCa }) => !isCa)
  if (leaf !== undefined) {
    return unusable(
      `the certificate of ${leaf.name} is that of a server or a client and not of a CA, and none is for the key of the profile`
    )
  }
  const names = all.map(({ name }) => name).join("; ")
  return unusable(`no certificate is for the key of the profile; there is: ${names}`)
}

const cutShort = (issuer: Read["fields"]["issuer"], below: Read, left: ReadonlyArray<Read>) => {
  const namesake = left.find(({ fields }) => sameBytes(fields.subject, issuer))
  return unusable(
    namesake === undefined
      ? `the chain ends at ${below.name}: the certificate of its issuer, ${
        lineOf(new X509Certificate(below.der).issuer)
      }, is missing`
      : `${namesake.name} has the name of the issuer of ${below.name}, but did not issue it: its signature, its key identifier or its usage does not fit`
  )
}

/** Climbs from our certificate to a root. Every certificate must be on the way. */
const sorted = (own: Read, all: ReadonlyArray<Read>): Result.Result<ReadonlyArray<Read>, CaUnusable> => {
  const chain = [own]
  let left = all.filter((one) => one !== own)
  for (let below = own; !below.isSelfSigned;) {
    const found = left.filter(({ der }) => issued(der, below.der))
    // A root that is there twice, by itself and signed by another root, ends the chain by itself.
    const above = found.find(({ isSelfSigned }) => isSelfSigned) ?? found[0]
    if (above === undefined) return cutShort(below.fields.issuer, below, left)
    chain.push(above)
    left = left.filter((one) => one !== above)
    below = above
  }
  const [stranger] = left
  return stranger === undefined
    ? Result.succeed(chain)
    : unusable(`the certificate of ${stranger.name} does not belong to the chain of ${own.name}`)
}

const flaws: { readonly [F in CaFlaw]: string } = {
  key_usage_missing: "has no keyUsage",
  subject_key_identifier_missing: "has no subjectKeyIdentifier",
  authority_key_identifier_missing: "has no authorityKeyIdentifier",
  basic_constraints_not_critical: "has basicConstraints that are not critical",
  critical_extension_unknown: "has a critical extension that common verifiers do not know",
  serial_number_negative: "has a negative serial number"
}

const time = (epochSeconds: number): string => new Date(epochSeconds * 1000).toISOString()

/** Returns the first fault of a certificate at its place in the chain, where our own has the place 0. */
const faultAt = ({ der, fields, isSelfSigned, name }: Read, place: number, now: number): string | undefined => {
  const [flaw] = caFlaws(der)
  if (flaw !== undefined) return `the certificate of ${name} ${flaws[flaw]}, so strict verifiers would refuse it`
  if (now > fields.notAfter) return `the certificate of ${name} ended at ${time(fields.notAfter)}`
  if (now < fields.notBefore) return `the certificate of ${name} is valid from ${time(fields.notBefore)} on`
  const { pathLength: length } = basicConstraintsOf(fields)
  if (length !== undefined && length < place) {
    return `the pathLenConstraint ${length} of ${name} forbids ${place} certificates of CAs below it`
  }
  const digest = Result.getOrUndefined(decode(fields.outerAlgorithm, readAlgorithm))
  return !isSelfSigned && digest !== undefined && brokenDigests.has(digest.oid)
    ? `the certificate of ${name} is signed with a digest that is no longer safe, such as SHA-1 or MD5`
    : undefined
}

/**
 * Judges an answer for the key `spki` at an epoch second. Returns the CA with its chain in order, or says exactly what
 * is wrong, in a clause without a full stop.
 */
export const judgeAnswer = (text: string, spki: Uint8Array, now: number): Result.Result<CaMaterial, CaUnusable> =>
  Result.gen(function*() {
    const all = yield* readAll(text)
    const chain = yield* sorted(yield* ownOf(all, spki), all)
    const fault = chain.map((one, place) => faultAt(one, place, now)).find((one) => one !== undefined)
    if (fault !== undefined) return yield* unusable(fault)
    return yield* loadCa(chain.map(({ der }) => encodePem("CERTIFICATE", der)).join(""), { spki })
  })
