import * as Effect from "effect/Effect"
import { AccountId } from "../../domain/Id.ts"
import type { Dialect } from "../../engine/sql/Column.ts"
import { bytes, int, uuid } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/** An id that stands for every account, including future accounts. */
export const everybody = AccountId("00000000-0000-0000-0000-000000000000")

const all: { readonly [D in Dialect]: string } = { sqlite: "zeroblob(16)", postgres: `'${everybody}'::uuid` }

const insertStatement = statement({
  name: "burnt_key_insert",
  params: { pubkey: bytes, accountId: uuid<AccountId>(), now: int },
  row: {},
  sql: () =>
    `INSERT INTO burnt_keys (pubkey, account_id, burnt_at) VALUES (:pubkey, :accountId, :now)
     ON CONFLICT (pubkey, account_id) DO NOTHING`
})

const findStatement = statement({
  name: "burnt_key_find",
  params: { pubkey: bytes, accountId: uuid<AccountId>() },
  row: { burntAt: int },
  sql: ({ dialect }) =>
    `SELECT burnt_at AS "burntAt" FROM burnt_keys
     WHERE pubkey = :pubkey AND account_id IN (:accountId, ${all[dialect]}) LIMIT 1`
})

/** Burns a key (DER SubjectPublicKeyInfo) for an account, or for {@link everybody}. */
export const insert = (row: { readonly pubkey: Uint8Array; readonly accountId: AccountId; readonly now: number }) =>
  run(insertStatement, row)

/**
 * Returns whether a key is burnt for an account. If no account is given, returns whether the key is burnt for
 * everybody.
 */
export const isBurnt = (pubkey: Uint8Array, accountId: AccountId = everybody) =>
  Effect.map(first(findStatement, { pubkey, accountId }), (row) => row !== undefined)

/** Returns the SQL condition that the key in a parameter is not burnt for the account of an order. */
export const unburnt = (pubkey: string, dialect: Dialect): string =>
  `NOT EXISTS (SELECT 1 FROM burnt_keys b WHERE b.pubkey = ${pubkey}
     AND b.account_id IN (orders.account_id, ${all[dialect]}))`

/** Returns the SQL condition that the key in a parameter is not burnt for everybody. */
export const unburntForAll = (pubkey: string, dialect: Dialect): string =>
  `NOT EXISTS (SELECT 1 FROM burnt_keys b WHERE b.pubkey = ${pubkey} AND b.account_id = ${all[dialect]})`
