import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { verify } from "node:crypto"
import { sequence, unsigned } from "../asn1/DerWriter.ts"
import { base64urlFault, decodeBase64url } from "../Base64url.ts"
import type { MacDigest } from "../Digest.ts"
import { hmac, isSame, sha256 } from "../Digest.ts"
import { mlDsa } from "../keys/MlDsa.ts"
import { BadPublicKey, BadSignatureAlgorithm, MalformedJws } from "./JoseRefused.ts"
import type { AccountKey, SignatureAlgorithm } from "./Jwk.ts"
import { keyKinds } from "./Jwk.ts"

/** The protected header of a request (RFC 8555 section 6.2). Only the JSON types of its members are checked. */
export interface JwsHeader {
  readonly alg: string | undefined
  readonly nonce: string | undefined
  readonly url: string | undefined
  readonly kid: string | undefined
  readonly jwk: { readonly [member: string]: unknown } | undefined
  readonly hasCrit: boolean
}

/** A flattened JWS whose signature has not been verified. */
export interface Jws {
  readonly header: JwsHeader
  readonly payload: Buffer
  readonly signature: Buffer
  readonly signingInput: Buffer
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type Members = { readonly [member: string]: unknown }

const maxDepth = 64
const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = Buffer.from(`"\\[]{}`)

/** Returns whether JSON is nested more deeply than any honest client needs. */
const isTooDeep = (bytes: Uint8Array): boolean => {
  let depth = 0
  let inText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inText) {
      if (byte === backslash) at++
      else if (byte === quote) inText = false
    } else if (byte === quote) inText = true
    else if (byte === openBracket || byte === openBrace) {
      if (++depth > maxDepth) return true
    } else if (byte === closeBracket || byte === closeBrace) depth--
  }
  return false
}

/**
 * Parses UTF-8 JSON that must be an object. Returns `undefined` for anything else, and for a byte order mark, invalid
 * UTF-8, or JSON that is nested too deeply.
 */
export const parseObject = (bytes: Uint8Array): Members | undefined => {
  if (isTooDeep(bytes)) return undefined
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns a sentence that says why {@link parseObject} refuses these bytes. `what` names them, and `form` is what they
 * are not.
 */
export const objectFault = (bytes: Uint8Array, what: string, form = "a JSON object"): string =>
  isTooDeep(bytes) ? `${what} is nested more than ${maxDepth} levels deep.` : `${what} is not ${form}.`

// Matches the first instant of a calendar, in any time zone. Some typed languages write this instant for a time that
// was never set.
const unsetTime =
  /^(?:0001-01-01|0000-12-31)[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)?$/

/**
 * Returns whether the value of an optional member means that there is no value: `null`, an empty text, or a time in the
 * year 1 that was never set. Some encoders write such values instead of leaving the member out. This definition of
 * "absent" applies to the headers and payloads of all requests.
 */
const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || value === "" || (typeof value === "string" && unsetTime.test(value))

/**
 * Returns a JSON object without the optional members that count as absent. If no member does, returns the object
 * itself.
 */
export const withoutAbsent = (
  members: Members,
  optional: ReadonlyArray<string>
): Members => {
  const gone = optional.filter((name) => Object.hasOwn(members, name) && isAbsent(members[name]))
  return gone.length === 0
    ? members
    : Object.fromEntries(Object.entries(members).filter(([name]) => !gone.includes(name)))
}

const malformed = (detail: string) => Result.fail(new MalformedJws({ detail }))

const own = (object: Members, member: string): unknown => Object.hasOwn(object, member) ? object[member] : undefined

/** Reads a member that may be left out. */
const optional = (object: Members, member: string): unknown => {
  const value = own(object, member)
  return isAbsent(value) ? undefined : value
}

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textMembers = ["alg", "nonce", "url", "kid"] as const

/**
 * Checks that the text is a flattened JWS whose protected header can be decoded: row 2 of
 * docs/contribute/decisions/acme-surface.md, "Order of the checks".
 */
export const parseJws = (body: Uint8Array): Result.Result<Jws, MalformedJws> => {
  const envelope = parseObject(body)
  return envelope === undefined ? malformed(objectFault(body, "The body")) : readJws(envelope)
}

/** Does the same as {@link parseJws} for JSON that is already parsed. */
export const readJws = (envelope: unknown): Result.Result<Jws, MalformedJws> => {
  if (!isObject(envelope)) return malformed("It is not a JSON object.")
  if (optional(envelope, "header") !== undefined) return malformed("An unprotected header is not accepted.")
  if (optional(envelope, "signatures") !== undefined) return malformed("The JWS must be in flattened form.")
  const protectedText = own(envelope, "protected")
  const payloadText = own(envelope, "payload")
  const signatureText = own(envelope, "signature")
  if (typeof protectedText !== "string" || typeof payloadText !== "string" || typeof signatureText !== "string") {
    return malformed("A flattened JWS has the members protected, payload and signature.")
  }
  const headerBytes = decodeBase64url(protectedText)
  const payload = decodeBase64url(payloadText)
  const signature = decodeBase64url(signatureText)
  if (headerBytes === undefined || payload === undefined || signature === undefined) {
    const [name, text] = headerBytes === undefined
      ? ["protected", protectedText]
      : payload === undefined
      ? ["payload", payloadText]
      : ["signature", signatureText]
    return malformed(`The member ${name} of the JWS is not base64url: ${base64urlFault(text)}.`)
  }
  const members = parseObject(headerBytes)
  if (members === undefined) return malformed(objectFault(headerBytes, "The protected header"))
  for (const name of textMembers) {
    const value = optional(members, name)
    if (value !== undefined && typeof value !== "string") return malformed(`The header member ${name} must be text.`)
  }
  const jwk = optional(members, "jwk")
  if (jwk !== undefined && !isObject(jwk)) return malformed("The header member jwk must be an object.")
  const nonce = optional(members, "nonce") as string | undefined
  if (nonce !== undefined && decodeBase64url(nonce) === undefined) {
    return malformed(`The nonce is not base64url: ${base64urlFault(nonce)}.`)
  }
  return Result.succeed({
    header: {
      alg: optional(members, "alg") as string | undefined,
      nonce,
      url: optional(members, "url") as string | undefined,
      kid: optional(members, "kid") as string | undefined,
      jwk,
      // `crit` counts as absent only if it is missing, because a client that writes this member, even without a value,
      // asks for something that is not implemented here.
      hasCrit: Object.hasOwn(members, "crit")
    },
    payload,
    signature,
    signingInput: Buffer.from(`${protectedText}.${payloadText}`, "latin1")
  })
}

const described = (algorithms: ReadonlyArray<SignatureAlgorithm>): string =>
  algorithms.map((algorithm) => `${algorithm}, with ${keyKinds[algorithm]}`).join(", or ")

/**
 * Returns the algorithm of an `alg`. Ed25519 is the name that RFC 9864 section 2.2 gives to EdDSA with a key on this
 * curve, and there are no other keys for EdDSA here.
 */
const algorithmOf = (alg: string | undefined): string | undefined => alg === "Ed25519" ? "EdDSA" : alg

/**
 * Checks that requests may be signed with an `alg` (RFC 8555 section 6.2). This is checked before the key. The refusal
 * lists the accepted algorithms, so that the client can make a key for one of them.
 */
export const checkAlgorithm = (
  alg: string | undefined,
  algorithms: ReadonlyArray<SignatureAlgorithm>
): Result.Result<void, BadSignatureAlgorithm> =>
  algorithms.some((known) => known === algorithmOf(alg))
    ? Result.void
    : Result.fail(new BadSignatureAlgorithm({ detail: `The alg must be ${described(algorithms)}.`, algorithms }))

/** Checks that `alg` is the algorithm of the key itself, and that this algorithm is accepted. */
export const checkKey = (
  alg: string | undefined,
  { algorithm }: AccountKey,
  algorithms: ReadonlyArray<SignatureAlgorithm>
): Result.Result<void, BadSignatureAlgorithm | BadPublicKey> => {
  if (!algorithms.includes(algorithm)) {
    const kinds = algorithms.map((one) => keyKinds[one]).join(" or ")
    return Result.fail(new BadPublicKey({ detail: `It must be ${kinds}, and this is ${keyKinds[algorithm]}.` }))
  }
  return algorithmOf(alg) === algorithm
    ? Result.void
    : Result.fail(new BadSignatureAlgorithm({ detail: `The key takes ${algorithm} signatures.`, algorithms }))
}

const es256Half = 32

/**
 * Returns whether an ES256 signature verifies. The signature is R and S, with 32 octets each (RFC 7518 section 3.4).
 * The runtime can also verify this form if it gets the key with options, but that takes half as long again (81 us
 * instead of 53 us on Node 24).
 */
export const verifyEs256 = (input: Uint8Array, key: KeyObject, signature: Uint8Array): boolean =>
  signature.length === 2 * es256Half
  && verify(
    "sha256",
    input,
    key,
    sequence(unsigned(signature.subarray(0, es256Half)), unsigned(signature.subarray(es256Half)))
  )

/** Verifies the other ECDSA signatures (RFC 7518 section 3.4). Each is R followed by S, with the same length. */
const verifyEcdsa = (digest: string, half: number, { signature, signingInput }: Jws, key: KeyObject): boolean =>
  signature.length === 2 * half && verify(digest, signingInput, { key, dsaEncoding: "ieee-p1363" }, signature)

/** Returns whether the signature verifies with the key. The key determines the algorithm. */
export const verifyJws = (jws: Jws, { algorithm, key }: AccountKey): boolean => {
  const { signature, signingInput } = jws
  switch (algorithm) {
    case "ES256":
      return verifyEs256(signingInput, key, signature)
    case "RS256":
      return verify("sha256", signingInput, key, signature)
    case "ES384":
      return verifyEcdsa("sha384", 48, jws, key)
    case "ES512":
      return verifyEcdsa("sha512", 66, jws, key)
    case "EdDSA":
    case "ML-DSA-44":
    case "ML-DSA-65":
    case "ML-DSA-87":
      return verify(null, signingInput, key, signature)
  }
}

/**
 * The number of octets in a signature, for the algorithms that fix this number (RFC 7518 section 3.4, RFC 8037 section
 * 3.1, RFC 9964 section 5).
 */
const signatureOctets: { readonly [alg in SignatureAlgorithm]?: number } = {
  ES256: 2 * es256Half,
  ES384: 96,
  ES512: 132,
  EdDSA: 64,
  ...Object.fromEntries(mlDsa.map(({ algorithm, signatureOctets }) => [algorithm, signatureOctets]))
}

/**
 * Returns the end of a sentence about a signature that {@link verifyJws} refused. If the length of the signature is
 * wrong, the sentence states the length, because the signature may be DER, or a part of it may be too short.
 */
export const signatureFault = ({ signature }: Jws, { algorithm }: AccountKey): string => {
  const octets = signatureOctets[algorithm]
  return octets === undefined || signature.length === octets
    ? "does not verify"
    : `has ${signature.length} octets, and one of ${algorithm} has ${octets}`
}

const macDigests: { readonly [alg: string]: MacDigest } = { HS256: "sha256", HS384: "sha384", HS512: "sha512" }

/** Returns the digest of a MAC algorithm (RFC 7518 section 3.2), or `undefined` if `alg` is not a MAC algorithm. */
export const macDigestOf = (alg: string | undefined): MacDigest | undefined =>
  alg !== undefined && Object.hasOwn(macDigests, alg) ? macDigests[alg] : undefined

/**
 * Returns whether the signature is the MAC (RFC 7518 section 3.2) that a secret produces. The comparison takes constant
 * time.
 */
export const verifyMac = ({ signature, signingInput }: Jws, digest: MacDigest, secret: Uint8Array): boolean =>
  isSame(signature, hmac(digest, secret, [signingInput]))

/** Returns the first 16 hexadecimal digits of the SHA-256 of a value, to be logged in place of the value itself. */
export const fingerprint = (value: string | Uint8Array): string => sha256(value).slice(0, 16)
