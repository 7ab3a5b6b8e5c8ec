import { Either } from "effect"
import type { KeyObject } from "node:crypto"
import { hash, verify, X509Certificate } from "node:crypto"
import type { DerFault, DerReader } from "./Der.ts"
import { decode, sameBytes, Tag } from "./Der.ts"
import type { LeafRequest } from "./Leaf.ts"
import { splitPem } from "./Pem.ts"

/**
 * What is checked of a certificate after it was made and before it is stored: "Lint before storing" of
 * decisions/local-ca.md for own leaves, "Chain check" of decisions/jobs.md for every backend. Reads the finished DER
 * and shares no expected value with `Leaf.ts`, so that one mistake there is not repeated here.
 */

/** One extension of a certificate. */
interface Extension {
  readonly oid: string
  readonly critical: boolean
  /** `critical FALSE` spelled out: a default that DER leaves out, tolerated in foreign certificates. */
  readonly spelledDefault: boolean
  /** The DER inside the OCTET STRING. */
  readonly value: Uint8Array
}

/** A certificate taken apart (RFC 5280 section 4.1). Byte fields are views into the DER; names and algorithms whole. */
export interface Certificate {
  readonly signed: Uint8Array
  /** 2 is v3. */
  readonly version: number
  /** Content octets of the serial number. */
  readonly serial: Uint8Array
  readonly innerAlgorithm: Uint8Array
  readonly issuer: Uint8Array
  /** Epoch seconds, inclusive, both. */
  readonly notBefore: number
  readonly notAfter: number
  readonly subject: Uint8Array
  readonly spki: Uint8Array
  readonly extensions: ReadonlyArray<Extension>
  readonly subjectKeyIdentifier: Uint8Array | undefined
  readonly outerAlgorithm: Uint8Array
  readonly signature: Uint8Array
}

/** Reads one certificate strictly: DER at every depth, no trailing bytes. Nothing is judged beyond form. */
export const readCertificate = (der: Uint8Array): Either.Either<Certificate, DerFault> =>
  decode(der, (whole) => {
    whole.fork().verify()
    const outer = whole.enter(Tag.sequence)
    const fields = outer.fork().enter(Tag.sequence)
    const signed = outer.raw(Tag.sequence)
    const outerAlgorithm = outer.raw(Tag.sequence)
    const signature = outer.bits()
    outer.end()
    const version = fields.next === 0xa0 ? only(fields.enter(0xa0), (inner) => inner.small()) : 0
    const serial = fields.integer()
    const innerAlgorithm = fields.raw(Tag.sequence)
    const issuer = fields.raw(Tag.sequence)
    const validity = fields.enter(Tag.sequence)
    const notBefore = validity.time()
    const notAfter = validity.time()
    validity.end()
    const subject = fields.raw(Tag.sequence)
    const spki = fields.raw(Tag.sequence)
    while (fields.next === 0x81 || fields.next === 0x82) fields.skip()
    const extensions = fields.more ? only(fields.enter(0xa3), readExtensions) : []
    fields.end()
    const identifier = extensions.find(({ oid }) => oid === SUBJECT_KEY_IDENTIFIER)
    const subjectKeyIdentifier = identifier === undefined ? undefined : within(fields, identifier.value, octetString)
    const names = { signed, version, serial, innerAlgorithm, issuer, notBefore, notAfter, subject, spki }
    return { ...names, extensions, subjectKeyIdentifier, outerAlgorithm, signature }
  })

const SUBJECT_KEY_IDENTIFIER = "2.5.29.14"
const SUBJECT_ALT_NAME = "2.5.29.17"

const octetString = (reader: DerReader): Uint8Array => reader.content(Tag.octetString)

/** What `read` finds, which must be all there is. */
const only = <A>(reader: DerReader, read: (reader: DerReader) => A): A => {
  const value = read(reader)
  reader.end()
  return value
}

/** Reads DER wrapped in a field of `outer`; a fault in there is a fault of the whole. */
const within = <A>(outer: DerReader, der: Uint8Array, read: (reader: DerReader) => A): A =>
  Either.getOrElse(decode(der, read), (fault) => outer.fail(fault.detail))

const readExtensions = (reader: DerReader): ReadonlyArray<Extension> => {
  const extensions: Array<Extension> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) {
    const one = list.enter(Tag.sequence)
    const oid = one.oid()
    const spelled = one.next === Tag.boolean
    const critical = spelled && one.boolean()
    extensions.push({ oid, critical, spelledDefault: spelled && !critical, value: one.content(Tag.octetString) })
    one.end()
  }
  return extensions
}

/** The failed check of a leaf: the field `check` of `local_ca_lint_failed`. */
export type LintCheck =
  | "der"
  | "version"
  | "algorithm"
  | "signature"
  | "serial"
  | "issuer"
  | "validity"
  | "subject"
  | "key"
  | "extensions"
  | "key_usage"
  | "extended_key_usage"
  | "subject_key_identifier"
  | "authority_key_identifier"
  | "crl_distribution_points"
  | "authority_info_access"
  | "san"

/** The issuer a leaf is held against; a `CaMaterial` with the two URL lists of the configuration. */
export interface LintIssuer {
  readonly publicKey: KeyObject
  /** DER Name. */
  readonly subject: Uint8Array
  readonly keyIdentifier: Uint8Array
  readonly notBefore: number
  readonly notAfter: number
  readonly crlDistributionPoints: ReadonlyArray<string>
  readonly caIssuerUrls: ReadonlyArray<string>
}

/** The first check a leaf fails, cheapest first, or undefined. `request` is what it was built from. */
export const lintLeaf = (
  der: Uint8Array,
  expected: { readonly issuer: LintIssuer; readonly request: LeafRequest }
): LintCheck | undefined => {
  const { issuer, request } = expected
  const read = readCertificate(der)
  if (Either.isLeft(read)) return "der"
  const leaf = read.right
  if (leaf.extensions.some(({ spelledDefault }) => spelledDefault)) return "der"
  if (leaf.version !== 2) return "version"
  const first = leaf.serial[0] ?? 0
  if (leaf.serial.length !== 16 || first >> 6 !== 1 || !sameBytes(leaf.serial, request.serial)) return "serial"
  if (!sameBytes(leaf.issuer, issuer.subject)) return "issuer"
  if (leaf.notBefore !== request.notBefore || leaf.notAfter !== request.notAfter) return "validity"
  if (leaf.notBefore < issuer.notBefore || leaf.notAfter > issuer.notAfter) return "validity"
  if (leaf.notBefore > leaf.notAfter) return "validity"
  if (!isSubject(leaf.subject, request)) return "subject"
  if (!sameBytes(leaf.spki, request.spki)) return "key"
  const failed = lintExtensions(leaf, issuer, request)
  if (failed !== undefined) return failed
  const scheme = schemeOf(issuer.publicKey)
  if (scheme === undefined || hex(leaf.outerAlgorithm) !== scheme.algorithm) return "algorithm"
  if (!sameBytes(leaf.innerAlgorithm, leaf.outerAlgorithm)) return "algorithm"
  return isSigned(leaf, issuer.publicKey, scheme.digest) ? undefined : "signature"
}

const hex = (octets: Uint8Array): string => Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("hex")

const schemeOf = (key: KeyObject): { readonly algorithm: string; readonly digest: string } | undefined => {
  if (key.asymmetricKeyType === "rsa") return { algorithm: "300d06092a864886f70d01010b0500", digest: "sha256" }
  const curve = key.asymmetricKeyDetails?.namedCurve
  if (curve === "prime256v1") return { algorithm: "300a06082a8648ce3d040302", digest: "sha256" }
  return curve === "secp384r1" ? { algorithm: "300a06082a8648ce3d040303", digest: "sha384" } : undefined
}

const isSigned = (certificate: Certificate, key: KeyObject, digest: string): boolean =>
  Either.getOrElse(Either.try(() => verify(digest, certificate.signed, key, certificate.signature)), () => false)

const isSubject = (subject: Uint8Array, { commonName, names }: LeafRequest): boolean => {
  if (commonName === undefined) return hex(subject) === "3000"
  if (commonName.length > 64 || !names.includes(commonName)) return false
  const text = decode(
    subject,
    (reader) =>
      only(
        reader.enter(Tag.sequence),
        (relatives) =>
          only(relatives.enter(Tag.set), (attributes) =>
            only(attributes.enter(Tag.sequence), (attribute) =>
              attribute.oid() === "2.5.4.3" ? latin1(attribute.content(Tag.utf8String)) : ""))
      )
  )
  return Either.isRight(text) && text.right === commonName
}

const latin1 = (octets: Uint8Array): string =>
  Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("latin1")

const DNS_NAME = 0x82
const URI = 0x86

/** All names of a GeneralNames content, each of the wanted kind. */
const readNames = (list: DerReader, kind: number): ReadonlyArray<string> => {
  const names: Array<string> = []
  while (list.more) names.push(latin1(list.content(kind)))
  return names
}

const isList = (found: Either.Either<ReadonlyArray<string>, DerFault>, wanted: ReadonlyArray<string>): boolean =>
  Either.isRight(found) && found.right.length === wanted.length && found.right.every((name, i) => name === wanted[i])

const lintExtensions = (leaf: Certificate, issuer: LintIssuer, request: LeafRequest): LintCheck | undefined => {
  const left = new Map(leaf.extensions.map((extension) => [extension.oid, extension]))
  if (left.size !== leaf.extensions.length) return "extensions"
  /** Takes the extension out; its value when it is there with the wanted criticality. */
  const take = (oid: string, critical: boolean): Uint8Array => {
    const found = left.get(oid)
    left.delete(oid)
    return found !== undefined && found.critical === critical ? found.value : new Uint8Array()
  }
  if (hex(take("2.5.29.15", true)) !== (request.keyType === "rsa" ? "030205a0" : "03020780")) return "key_usage"
  if (hex(take("2.5.29.37", false)) !== "300a06082b06010505070301") return "extended_key_usage"
  const own = decode(take(SUBJECT_KEY_IDENTIFIER, false), octetString)
  if (!Either.isRight(own) || !sameBytes(own.right, rfc7093(request.spki))) return "subject_key_identifier"
  const authority = decode(
    take("2.5.29.35", false),
    (reader) => only(reader.enter(Tag.sequence), (inner) => inner.content(0x80))
  )
  if (!Either.isRight(authority) || !sameBytes(authority.right, issuer.keyIdentifier)) {
    return "authority_key_identifier"
  }
  const san = decode(
    take(SUBJECT_ALT_NAME, request.commonName === undefined),
    (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME)
  )
  if (request.names.length === 0 || !isList(san, request.names)) return "san"
  if (issuer.crlDistributionPoints.length > 0) {
    const points = decode(
      take("2.5.29.31", false),
      (reader) =>
        only(
          reader.enter(Tag.sequence),
          (list) =>
            only(
              list.enter(Tag.sequence),
              (point) => only(point.enter(0xa0), (name) => readNames(name.enter(0xa0), URI))
            )
        )
    )
    if (!isList(points, issuer.crlDistributionPoints)) return "crl_distribution_points"
  }
  if (issuer.caIssuerUrls.length > 0) {
    const urls = decode(take("1.3.6.1.5.5.7.1.1", false), (reader) => {
      const found: Array<string> = []
      const list = reader.enter(Tag.sequence)
      while (list.more) {
        const entry = list.enter(Tag.sequence)
        if (entry.oid() !== "1.3.6.1.5.5.7.48.2") entry.fail("an access method is not caIssuers")
        found.push(...readNames(entry, URI))
      }
      return found
    })
    if (!isList(urls, issuer.caIssuerUrls)) return "authority_info_access"
  }
  return left.size === 0 ? undefined : "extensions"
}

const rfc7093 = (spki: Uint8Array): Uint8Array => {
  const key = decode(spki, (reader) => {
    const info = reader.enter(Tag.sequence)
    info.skip()
    return info.bits()
  })
  return Either.isRight(key) ? hash("sha256", key.right, "buffer").subarray(0, 20) : new Uint8Array()
}

/** dNSName subtrees of a CA certificate, lower case. */
export interface NameConstraints {
  /** Undefined: no permitted subtree is of type dNSName, so names are not limited by those. */
  readonly permitted: ReadonlyArray<string> | undefined
  readonly excluded: ReadonlyArray<string>
}

/** Reads a nameConstraints value (RFC 5280 section 4.2.1.10); subtrees of other types do not concern DNS names. */
export const readNameConstraints = (value: Uint8Array): Either.Either<NameConstraints, DerFault> =>
  decode(value, (reader) => {
    const fields = reader.enter(Tag.sequence)
    const permitted = fields.next === 0xa0 ? readSubtrees(fields.enter(0xa0)) : []
    const excluded = fields.next === 0xa1 ? readSubtrees(fields.enter(0xa1)) : []
    fields.end()
    return { permitted: permitted.length === 0 ? undefined : permitted, excluded }
  })

const readSubtrees = (list: DerReader): ReadonlyArray<string> => {
  const names: Array<string> = []
  while (list.more) {
    const subtree = list.enter(Tag.sequence)
    if (subtree.next === DNS_NAME) names.push(latin1(subtree.content(DNS_NAME)).toLowerCase())
    else subtree.skip()
    if (subtree.more) subtree.fail("a subtree has bounds, which RFC 5280 rules out")
  }
  return names
}

/**
 * The first of the names that a certificate under these constraints would not be valid for, or undefined. A base
 * covers itself and everything below; with a leading dot only what is below. A wildcard falls out when any name it
 * stands for does.
 */
export const nameConstraintsViolation = (
  constraints: ReadonlyArray<NameConstraints>,
  names: ReadonlyArray<string>
): string | undefined =>
  names.find((name) =>
    constraints.some(({ excluded, permitted }) =>
      excluded.some((base) => isUnder(name, base) || isStoodFor(name, base))
      || (permitted !== undefined && !permitted.some((base) => isUnder(name, base)))
    )
  )

const isUnder = (name: string, base: string): boolean =>
  base === "" || (base.startsWith(".") ? name.endsWith(base) : name === base || name.endsWith(`.${base}`))

/** Whether a wildcard matches the base itself, so that part of what it stands for is excluded. */
const isStoodFor = (name: string, base: string): boolean =>
  name.startsWith("*.") && base.slice(Math.max(0, base.indexOf("."))) === name.slice(1) && !base.startsWith(".")

/** What is wrong with a chain: the field `check` of `order_finalize_chain_rejected`. */
export type ChainCheck = "undecodable" | "key" | "names" | "validity" | "sequence"

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
 * that issuer's own is read no further than the leaf. `lintedLeaf` is the DER of a leaf that {@link lintLeaf} passed
 * under that issuer: the same octets are not verified twice.
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
  }
): ChainCheck | undefined => {
  const known = expected.issuer !== undefined && chainPem.endsWith(expected.issuer.chainPem)
    ? expected.issuer
    : undefined
  const blocks = splitPem(known === undefined ? chainPem : chainPem.slice(0, -known.chainPem.length), "nothing")
  if (Either.isLeft(blocks) || blocks.right.some(({ label }) => label !== "CERTIFICATE")) return "undecodable"
  const [first, second, ...rest] = blocks.right.map(({ der }) => der)
  if (first === undefined) return "undecodable"
  if (rest.length > MAX_CHAIN - 2) return "sequence"
  const read = readCertificate(first)
  if (Either.isLeft(read) || [second, ...rest].some((der) => der !== undefined && !isReadable(der))) {
    return "undecodable"
  }
  const leaf = read.right
  if (!sameBytes(leaf.spki, expected.spki)) return "key"
  if (!hasNames(leaf, expected.names)) return "names"
  if (expected.now < leaf.notBefore || expected.now > leaf.notAfter) return "validity"
  if (second !== undefined) return issued(second, first) ? undefined : "sequence"
  if (known === undefined) return undefined
  if (!sameBytes(leaf.issuer, known.subject)) return "sequence"
  if (expected.lintedLeaf !== undefined && sameBytes(expected.lintedLeaf, first)) return undefined
  const scheme = schemeOf(known.publicKey)
  return scheme !== undefined && isSigned(leaf, known.publicKey, scheme.digest) ? undefined : "sequence"
}

/** Own reader and OpenSSL must both take it: clients use either kind. */
const isReadable = (der: Uint8Array): boolean =>
  Either.isRight(readCertificate(der)) && Either.isRight(Either.try(() => new X509Certificate(der)))

/** Whether one certificate issued another: names, key identifiers, usage and signature. Neither may be undecodable. */
export const issued = (issuer: Uint8Array, subject: Uint8Array): boolean =>
  Either.getOrElse(
    Either.try(() => {
      const above = new X509Certificate(issuer)
      const below = new X509Certificate(subject)
      return below.checkIssued(above) && below.verify(above.publicKey)
    }),
    () => false
  )

const hasNames = (leaf: Certificate, names: ReadonlyArray<string>): boolean => {
  const [san, another] = leaf.extensions.filter(({ oid }) => oid === SUBJECT_ALT_NAME)
  if (san === undefined || another !== undefined) return false
  const read = decode(san.value, (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME))
  if (Either.isLeft(read)) return false
  const found = new Set(read.right.map((name) => name.toLowerCase()))
  return found.size === new Set(names).size && names.every((name) => found.has(name))
}
