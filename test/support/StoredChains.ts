import { Effect } from "effect"
import { encodePem } from "../../src/crypto/asn1/Pem.ts"
import type { Database } from "../../src/engine/sql/Database.ts"
import type { RawRow } from "./OpenDatabase.ts"
import { sql } from "./OpenDatabase.ts"

/* The chains of certificates in both forms in which orders have them, read without the service. */

/** Selects what {@link chainIn} reads of alternate chains. */
export const issuersQuery = "SELECT id, chain FROM alternate_chains"

/** Returns the chain of a row of `orders` as PEM, given the rows of {@link issuersQuery}. */
export const chainIn = (
  { certificate, issuers, leaf }: RawRow,
  kept: ReadonlyArray<RawRow>
): string | undefined => {
  if (!(leaf instanceof Uint8Array)) return typeof certificate === "string" ? certificate : undefined
  const id = issuers instanceof Uint8Array ? Buffer.from(issuers).toString("hex") : undefined
  const behind = id === undefined ? "" : kept.find((row) => row["id"] === id)?.["chain"]
  if (typeof behind !== "string") return undefined
  return `${encodePem("CERTIFICATE", leaf)}${behind}`
}

/** The chains of all orders that have a certificate. */
export const storedChains: Effect.Effect<ReadonlyArray<string | undefined>, never, Database> = Effect.gen(function*() {
  const kept = yield* sql(issuersQuery)
  const orders = yield* sql("SELECT certificate, leaf, issuers FROM orders WHERE certificate IS NOT NULL")
  return orders.map((row) => chainIn(row, kept))
})
