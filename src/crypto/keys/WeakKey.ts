import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { JsonWebKeyInput, KeyObject } from "node:crypto"
import { createPublicKey } from "node:crypto"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import type { MlDsa } from "./MlDsa.ts"
import { importMlDsa, mlDsa, mlDsaOf } from "./MlDsa.ts"

/**
 * Checks whether a subject key has an accepted form (type, size, exponent), and whether anyone can factor an RSA
 * modulus (docs/reference/protocol.md, "CSR policy" and "Bad keys").
 */

/** AlgorithmIdentifier (RFC 5280 section 4.1.1.2). */
export interface AlgorithmIdentifier {
  readonly oid: string
  /** The whole element with the parameters, including its header. */
  readonly parameters: Uint8Array | undefined
}

/** Reads the next element as an AlgorithmIdentifier. */
export const readAlgorithm = (reader: DerReader): AlgorithmIdentifier => {
  const algorithm = reader.enter(Tag.sequence)
  const oid = algorithm.oid()
  const parameters = algorithm.more ? algorithm.raw() : undefined
  algorithm.end()
  return { oid, parameters }
}

/** Reads a DER SubjectPublicKeyInfo (RFC 5280 section 4.1). Returns its algorithm and the octets of its key. */
export const readKeyInfo = (
  spki: Uint8Array
): Result.Result<{ readonly algorithm: AlgorithmIdentifier; readonly key: Uint8Array }, DerFault> =>
  decode(spki, (reader) => {
    const info = reader.enter(Tag.sequence)
    const algorithm = readAlgorithm(info)
    const key = info.bits()
    info.end()
    return { algorithm, key }
  })

/** Returns whether the parameters are a NULL. */
export const isNull = (parameters: Uint8Array | undefined): boolean =>
  parameters !== undefined && parameters.length === 2 && parameters[0] === Tag.null

/** The families of subject keys that can be certified. Each parameter set of ML-DSA is a family of its own. */
export type KeyType = "rsa" | "ecdsa" | "ed25519" | MlDsa["name"]

/** A public key of an accepted form. `PublicKeys.ts` checks later whether it is weak, because that costs more. */
export interface SubjectKey {
  readonly type: KeyType
  readonly object: KeyObject
}

/**
 * A public key that the policy does not accept. `reason` is a word for the refusals of CSRs, and `detail` is a sentence
 * for the client.
 */
export class KeyRefused extends Data.TaggedError("KeyRefused")<{
  readonly reason: "undecodable" | "key_type" | "key_size" | "exponent"
  readonly detail: string
}> {}

const refuse = (reason: KeyRefused["reason"], detail: string) => Result.fail(new KeyRefused({ reason, detail }))

/** The algorithm of RSA keys. */
export const RSA = "1.2.840.113549.1.1.1"
/** The algorithm of RSA keys that may sign with PSS padding only, and of such signatures (RFC 4055 section 1.2). */
export const RSA_PSS = "1.2.840.113549.1.1.10"
const EC = "1.2.840.10045.2.1"
/** The algorithm of Ed25519 keys. */
export const ED25519 = "1.3.101.112"

// Unlike the DER import, the JWK import does not search for a decoder. For the two larger curves, however, the JWK
// import checks the group order, and this check costs more than the search (measured: 75 against 150 us for P-256, 570
// against 136 us for P-384).
const curves: { readonly [oid: string]: { readonly name: string; readonly size: number; readonly jwk: boolean } } = {
  "1.2.840.10045.3.1.7": { name: "P-256", size: 32, jwk: true },
  "1.3.132.0.34": { name: "P-384", size: 48, jwk: false },
  "1.3.132.0.35": { name: "P-521", size: 66, jwk: false }
}

/**
 * Reads a DER SubjectPublicKeyInfo, and checks its key (docs/reference/protocol.md, "CSR policy"). The key must have
 * its canonical encoding, so that equal keys have equal octets.
 */
export const readSubjectKey = (spki: Uint8Array): Result.Result<SubjectKey, KeyRefused> => {
  const read = readKeyInfo(spki)
  if (Result.isFailure(read)) return refuse("undecodable", `The key is not decodable: ${read.failure.detail}.`)
  const { algorithm, key } = read.success
  if (algorithm.oid === RSA) return readRsaKey(algorithm, key)
  if (algorithm.oid === EC) return readEcKey(algorithm, key, spki)
  const set = mlDsaOf(algorithm.oid)
  if (set !== undefined) return readMlDsaKey(set, algorithm, key, spki)
  if (algorithm.oid === RSA_PSS) {
    return refuse("key_type", "The RSA key is limited to PSS (id-RSASSA-PSS); use an RSA key without this limit.")
  }
  if (algorithm.oid !== ED25519) return refuse("key_type", "The key is neither RSA nor ECDSA nor Ed25519.")
  if (algorithm.parameters !== undefined || key.length !== 32) {
    return refuse("undecodable", "The Ed25519 key has another form than RFC 8410 gives it.")
  }
  return imported("ed25519", { key: { kty: "OKP", crv: "Ed25519", x: base64url(key) }, format: "jwk" })
}

/** Returns the family of a key that {@link readSubjectKey} accepted earlier. */
export const keyTypeOf = (spki: Uint8Array): KeyType | undefined => {
  const read = readKeyInfo(spki)
  return Result.isSuccess(read) ? families[read.success.algorithm.oid] : undefined
}

const families: { readonly [oid: string]: KeyType } = {
  [RSA]: "rsa",
  [EC]: "ecdsa",
  [ED25519]: "ed25519",
  ...Object.fromEntries(mlDsa.map(({ name, oid }) => [oid, name]))
}

/**
 * The highest number of octets in an RSA exponent. A verification needs one multiplication for each bit of the
 * exponent. Verifications run on the event loop, and any client can cause them.
 */
export const maxExponentOctets = 8

/** Returns the modulus of an RSAPublicKey (RFC 3279 section 2.3.1). */
export const readModulus = (reader: DerReader): Uint8Array => {
  const fields = reader.enter(Tag.sequence)
  const modulus = fields.positive()
  fields.skip(Tag.integer)
  return modulus
}

const readRsaKey = (algorithm: AlgorithmIdentifier, key: Uint8Array): Result.Result<SubjectKey, KeyRefused> => {
  // Each key may have only one encoding (RFC 3279 section 2.3.1). Otherwise equal keys could differ in comparisons and
  // hashes.
  if (!isNull(algorithm.parameters)) return refuse("undecodable", "The RSA key has parameters other than NULL.")
  const read = decode(key, (reader) => {
    const fields = reader.enter(Tag.sequence)
    const modulus = fields.positive()
    const exponent = fields.positive()
    fields.end()
    return { modulus, exponent }
  })
  if (Result.isFailure(read)) return refuse("undecodable", `The RSA key is not decodable: ${read.failure.detail}.`)
  const { exponent, modulus } = read.success
  const size = modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24
  if (size < 2048 || size > 8192) return refuse("key_size", `The RSA key has ${size} bits; 2048 to 8192 are accepted.`)
  const isOdd = ((exponent[exponent.length - 1] ?? 0) & 1) === 1
  // An odd exponent of at least 17 bits is at least 65537.
  const isLarge = exponent.length > 2 && (exponent.length > 3 || (exponent[0] ?? 0) >= 1)
  if (!isOdd || !isLarge) return refuse("exponent", "The RSA exponent is even or below 65537.")
  if (exponent.length > maxExponentOctets) return refuse("exponent", "The RSA exponent has more than 64 bits.")
  return imported("rsa", { key: { kty: "RSA", n: base64url(modulus), e: base64url(exponent) }, format: "jwk" })
}

const readEcKey = (
  algorithm: AlgorithmIdentifier,
  key: Uint8Array,
  spki: Uint8Array
): Result.Result<SubjectKey, KeyRefused> => {
  const parameters = algorithm.parameters ?? new Uint8Array()
  const named = decode(parameters, (reader) => reader.oid())
  if (Result.isFailure(named)) return refuse("key_type", "The EC key does not name its curve.")
  const curve = curves[named.success]
  if (curve === undefined) return refuse("key_type", "The curve is none of P-256, P-384 and P-521.")
  // A compressed point would be a second encoding of the same key; see RSA above.
  if (key[0] !== 4 || key.length !== 1 + 2 * curve.size) {
    return refuse("key_type", "The EC key is not an uncompressed point of its curve.")
  }
  if (!curve.jwk) return imported("ecdsa", { key: Buffer.from(spki), format: "der", type: "spki" })
  const x = base64url(key.subarray(1, 1 + curve.size))
  const y = base64url(key.subarray(1 + curve.size))
  return imported("ecdsa", { key: { kty: "EC", crv: curve.name, x, y }, format: "jwk" })
}

const readMlDsaKey = (
  set: MlDsa,
  { parameters }: AlgorithmIdentifier,
  key: Uint8Array,
  spki: Uint8Array
): Result.Result<SubjectKey, KeyRefused> => {
  if (parameters !== undefined || key.length !== set.keyOctets) {
    return refuse("undecodable", `The ${set.algorithm} key has another form than RFC 9881 gives it.`)
  }
  const object = importMlDsa(set, spki)
  return object === undefined
    ? refuse("key_type", `This server cannot verify signatures of an ${set.algorithm} key.`)
    : Result.succeed({ type: set.name, object })
}

const base64url = (octets: Uint8Array): string =>
  Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("base64url")

const imported = (
  type: KeyType,
  input: JsonWebKeyInput | { readonly key: Buffer; readonly format: "der"; readonly type: "spki" }
): Result.Result<SubjectKey, KeyRefused> =>
  Result.try({
    try: () => ({ type, object: createPublicKey(input) }),
    catch: () => new KeyRefused({ reason: "undecodable", detail: "The key is not a valid one of its type." })
  })

/**
 * Returns the weakness of an RSA modulus (big-endian magnitude) as a text for the client, or undefined if there is
 * none. A modulus is weak if it has a ROCA fingerprint, a factor below 2^16, or primes that a hundred rounds of
 * Fermat's method find. For 2048 bits, this takes less than a millisecond.
 */
export const rsaWeakness = (modulus: Uint8Array): string | undefined => {
  const n = BigInt(`0x${Buffer.from(modulus.buffer, modulus.byteOffset, modulus.length).toString("hex")}`)
  if (hasRocaFingerprint(n)) return "the RSA modulus has the fingerprint of the ROCA flaw (CVE-2017-15361)"
  if (hasSmallFactor(n)) return "the RSA modulus has a prime factor below 65536"
  if (hasClosePrimes(n)) return "the primes of the RSA modulus are too close to each other"
  return undefined
}

const primesBelow = (limit: number): ReadonlyArray<number> => {
  const composite = new Uint8Array(limit)
  const primes: Array<number> = []
  for (let i = 2; i < limit; i++) {
    if (composite[i] === 1) continue
    primes.push(i)
    for (let j = i * i; j < limit; j += i) composite[j] = 1
  }
  return primes
}

/** Some primes and their product, which is below a limit. */
interface Chunk {
  readonly product: bigint
  readonly primes: ReadonlyArray<number>
}

interface Node {
  readonly product: bigint
  readonly chunks: ReadonlyArray<Chunk>
}

// The product of a chunk can be represented exactly as a double, so that the last step needs no BigInt.
const CHUNK_BITS = 53n
const NODE_CHUNKS = 12
const chunksOf = (primes: ReadonlyArray<number>): ReadonlyArray<Chunk> => {
  const chunks: Array<Chunk> = []
  let product = 1n
  let members: Array<number> = []
  for (const prime of primes) {
    const larger = product * BigInt(prime)
    if (larger >> CHUNK_BITS > 0n) {
      chunks.push({ product, primes: members })
      product = BigInt(prime)
      members = [prime]
    } else {
      product = larger
      members.push(prime)
    }
  }
  chunks.push({ product, primes: members })
  return chunks
}

const nodesOf = (chunks: ReadonlyArray<Chunk>): ReadonlyArray<Node> => {
  const nodes: Array<Node> = []
  for (let i = 0; i < chunks.length; i += NODE_CHUNKS) {
    const members = chunks.slice(i, i + NODE_CHUNKS)
    nodes.push({ product: members.reduce((product, chunk) => product * chunk.product, 1n), chunks: members })
  }
  return nodes
}

// The tree is made when the first key is checked, because the command line also loads this file but checks no key.
let madeNodes: ReadonlyArray<Node> | undefined
const trialNodes = (): ReadonlyArray<Node> => madeNodes ??= nodesOf(chunksOf(primesBelow(0x10000)))

/**
 * Returns whether a prime below 65536 divides the number. A remainder tree of three levels needs only a few divisions
 * of long numbers, and many of short ones.
 */
const hasSmallFactor = (n: bigint): boolean => {
  for (const node of trialNodes()) {
    const middle = n % node.product
    for (const chunk of node.chunks) {
      const rest = Number(middle % chunk.product)
      // The remainder operator for doubles is a slow library call. This computation is also exact, because every
      // product is below 2^53.
      for (const prime of chunk.primes) if (Math.floor(rest / prime) * prime === rest) return true
    }
  }
  return false
}

/**
 * For each prime of the primorial that the flawed library used, the residues of the powers of 65537 (Nemec et al., "The
 * Return of Coppersmith's Attack", section 2.3). The probability that a sound modulus matches all of them is below
 * 2^-27.
 */
const rocaPrimes = primesBelow(168).filter((prime) => prime > 2).map((prime) => {
  const residues = new Uint8Array(prime)
  for (let power = 1; residues[power] !== 1; power = power * 65537 % prime) residues[power] = 1
  return { prime, residues }
})
const rocaProduct = rocaPrimes.reduce((product, { prime }) => product * BigInt(prime), 1n)

const hasRocaFingerprint = (n: bigint): boolean => {
  const rest = n % rocaProduct
  return rocaPrimes.every(({ prime, residues }) => residues[Number(rest % BigInt(prime))] === 1)
}

/**
 * Returns whether Fermat's method finds n = a^2 - b^2, where `a` is one of the first hundred integers from the square
 * root of n upwards.
 */
const hasClosePrimes = (n: bigint): boolean => {
  let a = squareRoot(n)
  if (a * a < n) a += 1n
  let square = a * a - n
  for (let round = 0; round < 100; round++) {
    if (isSquare(square)) return true
    square += 2n * a + 1n
    a += 1n
  }
  return false
}

/** Returns the largest integer that is not greater than the square root, by Newton's method from above. */
const squareRoot = (n: bigint): bigint => {
  if (n < 2n) return n
  let x = 1n << (BigInt(n.toString(16).length) * 2n + 1n)
  for (;;) {
    const y = (x + n / x) >> 1n
    if (y >= x) return x
    x = y
  }
}

const squaresModulo = (modulus: number): Uint8Array => {
  const squares = new Uint8Array(modulus)
  for (let i = 0; i < modulus; i++) squares[i * i % modulus] = 1
  return squares
}

const SIEVE = 63 * 65 * 11
const squares64 = squaresModulo(64)
const squaresSieve = squaresModulo(SIEVE)

/**
 * Returns whether a number is a square. The residues exclude most numbers that are not squares, so that few roots are
 * computed.
 */
const isSquare = (n: bigint): boolean => {
  if (squares64[Number(n & 63n)] !== 1 || squaresSieve[Number(n % BigInt(SIEVE))] !== 1) return false
  const root = squareRoot(n)
  return root * root === n
}
