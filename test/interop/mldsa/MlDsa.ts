import { Effect, Result } from "effect"
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { importJwk } from "../../../src/crypto/jose/Jwk.ts"
import { parseJws, verifyJws } from "../../../src/crypto/jose/Jws.ts"
import type { LeafKey } from "../../../src/crypto/keys/LeafKeys.ts"
import { generateCa } from "../../../src/crypto/x509/CaCertificate.ts"
import { loadCa, readCaKey } from "../../../src/crypto/x509/CaMaterial.ts"
import { encodeEntries, makeCrlSigner } from "../../../src/crypto/x509/Crl.ts"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { encryptionOctets } from "../../../src/crypto/x509/EncryptedKey.ts"
import { lintLeaf } from "../../../src/crypto/x509/Lint.ts"
import { DAY, makeCa, newSerial, NOW, requestOf } from "../../crypto/Ca.ts"
import { pythonPackageVersion, pythonPrograms } from "../clients/PythonPackages.ts"
import { runCommand } from "../Command.ts"
import type { Outcome } from "../Table.ts"

/*
 * Keys of ML-DSA that the library cryptography of PyPI made, and leaves and CAs that it judges. Its files contain a newer
 * OpenSSL than that of Node.js. Debian's OpenSSL and pkijs do not know these keys.
 */

const script = join(import.meta.dirname, "judge.py")

const judge = async (...words: ReadonlyArray<string>): Promise<{ readonly [member: string]: unknown }> =>
  JSON.parse(await runCommand(join(await pythonPrograms(), "python"), [script, ...words]))

const equal = (found: unknown, wanted: unknown, what: string): void => {
  const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (left !== right) throw new Error(`${what}: ${left}, and not ${right}`)
}

const octets = (hex: unknown): Buffer => Buffer.from(String(hex), "hex")
const text = (value: string | Uint8Array): string => Buffer.from(value).toString("base64url")

/** Issues a leaf for a request of cryptography under each kind of CA, and verifies a JWS that its key signed. */
const play = async (size: 44 | 65 | 87): Promise<void> => {
  const name: LeafKey = `ml-dsa-${size}`
  const alg = `ML-DSA-${size}`
  const header = text(JSON.stringify({ alg }))
  const made = await judge("make", `${size}`, Buffer.from(`${header}.`).toString("hex"))
  const csr = Result.getOrThrow(parseCsr(octets(made["csr"]), [name]))
  equal(csr.keyType, name, "the key of the CSR")
  equal(Buffer.from(csr.spki).toString("hex"), made["spki"], "the key of the CSR")
  for (const type of ["ecdsa-p256", "ecdsa-p384", "rsa-2048", "ml-dsa-65", "ml-dsa-87"] as const) {
    const ca = await makeCa(type)
    const request = requestOf({ spki: csr.spki, keyType: csr.keyType, names: csr.names })
    const leaf = await Effect.runPromise(ca.issuer.build(request))
    equal(lintLeaf(leaf, { issuer: ca.lint, request }), undefined, "the lint")
    const [issuer = new Uint8Array()] = ca.material.certificates
    const judged = await judge("judge", Buffer.from(leaf).toString("hex"), Buffer.from(issuer).toString("hex"))
    const wanted = {
      key: `MLDSA${size}PublicKey`,
      spki: made["spki"],
      usages: ["digital_signature"],
      names: ["a.example"]
    }
    equal(judged, wanted, `the leaf below ${type}`)
  }
  const key = Result.getOrThrow(importJwk({ kty: "AKP", alg, pub: text(octets(made["pub"])) }))
  equal(key.spki.toString("hex"), made["spki"], "the key of the JWK")
  const signed = (signature: Uint8Array) =>
    verifyJws(
      Result.getOrThrow(
        parseJws(Buffer.from(JSON.stringify({ protected: header, payload: "", signature: text(signature) })))
      ),
      key
    )
  const signature = octets(made["signature"])
  equal(signed(signature), true, "the signature")
  equal(signed(signature.subarray(1)), false, "the signature cut short")
}

/** Lets cryptography judge a CA, its key with and without a passphrase, a classical leaf and a list. */
const playCa = async (size: 65 | 87): Promise<void> => {
  const hex = (octets: Uint8Array | string) => Buffer.from(octets).toString("hex")
  const keyType = `ml-dsa-${size}` as const
  for (const passphrase of ["", "correct horse"]) {
    const random = randomBytes(encryptionOctets)
    const made = await Effect.runPromise(generateCa({
      keyType,
      subject: { commonName: "CA" },
      now: NOW,
      serial: newSerial(),
      encryption: passphrase === "" ? undefined : { passphrase, random }
    }))
    const key = Result.getOrThrow(readCaKey(made.privateKeyPem, passphrase === "" ? undefined : passphrase))
    const ca = Result.getOrThrow(loadCa(made.certificatePem, key))
    const [der = new Uint8Array()] = ca.certificates
    const entries = [encodeEntries([{ serial: "4711", revokedAt: NOW, reason: 1 }])]
    const list = await Effect.runPromise(
      makeCrlSigner(ca, key)({ number: 1, thisUpdate: NOW, nextUpdate: NOW + DAY, entries })
    )
    const judged = await judge("authority", hex(der), hex(made.privateKeyPem), hex(passphrase), hex(list))
    const wanted = {
      key: `MLDSA${size}PrivateKey`,
      fits: true,
      signature: `2.16.840.1.101.3.4.3.${size === 65 ? 18 : 19}`,
      parameters: false,
      list: true,
      listed: ["4711"],
      identifier: true
    }
    equal(judged, wanted, `the CA with ${keyType}`)
  }
  const ca = await makeCa(keyType)
  const leaf = await Effect.runPromise(ca.issuer.build(requestOf({ names: ["a.example"] })))
  const [issuer = new Uint8Array()] = ca.material.certificates
  const { key } = await judge("judge", hex(leaf), hex(issuer))
  equal(key, "ECPublicKey", "the classical leaf")
}

/** Lets cryptography make requests and judge leaves and CAs, for each parameter set. */
export const playMlDsa = async (say: (text: string) => void): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  const plays = [
    ...([44, 65, 87] as const).map((size) => [`ML-DSA-${size}`, () => play(size)] as const),
    ...([65, 87] as const).map((size) => [`CA with ML-DSA-${size}`, () => playCa(size)] as const)
  ]
  for (const [scenario, run] of plays) {
    const begun = performance.now()
    const error = await run().then(() => undefined, (cause: unknown) => String(cause))
    const outcome = {
      database: "SQLite",
      client: `cryptography ${pythonPackageVersion("cryptography")}`,
      challenge: "",
      scenario,
      milliseconds: performance.now() - begun
    }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- ${outcome.scenario}\n${error}\n---`)
  }
  return outcomes
}
