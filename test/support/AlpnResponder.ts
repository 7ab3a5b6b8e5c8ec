import { Effect } from "effect"
import type { Scope } from "effect"
import type { KeyObject } from "node:crypto"
import { createPrivateKey, generatePrimeSync, hash, sign } from "node:crypto"
import { once } from "node:events"
import type { AddressInfo, Socket } from "node:net"
import { createServer } from "node:net"
import * as Tls from "node:tls"
import {
  algorithms,
  bitString,
  cn,
  der,
  dns,
  ecKey,
  ext,
  int,
  oid,
  pem,
  sanOf,
  seq,
  spkiOf,
  utf8
} from "../crypto/Pki.ts"
import { pending } from "./Pending.ts"

export const ACME_IDENTIFIER = "1.3.6.1.5.5.7.1.31"

/** Returns the value of acmeIdentifier for a key authorization (RFC 8737 section 3). */
export const digestOf = (keyAuthorization: string): Buffer => der(0x04, hash("sha256", keyAuthorization, "buffer"))

/** Returns the acmeIdentifier extension, which is the only critical one. */
export const acmeIdentifier = (keyAuthorization: string): Buffer =>
  ext(ACME_IDENTIFIER, digestOf(keyAuthorization), true)

export interface ValidationCertificateParts {
  readonly name: string
  readonly keyAuthorization: string
  readonly key?: KeyObject
  /** The key that signs the certificate, by default `key`. */
  readonly signer?: KeyObject
  readonly subject?: Uint8Array
  readonly issuer?: Uint8Array
  readonly spki?: Uint8Array
  readonly extensions?: ReadonlyArray<Uint8Array>
  /** The AlgorithmIdentifier outside the signed part. */
  readonly outerAlgorithm?: Uint8Array
  readonly signature?: (signed: Uint8Array) => Uint8Array
}

const algorithmOf = (key: KeyObject) => {
  if (key.asymmetricKeyType === "rsa") return { id: algorithms.rsa, digest: "sha256" }
  if (key.asymmetricKeyType === "ed25519") return { id: algorithms.ed25519, digest: null }
  return key.asymmetricKeyDetails?.namedCurve === "secp384r1"
    ? { id: seq(oid("1.2.840.10045.4.3.3")), digest: "sha384" }
    : { id: algorithms.ecdsa, digest: "sha256" }
}

/**
 * Returns a validation certificate in DER. Every part that is not given is correct, except that the certificate expired
 * long ago.
 */
export const validationCertificate = (parts: ValidationCertificateParts): Buffer => {
  const key = parts.key ?? ecKey
  const signer = parts.signer ?? key
  const algorithm = algorithmOf(signer)
  const subject = parts.subject ?? seq(cn(utf8("validation")))
  const signed = seq(
    der(0xa0, int(2n)),
    int(1n),
    algorithm.id,
    parts.issuer ?? subject,
    seq(der(0x17, Buffer.from("200101000000Z")), der(0x17, Buffer.from("200102000000Z"))),
    subject,
    parts.spki ?? spkiOf(key),
    der(0xa3, seq(...(parts.extensions ?? [sanOf(dns(parts.name)), acmeIdentifier(parts.keyAuthorization)])))
  )
  const signature = parts.signature?.(signed) ?? sign(algorithm.digest, signed, signer)
  return seq(signed, parts.outerAlgorithm ?? algorithm.id, bitString(signature))
}

/** A certificate and its key. */
export interface Shown {
  readonly der: Uint8Array
  readonly key: KeyObject
}

/** A completed handshake. */
export interface Handshake {
  readonly serverName: string | false
  readonly protocol: string | false
  readonly version: string | null
  readonly resumed: boolean
}

/** A TLS server on 127.0.0.1 that shows certificates by server name. */
export interface AlpnResponder {
  readonly port: number
  /**
   * The certificates by server name in lower case. For any other name, the handshake fails. Tests may change the map at
   * any time.
   */
  readonly shown: Map<string, Shown>
  readonly handshakes: Array<Handshake>
  /** The extensions of each ClientHello, by number. */
  readonly offers: Array<ReadonlyArray<number>>
  /** The errors of failed handshakes. */
  readonly failures: Array<string>
  /** The number of octets that each connection has sent after its handshake. */
  readonly received: Array<number>
  /** Resolves once a ClientHello with a server name has arrived. */
  readonly asked: Promise<void>
  /** Resolves once a connection has closed. */
  readonly closed: Promise<void>
}

export interface ResponderOptions {
  /** The protocols of ALPN, by default `acme-tls/1`. With an empty list, the server does not use ALPN. */
  readonly protocols?: Array<string>
  /** The server answers nothing before this promise resolves. */
  readonly hold?: Promise<void>
}

/** Returns the numbers of the extensions of a ClientHello that came in one record (RFC 8446 section 4.1.2). */
const extensionsOf = (record: Buffer): ReadonlyArray<number> => {
  let at = 5 + 4 + 2 + 32
  at += 1 + record.readUInt8(at)
  at += 2 + record.readUInt16BE(at)
  at += 1 + record.readUInt8(at) + 2
  const found: Array<number> = []
  for (; at < record.length; at += 4 + record.readUInt16BE(at + 2)) found.push(record.readUInt16BE(at))
  return found
}

/** Starts a responder, which lives as long as its scope. */
export const alpnResponder = (
  certificates: Readonly<Record<string, Shown>>,
  options: Omit<Tls.TlsOptions, "ALPNProtocols"> & ResponderOptions = {}
): Effect.Effect<AlpnResponder, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const [asked, closed] = [pending(), pending()]
        const open = new Set<Socket>()
        const shown = new Map(Object.entries(certificates))
        const facts: AlpnResponder = {
          port: 0,
          shown,
          handshakes: [],
          offers: [],
          failures: [],
          received: [],
          asked: asked.promise,
          closed: closed.promise
        }
        const { protocols = ["acme-tls/1"], hold = Promise.resolve(), ...rest } = options
        const server = Tls.createServer({
          ...rest,
          ...protocols.length === 0 ? {} : { ALPNProtocols: protocols },
          SNICallback: (name, answer) => {
            asked.resolve()
            void hold.then(() => {
              const found = shown.get(name.toLowerCase())
              if (found === undefined) return answer(null)
              const key = found.key.export({ type: "pkcs8", format: "pem" })
              answer(null, Tls.createSecureContext({ ...rest, key, cert: pem("CERTIFICATE", found.der) }))
            })
          }
        }, (socket) => {
          const at = facts.received.push(0) - 1
          facts.handshakes.push({
            serverName: socket.servername ?? false,
            protocol: socket.alpnProtocol ?? false,
            version: socket.getProtocol(),
            resumed: socket.isSessionReused()
          })
          socket.on("error", () => socket.destroy())
          socket.on("data", (chunk) => {
            facts.received[at] = (facts.received[at] ?? 0) + chunk.length
          })
        })
        server.on("tlsClientError", ({ message }) => facts.failures.push(message))
        const front = createServer((socket) => {
          open.add(socket)
          socket.on("error", () => socket.destroy())
          socket.on("close", () => {
            open.delete(socket)
            closed.resolve()
          })
          socket.once("data", (hello) => {
            facts.offers.push(extensionsOf(hello))
            socket.pause()
            socket.unshift(hello)
            server.emit("connection", socket)
          })
        })
        front.listen(0, "127.0.0.1")
        await once(front, "listening")
        return { front, open, facts: { ...facts, port: (front.address() as AddressInfo).port } }
      }),
      ({ front, open }) =>
        Effect.promise(async () => {
          const done = once(front, "close")
          front.close()
          for (const socket of open) socket.destroy()
          await done
        })
    ),
    ({ facts }) => facts
  )

const inverse = (value: bigint, modulus: bigint): bigint => {
  let [a, b, x, y] = [value % modulus, modulus, 1n, 0n]
  while (b > 0n) [a, b, x, y] = [b, a % b, y, x - a / b * y]
  return ((x % modulus) + modulus) % modulus
}

const product = (factors: ReadonlyArray<bigint>): bigint => factors.reduce((all, factor) => all * factor, 1n)
const widthOf = (value: bigint): number => value.toString(2).length

/**
 * Returns a working RSA key of this many bits, a multiple of 1024. Two primes of this size would take minutes to find.
 * The function uses products of small primes instead, with which the arithmetic of signatures is the same.
 */
export const wideRsaKey = (bits: number): KeyObject => {
  const primes = Array.from({ length: bits / 1024 - 1 }, () => generatePrimeSync(1024, { bigint: true }))
  const left = bits - widthOf(product(primes))
  let last = 1n
  while (widthOf(product(primes) * last) !== bits) last = generatePrimeSync(left, { bigint: true })
  primes.push(last)
  const halves = [primes.slice(0, primes.length / 2), primes.slice(primes.length / 2)]
  const [p = 1n, q = 1n] = halves.map(product)
  const [phiP = 1n, phiQ = 1n] = halves.map((half) => product(half.map((prime) => prime - 1n)))
  const e = 65537n
  const d = inverse(e, phiP * phiQ)
  const field = (value: bigint) => {
    const hex = value.toString(16)
    return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex").toString("base64url")
  }
  const numbers = { n: p * q, e, d, p, q, dp: d % phiP, dq: d % phiQ, qi: inverse(q, p) }
  const fields = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, field(value)]))
  return createPrivateKey({ format: "jwk", key: { kty: "RSA", ...fields } })
}
