import type { KeyObject } from "node:crypto"
import { createPublicKey, sign } from "node:crypto"
import { newEcKey } from "./Keys.ts"

/*
 * Certificate requests that are written byte by byte with only Node's crypto. They cost little enough for a benchmark,
 * can be wrong on purpose, and share no code with the server that reads them.
 */

const length = (size: number): Buffer => {
  if (size < 0x80) return Buffer.from([size])
  const bytes: Array<number> = []
  for (let rest = size; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

/** Returns a DER element with a tag, a definite length and a content. */
export const der = (tag: number, ...content: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag]), length(body.length), body])
}

const sequence = (...content: ReadonlyArray<Uint8Array>) => der(0x30, ...content)
const set = (...content: ReadonlyArray<Uint8Array>) => der(0x31, ...content)

/** Returns an OBJECT IDENTIFIER from its dotted form. */
export const oid = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number)
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const groups = [arc & 0x7f]
    for (let left = arc >>> 7; left > 0; left >>>= 7) groups.unshift(0x80 | (left & 0x7f))
    bytes.push(...groups)
  }
  return der(0x06, Buffer.from(bytes))
}

const signatureAlgorithm = (key: KeyObject, digest: "sha1" | "sha256"): Buffer => {
  switch (key.asymmetricKeyType) {
    case "rsa":
      return sequence(oid(digest === "sha1" ? "1.2.840.113549.1.1.5" : "1.2.840.113549.1.1.11"), der(0x05))
    case "ec":
      return sequence(oid(digest === "sha1" ? "1.2.840.10045.4.1" : "1.2.840.10045.4.3.2"))
    case "ed25519":
      return sequence(oid("1.3.101.112"))
    case "ml-dsa-44":
      return sequence(oid("2.16.840.1.101.3.4.3.17"))
    case "ml-dsa-65":
      return sequence(oid("2.16.840.1.101.3.4.3.18"))
    case "ml-dsa-87":
      return sequence(oid("2.16.840.1.101.3.4.3.19"))
    default:
      throw new Error(`no CSR signature for keys of type ${key.asymmetricKeyType}`)
  }
}

/** A request for {@link makeCsr} to write. */
export interface CsrRequest {
  /** The dNSName entries, unchanged. */
  readonly names: ReadonlyArray<string>
  /** The common names, unchanged, by default none. */
  readonly commonNames?: ReadonlyArray<string>
  readonly key?: KeyObject
  readonly digest?: "sha1" | "sha256"
  /** Further GeneralName elements for the SAN, already encoded. */
  readonly otherNames?: ReadonlyArray<Uint8Array>
  /** Further Extension elements, already encoded. */
  readonly extensions?: ReadonlyArray<Uint8Array>
  /** Whether the subjectAltName is left out. */
  readonly withoutSan?: boolean
  /** The version, by default 0, which is the only valid one. */
  readonly version?: number
}

/** Returns a new P-256 private key. */
const ecKey = (): KeyObject => newEcKey()

/** Returns a PKCS#10 request in DER and its private key. */
export const makeCsr = (request: CsrRequest): { readonly csr: Buffer; readonly key: KeyObject } => {
  const key = request.key ?? ecKey()
  const digest = request.digest ?? "sha256"
  const names = request.names.map((name) => der(0x82, Buffer.from(name)))
  const san = sequence(oid("2.5.29.17"), der(0x04, sequence(...names, ...request.otherNames ?? [])))
  const extensions = [...request.withoutSan === true ? [] : [san], ...request.extensions ?? []]
  const subject = (request.commonNames ?? []).map((name) => set(sequence(oid("2.5.4.3"), der(0x0c, Buffer.from(name)))))
  const attributes = extensions.length === 0
    ? []
    : [sequence(oid("1.2.840.113549.1.9.14"), set(sequence(...extensions)))]
  const info = sequence(
    der(0x02, Buffer.from([request.version ?? 0])),
    sequence(...subject),
    createPublicKey(key).export({ format: "der", type: "spki" }),
    der(0xa0, ...attributes)
  )
  const hasDigest = key.asymmetricKeyType === "rsa" || key.asymmetricKeyType === "ec"
  const signature = sign(hasDigest ? digest : null, info, key)
  return { key, csr: sequence(info, signatureAlgorithm(key, digest), der(0x03, Buffer.from([0]), signature)) }
}
