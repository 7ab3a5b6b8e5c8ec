import type { Engine, Rows } from "./Bulk.ts"
import { fill, openEngine, rowsOf } from "./Bulk.ts"
import type { Dialect } from "./Statements.ts"

/*
 * Fills a database with what it has after years of service: accounts, issued orders with their names, authorizations
 * and challenges, and revocations.
 */

/** The number of rows of each kind. */
export interface Population {
  readonly accounts: number
  readonly orders: number
  readonly revocations: number
}

const firstSecond = 1_500_000_000

const tablesOf = ({ accounts, orders }: Population, until: number) => (engine: Engine): ReadonlyArray<Rows> => {
  const { bytes, hex, id, reverse } = engine
  const rows = rowsOf(engine)
  // Orders are spread evenly from the first second to now.
  const at = `CAST(${firstSecond} + i * ${(until - firstSecond) / orders} AS BIGINT)`
  const name = "'host-' || i || '.example.org'"
  const identifier = `'{"type":"dns","value":"' || ${name} || '"}'`
  return [
    rows("accounts", accounts, {
      id: id(1, "i"),
      profile: "'default'",
      pubkey: bytes(`'3059301306072a8648ce3d020106082a8648ce3d030107034200' || ${hex(130, "i")}`),
      status: "'valid'",
      created_at: `${firstSecond}`,
      created_ip: "'192.0.2.1'",
      last_seen_at: `${until}`,
      last_seen_ip: "'192.0.2.1'"
    }),
    rows("orders", orders, {
      id: id(2, "i"),
      profile: "'default'",
      account_id: id(1, `(i % ${accounts})`),
      status: "'valid'",
      identifiers: `'[' || ${identifier} || ']'`,
      certificate: "'kept elsewhere'",
      cert_serial: hex(32, "i + 99999999999"),
      cert_pubkey: bytes(hex(182, "i")),
      cert_not_after: `${at} + 7776000`,
      created_at: at,
      created_ip: "'192.0.2.1'"
    }),
    rows("order_identifiers", orders, { order_id: id(2, "i"), profile: "'default'", name, name_rev: reverse(name) }),
    rows("authorizations", orders, {
      id: id(3, "i"),
      order_id: id(2, "i"),
      identifier,
      status: "'valid'",
      created_at: at
    }),
    rows("challenges", orders, {
      id: id(4, "i"),
      authz_id: id(3, "i"),
      type: "'http-01'",
      position: "0",
      token: hex(43, "i"),
      status: "'valid'",
      validated_at: at,
      created_at: at
    })
  ]
}

/** Fills a migrated, empty database while no service uses it. `where` is a file or a URL. */
export const populate = (
  dialect: Dialect,
  where: string,
  population: Population,
  progress: (text: string) => void
): Promise<void> => fill(dialect, where, tablesOf(population, Math.floor(Date.now() / 1000)), progress)

/** Adds revocations to the only CA that a worker has recorded. Returns the id of this CA. */
export const revoke = async (
  dialect: Dialect,
  where: string,
  { revocations }: Pick<Population, "revocations">
): Promise<string> => {
  const engine = await openEngine(dialect, where)
  const [issuer] = await engine.column("SELECT issuer AS value FROM crls")
  if (issuer === undefined) throw new Error("no worker has met a CA")
  const now = Math.floor(Date.now() / 1000)
  await engine.run(
    `INSERT INTO revocations (issuer, serial, revoked_at, reason, not_after) ${engine.with(1, revocations)}
     SELECT '${issuer}', ${engine.hex(32, "i + 99999999999")}, ${now - 100_000}, 4, ${now + 7_776_000}
     FROM ${engine.numbers(1, revocations)}`
  )
  await engine.close()
  return issuer
}
