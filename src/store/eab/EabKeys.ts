import * as Effect from "effect/Effect"
import type { CredentialScope } from "../../domain/CredentialScope.ts"
import type { AccountId } from "../../domain/Id.ts"
import { bytes, int, name, nullable, text, uuid, uuidBytes } from "../../engine/sql/Column.ts"
import { all, first, lenient, lenientFirst } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"
import { scopeColumns } from "./EabScopes.ts"

/** The status of a credential. New accounts can be bound with an `active` credential, but not with a `revoked` one. */
export type EabStatus = "active" | "revoked"

/** The columns that lists and views show: all columns except the secret. */
const credential = {
  kid: uuidBytes,
  label: nullable(text()),
  profile: nullable(name()),
  status: text<EabStatus>(),
  createdAt: int,
  externalKid: nullable(name()),
  ...scopeColumns
}

const shown = { ...credential, accounts: int }
const accountsBound = `(SELECT count(*) FROM accounts a WHERE a.eab_kid = e.kid) AS "accounts"`

const insertStatement = statement({
  name: "eab_insert",
  params: {
    kid: uuidBytes,
    secret: bytes,
    label: text(),
    profile: nullable(name()),
    now: int,
    externalKid: credential.externalKid,
    ...scopeColumns
  },
  row: { kid: uuidBytes },
  sql: () =>
    `INSERT INTO eab_keys (kid, secret, label, profile, status, created_at, external_kid, names, wildcards, kinds,
       validity_seconds, orders_per_day, max_accounts, expires_at, prevalidated)
     VALUES (:kid, :secret, :label, :profile, 'active', :now, :externalKid, :names, :wildcards, :kinds,
       :validitySeconds, :ordersPerDay, :maxAccounts, :expiresAt, :prevalidated)
     ON CONFLICT DO NOTHING RETURNING kid AS "kid"`
})

const binding = {
  kid: uuidBytes,
  secret: bytes,
  profile: credential.profile,
  status: credential.status,
  maxAccounts: nullable(int),
  expiresAt: nullable(int)
}

const secretStatement = statement({
  name: "eab_secret",
  params: { kid: uuidBytes },
  row: binding,
  sql: () => `SELECT ${select(binding)} FROM eab_keys WHERE kid = :kid`
})

// A credential of the profile comes before a credential that every profile accepts.
const externalStatement = statement({
  name: "eab_secret_external",
  params: { externalKid: text(), profile: name() },
  row: binding,
  sql: () =>
    `SELECT ${select(binding)} FROM eab_keys
     WHERE external_kid = :externalKid AND external_kid IS NOT NULL AND (profile = :profile OR profile IS NULL)
     ORDER BY CASE WHEN profile IS NULL THEN 1 ELSE 0 END LIMIT 1`
})

/**
 * Holds a credential with an advisory lock until the transaction ends. Transactions that bind accounts share the lock.
 * A transaction that revokes or deletes the credential holds the lock alone. The row itself is not locked, because then
 * a process that serves clients would need the right to change the row. SQLite has only one writer, so it needs no
 * lock.
 */
const holding = (name: string, take: string) =>
  statement({
    name,
    params: { kid: uuidBytes },
    row: {},
    sql: ({ dialect }) =>
      dialect === "postgres"
        ? `SELECT ${take}(hashtextextended(encode(:kid, 'hex'), 0))`
        : "SELECT 1 WHERE :kid IS NULL"
  })
const bindingStatement = holding("eab_hold", "pg_advisory_xact_lock_shared")
const endingStatement = holding("eab_hold_alone", "pg_advisory_xact_lock")

const activeStatement = statement({
  name: "eab_active",
  params: { kid: uuidBytes },
  row: { kid: uuidBytes },
  sql: () => `SELECT kid AS "kid" FROM eab_keys WHERE kid = :kid AND status = 'active'`
})

const takeStatement = statement({
  name: "eab_lock",
  params: { kid: uuidBytes },
  row: { kid: uuidBytes },
  sql: ({ dialect }) =>
    `SELECT kid AS "kid" FROM eab_keys WHERE kid = :kid${dialect === "postgres" ? " FOR UPDATE" : ""}`
})

const showStatement = statement({
  name: "eab_show",
  params: { kid: uuidBytes },
  row: shown,
  sql: () => `SELECT ${select(credential, "e")}, ${accountsBound} FROM eab_keys e WHERE e.kid = :kid`
})

const listStatement = statement({
  name: "eab_list",
  params: { status: nullable(text()), limit: int, offset: int },
  row: shown,
  sql: ({ dialect }) =>
    `SELECT ${select(credential, "e")}, ${accountsBound} FROM eab_keys e
     WHERE ${dialect === "postgres" ? ":status::text" : ":status"} IS NULL OR e.status = :status
     ORDER BY e.created_at DESC, e.kid DESC LIMIT :limit OFFSET :offset`
})

const behindStatement = statement({
  name: "eab_behind",
  params: { status: nullable(text()), beforeTime: int, beforeKid: uuidBytes, limit: int },
  row: shown,
  sql: ({ dialect }) =>
    `SELECT ${select(credential, "e")}, ${accountsBound} FROM eab_keys e
     WHERE (${dialect === "postgres" ? ":status::text" : ":status"} IS NULL OR e.status = :status)
       AND e.created_at <= :beforeTime AND (e.created_at < :beforeTime OR e.kid < :beforeKid)
     ORDER BY e.created_at DESC, e.kid DESC LIMIT :limit`
})

const countStatement = statement({
  name: "eab_count",
  params: { status: nullable(text()) },
  row: { total: int },
  sql: ({ dialect }) =>
    `SELECT count(*) AS "total" FROM eab_keys e
     WHERE ${dialect === "postgres" ? ":status::text" : ":status"} IS NULL OR e.status = :status`
})

const named = { kid: credential.kid, label: credential.label, profile: credential.profile }

const revokeStatement = statement({
  name: "eab_revoke",
  params: { kid: uuidBytes },
  row: named,
  sql: () => `UPDATE eab_keys SET status = 'revoked' WHERE kid = :kid AND status = 'active' RETURNING ${select(named)}`
})

const deleteStatement = statement({
  name: "eab_delete",
  params: { kid: uuidBytes },
  row: named,
  sql: () => `DELETE FROM eab_keys WHERE kid = :kid RETURNING ${select(named)}`
})

const accountId = uuid<AccountId>()

const idsStatement = statement({
  name: "eab_accounts",
  params: { kid: uuidBytes },
  row: { id: accountId },
  sql: () => `SELECT id AS "id" FROM accounts WHERE eab_kid = :kid ORDER BY id`
})

const lockStatement = statement({
  name: "eab_accounts_lock",
  params: { kid: uuidBytes },
  row: { id: accountId },
  sql: ({ dialect }) =>
    `SELECT id AS "id" FROM accounts WHERE eab_kid = :kid ORDER BY id${dialect === "postgres" ? " FOR UPDATE" : ""}`
})

/** A credential in the form that operators see. Times are epoch seconds. */
export type Credential = NonNullable<Effect.Success<ReturnType<typeof find>>>

/**
 * Inserts an active credential. If `profile` is `undefined`, every profile accepts the credential. Returns `undefined`
 * if another credential has the external identifier.
 */
export const insert = (
  row: CredentialScope & {
    readonly kid: string
    readonly secret: Uint8Array
    readonly label: string
    readonly profile: string | undefined
    readonly now: number
    readonly externalKid: string | undefined
  }
) => first(insertStatement, row)

/**
 * Returns the secret with which a binding is verified, with the profile and the status of the credential. Operators
 * never see the secret.
 */
export const secretOf = (kid: string) => first(secretStatement, { kid })

/** What a binding needs to know about a credential. */
export type Binding = NonNullable<Effect.Success<ReturnType<typeof secretOf>>>

/** The highest number of characters in the identifier that another server gave to a credential. */
export const longestExternalKid = 256

/** Does the same as {@link secretOf} for the identifier that another server gave to a credential. */
export const secretOfExternal = (externalKid: string, profile: string) =>
  first(externalStatement, { externalKid, profile })

/** Returns whether a credential is active. If it is, it stays active until the transaction ends. */
export const holdActive = (kid: string) =>
  Effect.andThen(
    first(bindingStatement, { kid }),
    Effect.map(first(activeStatement, { kid }), (found) => found !== undefined)
  )

/** Holds a credential until the transaction ends, so that no other transaction binds an account with it. */
export const holdAlone = (kid: string) => first(endingStatement, { kid })

/**
 * Locks a credential until the transaction ends, so that no account is bound with it in the meantime. A transaction
 * must take this lock before it locks accounts. Returns false if the credential does not exist.
 */
export const lock = (kid: string) =>
  Effect.andThen(
    first(endingStatement, { kid }),
    Effect.map(first(takeStatement, { kid }), (found) => found !== undefined)
  )

/** Finds a credential, with the number of accounts that were bound with it. */
export const find = (kid: string) => lenientFirst(showStatement, { kid })

/** Returns a page of credentials, newest first. */
export const list = (page: {
  readonly status: EabStatus | undefined
  readonly limit: number
  readonly offset: number
}) => lenient(listStatement, page)

/** Returns the credentials that follow a given credential, newest first. */
export const behind = (
  params: Parameters<typeof all<typeof behindStatement.params, typeof behindStatement.row>>[1]
) => lenient(behindStatement, params)

/** Returns the number of credentials on all pages of a list. */
export const count = (status: EabStatus | undefined) =>
  Effect.map(first(countStatement, { status }), (row) => row?.total ?? 0)

/** Moves a credential from `active` to `revoked`. Returns `undefined` if the credential was not active. */
export const revoke = (kid: string) => Effect.andThen(first(endingStatement, { kid }), first(revokeStatement, { kid }))

/** Deletes the row of the credential, and nothing else. Returns `undefined` if there was no row. */
export const remove = (kid: string) => first(deleteStatement, { kid })

type Ids = ReadonlyArray<AccountId>

const idsOf = Effect.map((found: ReadonlyArray<{ readonly id: AccountId }>): Ids => found.map(({ id }) => id))

/** Returns the accounts that were bound with a credential. */
export const accountsOf = (kid: string) => idsOf(all(idsStatement, { kid }))

/**
 * Locks the accounts that were bound with a credential until the transaction ends, so that they cannot place orders. An
 * account that is bound in the meantime is not in the result, and must not be changed.
 */
export const lockAccounts = (kid: string) => idsOf(all(lockStatement, { kid }))
