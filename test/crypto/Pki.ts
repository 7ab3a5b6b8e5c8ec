import { execFileSync, spawnSync } from "node:child_process"
import { createPublicKey, generateKeyPairSync, KeyObject, sign } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { newEcKey, newRsaKey } from "../support/Keys.ts"

/*
 * Requests and certificates that are built from parts, so that any single part can be wrong. Openssl checks them
 * independently. This module shares no code with the service.
 */

/** One DER element. */
export const der = (tag: number, ...content: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(content)
  const size: Array<number> = []
  for (let rest = body.length; rest > 0; rest = Math.floor(rest / 256)) size.unshift(rest % 256)
  const length = body.length < 0x80 ? [body.length] : [0x80 + size.length, ...size]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

export const seq = (...content: ReadonlyArray<Uint8Array>): Buffer => der(0x30, ...content)
export const set = (...content: ReadonlyArray<Uint8Array>): Buffer => der(0x31, ...content)
export const hexed = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex")
export const oid = (dotted: string): Buffer => {
  const [first = 0n, second = 0n, ...rest] = dotted.split(".").map(BigInt)
  const arc = (value: bigint): ReadonlyArray<number> => {
    const groups = [Number(value % 128n)]
    for (let left = value / 128n; left > 0n; left /= 128n) groups.unshift(128 + Number(left % 128n))
    return groups
  }
  return der(0x06, Buffer.from([first * 40n + second, ...rest].flatMap(arc)))
}
export const int = (value: bigint): Buffer => {
  const hex = value.toString(16)
  const octets = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex")
  return der(0x02, (octets[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), octets]) : octets)
}
export const bitString = (octets: Uint8Array): Buffer => der(0x03, Buffer.from([0]), octets)
export const ext = (type: string, value: Uint8Array, critical = false): Buffer =>
  seq(oid(type), ...(critical ? [hexed("0101ff")] : []), der(0x04, value))

export const dns = (name: string | Uint8Array): Buffer => der(0x82, Buffer.from(name))
export const sanOf = (...names: ReadonlyArray<Uint8Array>): Buffer => ext("2.5.29.17", seq(...names))
export const EXTENSION_REQUEST = "1.2.840.113549.1.9.14"
export const attribute = (type: string, ...values: ReadonlyArray<Uint8Array>): Buffer => seq(oid(type), set(...values))
export const cn = (value: Uint8Array): Buffer => set(seq(oid("2.5.4.3"), value))
export const utf8 = (value: string): Buffer => der(0x0c, Buffer.from(value))

export const algorithms = {
  ecdsa: seq(oid("1.2.840.10045.4.3.2")),
  rsa: seq(oid("1.2.840.113549.1.1.11"), hexed("0500")),
  ed25519: seq(oid("1.3.101.112")),
  mlDsa44: seq(oid("2.16.840.1.101.3.4.3.17")),
  mlDsa65: seq(oid("2.16.840.1.101.3.4.3.18")),
  mlDsa87: seq(oid("2.16.840.1.101.3.4.3.19"))
}

/** The algorithm with which a key signs, by the runtime's name of its type. */
const algorithmsOf: { readonly [type: string]: Buffer } = {
  "rsa": algorithms.rsa,
  "ec": algorithms.ecdsa,
  "ed25519": algorithms.ed25519,
  "ml-dsa-44": algorithms.mlDsa44,
  "ml-dsa-65": algorithms.mlDsa65,
  "ml-dsa-87": algorithms.mlDsa87
}

export const spkiOf = (key: KeyObject): Buffer => createPublicKey(key).export({ type: "spki", format: "der" })

/** Returns the SubjectPublicKeyInfo of an RSA key with these numbers, even if no such key exists. */
export const rsaSpki = (modulus: bigint, exponent: bigint): Buffer =>
  seq(seq(oid("1.2.840.113549.1.1.1"), hexed("0500")), bitString(seq(int(modulus), int(exponent))))

/** One P-256 key for all tests that need no special key. */
export const ecKey = newEcKey()
export const rsaKey = newRsaKey()

export interface CsrParts {
  readonly key?: KeyObject
  readonly spki?: Uint8Array
  readonly version?: Uint8Array
  readonly subject?: Uint8Array
  /** The contents of `[0]`. If they are undefined, the request asks for a.example.com in one extension request. */
  readonly attributes?: ReadonlyArray<Uint8Array>
  readonly extensions?: ReadonlyArray<Uint8Array>
  readonly algorithm?: Uint8Array
  readonly signature?: Uint8Array
}

/** Returns a request that is correct except for the given parts. */
export const csrOf = (parts: CsrParts): Buffer => {
  const key = parts.key ?? ecKey
  const extensions = parts.extensions ?? [sanOf(dns("a.example.com"))]
  const info = seq(
    parts.version ?? int(0n),
    parts.subject ?? seq(),
    parts.spki ?? spkiOf(key),
    der(0xa0, ...(parts.attributes ?? [attribute(EXTENSION_REQUEST, seq(...extensions))]))
  )
  return signedCsr(info, key, parts)
}

export const signedCsr = (info: Uint8Array, key: KeyObject = ecKey, parts: CsrParts = {}): Buffer => {
  const family = key.asymmetricKeyType ?? ""
  const hasDigest = family === "rsa" || family === "ec"
  const signature = parts.signature ?? sign(hasDigest ? "sha256" : null, info, key)
  return seq(info, parts.algorithm ?? algorithmsOf[family] ?? seq(), bitString(signature))
}

const power = (base: bigint, exponent: bigint, modulus: bigint): bigint => {
  let result = 1n
  for (let b = base % modulus, e = exponent; e > 0n; e >>= 1n) {
    if ((e & 1n) === 1n) result = result * b % modulus
    b = b * b % modulus
  }
  return result
}

const inverse = (value: bigint, modulus: bigint): bigint => {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n]
  while (b > 0n) [a, b, x, y] = [b, a % b, y, x - a / b * y]
  return ((x % modulus) + modulus) % modulus
}

/**
 * Returns a CSR with the RSA key that has these primes. The test computes the signature itself, because no library
 * imports some of these keys.
 */
export const csrOfPrimes = (...primes: ReadonlyArray<bigint>): Buffer => {
  const n = primes.reduce((product, prime) => product * prime, 1n)
  const e = 65537n
  const d = inverse(e, primes.reduce((product, prime) => product * (prime - 1n), 1n))
  const info = seq(
    int(0n),
    seq(),
    rsaSpki(n, e),
    der(0xa0, attribute(EXTENSION_REQUEST, seq(sanOf(dns("a.example.com")))))
  )
  // A sound key signs the same octets. The public operation on this signature then yields the padded digest.
  const size = Math.ceil(n.toString(16).length / 2)
  const sound = rsaOfBits(size * 8)
  const padded = publicOperation(sound, sign("sha256", info, sound))
  const signature = power(padded, d, n).toString(16).padStart(size * 2, "0")
  return seq(info, algorithms.rsa, bitString(hexed(signature)))
}

const rsaOfBits = (bits: number): KeyObject =>
  bits === 2048 ? rsaKey : generateKeyPairSync("rsa", { modulusLength: bits }).privateKey

const publicOperation = (key: KeyObject, octets: Uint8Array): bigint => {
  const { n = "" } = key.export({ format: "jwk" })
  const modulus = BigInt(`0x${Buffer.from(n, "base64url").toString("hex")}`)
  return power(BigInt(`0x${Buffer.from(octets).toString("hex")}`), 65537n, modulus)
}

/** Runs openssl. Returns its stdout, or fails with its message. */
export const openssl = (args: ReadonlyArray<string>, input?: string | Uint8Array): Buffer =>
  execFileSync("openssl", args, { input, stdio: ["pipe", "pipe", "pipe"] })

/**
 * Returns what openssl says about the signature of a revocation list in DER: `verify OK` if that CA signed the list.
 * Openssl always exits with 0.
 */
export const opensslOnCrl = (caFile: string, der: Uint8Array): string =>
  spawnSync("openssl", ["crl", "-inform", "DER", "-noout", "-verify", "-CAfile", caFile], { input: der })
    .stderr.toString().trim()

/**
 * Returns a CSR that openssl makes, for the given key or for a new key with these options of `genpkey`. `req` contains
 * further options of `openssl req`.
 */
export const opensslCsr = (key: KeyObject | ReadonlyArray<string>, req: ReadonlyArray<string> = []): Buffer =>
  withDirectory((directory) => {
    const file = join(directory, "key.pem")
    if (key instanceof KeyObject) writeFileSync(file, key.export({ type: "pkcs8", format: "pem" }))
    else openssl(["genpkey", ...key, "-out", file])
    return openssl([
      "req",
      "-new",
      "-key",
      file,
      "-subj",
      "/",
      "-addext",
      "subjectAltName=DNS:a.example.com,DNS:b.example.com",
      "-outform",
      "DER",
      ...req
    ])
  })

export const withDirectory = <A>(body: (directory: string) => A): A => {
  const directory = mkdtempSync(join(tmpdir(), "crypto-test-"))
  try {
    return body(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

export const pem = (label: string, octets: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${
    (Buffer.from(octets).toString("base64").match(/.{1,64}/g) ?? []).join("\n")
  }\n-----END ${label}-----\n`

/** Returns a small seeded generator, which gives the same numbers in every run. */
export const seeded = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Damages some octets at one place. */
export const mutate = (octets: Uint8Array, random: () => number): Buffer => {
  const out = Buffer.from(octets)
  const at = Math.floor(random() * out.length)
  const value = Math.floor(random() * 256)
  switch (Math.floor(random() * 5)) {
    case 0:
      out[at] = (out[at] ?? 0) ^ (1 << (value & 7))
      return out
    case 1:
      out[at] = value
      return out
    case 2:
      return Buffer.concat([out.subarray(0, at), out.subarray(at + 1 + value % 8)])
    case 3:
      return Buffer.concat([out.subarray(0, at), Buffer.from([value]), out.subarray(at)])
    default:
      return Buffer.concat([out.subarray(0, at), out.subarray(Math.floor(random() * at), at), out.subarray(at)])
  }
}
