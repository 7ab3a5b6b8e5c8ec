import * as Effect from "effect/Effect"
import type { Account } from "../domain/Account.ts"
import type { AccountId } from "../domain/Id.ts"
import { int, nullable, packedUuid, rows, text } from "../engine/sql/Column.ts"
import { Database } from "../engine/sql/Database.ts"
import { all, first, partitioned, run } from "../engine/sql/Query.ts"
import { select, statement } from "../engine/sql/Statement.ts"
import { accountColumns } from "./AccountRows.ts"

const insertBatch = statement({
  name: "nonce_insert",
  params: { values: rows, second: int, millisecond: int },
  row: {},
  sql: ({ at, each }) =>
    `INSERT INTO nonces (value, created_at, created_millisecond)
     SELECT ${at(0, "text")}, :second, :millisecond FROM ${each(":values")}`
})

const moment = { second: int, millisecond: nullable(int) }
const madeAtOf = (
  { millisecond = 999, second }: { readonly second: number; readonly millisecond: number | undefined }
) => second * 1000 + millisecond

const consumeBatch = statement({
  name: "nonce_consume",
  params: { values: rows },
  row: { value: text(), ...moment },
  sql: ({ oneOf }) =>
    `DELETE FROM nonces WHERE value ${oneOf(":values", "text")}
     RETURNING value, created_at AS "second", created_millisecond AS "millisecond"`
})

/** The row of an account, with the nonce of a request that the key of the account signed. */
const signer = { nonce: text(), ...accountColumns }

/**
 * Returns SQL for the signers that have not changed since their requests were verified: there is still an account with
 * this id, profile and key.
 */
const signersOf = (asked: string) =>
  `SELECT q.nonce AS "nonce", ${select(accountColumns, "a")} FROM ${asked} q JOIN accounts a ON a.id = q.account_id
   WHERE a.profile = q.profile AND a.pubkey = q.pubkey`

const signerStatement = statement({
  name: "nonce_signers",
  params: { asked: rows },
  row: signer,
  only: "sqlite",
  sql: ({ at, each }) =>
    signersOf(
      `(SELECT ${at(0, "text")} AS nonce, ${at(1, "uuid")} AS account_id, ${at(2, "text")} AS profile,
         ${at(3, "bytes")} AS pubkey FROM ${each(":asked")})`
    )
})

// Each account is looked up by a lateral subquery with OFFSET. Otherwise PostgreSQL would assume that the set is large,
// and would read all accounts.
const consumeSigned = statement({
  name: "nonce_consume_signed",
  params: { asked: rows },
  row: { ...signer, second: nullable(int), millisecond: nullable(int) },
  only: "postgres",
  sql: ({ at, each }) =>
    `WITH asked AS MATERIALIZED (SELECT ${at(0, "text")} AS nonce, ${at(1, "uuid")} AS account_id,
         ${at(2, "text")} AS profile, ${at(3, "bytes")} AS pubkey FROM ${each(":asked")}),
       signers AS MATERIALIZED (SELECT q.nonce, a.* FROM asked q
         CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = q.account_id OFFSET 0) a
         WHERE a.profile = q.profile AND a.pubkey = q.pubkey),
       spent AS (DELETE FROM nonces WHERE value = ANY (ARRAY(SELECT nonce FROM signers))
         RETURNING value, created_at, created_millisecond)
     SELECT s.nonce AS "nonce", ${select(accountColumns, "s")}, n.created_at AS "second",
       n.created_millisecond AS "millisecond" FROM signers s LEFT JOIN spent n ON n.value = s.nonce`
})

const sweepBatch = statement({
  name: "nonce_sweep",
  params: { before: int, limit: int },
  row: { value: text() },
  sql: () =>
    `DELETE FROM nonces WHERE value IN
       (SELECT value FROM nonces WHERE created_at < :before ORDER BY created_at LIMIT :limit) RETURNING value`
})

/** Stores new nonces that were made at `now` (milliseconds since 1970). */
export const insert = (values: ReadonlyArray<string>, now: number) =>
  run(insertBatch, {
    values: values.map((value) => [value]),
    second: Math.floor(now / 1000),
    millisecond: now % 1000
  })

const findStatement = statement({
  name: "nonce_find",
  params: { value: text() },
  row: { value: text() },
  sql: () => `SELECT value AS "value" FROM nonces WHERE value = :value`
})

/** Returns whether a nonce is stored. */
export const isStored = (value: string) => Effect.map(first(findStatement, { value }), (row) => row !== undefined)

/** The nonces that a statement has deleted, and when each of them was made, in milliseconds since 1970. */
type Consumed = ReadonlyMap<string, number>

/**
 * Deletes those of the `values` that are stored, and returns them. For a nonce that an older version made, the time is
 * the end of its second. If several requests use the same nonce, the DELETE decides which of them gets it. A nonce
 * whose row cannot be read counts as unknown.
 */
export const consume = Effect.fnUntraced(function*(values: ReadonlyArray<string>) {
  const { readable } = yield* partitioned(consumeBatch, { values: [...new Set(values)].map((value) => [value]) })
  const consumed: Consumed = new Map(readable.map((row) => [row.value, madeAtOf(row)]))
  return consumed
})

/** A nonce, and the account whose key signed the request that contains the nonce. */
export interface SignedNonce {
  readonly nonce: string
  readonly profile: string
  readonly accountId: AccountId
  /** DER SubjectPublicKeyInfo. */
  readonly pubkey: Buffer
}

/**
 * Does the same as {@link consume}, and also reads the signers. On PostgreSQL this is one round trip. If the account of
 * a request no longer exists, or has a different profile or key from the request, the result does not contain the
 * signer, and the nonce is not spent. If the row of the account cannot be read, the result does not contain the signer
 * either, but PostgreSQL has spent the nonce.
 */
export const consumeWithSigners = Effect.fnUntraced(function*(asked: ReadonlyArray<SignedNonce>) {
  const params = {
    asked: asked.map(({ accountId, nonce, profile, pubkey }) => [
      nonce,
      packedUuid(accountId),
      profile,
      pubkey.toString("hex")
    ])
  }
  const { dialect } = yield* Database
  if (dialect === "postgres") {
    const { readable } = yield* partitioned(consumeSigned, params)
    const accounts: Array<Account> = []
    const consumed = new Map<string, number>()
    for (const { millisecond, nonce, second, ...account } of readable) {
      accounts.push(account)
      if (second !== undefined) consumed.set(nonce, madeAtOf({ second, millisecond }))
    }
    return { accounts, consumed: consumed as Consumed }
  }
  const { readable } = yield* partitioned(signerStatement, params)
  return { accounts: readable as ReadonlyArray<Account>, consumed: yield* consume(readable.map(({ nonce }) => nonce)) }
})

/** Deletes up to `limit` nonces that were made before an epoch second. Returns how many nonces were deleted. */
export const sweep = (before: number, limit: number) =>
  Effect.map(all(sweepBatch, { before, limit }), (gone) => gone.length)

const countStatement = statement({
  name: "nonce_count",
  params: {},
  row: { count: int },
  sql: () => `SELECT count(*) AS "count" FROM nonces`
})

/** Counts the stored nonces, including nonces that can no longer be used. */
export const count = Effect.map(Effect.suspend(() => first(countStatement, {})), (row) => row?.count ?? 0)
