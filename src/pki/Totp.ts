import { generateSync, verifySync } from "otplib"
import { encodeBase32 } from "./Base32.ts"

/** How codes are made, as authenticators know it (RFC 6238). */
export const totp = { algorithm: "SHA1", digits: 6, period: 30 } as const

/** Octets of a secret. */
export const totpSecretSize = 20

const form = /^[0-9]{6}$/

/** Whether a text is a code by its shape. */
export const isTotpCode = (text: string): boolean => form.test(text)

/** The code of an epoch second. */
export const totpCode = (secret: Uint8Array, epoch: number): string =>
  generateSync({ secret, epoch, digits: totp.digits, period: totp.period, algorithm: "sha1" })

/**
 * The time step a code is of, which is the present one or one of those beside it; `undefined` for a code of no such step.
 * Whoever takes the code has to claim the step, or it passes again.
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

/** The address by which an authenticator takes a secret over, as a picture or a link. */
export const totpUri = (issuer: string, username: string, secret: Uint8Array): string => {
  const [shownIssuer, shownName] = [encodeURIComponent(issuer), encodeURIComponent(username)]
  const { algorithm, digits, period } = totp
  return `otpauth://totp/${shownIssuer}:${shownName}?secret=${encodeBase32(secret)}&issuer=${shownIssuer}`
    + `&algorithm=${algorithm}&digits=${digits}&period=${period}`
}
