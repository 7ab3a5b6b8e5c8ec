import { Effect, Result } from "effect"
import { join } from "node:path"
import { importJwk } from "../../../src/crypto/jose/Jwk.ts"
import { parseJws, verifyJws } from "../../../src/crypto/jose/Jws.ts"
import type { LeafKey } from "../../../src/crypto/keys/LeafKeys.ts"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { lintLeaf } from "../../../src/crypto/x509/Lint.ts"
import { makeCa, requestOf } from "../../crypto/Ca.ts"
import { pythonPackageVersion, pythonPrograms } from "../clients/PythonPackages.ts"
import { runCommand } from "../Command.ts"
import type { Outcome } from "../Table.ts"

/*
 * Keys of ML-DSA that the library cryptography of PyPI made, and leaves that it judges. Its files contain a newer
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
  for (const type of ["ecdsa-p256", "ecdsa-p384", "rsa-2048"] as const) {
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

/** Lets cryptography make requests and judge leaves, for each parameter set. */
export const playMlDsa = async (say: (text: string) => void): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const size of [44, 65, 87] as const) {
    const begun = performance.now()
    const error = await play(size).then(() => undefined, (cause: unknown) => String(cause))
    const outcome = {
      database: "SQLite",
      client: `cryptography ${pythonPackageVersion("cryptography")}`,
      challenge: "",
      scenario: `ML-DSA-${size}`,
      milliseconds: performance.now() - begun
    }
    outcomes.push(error === undefined ? outcome : { ...outcome, error })
    if (error !== undefined) say(`--- ${outcome.scenario}\n${error}\n---`)
  }
  return outcomes
}
