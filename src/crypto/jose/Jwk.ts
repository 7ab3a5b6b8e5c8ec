import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { createPublicKey } from "node:crypto"
import { decodeBase64url } from "../Base64url.ts"
import { sha256Octets } from "../Digest.ts"
import type { MlDsa } from "../keys/MlDsa.ts"
import { importMlDsa, isMlDsaSupported, mlDsa, mlDsaSpki } from "../keys/MlDsa.ts"
import { maxExponentOctets } from "../keys/WeakKey.ts"
import { BadPublicKey } from "./JoseRefused.ts"

/** The algorithms with which an account may sign (RFC 7518 section 3.1, RFC 8037). */
export const accountAlgorithms = ["ES256", "RS256", "ES384", "ES512", "EdDSA"] as const
export type SignatureAlgorithm = (typeof accountAlgorithms)[number] | MlDsa["algorithm"]

/**
 * Returns the algorithms with which the key of a certificate may sign. Each kind of key that may be certified has one
 * algorithm. Those of ML-DSA (RFC 9964) are among them if the runtime can verify them.
 */
export const certificateAlgorithms = (): ReadonlyArray<SignatureAlgorithm> => [
  ...accountAlgorithms,
  ...mlDsa.filter(isMlDsaSupported).map(({ algorithm }) => algorithm)
]

/** For each algorithm, the kind of key that signs with it, in words. */
export const keyKinds: { readonly [A in SignatureAlgorithm]: string } = {
  ES256: "a P-256 key",
  RS256: "an RSA key",
  ES384: "a P-384 key",
  ES512: "a P-521 key",
  EdDSA: "an Ed25519 key",
  "ML-DSA-44": "an ML-DSA-44 key",
  "ML-DSA-65": "an ML-DSA-65 key",
  "ML-DSA-87": "an ML-DSA-87 key"
}

/** A public key that verifies signed requests. */
export interface AccountKey {
  readonly algorithm: SignatureAlgorithm
  readonly key: KeyObject
  /** The key as DER SubjectPublicKeyInfo, in the form of `accounts.pubkey` and `orders.cert_pubkey`. */
  readonly spki: Buffer
  /** The SHA-256 of the canonical JWK (RFC 7638) in base64url. */
  readonly thumbprint: string
}

const refuse = (detail: string) => Result.fail(new BadPublicKey({ detail }))

const thumbprintOf = (canonical: string): string => sha256Octets(canonical).toString("base64url")

interface Curve {
  readonly crv: "P-256" | "P-384" | "P-521"
  readonly algorithm: SignatureAlgorithm
  /** The number of octets in a coordinate. */
  readonly size: number
  /** The AlgorithmIdentifier and the start of the BIT STRING; the coordinates follow. */
  readonly prefix: Buffer
}

const curves: ReadonlyArray<Curve> = [
  {
    crv: "P-256",
    algorithm: "ES256",
    size: 32,
    prefix: Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex")
  },
  {
    crv: "P-384",
    algorithm: "ES384",
    size: 48,
    prefix: Buffer.from("3076301006072a8648ce3d020106052b8104002203620004", "hex")
  },
  {
    crv: "P-521",
    algorithm: "ES512",
    size: 66,
    prefix: Buffer.from("30819b301006072a8648ce3d020106052b810400230381860004", "hex")
  }
]

type Jwk = { readonly [member: string]: unknown }

const ecThumbprint = ({ crv, x, y }: Jwk): string =>
  thumbprintOf(`{"crv":"${String(crv)}","kty":"EC","x":"${String(x)}","y":"${String(y)}"}`)

const importEc = (jwk: Jwk): Result.Result<AccountKey, BadPublicKey> => {
  const { crv, x, y } = jwk
  const curve = curves.find((one) => one.crv === crv)
  if (curve === undefined) return refuse("An EC key must be on curve P-256, P-384 or P-521.")
  const { algorithm, prefix, size } = curve
  const [left, right] = [x, y].map((member) => typeof member === "string" ? decodeBase64url(member) : undefined)
  if (left?.length !== size || right?.length !== size) {
    return refuse(`EC coordinates must be base64url of exactly ${size} octets.`)
  }
  const spki = Buffer.concat([prefix, left, right])
  try {
    // For the larger curves, the JWK import costs four times as much as the DER import (crypto/keys/WeakKey.ts).
    const key = crv === "P-256"
      ? createPublicKey({ key: { kty: "EC", crv, x: String(x), y: String(y) }, format: "jwk" })
      : createPublicKey({ key: spki, format: "der", type: "spki" })
    return Result.succeed({ algorithm, key, spki, thumbprint: ecThumbprint(jwk) })
  } catch {
    return refuse(`The EC coordinates are not a point of curve ${curve.crv}.`)
  }
}

const ed25519Prefix = Buffer.from("302a300506032b6570032100", "hex")
const ed25519Size = 32

const okpThumbprint = ({ x }: Jwk): string => thumbprintOf(`{"crv":"Ed25519","kty":"OKP","x":"${String(x)}"}`)

const importOkp = (jwk: Jwk): Result.Result<AccountKey, BadPublicKey> => {
  const { crv, x } = jwk
  if (crv !== "Ed25519") return refuse("An OKP key must be on curve Ed25519.")
  const octets = typeof x === "string" ? decodeBase64url(x) : undefined
  if (octets?.length !== ed25519Size) return refuse("The member x must be base64url of exactly 32 octets.")
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv, x: String(x) }, format: "jwk" })
    const spki = Buffer.concat([ed25519Prefix, octets])
    return Result.succeed({ algorithm: "EdDSA", key, spki, thumbprint: okpThumbprint(jwk) })
  } catch {
    return refuse("The Ed25519 key cannot be used.")
  }
}

const akpThumbprint = ({ alg, pub }: Jwk): string =>
  thumbprintOf(`{"alg":"${String(alg)}","kty":"AKP","pub":"${String(pub)}"}`)

/** Reads an Algorithm Key Pair (RFC 9964 section 3). Its `alg` is required, because it names the parameter set. */
const importAkp = (jwk: Jwk): Result.Result<AccountKey, BadPublicKey> => {
  const { alg, pub } = jwk
  const set = mlDsa.find(({ algorithm }) => algorithm === alg)
  if (set === undefined) return refuse("The member alg of an AKP key must be ML-DSA-44, ML-DSA-65 or ML-DSA-87.")
  const octets = typeof pub === "string" ? decodeBase64url(pub) : undefined
  if (octets?.length !== set.keyOctets) {
    return refuse(`The member pub must be base64url of exactly ${set.keyOctets} octets.`)
  }
  const spki = mlDsaSpki(set, octets)
  const key = importMlDsa(set, spki)
  return key === undefined
    ? refuse(`This server cannot verify signatures of an ${set.algorithm} key.`)
    : Result.succeed({ algorithm: set.algorithm, key, spki, thumbprint: akpThumbprint(jwk) })
}

const minRsaBits = 2048
const maxRsaBits = 8192

/** Returns the magnitude of a Base64urlUInt without leading zeros. It is empty for zero. */
const unsigned = (member: unknown): Buffer | undefined => {
  const bytes = typeof member === "string" ? decodeBase64url(member) : undefined
  const start = bytes?.findIndex((octet) => octet !== 0)
  return bytes?.subarray(start === -1 ? bytes.length : start)
}

const bitLength = (bytes: Buffer): number => bytes.length * 8 - Math.clz32(bytes[0] ?? 0) + 24

const rsaThumbprint = ({ e, n }: Jwk): string => thumbprintOf(`{"e":"${String(e)}","kty":"RSA","n":"${String(n)}"}`)

const importRsa = (jwk: Jwk): Result.Result<AccountKey, BadPublicKey> => {
  const modulus = unsigned(jwk.n)
  const exponent = unsigned(jwk.e)
  if (modulus === undefined || exponent === undefined) return refuse("RSA members n and e must be base64url integers.")
  const bits = bitLength(modulus)
  if (bits < minRsaBits || bits > maxRsaBits) return refuse("An RSA key must have 2048 to 8192 bits.")
  const isOdd = ((exponent.at(-1) ?? 0) & 1) === 1
  if (!isOdd || (exponent.length === 1 && (exponent[0] ?? 0) < 3)) {
    return refuse("An RSA exponent must be odd and at least 3.")
  }
  if (exponent.length > maxExponentOctets) return refuse("An RSA exponent must have at most 64 bits.")
  const n = modulus.toString("base64url")
  const e = exponent.toString("base64url")
  try {
    const key = createPublicKey({ key: { kty: "RSA", n, e }, format: "jwk" })
    const spki = key.export({ type: "spki", format: "der" })
    return Result.succeed({
      algorithm: "RS256",
      key,
      spki,
      thumbprint: rsaThumbprint({ e, n })
    })
  } catch {
    return refuse("The RSA key cannot be used.")
  }
}

/**
 * Reads a `jwk` header (RFC 7517): EC on P-256, P-384 or P-521, Ed25519, RSA of 2048 to 8192 bits, and ML-DSA. All
 * other members, including private ones, are neither read nor kept. The key determines the algorithm; a header never does.
 * {@link checkKey} decides whether requests may use this algorithm.
 */
export const importJwk = (jwk: Jwk): Result.Result<AccountKey, BadPublicKey> => {
  switch (jwk["kty"]) {
    case "EC":
      return importEc(jwk)
    case "RSA":
      return importRsa(jwk)
    case "OKP":
      return importOkp(jwk)
    case "AKP":
      return importAkp(jwk)
    default:
      return refuse("The key type must be EC, RSA, OKP or AKP.")
  }
}

/** Reads a stored key. {@link importJwk} checked the key before it was stored. */
export const importSpki = (spki: Uint8Array): AccountKey => {
  const der = Buffer.from(spki)
  const key = createPublicKey({ key: der, format: "der", type: "spki" })
  const jwk: Jwk = { ...key.export({ format: "jwk" }) }
  const known = { key, spki: der }
  if (jwk["kty"] === "RSA") return { ...known, algorithm: "RS256", thumbprint: rsaThumbprint(jwk) }
  if (jwk["kty"] === "OKP") return { ...known, algorithm: "EdDSA", thumbprint: okpThumbprint(jwk) }
  const set = mlDsa.find(({ name }) => name === key.asymmetricKeyType)
  if (set !== undefined) return { ...known, algorithm: set.algorithm, thumbprint: akpThumbprint(jwk) }
  const { algorithm = "ES256" } = curves.find(({ crv }) => crv === jwk["crv"]) ?? {}
  return { ...known, algorithm, thumbprint: ecThumbprint(jwk) }
}
