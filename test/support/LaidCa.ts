import { Effect, Result } from "effect"
import { randomBytes } from "node:crypto"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { generateCa } from "../../src/crypto/x509/CaCertificate.ts"
import { serialFrom } from "../../src/crypto/x509/Leaf.ts"

/* CAs in files, with an end that a test chooses. */

const daySeconds = 86_400
const lifeSeconds = 3653 * daySeconds

/** The CA that {@link layCa} makes. */
export interface LaidCa {
  readonly directory: string
  /** The name of the files without their endings, by default `ca`. */
  readonly name?: string
  readonly commonName?: string
  /** The epoch second at which the certificate of the CA ends. */
  readonly end: number
}

/** Makes a CA in the files of a directory, in place of the CA that was there. */
export const layCa = async ({ commonName = "Test CA", directory, end, name = "ca" }: LaidCa): Promise<void> => {
  const subject = { organization: "", organizationalUnit: "", country: "", state: "", locality: "", commonName }
  const made = Result.getOrThrow(
    await Effect.runPromise(
      Effect.result(
        generateCa({ keyType: "ecdsa-p256", subject, now: end - lifeSeconds, serial: serialFrom(randomBytes(16)) })
      )
    )
  )
  writeFileSync(join(directory, `${name}.pem`), made.certificatePem)
  writeFileSync(join(directory, `${name}.key`), made.privateKeyPem, { mode: 0o600 })
  // The record of the list belongs to the CA that was there before.
  for (const file of [`${name}.crl`, `${name}.crl.issued`]) rmSync(join(directory, file), { force: true })
}
