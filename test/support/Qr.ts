import jsQr from "jsqr"
import { PNG } from "pngjs"

/** Returns the text of the QR code in a picture. */
export const qrTextOf = async (png: Buffer): Promise<string> => {
  const { data, height, width } = PNG.sync.read(png)
  const found = jsQr.default(new Uint8ClampedArray(data), width, height)
  if (found === null) throw new Error("the picture has no QR code")
  return found.data
}
