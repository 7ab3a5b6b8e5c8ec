import { generateSync, verifySync } from "otplib"
import { encodeBase32 } from "./Base32.ts"

/** The parameters of codes that every authenticator supports (RFC 6238). */
export const totp = { algorithm: "SHA1", digits: 6, period: 30 } as const

/** The octets of a secret. */
export const totpSecretSize = 20

const form = /^[0-9]{6}$/

/** Returns whether a text has the shape of a code. */
export const isTotpCode = (text: string): boolean => form.test(text)

/** The code of an epoch second. */
export const totpCode = (secret: Uint8Array, epoch: number): string =>
  generateSync({ secret, epoch, digits: totp.digits, period: totp.period, algorithm: "sha1" })

/**
 * The time step of a code: the present one or one of its neighbours. Returns `undefined` if the code belongs to none of
 * them. The caller must claim the step; otherwise the code would be accepted again.
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

/** Returns the URI from which an authenticator imports a secret. It is shown as a picture or a link. */
export const totpUri = (issuer: string, username: string, secret: Uint8Array): string => {
  const [shownIssuer, shownName] = [encodeURIComponent(issuer), encodeURIComponent(username)]
  const { algorithm, digits, period } = totp
  return `otpauth://totp/${shownIssuer}:${shownName}?secret=${encodeBase32(secret)}&issuer=${shownIssuer}`
    + `&algorithm=${algorithm}&digits=${digits}&period=${period}`
}
