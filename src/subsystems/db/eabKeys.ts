import { Effect } from "effect"
import type { AccountId } from "../../domain/Id.ts"
import { bytes, int, kid, nullable, text, uuid } from "./Column.ts"
import { all, first, run } from "./Database.ts"
import { select, statement } from "./Statement.ts"

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

const bound = { id: uuid<AccountId>(), profile: text(), orders: int, authorizations: int }

const boundStatement = statement({
  name: "eab_accounts",
  params: { kid },
  row: bound,
  sql: () =>
    `SELECT a.id AS "id", a.profile AS "profile", (SELECT count(*) FROM orders o WHERE o.account_id = a.id) AS "orders",
       (SELECT count(*) FROM orders o JOIN authorizations z ON z.order_id = o.id WHERE o.account_id = a.id)
         AS "authorizations"
     FROM accounts a WHERE a.eab_kid = :kid ORDER BY a.id`
})

const deactivateStatement = statement({
  name: "eab_accounts_deactivate",
  params: { kid },
  row: { id: bound.id, profile: bound.profile },
  sql: () =>
    `UPDATE accounts SET status = 'deactivated' WHERE eab_kid = :kid AND status = 'valid'
     RETURNING id AS "id", profile AS "profile"`
})

const deleteAccountsStatement = statement({
  name: "eab_accounts_delete",
  params: { kid },
  row: { id: bound.id },
  sql: () => `DELETE FROM accounts WHERE eab_kid = :kid RETURNING id AS "id"`
})

const lockStatement = statement({
  name: "eab_accounts_lock",
  params: { kid },
  row: {},
  sql: ({ dialect }) =>
    `SELECT 1 FROM accounts WHERE eab_kid = :kid ORDER BY id${dialect === "postgres" ? " FOR UPDATE" : ""}`
})

const lockOrdersStatement = statement({
  name: "eab_orders_lock",
  params: { kid },
  row: {},
  sql: ({ dialect }) =>
    `SELECT 1 FROM orders WHERE status IN ('pending', 'ready', 'processing') AND account_id IN (SELECT id FROM accounts WHERE eab_kid = :kid)
     ORDER BY id${dialect === "postgres" ? " FOR UPDATE" : ""}`
})

// Live: issued, not revoked, and not known to have expired (data-model rule 3).
const liveStatement = statement({
  name: "eab_live_certificates",
  params: { kid, now: int },
  row: { live: int },
  sql: () =>
    `SELECT count(*) AS "live" FROM orders o JOIN accounts a ON a.id = o.account_id
     WHERE a.eab_kid = :kid AND o.certificate IS NOT NULL AND o.revoked_at IS NULL
       AND (o.cert_not_after IS NULL OR o.cert_not_after < 0 OR o.cert_not_after >= :now)`
})

/** A credential as it is shown. Times are epoch seconds. */
export type Credential = NonNullable<Effect.Effect.Success<ReturnType<typeof find>>>

/** Inserts an active credential; a profile of `undefined` is accepted at every one. */
export const insert = (row: {
  readonly kid: string
  readonly secret: Uint8Array
  readonly label: string
  readonly profile: string | undefined
  readonly now: number
}) => run(insertStatement, row)

/** What verifying a binding needs; shown to nobody. */
export const secretOf = (kid: string) => first(secretStatement, { kid })

/** A credential with the number of accounts it bound. */
export const find = (kid: string) => first(showStatement, { kid })

/** A page of credentials, newest first. */
export const list = (page: {
  readonly status: EabStatus | undefined
  readonly limit: number
  readonly offset: number
}) => all(listStatement, page)

/** How many a listing would show unpaged. */
export const count = (status: EabStatus | undefined) =>
  Effect.map(first(countStatement, { status }), (row) => row?.total ?? 0)

/** `active` to `revoked`; `undefined` when it was not active. */
export const revoke = (kid: string) => first(revokeStatement, { kid })

/** Deletes the row alone; `undefined` when there was none. */
export const remove = (kid: string) => first(deleteStatement, { kid })

/** The accounts it bound, with what belongs to each. */
export const accountsOf = (kid: string) => all(boundStatement, { kid })

/** Certificates of its accounts that may still be in use at an epoch second. */
export const liveCertificates = (kid: string, now: number) =>
  Effect.map(first(liveStatement, { kid, now }), (row) => row?.live ?? 0)

/** Keeps its accounts from ordering, and their orders from being issued, until the transaction ends. */
export const lockAccounts = (kid: string) =>
  Effect.zipRight(run(lockStatement, { kid }), run(lockOrdersStatement, { kid }))

/** Deactivates its valid accounts; answers them. */
export const deactivateAccounts = (kid: string) => all(deactivateStatement, { kid })

/** Deletes its accounts with all they own; guard it with {@link liveCertificates}. */
export const deleteAccounts = (kid: string) => run(deleteAccountsStatement, { kid })
