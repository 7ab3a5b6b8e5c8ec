import { keyName } from "./KeyName.ts"
import { isMlDsaSupported, mlDsa } from "./MlDsa.ts"

/** The keys that a certificate may have. `rsa-3072+` stands for every RSA key of at least 3072 bits. */
export const leafKeys = [
  "ecdsa-p256",
  "ecdsa-p384",
  "ecdsa-p521",
  "rsa-2048+",
  "rsa-3072+",
  "rsa-4096+",
  "ed25519",
  "ml-dsa-44",
  "ml-dsa-65",
  "ml-dsa-87"
] as const
export type LeafKey = (typeof leafKeys)[number]

/** The keys that are accepted if nothing else is configured. ML-DSA must be named, because few clients know it. */
export const defaultLeafKeys: ReadonlyArray<LeafKey> = [
  "ecdsa-p256",
  "ecdsa-p384",
  "ecdsa-p521",
  "rsa-2048+",
  "ed25519"
]

const fewestBits: { readonly [K in LeafKey]?: number } = { "rsa-2048+": 2048, "rsa-3072+": 3072, "rsa-4096+": 4096 }

/** Returns whether a key (DER SubjectPublicKeyInfo) is one of the accepted keys. */
export const isLeafKey = (spki: Uint8Array, accepted: ReadonlyArray<LeafKey>): boolean => {
  const name = keyName(spki)
  const bits = Number(/^rsa-(\d+)$/.exec(name)?.[1] ?? 0)
  return accepted.some((key) => key === name || bits >= (fewestBits[key] ?? Infinity))
}

/** Returns whether the runtime can verify a signature of such a key. */
export const leafKeySupported = (name: LeafKey): boolean => {
  const set = mlDsa.find((one) => one.name === name)
  return set === undefined || isMlDsaSupported(set)
}
