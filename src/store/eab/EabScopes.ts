import * as Effect from "effect/Effect"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import { lostScope, noScope, scopeIn } from "../../domain/CredentialScope.ts"
import type { AccountId } from "../../domain/Id.ts"
import { bool, int, nullable, texts, uuid, uuidBytes } from "../../engine/sql/Column.ts"
import { first, lenientFirst, run } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

/* What credentials may ask for. */

/** The columns of a scope. */
export const scopeColumns = {
  names: nullable(texts),
  wildcards: nullable(bool),
  kinds: nullable(texts),
  validitySeconds: nullable(int),
  ordersPerDay: nullable(int),
  maxAccounts: nullable(int),
  expiresAt: nullable(int),
  prevalidated: nullable(bool)
}

const kid = { kid: uuidBytes }

const scopeStatement = statement({
  name: "eab_scope",
  params: kid,
  row: scopeColumns,
  sql: () => `SELECT ${select(scopeColumns)} FROM eab_keys WHERE kid = :kid`
})

const writeStatement = statement({
  name: "eab_scope_write",
  params: { ...kid, ...scopeColumns },
  row: kid,
  sql: () =>
    `UPDATE eab_keys SET names = :names, wildcards = :wildcards, kinds = :kinds, validity_seconds = :validitySeconds,
       orders_per_day = :ordersPerDay, max_accounts = :maxAccounts, expires_at = :expiresAt, prevalidated = :prevalidated
     WHERE kid = :kid RETURNING kid AS "kid"`
})

const loseStatement = statement({
  name: "eab_scope_lose",
  params: { ...kid, now: int },
  row: {},
  sql: () => `UPDATE accounts SET scope_lost = :now WHERE eab_kid = :kid`
})

const boundStatement = statement({
  name: "eab_accounts_count",
  params: kid,
  row: { total: int },
  sql: () => `SELECT count(*) AS "total" FROM accounts WHERE eab_kid = :kid`
})

const ofAccountStatement = statement({
  name: "eab_scope_of_account",
  params: { id: uuid<AccountId>() },
  row: { scopeLost: nullable(int), ...scopeColumns },
  sql: () =>
    `SELECT a.scope_lost AS "scopeLost", ${select(scopeColumns, "e")}
     FROM accounts a LEFT JOIN eab_keys e ON e.kid = a.eab_kid WHERE a.id = :id`
})

/**
 * Returns the scope of an account. The credential and the mark of its deletion are read together, because the
 * credential may be deleted at this moment. A scope that cannot be read covers no name.
 */
export const scopeOfAccount = (id: AccountId) =>
  first(ofAccountStatement, { id }).pipe(
    Effect.map((row) => row === undefined || row.scopeLost !== undefined ? lostScope : scopeIn(row)),
    Effect.catchTag("StorageFailed", (error) => error.isUnreadable === true ? Effect.succeed(lostScope) : error)
  )

/**
 * Returns the scope of a credential. The scope of an unknown credential has no restriction. A scope that cannot be read
 * covers no name.
 */
export const scopeOf = (kid: string) =>
  Effect.gen(function*() {
    const row = yield* Effect.catchTag(first(scopeStatement, { kid }), "StorageFailed", (error) =>
      error.isUnreadable === true ? Effect.succeed(lostScope) : error)
    return row ?? noScope
  })

/** Replaces the scope of a credential. Returns undefined if there is no such credential. */
export const writeScope = (kid: string, scope: CredentialScope) => first(writeStatement, { kid, ...scope })

/** Marks the accounts of a credential as accounts whose scope is lost. */
export const loseScope = (kid: string, now: number) => run(loseStatement, { kid, now })

/** Returns how many accounts a credential has bound. */
export const accountsBoundBy = (kid: string) =>
  Effect.map(lenientFirst(boundStatement, { kid }), (row) => row?.total ?? 0)
