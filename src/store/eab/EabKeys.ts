import { Effect } from "effect"
import type { AccountId } from "../../domain/Id.ts"
import { bytes, int, kid, nullable, packedUuid, rows, text, uuid } from "../../kernel/sql/Column.ts"
import { all, first, run } from "../../kernel/sql/Database.ts"
import type { Fragments } from "../../kernel/sql/Statement.ts"
import { select, statement } from "../../kernel/sql/Statement.ts"

/** `active` binds accounts, `revoked` binds no new ones. */
export type EabStatus = "active" | "revoked"

/** What lists and views show: everything but the secret. */
const credential = {
  kid,
  label: nullable(text()),
  profile: nullable(text()),
  status: text<EabStatus>(),
  createdAt: int
}

const shown = { ...credential, accounts: int }
const accountsBound = `(SELECT count(*) FROM accounts a WHERE a.eab_kid = e.kid) AS "accounts"`

const insertStatement = statement({
  name: "eab_insert",
  params: { kid, secret: bytes, label: text(), profile: nullable(text()), now: int },
  row: {},
  sql: () =>
    `INSERT INTO eab_keys (kid, secret, label, profile, status, created_at)
     VALUES (:kid, :secret, :label, :profile, 'active', :now)`
})

const secretStatement = statement({
  name: "eab_secret",
  params: { kid },
  row: { secret: bytes, profile: credential.profile, status: credential.status },
  sql: () => `SELECT secret AS "secret", profile AS "profile", status AS "status" FROM eab_keys WHERE kid = :kid`
})

const showStatement = statement({
  name: "eab_show",
  params: { kid },
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

const countStatement = statement({
  name: "eab_count",
  params: { status: nullable(text()) },
  row: { total: int },
  sql: ({ dialect }) =>
    `SELECT count(*) AS "total" FROM eab_keys e
     WHERE ${dialect === "postgres" ? ":status::text" : ":status"} IS NULL OR e.status = :status`
})

const revokeStatement = statement({
  name: "eab_revoke",
  params: { kid },
  row: credential,
  sql: () =>
    `UPDATE eab_keys SET status = 'revoked' WHERE kid = :kid AND status = 'active' RETURNING ${select(credential)}`
})

const deleteStatement = statement({
  name: "eab_delete",
  params: { kid },
  row: credential,
  sql: () => `DELETE FROM eab_keys WHERE kid = :kid RETURNING ${select(credential)}`
})

const account = { id: uuid<AccountId>(), profile: text() }
const accountOwning = { ...account, orders: int, authorizations: int }

const idsStatement = statement({
  name: "eab_accounts",
  params: { kid },
  row: { id: account.id },
  sql: () => `SELECT id AS "id" FROM accounts WHERE eab_kid = :kid ORDER BY id`
})

const lockStatement = statement({
  name: "eab_accounts_lock",
  params: { kid },
  row: { id: account.id },
  sql: ({ dialect }) =>
    `SELECT id AS "id" FROM accounts WHERE eab_kid = :kid ORDER BY id${dialect === "postgres" ? " FOR UPDATE" : ""}`
})

const among = ({ at, each }: Fragments) => `IN (SELECT ${at(0, "uuid")} FROM ${each(":accounts")})`

// Unfinished orders only: an order that has ended gets no certificate any more.
const lockOrdersStatement = statement({
  name: "eab_orders_lock",
  params: { accounts: rows },
  row: {},
  sql: (f) =>
    `SELECT 1 FROM orders WHERE account_id ${among(f)} AND status IN ('pending', 'ready', 'processing')
     ORDER BY id${f.dialect === "postgres" ? " FOR UPDATE" : ""}`
})

const ownedStatement = statement({
  name: "eab_accounts_owned",
  params: { accounts: rows },
  row: accountOwning,
  sql: (f) =>
    `SELECT a.id AS "id", a.profile AS "profile", (SELECT count(*) FROM orders o WHERE o.account_id = a.id) AS "orders",
       (SELECT count(*) FROM orders o JOIN authorizations z ON z.order_id = o.id WHERE o.account_id = a.id)
         AS "authorizations"
     FROM accounts a WHERE a.id ${among(f)} ORDER BY a.id`
})

// Live: issued, not revoked, and not known to have expired (docs/eab.md, "Deleting, and what becomes of accounts").
const liveStatement = statement({
  name: "eab_live_certificates",
  params: { accounts: rows, now: int },
  row: { live: int },
  sql: (f) =>
    `SELECT count(*) AS "live" FROM orders o
     WHERE o.account_id ${among(f)} AND o.certificate IS NOT NULL AND o.revoked_at IS NULL
       AND (o.cert_not_after IS NULL OR o.cert_not_after < 0 OR o.cert_not_after >= :now)`
})

const deactivateStatement = statement({
  name: "eab_accounts_deactivate",
  params: { accounts: rows },
  row: account,
  sql: (f) =>
    `UPDATE accounts SET status = 'deactivated' WHERE id ${among(f)} AND status = 'valid'
     RETURNING id AS "id", profile AS "profile"`
})

const deleteAccountsStatement = statement({
  name: "eab_accounts_delete",
  params: { accounts: rows },
  row: { id: account.id },
  sql: (f) => `DELETE FROM accounts WHERE id ${among(f)} RETURNING id AS "id"`
})

/** A credential as it is shown. Times are epoch seconds. */
export type Credential = NonNullable<Effect.Effect.Success<ReturnType<typeof find>>>

/** Inserts an active credential. Every profile accepts it when `profile` is `undefined`. */
export const insert = (row: {
  readonly kid: string
  readonly secret: Uint8Array
  readonly label: string
  readonly profile: string | undefined
  readonly now: number
}) => run(insertStatement, row)

/** The facts that verify a binding. They are never shown. */
export const secretOf = (kid: string) => first(secretStatement, { kid })

/** A credential with the number of accounts it bound. */
export const find = (kid: string) => first(showStatement, { kid })

/** A page of credentials, newest first. */
export const list = (page: {
  readonly status: EabStatus | undefined
  readonly limit: number
  readonly offset: number
}) => all(listStatement, page)

/** How many credentials a listing without pages would show. */
export const count = (status: EabStatus | undefined) =>
  Effect.map(first(countStatement, { status }), (row) => row?.total ?? 0)

/** `active` to `revoked`; `undefined` when it was not active. */
export const revoke = (kid: string) => first(revokeStatement, { kid })

/** Deletes only the row of the credential; `undefined` when there was none. */
export const remove = (kid: string) => first(deleteStatement, { kid })

type Ids = ReadonlyArray<AccountId>

const idsOf = Effect.map((found: ReadonlyArray<{ readonly id: AccountId }>): Ids => found.map(({ id }) => id))
const packed = (accounts: Ids) => accounts.map((id) => [packedUuid(id)])

/** The accounts that a credential bound. */
export const accountsOf = (kid: string) => idsOf(all(idsStatement, { kid }))

/**
 * Locks the accounts that a credential bound, and their unfinished orders, until the transaction ends: the accounts cannot
 * order, and nothing is issued. An account that is bound in the meantime is not in the list and must not be touched.
 */
export const lockAccounts = (kid: string) =>
  Effect.tap(
    idsOf(all(lockStatement, { kid })),
    (accounts) => run(lockOrdersStatement, { accounts: packed(accounts) })
  )

/** Accounts, each with the numbers of its orders and authorizations. */
export const owned = (accounts: Ids) => all(ownedStatement, { accounts: packed(accounts) })

/** Certificates of accounts that may still be in use at an epoch second. */
export const liveCertificates = (accounts: Ids, now: number) =>
  Effect.map(first(liveStatement, { accounts: packed(accounts), now }), (row) => row?.live ?? 0)

/** Deactivates the valid ones of these accounts; answers which. */
export const deactivateAccounts = (accounts: Ids) => all(deactivateStatement, { accounts: packed(accounts) })

/** Deletes accounts with everything they own. Check {@link liveCertificates} first. */
export const deleteAccounts = (accounts: Ids) => run(deleteAccountsStatement, { accounts: packed(accounts) })
