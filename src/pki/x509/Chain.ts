import { Either } from "effect"
import type { KeyObject } from "node:crypto"
import { X509Certificate } from "node:crypto"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import { splitPem } from "../asn1/Pem.ts"
import { sha256 } from "../Digest.ts"
import type { Certificate } from "./Certificate.ts"
import { DNS_NAME, isSigned, issued, readCertificate, readNames, schemeOf, SUBJECT_ALT_NAME } from "./Certificate.ts"
import type { ForeignCheck } from "./ForeignLint.ts"
import { lintForeignLeaf } from "./ForeignLint.ts"

/** What is checked of a chain, whichever backend it is from, before it is stored (docs/decisions/keys-and-chains.md). */

/** What is wrong with a chain: the field `check` of `order_finalize_chain_rejected`. */
export type ChainCheck = "undecodable" | "key" | "names" | "validity" | "sequence" | ForeignCheck

const faults: { readonly [check in ChainCheck]: string } = {
  undecodable: "it is not PEM certificates and nothing else; a script prints the chain alone, leaf first",
  key:
    "the first certificate is not for the key of the CSR; a script signs the CSR it is given and prints the leaf first",
  names:
    "its DNS names are not exactly the order's; a script writes the identifiers it is given, and none of the CSR's",
  validity: "it is not valid now; compare the clocks of this host and of the CA, and the dates it writes",
  sequence:
    "each certificate has to be signed by the CA whose certificate is behind it; a script prints the leaf, then "
    + "its issuers in order",
  authority: "the leaf could issue certificates or lists itself (CA:TRUE, keyCertSign or cRLSign); the CA has to write "
    + "CA:FALSE and must not take extensions over from the CSR (OpenSSL: no copy_extensions)",
  usages: "the leaf is for something else than TLS, or an extension is there twice; the CA has to write the key usage "
    + "digitalSignature and the extended key usage serverAuth, with or without clientAuth",
  subject: "the subject has a common name that is none of the order's, or what only the CSR asked for; the CA must not "
    + "take the subject over from the CSR (OpenSSL: -subj /)"
}

/** A failed check in a sentence for whoever runs the signer: what was found, and what to do about it. */
export const faultText = (check: ChainCheck): string => `the chain failed the check ${check}: ${faults[check]}`

/** An issuer whose own chain was checked when it was loaded: a `CaMaterial`. */
export interface KnownIssuer {
  /** Its certificates as PEM, exactly as appended to leaves. */
  readonly chainPem: string
  readonly subject: Uint8Array
  readonly publicKey: KeyObject
}

/** More than any honest chain has; a bound on work. */
const MAX_CHAIN = 10

/**
 * The first thing wrong with a chain, leaf first, or undefined. With `issuer`, a chain that is one certificate before
 * that issuer's own is read no further than the leaf. `lintedLeaf` is the DER of a leaf that `lintLeaf` passed
 * under that issuer: the same octets are not verified twice. With `csr`, the leaf is somebody else's, and linted as such.
 */
export const checkChain = (
  chainPem: string,
  expected: {
    readonly spki: Uint8Array
    readonly names: ReadonlyArray<string>
    /** Epoch seconds. */
    readonly now: number
    readonly issuer?: KnownIssuer | undefined
    readonly lintedLeaf?: Uint8Array | undefined
    /** DER of the request that somebody else answered with this chain. */
    readonly csr?: Uint8Array | undefined
  }
): ChainCheck | undefined => {
  const known = expected.issuer !== undefined && chainPem.endsWith(expected.issuer.chainPem)
    ? expected.issuer
    : undefined
  const blocks = splitPem(known === undefined ? chainPem : chainPem.slice(0, -known.chainPem.length), "nothing")
  if (Either.isLeft(blocks) || blocks.right.some(({ label }) => label !== "CERTIFICATE")) return "undecodable"
  const [first, ...above] = blocks.right.map(({ der }) => der)
  if (first === undefined) return "undecodable"
  if (above.length > MAX_CHAIN - 1) return "sequence"
  const read = readCertificate(first)
  if (Either.isLeft(read) || !above.every(isReadable)) return "undecodable"
  const leaf = read.right
  if (!sameBytes(leaf.spki, expected.spki)) return "key"
  if (!hasNames(leaf, expected.names)) return "names"
  if (expected.now < leaf.notBefore || expected.now > leaf.notAfter) return "validity"
  if (expected.csr !== undefined) {
    const check = lintForeignLeaf(leaf, { csr: expected.csr, names: expected.names })
    if (check !== undefined) return check
  }
  if (above.length > 0) return isSequence([first, ...above]) ? undefined : "sequence"
  if (known === undefined) return undefined
  if (!sameBytes(leaf.issuer, known.subject)) return "sequence"
  if (expected.lintedLeaf !== undefined && sameBytes(expected.lintedLeaf, first)) return undefined
  const scheme = schemeOf(known.publicKey)
  return scheme !== undefined && isSigned(leaf, known.publicKey, scheme.digest) ? undefined : "sequence"
}

/** Whether each certificate but the last was signed by the CA behind it. */
const isSequence = (chain: ReadonlyArray<Uint8Array>): boolean =>
  chain.every((subject, at) => {
    const issuer = chain[at + 1]
    return issuer === undefined || issued(issuer, subject)
  })

/** A stored chain as revocation reads it. */
export interface StoredChain {
  /** DER of the leaf. */
  readonly leaf: Uint8Array
  /** Lower-case hexadecimal SHA-256 of the SubjectPublicKeyInfo of the certificate behind the leaf, if there is one. */
  readonly issuerId: string | undefined
}

/** Takes a stored chain apart; undefined when it holds no certificate. */
export const readStoredChain = (chainPem: string): StoredChain | undefined => {
  const blocks = splitPem(chainPem, "nothing")
  const [leaf, issuer] = Either.isRight(blocks) ? blocks.right : []
  if (leaf === undefined) return undefined
  const read = issuer === undefined ? undefined : Either.getOrUndefined(readCertificate(issuer.der))
  return { leaf: leaf.der, issuerId: read === undefined ? undefined : sha256(read.spki) }
}

/** Own reader and OpenSSL must both take it: clients use either kind. */
const isReadable = (der: Uint8Array): boolean =>
  Either.isRight(readCertificate(der)) && Either.isRight(Either.try(() => new X509Certificate(der)))

const hasNames = (leaf: Certificate, names: ReadonlyArray<string>): boolean => {
  const [san, another] = leaf.extensions.filter(({ oid }) => oid === SUBJECT_ALT_NAME)
  if (san === undefined || another !== undefined) return false
  const read = decode(san.value, (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME))
  if (Either.isLeft(read)) return false
  const found = new Set(read.right.map((name) => name.toLowerCase()))
  return found.size === new Set(names).size && names.every((name) => found.has(name))
}
