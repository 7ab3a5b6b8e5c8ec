import { createSecureContext } from "node:tls"

const isUsable = (half: { readonly cert: string } | { readonly key: string }): boolean => {
  try {
    createSecureContext(half)
    return true
  } catch {
    return false
  }
}

/** Returns a sentence about the fault of a refused pair. It begins with the key of the file that is at fault. */
export const faultOf = (
  { cert_path, key_path }: { readonly cert_path: string; readonly key_path: string },
  { cert, key }: { readonly cert: string; readonly key: string }
): string => {
  if (!cert.includes("-----BEGIN CERTIFICATE-----") || !isUsable({ cert })) {
    return `cert_path: ${cert_path} holds no certificate in PEM.`
  }
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(key)) {
    return `key_path: ${key_path} is encrypted, and nobody can give its password.`
  }
  if (!key.includes("PRIVATE KEY-----") || !isUsable({ key })) {
    return `key_path: ${key_path} holds no private key in PEM.`
  }
  return `key_path: ${key_path} is not the key of the first certificate in ${cert_path}.`
}
