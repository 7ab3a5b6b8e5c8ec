import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { X509Certificate } from "node:crypto"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import { encodePem, splitPem } from "../asn1/Pem.ts"
import { sha256 } from "../Digest.ts"
import type { Certificate } from "./Certificate.ts"
import { DNS_NAME, isSigned, issued, readCertificate, readNames, schemeOf, SUBJECT_ALT_NAME } from "./Certificate.ts"
import type { ForeignCheck, ForeignRequest } from "./ForeignLint.ts"
import { lintForeignLeaf } from "./ForeignLint.ts"

/** Checks the chain of any backend before it is stored (docs/contribute/decisions/keys-and-chains.md). */

/** The failed check of a chain: the field `check` of `order_finalize_chain_rejected`. */
export type ChainCheck = "undecodable" | "key" | "names" | "validity" | "lifetime" | "sequence" | ForeignCheck

/** For each check, what its failure means and, if more can be said, what an operator's program must do instead. */
const faults: { readonly [check in ChainCheck]: readonly [found: string, program?: string] } = {
  undecodable: ["it must be PEM certificates and nothing else", "a script has to print only the chain, leaf first"],
  key: [
    "the first certificate is not for the key of the CSR",
    "a script signs the CSR it is given and prints the leaf first"
  ],
  names: [
    "its DNS names are not exactly those of the order",
    "a script has to use the identifiers it is given, not the CSR's"
  ],
  validity: ["it is not valid now; compare the clocks of this host and of the CA, and the dates it writes"],
  lifetime: ["it lives longer than the credential of the account allows"],
  sequence: [
    "each certificate has to be signed by the CA whose certificate follows it",
    "a script prints the leaf, then its issuers in order"
  ],
  authority: [
    "the leaf could issue certificates or lists itself (CA:TRUE, keyCertSign or cRLSign)",
    "the CA has to write CA:FALSE and must not take extensions over from the CSR (OpenSSL: no copy_extensions)"
  ],
  usages: [
    "the leaf is for other uses than TLS, or for uses that its key cannot have, or has an extension twice",
    "the CA has to write the key usage digitalSignature and the extended key usage serverAuth, with or without clientAuth; for a kind of certificate other than default, clientAuth alone is right too, unless the CSR asks for serverAuth"
  ],
  subject: [
    "the subject has a common name that is not in the order, or a part that only the CSR gave",
    "the CA must not take the subject over from the CSR (OpenSSL: -subj /)"
  ]
}

/** Who made a chain: an operator's program, or another party's CA. */
export type ChainMaker = "program" | "upstream"

/** Describes a failed check to the operator of the signer: what the failure means, and what the operator can do. */
export const faultText = (check: ChainCheck, maker: ChainMaker): string => {
  const [found, program] = faults[check]
  const way = maker === "program" ? program : "the profile at the upstream decides that; ask who runs it"
  return `the chain failed the check ${check}: ${[found, ...way === undefined ? [] : [way]].join("; ")}`
}

/** An issuer whose own chain was checked when the issuer was loaded: a `CaMaterial`. */
export interface KnownIssuer {
  /** The certificates of the issuer as PEM, exactly as they are appended to leaves. */
  readonly chainPem: string
  readonly subject: Uint8Array
  readonly publicKey: KeyObject
}

/** The highest number of certificates in a chain. No honest chain has so many, so this only limits the work. */
const MAX_CHAIN = 10

/**
 * Returns the first failed check of a chain (leaf first), or undefined if no check fails. If `issuer` is given and the
 * chain is one leaf followed by the own chain of this issuer, only the leaf is read. `lintedLeaf` is the DER of a leaf
 * that `lintLeaf` has accepted for this issuer, so these octets are not verified again. If `request` is given, another
 * CA has made the leaf, and the rules for leaves of other CAs apply.
 */
export const checkChain = (
  chainPem: string,
  expected: {
    readonly spki: Uint8Array
    readonly names: ReadonlyArray<string>
    /** The current time in epoch seconds. */
    readonly now: number
    readonly issuer?: KnownIssuer | undefined
    readonly lintedLeaf?: Uint8Array | undefined
    /** The request to which another CA answered with this chain. */
    readonly request?: ForeignRequest | undefined
  }
): ChainCheck | undefined => {
  const known = expected.issuer !== undefined && chainPem.endsWith(expected.issuer.chainPem)
    ? expected.issuer
    : undefined
  const blocks = splitPem(known === undefined ? chainPem : chainPem.slice(0, -known.chainPem.length), "nothing")
  if (Result.isFailure(blocks) || blocks.success.some(({ label }) => label !== "CERTIFICATE")) return "undecodable"
  const [first, ...above] = blocks.success.map(({ der }) => der)
  if (first === undefined) return "undecodable"
  if (above.length > MAX_CHAIN - 1) return "sequence"
  const read = readCertificate(first)
  if (Result.isFailure(read) || !above.every(isReadable)) return "undecodable"
  const leaf = read.success
  if (!sameBytes(leaf.spki, expected.spki)) return "key"
  if (!hasNames(leaf, expected.names)) return "names"
  if (expected.now < leaf.notBefore || expected.now > leaf.notAfter) return "validity"
  if (expected.request !== undefined) {
    const check = lintForeignLeaf(leaf, { ...expected.request, names: expected.names })
    if (check !== undefined) return check
  }
  if (above.length > 0) return isSequence([first, ...above]) ? undefined : "sequence"
  if (known === undefined) return undefined
  if (!sameBytes(leaf.issuer, known.subject)) return "sequence"
  if (expected.lintedLeaf !== undefined && sameBytes(expected.lintedLeaf, first)) return undefined
  const scheme = schemeOf(known.publicKey)
  return scheme !== undefined && isSigned(leaf, known.publicKey, scheme.digest) ? undefined : "sequence"
}

/** Returns whether each certificate was signed by the CA that follows it. The last certificate is not checked. */
const isSequence = (chain: ReadonlyArray<Uint8Array>): boolean =>
  chain.every((subject, at) => {
    const issuer = chain[at + 1]
    return issuer === undefined || issued(issuer, subject)
  })

/**
 * Returns the certificates above the leaf of another chain for the same leaf, as PEM, or undefined if it is none: every
 * certificate must be signed by the CA that follows it.
 */
export const readAlternate = (chainPem: string, leaf: Uint8Array): string | undefined => {
  const blocks = splitPem(chainPem, "nothing")
  if (Result.isFailure(blocks) || blocks.success.length > MAX_CHAIN) return undefined
  const chain = blocks.success.map(({ der }) => der)
  const [first, ...above] = chain
  const isChain = first !== undefined && sameBytes(first, leaf) && above.length > 0 && above.every(isReadable) &&
    blocks.success.every(({ label }) => label === "CERTIFICATE") && isSequence(chain)
  return isChain ? above.map((der) => encodePem("CERTIFICATE", der)).join("") : undefined
}

/** The parts of a stored chain that a revocation needs. */
export interface StoredChain {
  /** The leaf as DER. */
  readonly leaf: Uint8Array
  /**
   * The SHA-256 of the SubjectPublicKeyInfo of the certificate after the leaf, if there is one, in lower-case
   * hexadecimal.
   */
  readonly issuerId: string | undefined
}

/** Parses a stored chain. Returns undefined if it contains no certificate. */
export const readStoredChain = (chainPem: string): StoredChain | undefined => {
  const blocks = splitPem(chainPem, "nothing")
  const [leaf, issuer] = Result.isSuccess(blocks) ? blocks.success : []
  if (leaf === undefined) return undefined
  const read = issuer === undefined ? undefined : Result.getOrUndefined(readCertificate(issuer.der))
  return { leaf: leaf.der, issuerId: read === undefined ? undefined : sha256(read.spki) }
}

/**
 * Returns whether both this service's reader and OpenSSL accept a certificate, because clients use either kind of
 * reader.
 */
const isReadable = (der: Uint8Array): boolean =>
  Result.isSuccess(readCertificate(der)) && Result.isSuccess(Result.try(() => new X509Certificate(der)))

const hasNames = (leaf: Certificate, names: ReadonlyArray<string>): boolean => {
  const [san, another] = leaf.extensions.filter(({ oid }) => oid === SUBJECT_ALT_NAME)
  if (san === undefined || another !== undefined) return false
  const read = decode(san.value, (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME))
  if (Result.isFailure(read)) return false
  const found = new Set(read.success.map((name) => name.toLowerCase()))
  return found.size === new Set(names).size && names.every((name) => found.has(name))
}
