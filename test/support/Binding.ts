import { createHmac } from "node:crypto"
import type { FlattenedJws } from "./AcmeSession.ts"

/* External account bindings (RFC 8555 section 7.3.4) that are made without the server's code. */

/** The output of `eab create`. */
export interface Credential {
  readonly kid: string
  readonly secret: Uint8Array
}

/** How a binding differs from a correct one. */
export interface BindingDeviation {
  /** Members of the protected header to set. `undefined` removes a member. */
  readonly header?: Readonly<Record<string, unknown>>
  /** The text that replaces the serialised protected header. */
  readonly protectedText?: string
  /** The text that replaces the serialised key in the payload. */
  readonly payload?: string
  /** The key of the MAC, by default that of the credential. */
  readonly secret?: Uint8Array
  /** The digest of the MAC, by default SHA-256, whatever the protected header names. */
  readonly digest?: "sha256" | "sha384" | "sha512"
}

/** Returns the binding of an account key to a credential, for newAccount at `url`. */
export const bindingOf = (
  { kid, secret }: Credential,
  jwk: object,
  url: string,
  more: BindingDeviation = {}
): FlattenedJws => {
  const header = more.protectedText ?? JSON.stringify({ alg: "HS256", kid, url, ...more.header })
  const [encodedHeader, payload] = [header, more.payload ?? JSON.stringify(jwk)]
    .map((text) => Buffer.from(text).toString("base64url")) as [string, string]
  const mac = createHmac(more.digest ?? "sha256", more.secret ?? secret)
  const signature = mac.update(`${encodedHeader}.${payload}`).digest("base64url")
  return { protected: encodedHeader, payload, signature }
}
