import { generateSync, verifySync } from "otplib"
import { encodeBase32 } from "./Base32.ts"

/** The parameters of codes that every authenticator supports (RFC 6238). */
export const totp = { algorithm: "SHA1", digits: 6, period: 30 } as const

/** The number of octets in a secret. */
export const totpSecretSize = 20

const form = /^[0-9]{6}$/

/** Returns whether a text has the shape of a code. */
export const isTotpCode = (text: string): boolean => form.test(text)

/** Returns the code at an epoch second. */
export const totpCode = (secret: Uint8Array, epoch: number): string =>
  generateSync({ secret, epoch, digits: totp.digits, period: totp.period, algorithm: "sha1" })

/**
 * Returns the time step to which a code belongs: the present step or one of its two neighbours. Returns `undefined` if
 * the code belongs to none of these three. The caller must claim the step, because otherwise the code would be accepted
 * again.
 */
export const totpStep = (secret: Uint8Array, code: string, epoch: number): number | undefined => {
  if (!isTotpCode(code)) return undefined
  const found = verifySync({
    secret,
    token: code,
    epoch,
    digits: totp.digits,
    period: totp.period,
    algorithm: "sha1",
    epochTolerance: totp.period
  })
  return found.valid && "timeStep" in found ? found.timeStep : undefined
}

/** Returns the URI from which an authenticator imports a secret. The URI is shown as a QR code or as a link. */
export const totpUri = (issuer: string, username: string, secret: Uint8Array): string => {
  const [shownIssuer, shownName] = [encodeURIComponent(issuer), encodeURIComponent(username)]
  const { algorithm, digits, period } = totp
  return `otpauth://totp/${shownIssuer}:${shownName}?secret=${encodeBase32(secret)}&issuer=${shownIssuer}`
    + `&algorithm=${algorithm}&digits=${digits}&period=${period}`
}
