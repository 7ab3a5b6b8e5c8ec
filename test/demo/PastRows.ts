/* Values of rows that a demo writes itself. */

/** Returns a source of numbers that are the same in every demo. */
export const numbersFrom = (seed: number): () => number => {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

/** Returns the octets of the id of a row. Each table has its own number. */
export const id = (table: number, row: number): Buffer =>
  Buffer.from(`0190${table.toString(16).padStart(4, "0")}00007000${"8000"}${row.toString(16).padStart(12, "0")}`, "hex")

/** Returns an id as text with hyphens. */
export const written = (octets: Buffer): string =>
  octets.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")

/** The status of each problem that is stored with an order or a challenge. */
const statuses = {
  badCSR: 400,
  connection: 400,
  dns: 400,
  incorrectResponse: 403,
  rejectedIdentifier: 403,
  serverInternal: 500,
  tls: 400,
  unauthorized: 403
}

/** Returns a stored problem document. */
export const problem = (type: keyof typeof statuses, detail: string): string =>
  JSON.stringify({ type: `urn:ietf:params:acme:error:${type}`, status: statuses[type], detail })
