/** The width and the height of a picture in pixels. */
export interface PictureSize {
  readonly width: number
  readonly height: number
}

const pngSignature = "89504e470d0a1a0a"

/**
 * Reads the size of a picture, PNG or SVG. A page that states it keeps the place of the picture until the picture is
 * loaded. Returns undefined for any other file.
 */
export const sizeOf = (picture: Buffer): PictureSize | undefined => {
  if (picture.toString("hex", 0, 8) === pngSignature) {
    return { width: picture.readUInt32BE(16), height: picture.readUInt32BE(20) }
  }
  const [, width, height] = /^<svg [^>]*width="(\d+)" height="(\d+)"/.exec(picture.toString("utf8")) ?? []
  return width === undefined ? undefined : { width: Number(width), height: Number(height) }
}
