import type { KeyObject } from "node:crypto"
import { createECDH, createHash, createPrivateKey } from "node:crypto"
import type { AcmeKey } from "../support/AcmeSession.ts"
import { acmeKey } from "../support/Handle.ts"

const made = new Map<string, KeyObject>()

/** Returns a P-256 key, which is the same for the same name in every run. */
const privateKeyOf = (name: string): KeyObject => {
  const known = made.get(name)
  if (known !== undefined) return known
  const pair = createECDH("prime256v1")
  pair.setPrivateKey(createHash("sha256").update(name).digest())
  const point = pair.getPublicKey()
  const key = createPrivateKey({
    format: "jwk",
    key: {
      kty: "EC",
      crv: "P-256",
      d: pair.getPrivateKey().toString("base64url"),
      x: point.subarray(1, 33).toString("base64url"),
      y: point.subarray(33).toString("base64url")
    }
  })
  made.set(name, key)
  return key
}

/** Returns the key of a name in a form that signs requests. */
export const accountKeyNamed = (name: string): AcmeKey => acmeKey(privateKeyOf(name))
