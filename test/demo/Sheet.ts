import type { Browser } from "playwright-core"

/* Several pictures of a page on one sheet, as an image that is small enough for a document. */

/** A row of a sheet: what it shows, and its pictures as PNG. A picture that does not exist is left out. */
export interface SheetRow {
  readonly word: string
  readonly pictures: ReadonlyArray<Buffer | undefined>
}

/** The widths of the columns in pixels. A row is as high as the highest of its pictures. */
const columns = [500, 500, 152, 152] as const
const gap = 12
const wordHeight = 22
const quality = 0.72

/** Draws a sheet in the browser, and returns it as a data URL. It runs in the page, so it uses nothing from outside. */
const draw = `async ({ columns, gap, quality, rows, wordHeight }) => {
  const images = await Promise.all(rows.map(({ pictures }) => Promise.all(
    pictures.map(async (picture) => picture && createImageBitmap(await (await fetch(picture)).blob()))
  )))
  const heightOf = (image, index) => image ? Math.round(image.height * columns[index] / image.width) : 0
  const heights = images.map((row) => Math.max(...row.map(heightOf)))
  const width = gap + columns.reduce((sum, one) => sum + one + gap, 0)
  const canvas = new OffscreenCanvas(width, gap + heights.reduce((sum, one) => sum + wordHeight + one + gap, 0))
  const context = canvas.getContext("2d")
  context.fillStyle = "#8a8f94"
  context.fillRect(0, 0, canvas.width, canvas.height)
  context.imageSmoothingQuality = "high"
  let y = gap
  for (const [number, { word }] of rows.entries()) {
    context.fillStyle = "#ffffff"
    context.font = "600 14px sans-serif"
    context.fillText(word, gap, y + 14)
    y += wordHeight
    let x = gap
    for (const [index, image] of images[number].entries()) {
      if (image) context.drawImage(image, x, y, columns[index], heightOf(image, index))
      x += columns[index] + gap
    }
    y += heights[number] + gap
  }
  const blob = await canvas.convertToBlob({ type: "image/webp", quality })
  let text = ""
  for (const octet of new Uint8Array(await blob.arrayBuffer())) text += String.fromCharCode(octet)
  return btoa(text)
}`

/** Returns a function that makes sheets, as WebP. */
export const sheetMaker = async (browser: Browser) => {
  const page = await browser.newPage()
  return async (rows: ReadonlyArray<SheetRow>): Promise<Buffer> => {
    const given = {
      columns,
      gap,
      quality,
      wordHeight,
      rows: rows.map(({ pictures, word }) => ({
        word,
        pictures: pictures.map((one) => one && `data:image/png;base64,${one.toString("base64")}`)
      }))
    }
    return Buffer.from(await page.evaluate<string>(`(${draw})(${JSON.stringify(given)})`), "base64")
  }
}
