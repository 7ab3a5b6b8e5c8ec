import { encodePem } from "../../crypto/asn1/Pem.ts"
import type { Column } from "../../engine/sql/Column.ts"
import { text } from "../../engine/sql/Column.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"

/*
 * The chain of an order's certificate has two forms. Either `certificate` has the whole chain as PEM, or `certificate`
 * is empty, `leaf` has the leaf as DER, and `issuers` is the SHA-256 of the other certificates, which a row of
 * `alternate_chains` has as PEM. This version reads both forms and writes the first one
 * (docs/contribute/decisions/hot-path.md, "Chains are stored once").
 */

const whole = text()

/** The PEM chain of a certificate, leaf first, as {@link chainOf} selects it. */
export const chain: Column<string> = {
  encode: (value, dialect) => whole.encode(value, dialect),
  decode: (raw, dialect) => {
    const stored = whole.decode(raw, dialect)
    const end = stored.indexOf(" ")
    return /^[\da-f]+ /.test(stored)
      ? encodePem("CERTIFICATE", Buffer.from(stored.slice(0, end), "hex")) + stored.slice(end + 1)
      : stored
  }
}

/**
 * Returns SQL for the chain of an order: PEM, or the digits of the leaf, a blank and the PEM of the issuers. If the row
 * of the issuers is lost, the text is empty, so that nobody takes the leaf for the whole chain.
 */
export const chainOf = (order: "" | "o.", { dialect }: Fragments): string => {
  const hex = (column: string) =>
    dialect === "postgres" ? `encode(${order}${column}, 'hex')` : `lower(hex(${order}${column}))`
  const issuers = `(SELECT k.chain FROM alternate_chains k WHERE k.id = ${hex("issuers")})`
  return `CASE WHEN ${order}leaf IS NULL THEN ${order}certificate
    ELSE coalesce(${hex("leaf")} || ' ' || CASE WHEN ${order}issuers IS NULL THEN '' ELSE ${issuers} END, '') END`
}
