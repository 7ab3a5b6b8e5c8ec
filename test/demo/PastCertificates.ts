import { Effect, Result } from "effect"
import { createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { makeCaKey } from "../../src/crypto/x509/CaKey.ts"
import { makeLeafIssuer, serialFrom } from "../../src/crypto/x509/Leaf.ts"
import { leafContent } from "../../src/crypto/x509/LeafContent.ts"

/* Certificates that the CA of a demo signed before the demo began. */

/** A certificate of the past, as the row of its order has it. Times are epoch seconds. */
export interface PastCertificate {
  /** The chain in PEM, leaf first. */
  readonly chain: string
  readonly serial: string
  readonly pubkey: Buffer
}

/** Signs certificates of the past. */
export type SignPast = (names: ReadonlyArray<string>, notBefore: number, notAfter: number) => PastCertificate

const content = leafContent({ usages: ["1.3.6.1.5.5.7.3.1"], policies: [], subject: [] })
const armoured = (der: Uint8Array): string =>
  `-----BEGIN CERTIFICATE-----\n${
    Buffer.from(der).toString("base64").replace(/.{64}(?=.)/g, "$&\n")
  }\n-----END CERTIFICATE-----\n`

/** Returns the signer of a CA in the files of a directory. Each certificate has a key of its own. */
export const pastSigner = (directory: string, name: string): SignPast => {
  const read = (file: string) => readFileSync(join(directory, file), "utf8")
  const ca = read(`${name}.pem`)
  const key = Result.getOrThrow(makeCaKey(createPrivateKey(read(`${name}.key`))))
  const parts = { issuerCertDer: new X509Certificate(ca).raw, crlDistributionPoints: [], caIssuerUrls: [] }
  const { build } = Result.getOrThrow(makeLeafIssuer(parts, key))
  return (names, notBefore, notAfter) => {
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const pubkey = publicKey.export({ type: "spki", format: "der" })
    const serial = serialFrom(randomBytes(16))
    const leaf = Effect.runSync(
      build({ spki: pubkey, keyType: "ecdsa", names, commonName: undefined, content, serial, notBefore, notAfter })
    )
    return { chain: `${armoured(leaf)}${ca}`, serial: Buffer.from(serial).toString("hex"), pubkey }
  }
}
