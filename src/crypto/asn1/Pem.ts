import * as Data from "effect/Data"
import * as Result from "effect/Result"

/** One block: `-----BEGIN <label>-----` to `-----END <label>-----`. */
export interface PemBlock {
  readonly label: string
  /** The decoded octets. The code that reads a block with this label checks whether they are DER. */
  readonly der: Uint8Array
  /** The header lines of the old form (RFC 1421 section 4.6), such as `Proc-Type: 4,ENCRYPTED`. */
  readonly headers: ReadonlyArray<string>
}

/**
 * The text is not PEM (RFC 7468). `detail` names the line and the rule, and quotes nothing, because the text may be a
 * key.
 */
export class PemFault extends Data.TaggedError("PemFault")<{ readonly detail: string }> {}

const BEGIN = /^-----BEGIN ([A-Z0-9](?:[A-Z0-9 ]*[A-Z0-9])?)-----$/
const HEADER = /^[A-Za-z][A-Za-z0-9-]*:/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * Returns the blocks of a text, in order. If the text has no block, returns an empty array. Lines may end with LF or
 * CRLF.
 *
 * `outside` says what may be around the blocks besides whitespace: `"nothing"`, `"before"` for text before a block,
 * because tools write comments there (RFC 7468 section 2), or `"around"` for text after the last block too, such as the
 * rest of a mail.
 */
export const splitPem = (
  text: string,
  outside: "nothing" | "before" | "around"
): Result.Result<ReadonlyArray<PemBlock>, PemFault> => {
  const blocks: Array<PemBlock> = []
  const lines = text.split("\n")
  let stray = 0
  let at = 0
  const next = (): string | undefined => lines[at++]?.replace(/[ \t\r]+$/, "")
  for (let line = next(); line !== undefined; line = next()) {
    const label = BEGIN.exec(line)?.[1]
    if (label === undefined) {
      if (line.trim() === "") continue
      // Mails have lines such as "-----Original Message-----".
      if (line.startsWith(outside === "around" ? "-----END " : "-----")) return fault(at, "is a boundary out of place")
      if (outside === "nothing") return fault(at, "stands outside a block")
      if (stray === 0) stray = at
      continue
    }
    stray = 0
    const begun = at
    const headers: Array<string> = []
    let body = ""
    let content = next()
    while (content !== undefined && HEADER.test(content)) {
      headers.push(content)
      content = next()
      // A header continues in the next line if that line begins with a space.
      while (content !== undefined && /^[ \t]/.test(content)) content = next()
    }
    if (headers.length > 0 && content === "") content = next()
    while (content !== undefined && !content.startsWith("-")) {
      body += content
      content = next()
    }
    if (content !== `-----END ${label}-----`) return fault(begun, "opens a block that is not closed")
    const der = Buffer.from(body, "base64")
    // The decoder of the runtime skips unknown characters, so the octets are encoded again and compared with the text.
    if (!BASE64.test(body) || der.toString("base64") !== body) return fault(begun, "opens a block that is not base64")
    blocks.push({ label, der, headers })
  }
  return stray === 0 || outside === "around" ? Result.succeed(blocks) : fault(stray, "is data after the last block")
}

/** Returns one block of PEM. Its lines have 64 characters, and it ends with a newline. */
export const encodePem = (label: string, der: Uint8Array): string => {
  const body = Buffer.from(der.buffer, der.byteOffset, der.length).toString("base64")
  let out = `-----BEGIN ${label}-----\n`
  for (let at = 0; at < body.length; at += 64) out += `${body.slice(at, at + 64)}\n`
  return `${out}-----END ${label}-----\n`
}

const fault = (line: number, what: string) => Result.fail(new PemFault({ detail: `line ${line} ${what}` }))
