import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { Database } from "../../src/engine/sql/Database.ts"
import type { RawRow } from "./OpenDatabase.ts"
import { openDriver, sql } from "./OpenDatabase.ts"
import { certificatesOf } from "./Openssl.ts"
import { chainIn, issuersQuery } from "./StoredChains.ts"

/** Compares the values in an order's row with those in the certificate. */
const faultOf = (row: RawRow, chain: string | undefined, anchors: ReadonlyArray<X509Certificate>) => {
  if (chain === undefined) return "no chain, or no row of its issuers"
  const [leaf, ...issuers] = certificatesOf(chain)
  const issuer = issuers[0]
  if (leaf === undefined || issuer === undefined) return "no leaf, or no issuer behind it"
  const names = (JSON.parse(String(row["identifiers"])) as ReadonlyArray<{ readonly value: string }>)
    .map(({ value }) => `DNS:${value}`)
  const spki = leaf.publicKey.export({ type: "spki", format: "der" })
  const [start, end] = [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)]
  const checks: Readonly<Record<string, boolean>> = {
    "an order that is not valid": row["status"] === "valid",
    "other names": names.toSorted().join() === leaf.subjectAltName?.split(", ").toSorted().join(),
    "another serial": leaf.serialNumber.toLowerCase() === row["cert_serial"],
    "another end": end === Number(row["cert_not_after"]) * 1000,
    "another key": row["cert_pubkey"] instanceof Uint8Array && spki.equals(row["cert_pubkey"]),
    "a CA": !leaf.ca,
    "another issuer": leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey),
    "a foreign anchor": anchors.some(({ raw }) => raw.equals(issuers.at(-1)?.raw ?? issuer.raw)),
    "dates beyond its issuer's": Date.parse(issuer.validFrom) <= start && start < end &&
      end <= Date.parse(issuer.validTo)
  }
  return Object.entries(checks).find(([, holds]) => !holds)?.[0]
}

/**
 * Compares every certificate in a database with its order and with the CAs that sign, without relying on anything
 * that the service did. Fails at the first bad certificate.
 */
export const checkStoredCertificates = (databaseUrl: string, ...caFiles: ReadonlyArray<string>): Promise<void> => {
  const anchors = caFiles.flatMap((file) => certificatesOf(readFileSync(file, "utf8")))
  const checked = Effect.gen(function*() {
    const rows = yield* sql("SELECT * FROM orders WHERE certificate IS NOT NULL OR cert_serial IS NOT NULL")
    const kept = yield* sql(issuersQuery)
    const serials = new Set<unknown>()
    for (const row of rows) {
      const fault = serials.has(row["cert_serial"]) ? "a serial twice" : faultOf(row, chainIn(row, kept), anchors)
      serials.add(row["cert_serial"])
      if (fault !== undefined) throw new Error(`a stored certificate has ${fault}: ${JSON.stringify(row)}`)
    }
  })
  return Effect.runPromise(Effect.scoped(
    Effect.flatMap(openDriver(databaseUrl), (driver) => Effect.provideService(checked, Database, driver))
  ))
}
