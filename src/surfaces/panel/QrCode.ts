import { encode } from "uqr"

/** Returns a QR code as SVG: black on white in both themes, with its quiet zone. */
export const qrCode = (text: string): string => {
  const { data, size } = encode(text, { border: 4, ecc: "M" })
  const rows = data.flatMap((row, y) => {
    const runs: Array<string> = []
    for (let x = 0; x < row.length; x++) {
      if (row[x] !== true) continue
      const from = x
      while (row[x + 1] === true) x++
      runs.push(`M${from} ${y}h${x - from + 1}v1h-${x - from + 1}z`)
    }
    return runs
  })
  return `<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code of the key" shape-rendering="crispEdges">` +
    `<rect class="qr-paper" width="${size}" height="${size}"/><path class="qr-ink" d="${rows.join("")}"/></svg>`
}
