import { encodePem } from "../../crypto/asn1/Pem.ts"
import { sha256Octets } from "../../crypto/Digest.ts"
import type { Column, ValuesOf } from "../../engine/sql/Column.ts"
import { bytes, nullable, text } from "../../engine/sql/Column.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"

/*
 * The chain of an order's certificate has two forms. Usually `certificate` is empty, `leaf` has the leaf as DER, and
 * `issuers` is the SHA-256 of the other certificates, which a row of `alternate_chains` has as PEM. Versions before
 * migration 0057 wrote the whole chain as PEM to `certificate`, and so does this version if the leaf is not written as
 * this service writes PEM or if nothing follows it (docs/contribute/decisions/hot-path.md, "Chains are stored once").
 */

/** The parameters that store a chain. */
export const chainParams = {
  /** The whole chain as PEM, or empty text if the leaf is apart. */
  certificate: text(),
  /** The leaf as DER. */
  leaf: nullable(bytes),
  /** The SHA-256 of `issuersPem`. */
  issuers: nullable(bytes),
  /** The certificates behind the leaf, as PEM. */
  issuersPem: nullable(text())
}

const begin = "-----BEGIN CERTIFICATE-----\n"
const end = "-----END CERTIFICATE-----\n"

/** Returns how a PEM chain, leaf first, is stored. */
export const partsOf = (chain: string): ValuesOf<typeof chainParams> => {
  const length = chain.indexOf(end) + end.length
  const leafPem = chain.slice(0, length)
  const leaf = Buffer.from(leafPem.slice(begin.length, -end.length), "base64")
  const issuersPem = chain.slice(length)
  // Clients get the same octets from both forms.
  return issuersPem === "" || encodePem("CERTIFICATE", leaf) !== leafPem
    ? { certificate: chain, leaf: undefined, issuers: undefined, issuersPem: undefined }
    : { certificate: "", leaf, issuers: sha256Octets(issuersPem), issuersPem }
}

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

/**
 * Returns the statement that stores the issuers of a chain, unless their row exists, once for each row of the table
 * `from`. No process remembers that the row exists, because a database can be restored to an earlier time under a
 * running process.
 */
export const keeping = ({ dialect, typed }: Fragments, from = ""): string => {
  const id = dialect === "postgres" ? `encode(${typed(":issuers", "bytea")}, 'hex')` : "lower(hex(:issuers))"
  return `INSERT INTO alternate_chains (id, chain)
     SELECT ${id}, :issuersPem${from === "" ? "" : ` FROM ${from}`} WHERE :issuers IS NOT NULL
     ON CONFLICT (id) DO NOTHING`
}
