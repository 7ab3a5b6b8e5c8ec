import * as Effect from "effect/Effect"
import type { OperatorRole } from "../../domain/OperatorRole.ts"
import type { OperatorStatus } from "../../domain/OperatorStatus.ts"
import { bytes, int, name, nullable, text, texts, uuid } from "../../engine/sql/Column.ts"
import { all, first, lenient, lenientFirst, run } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

const addresses = texts

/** The columns of an operator that are shown. */
const shown = {
  id: uuid(),
  username: name(),
  status: text<OperatorStatus>(),
  role: nullable(text()),
  contactEmail: nullable(text()),
  createdAt: int,
  updatedAt: int,
  lastLoginAt: nullable(int),
  knownLoginIps: addresses
}

const secrets = {
  passwordHash: text(),
  totpSecret: nullable(bytes),
  totpPendingSecret: nullable(bytes),
  totpLastStep: nullable(int)
}

const user = { ...shown, ...secrets }

const flags = { isEnrolled: int, isEnrolling: int }
const factors = `CASE WHEN totp_secret IS NULL THEN 0 ELSE 1 END AS "isEnrolled",
  CASE WHEN totp_pending_secret IS NULL THEN 0 ELSE 1 END AS "isEnrolling"`

/** An operator as lists show it, without any column that can be used to sign in. */
const listed = { ...shown, ...flags }

const insertStatement = statement({
  name: "user_insert",
  params: { id: uuid(), username: name(), passwordHash: text(), role: text(), contact: nullable(text()), now: int },
  row: { id: uuid() },
  sql: () =>
    `INSERT INTO admin_users (id, username, password_hash, status, role, contact_email, created_at, updated_at)
     VALUES (:id, :username, :passwordHash, 'active', :role, :contact, :now, :now)
     ON CONFLICT (username) DO NOTHING RETURNING id AS "id"`
})

const byNameStatement = statement({
  name: "user_by_name",
  params: { username: name() },
  row: user,
  sql: () => `SELECT ${select(user)} FROM admin_users WHERE username = :username`
})

const byIdStatement = statement({
  name: "user_by_id",
  params: { id: uuid() },
  row: user,
  sql: () => `SELECT ${select(user)} FROM admin_users WHERE id = :id`
})

const lockStatement = statement({
  name: "user_lock",
  params: { username: name() },
  row: user,
  sql: ({ dialect }) =>
    `SELECT ${select(user)} FROM admin_users WHERE username = :username${dialect === "postgres" ? " FOR UPDATE" : ""}`
})

// If the role is NULL, the operator is an admin (docs/contribute/decisions/admin.md, "Roles").
const lockAdminsStatement = statement({
  name: "user_lock_admins",
  params: {},
  row: { id: uuid(), username: name() },
  sql: ({ dialect }) =>
    `SELECT id AS "id", username AS "username" FROM admin_users
     WHERE status = 'active' AND (role IS NULL OR role = 'admin') ORDER BY id${
      dialect === "postgres" ? " FOR UPDATE" : ""
    }`
})

const filters = { status: nullable(text<OperatorStatus>()), role: nullable(text<OperatorRole>()) }
const matching = (dialect: "sqlite" | "postgres") => {
  const given = (name: string) => dialect === "postgres" ? `:${name}::text` : `:${name}`
  return `(${given("status")} IS NULL OR status = :status)
    AND (${given("role")} IS NULL OR
      CASE WHEN role IS NULL THEN 'admin' WHEN role IN ('admin', 'operator') THEN role ELSE 'viewer' END = :role)`
}

const listStatement = statement({
  name: "user_list",
  params: { ...filters, limit: int, offset: int },
  row: listed,
  sql: ({ dialect }) =>
    `SELECT ${select(shown)}, ${factors} FROM admin_users
     WHERE ${matching(dialect)} ORDER BY username LIMIT :limit OFFSET :offset`
})

const containingStatement = statement({
  name: "user_containing",
  params: { text: text(), limit: int },
  row: { username: name() },
  sql: ({ dialect }) =>
    `SELECT username AS "username" FROM admin_users
     WHERE ${dialect === "postgres" ? "strpos" : "instr"}(username, :text) > 0 ORDER BY username LIMIT :limit`
})

const countStatement = statement({
  name: "user_count",
  params: filters,
  row: { total: int },
  sql: ({ dialect }) => `SELECT count(*) AS "total" FROM admin_users WHERE ${matching(dialect)}`
})

const unenrolledStatement = statement({
  name: "user_count_unenrolled",
  params: {},
  row: { total: int },
  sql: () => `SELECT count(*) AS "total" FROM admin_users WHERE status = 'active' AND totp_secret IS NULL`
})

const unaddressedStatement = statement({
  name: "user_count_unaddressed",
  params: {},
  row: { total: int },
  sql: () => `SELECT count(*) AS "total" FROM admin_users WHERE status = 'active' AND contact_email IS NULL`
})

const signedInStatement = statement({
  name: "user_signed_in",
  params: { id: uuid(), addresses, now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET last_login_at = :now, known_login_ips = :addresses
     WHERE id = :id AND status = 'active' RETURNING id AS "id"`
})

const verifiedStatement = statement({
  name: "user_verified",
  params: { id: uuid(), verified: text(), renewed: text(), totpSecret: nullable(bytes) },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET password_hash = :renewed
     WHERE id = :id AND status = 'active' AND password_hash = :verified AND totp_secret IS NOT DISTINCT FROM :totpSecret
     RETURNING id AS "id"`
})

const passwordStatement = statement({
  name: "user_set_password",
  params: { id: uuid(), passwordHash: text(), now: int },
  row: {},
  sql: () => `UPDATE admin_users SET password_hash = :passwordHash, updated_at = :now WHERE id = :id`
})

const statusStatement = statement({
  name: "user_set_status",
  params: { id: uuid(), status: text<OperatorStatus>(), now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET status = :status, updated_at = :now
     WHERE id = :id AND status <> :status RETURNING id AS "id"`
})

const roleStatement = statement({
  name: "user_set_role",
  params: { id: uuid(), role: text<OperatorRole>(), now: int },
  row: {},
  sql: () => `UPDATE admin_users SET role = :role, updated_at = :now WHERE id = :id`
})

const contactStatement = statement({
  name: "user_set_contact",
  params: { id: uuid(), contact: nullable(text()), now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET contact_email = :contact, updated_at = :now
     WHERE id = :id AND contact_email IS DISTINCT FROM :contact RETURNING id AS "id"`
})

/** The maximum number of admins to whom a mail is sent. */
const mostAdmins = 50

const adminContactsStatement = statement({
  name: "user_admin_contacts",
  params: {},
  row: { contactEmail: text() },
  sql: () =>
    `SELECT contact_email AS "contactEmail" FROM admin_users
     WHERE status = 'active' AND (role IS NULL OR role = 'admin') AND contact_email IS NOT NULL
     ORDER BY username LIMIT ${mostAdmins}`
})

const deleteStatement = statement({
  name: "user_delete",
  params: { id: uuid() },
  row: {},
  sql: () => `DELETE FROM admin_users WHERE id = :id`
})

/** An operator with the columns for signing in. These columns are never shown. Times are epoch seconds. */
export type User = NonNullable<Effect.Success<ReturnType<typeof find>>>

/** An operator as lists show it. */
export type ListedUser = Effect.Success<ReturnType<typeof list>>[number]

/** Inserts an active operator. Returns `undefined` if the name is already in use. */
export const insert = (row: {
  readonly id: string
  readonly username: string
  readonly passwordHash: string
  readonly role: OperatorRole
  readonly contact: string | undefined
  readonly now: number
}) => first(insertStatement, row)

/** Finds the operator with this name. */
export const find = (username: string) => first(byNameStatement, { username })

/**
 * Finds an operator like {@link find}, in order to show or change the operator. A sign-in must not use this function
 * ({@link lenient}).
 */
export const findShown = (username: string) => lenientFirst(byNameStatement, { username })

/** Finds the operator with this id. */
export const findById = (id: string) => first(byIdStatement, { id })

/** Finds the operator with this name, and locks the row until the transaction ends. */
export const lock = (username: string) => first(lockStatement, { username })

/** Locks the rows of all active admins until the transaction ends, so that no other transaction can change them. */
export const lockAdmins = all(lockAdminsStatement, {})

interface Filters {
  readonly status: OperatorStatus | undefined
  readonly role: OperatorRole | undefined
}

/** Returns a page of operators, sorted by name. */
export const list = (page: Filters & { readonly limit: number; readonly offset: number }) =>
  lenient(listStatement, page)

/** Returns the operators whose names contain a text, sorted by name. */
export const containing = (text: string, limit: number) => lenient(containingStatement, { text, limit })

/** Counts the operators on all pages of a list. */
export const count = ({ role, status }: Filters) =>
  Effect.map(first(countStatement, { role, status }), (row) => row?.total ?? 0)

/** Counts the active operators without a second factor. */
export const countUnenrolled = Effect.map(first(unenrolledStatement, {}), (row) => row?.total ?? 0)

/** Counts the active operators without a mail address. */
export const countUnaddressed = Effect.map(first(unaddressedStatement, {}), (row) => row?.total ?? 0)

/** Stores the time of a complete sign-in. Returns `undefined` if the operator is no longer active. */
export const signedIn = (id: string, addresses: ReadonlyArray<string>, now: number) =>
  first(signedInStatement, { id, addresses, now })

/**
 * Locks an operator who gave the right password. If `renewed` is given, stores it as the new hash. Returns `undefined`
 * if the operator is no longer active, or if the password or the second factor has changed since the caller read them.
 */
export const verified = (of: {
  readonly id: string
  readonly verified: string
  readonly renewed: string
  readonly totpSecret: Uint8Array | undefined
}) => first(verifiedStatement, of)

/** Stores the hash of a new password. */
export const setPassword = (id: string, passwordHash: string, now: number) =>
  run(passwordStatement, { id, passwordHash, now })

/** Sets the status. Returns `undefined` if the operator already had this status. */
export const setStatus = (id: string, status: OperatorStatus, now: number) =>
  first(statusStatement, { id, status, now })

/** Sets the role. */
export const setRole = (id: string, role: OperatorRole, now: number) => run(roleStatement, { id, role, now })

/** Sets or clears the contact. Returns `undefined` if the contact is the same as before. */
export const setContact = (id: string, contact: string | undefined, now: number) =>
  first(contactStatement, { id, contact, now })

/** Returns the mail addresses of active admins. */
export const adminContacts = Effect.map(
  all(adminContactsStatement, {}),
  (rows) => rows.map(({ contactEmail }) => contactEmail)
)

/** Deletes an operator with all their sessions, codes and tokens. */
export const remove = (id: string) => run(deleteStatement, { id })
