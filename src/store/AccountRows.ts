import type { AccountStatus } from "../domain/Account.ts"
import type { AccountId } from "../domain/Id.ts"
import { bool, bytes, int, name, nullable, text, texts, uuid, uuidBytes } from "../engine/sql/Column.ts"
import { all, first } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { select, statement } from "../engine/sql/Statement.ts"
import { unburntForAll } from "./revocation/BurntKeys.ts"
import { lockForDeletion as lockAccountForDeletion, lockRow } from "./RowLock.ts"

/** The columns that every query of accounts reads. */
export const accountColumns = {
  id: uuid<AccountId>(),
  profile: name(),
  pubkey: bytes,
  status: text<AccountStatus>(),
  contact: texts,
  termsOfServiceAgreed: nullable(bool),
  lastSeenAt: nullable(int),
  lastSeenIp: nullable(text()),
  eabKid: nullable(uuidBytes),
  blockedAt: nullable(int)
}
const account = accountColumns

const byId = statement({
  name: "account_by_id",
  params: { id: account.id, profile: name() },
  row: account,
  sql: ({ checked }) => `SELECT ${select(account)} FROM accounts WHERE id = :id AND ${checked("profile")} = :profile`
})

/**
 * Returns a condition on the key of an account, and the sort order of the unique index of profile and key, so that
 * PostgreSQL uses this index. With the condition alone, other indexes would cost the same while the table is empty.
 */
const keyed = ({ leads }: Fragments, key: string): string =>
  `profile = :profile AND ${leads("pubkey", key)} ORDER BY pubkey LIMIT 1`

const byKey = statement({
  name: "account_by_key",
  params: { profile: name(), pubkey: bytes },
  row: account,
  sql: (f) => `SELECT ${select(account)} FROM accounts WHERE ${keyed(f, ":pubkey")}`
})

const insertStatement = statement({
  name: "account_insert",
  params: {
    id: account.id,
    profile: name(),
    pubkey: bytes,
    contact: account.contact,
    termsOfServiceAgreed: account.termsOfServiceAgreed,
    eabKid: nullable(uuidBytes),
    now: int,
    ip: nullable(text()),
    network: nullable(text()),
    ptr: nullable(text())
  },
  row: { id: account.id },
  sql: ({ dialect, typed }) =>
    `INSERT INTO accounts (id, profile, pubkey, status, contact, terms_of_service_agreed, eab_kid,
       created_at, created_ip, created_network, created_ptr, last_seen_at, last_seen_ip, last_seen_ptr)
     SELECT ${typed(":id", "uuid")}, :profile, ${typed(":pubkey", "bytea")}, 'valid', :contact,
       ${typed(":termsOfServiceAgreed", "boolean")}, ${typed(":eabKid", "bytea")}, ${
      typed(":now", "bigint")
    }, :ip, :network,
       :ptr, ${typed(":now", "bigint")}, :ip, :ptr
     WHERE ${unburntForAll(typed(":pubkey", "bytea"), dialect)}
     ON CONFLICT (profile, pubkey) DO NOTHING RETURNING id`
})

const stampAgreement = statement({
  name: "account_stamp_agreement",
  params: { id: account.id, profile: name() },
  row: { id: account.id },
  sql: ({ checked, dialect }) =>
    `UPDATE accounts SET terms_of_service_agreed = ${dialect === "postgres" ? "TRUE" : "1"}
     WHERE id = :id AND ${checked("profile")} = :profile AND status = 'valid' RETURNING id`
})

const stampSeen = statement({
  name: "account_stamp_seen",
  params: { id: account.id, now: int, ip: nullable(text()), ptr: nullable(text()) },
  row: { id: account.id },
  sql: () =>
    `UPDATE accounts SET last_seen_at = :now, last_seen_ip = :ip, last_seen_ptr = :ptr
     WHERE id = :id RETURNING id`
})

const setContact = statement({
  name: "account_set_contact",
  params: { id: account.id, profile: name(), contact: account.contact },
  row: account,
  sql: ({ checked }) =>
    `UPDATE accounts SET contact = :contact WHERE id = :id AND ${checked("profile")} = :profile AND status = 'valid'
     RETURNING ${select(account)}`
})

const changeKeyStatement = statement({
  name: "account_change_key",
  params: { id: account.id, profile: name(), oldKey: bytes, newKey: bytes },
  row: account,
  sql: (f) =>
    `UPDATE accounts SET pubkey = :newKey
     WHERE id = :id AND ${f.checked("profile")} = :profile AND ${f.checked("pubkey")} = :oldKey AND status = 'valid'
       AND (SELECT id FROM accounts WHERE ${keyed(f, ":newKey")}) IS NULL
     RETURNING ${select(account)}`
})

const deactivateStatement = statement({
  name: "account_deactivate",
  params: { id: account.id, profile: name() },
  row: account,
  sql: ({ checked }) =>
    `UPDATE accounts SET status = 'deactivated'
     WHERE id = :id AND ${checked("profile")} = :profile AND status = 'valid'
     RETURNING ${select(account)}`
})

/** Finds an account of the profile by the id in a kid. */
export const find = (profile: string, id: AccountId) => first(byId, { profile, id })

/** Finds an account of the profile by its key (DER SubjectPublicKeyInfo). */
export const findByKey = (profile: string, pubkey: Uint8Array) => first(byKey, { profile, pubkey })

/**
 * Inserts an account. Returns `undefined` if the key already has an account because another request was first, or if
 * the key is burnt for everybody.
 */
export const insert = (row: Parameters<typeof first<typeof insertStatement.params, typeof insertStatement.row>>[1]) =>
  first(insertStatement, row)

/** Stores the agreement to the terms, if it is not stored yet. */
export const recordAgreement = (profile: string, id: AccountId) => all(stampAgreement, { profile, id })

/** Stores the time and address of the last authenticated request. */
export const recordSeen = (
  id: AccountId,
  now: number,
  { ip, ptr }: { readonly ip?: string | undefined; readonly ptr?: string | undefined }
) => all(stampSeen, { id, now, ip, ptr })

/** Replaces the contacts of an account. Returns `undefined` if the account is no longer valid. */
export const updateContact = (profile: string, id: AccountId, contact: ReadonlyArray<string>) =>
  first(setContact, { profile, id, contact })

/**
 * Replaces the key. Returns `undefined` if the account no longer has the old key, or if another account of the profile
 * has the new key.
 */
export const changeKey = (
  change: Parameters<typeof first<typeof changeKeyStatement.params, typeof changeKeyStatement.row>>[1]
) => first(changeKeyStatement, change)

/** Moves the account from `valid` to `deactivated`. Returns `undefined` if the account was not valid. */
export const deactivate = (profile: string, id: AccountId) => first(deactivateStatement, { profile, id })

/**
 * Locks an account. A transaction must take this lock before it locks the row of any order
 * (docs/contribute/decisions/data-model.md, "Order of locks").
 */
export const lock = (id: AccountId) => lockRow("accounts", id)

/** Locks an account that is about to be deleted, so that no order can be inserted for it in the meantime. */
export const lockForDeletion = (id: AccountId) => lockAccountForDeletion(id)
