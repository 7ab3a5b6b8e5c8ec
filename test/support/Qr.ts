import jsQr from "jsqr"
import { PNG } from "pngjs"
import { totpCode } from "../../src/pki/Totp.ts"
import { secretOf } from "./Operators.ts"

/** The text of the QR code in a picture. */
export const qrTextOf = async (png: Buffer): Promise<string> => {
  const { data, height, width } = PNG.sync.read(png)
  const found = jsQr.default(new Uint8ClampedArray(data), width, height)
  if (found === null) throw new Error("the picture has no QR code")
  return found.data
}

/** What an authenticator shows now. */
export const totpNow = (base32: string): string => totpCode(secretOf(base32), Math.floor(Date.now() / 1000))
