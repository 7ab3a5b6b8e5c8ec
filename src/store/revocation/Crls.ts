import { bytes, int, name } from "../../engine/sql/Column.ts"
import { all, first, lenient, lenientFirst } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

const head = { crlNumber: int, thisUpdate: int, nextUpdate: int }
const stored = { ...head, der: bytes }

const headStatement = statement({
  name: "crl_head",
  params: { issuer: name() },
  row: head,
  sql: () => `SELECT ${select(head)} FROM crls WHERE issuer = :issuer`
})

const findStatement = statement({
  name: "crl_find",
  params: { issuer: name() },
  row: stored,
  sql: () => `SELECT ${select(stored)} FROM crls WHERE issuer = :issuer`
})

const row = { issuer: name(), number: int, der: bytes, thisUpdate: int, nextUpdate: int }

const insertStatement = statement({
  name: "crl_insert",
  params: row,
  row: { issuer: name() },
  sql: () =>
    `INSERT INTO crls (issuer, crl_number, der, this_update, next_update)
     VALUES (:issuer, :number, :der, :thisUpdate, :nextUpdate) ON CONFLICT (issuer) DO NOTHING RETURNING issuer`
})

const replaceStatement = statement({
  name: "crl_replace",
  params: { ...row, before: int },
  row: { issuer: name() },
  sql: () =>
    `UPDATE crls SET crl_number = :number, der = :der, this_update = :thisUpdate, next_update = :nextUpdate
     WHERE issuer = :issuer AND crl_number = :before RETURNING issuer`
})

const raiseStatement = statement({
  name: "crl_raise",
  params: { issuer: name(), before: int, number: int, nextUpdate: int },
  row: { issuer: name() },
  sql: () =>
    `UPDATE crls SET crl_number = :number, next_update = :nextUpdate
     WHERE issuer = :issuer AND crl_number = :before AND :number > crl_number RETURNING issuer`
})

const issuersStatement = statement({
  name: "crl_issuers",
  params: {},
  row: { issuer: name() },
  sql: () => `SELECT issuer AS "issuer" FROM crls ORDER BY issuer`
})

const headsStatement = statement({
  name: "crl_heads",
  params: {},
  row: { issuer: name(), nextUpdate: int },
  sql: () => `SELECT issuer AS "issuer", next_update AS "nextUpdate" FROM crls ORDER BY issuer`
})

/** Returns the next update of each stored list, in epoch seconds. */
export const heads = lenient(headsStatement, {})

/** A list that is to be stored. Times are epoch seconds. */
export interface NewCrl {
  readonly issuer: string
  readonly number: number
  readonly der: Uint8Array
  readonly thisUpdate: number
  readonly nextUpdate: number
}

/**
 * Returns the number and the dates of the stored list, or `undefined` if no worker has stored a list of the issuer yet.
 */
export const findHead = (issuer: string) => first(headStatement, { issuer })

/**
 * Like {@link findHead}, but never fails if the row cannot be read ({@link lenient}). Use this function only to show
 * the list to operators, and never where the code decides something.
 */
export const shownHead = (issuer: string) => lenientFirst(headStatement, { issuer })

/**
 * Like {@link find}, but never fails if the row cannot be read ({@link lenient}). Use this function only to show the
 * list to operators, and never where the code decides something.
 */
export const shown = (issuer: string) => lenientFirst(findStatement, { issuer })

/** Returns the stored list. */
export const find = (issuer: string) => first(findStatement, { issuer })

/** Inserts the first list of an issuer. Returns `undefined` if another worker was first. */
export const insert = (crl: NewCrl) => first(insertStatement, crl)

/** Replaces the stored list that has the number `before`. Returns `undefined` if that list is no longer stored. */
export const replace = (crl: NewCrl, before: number) => first(replaceStatement, { ...crl, before })

/**
 * Raises the number and makes the list due. Returns `undefined` if the stored number is not `before`, or if the new
 * number is not higher.
 */
export const raise = (issuer: string, change: { before: number; number: number; nextUpdate: number }) =>
  first(raiseStatement, { issuer, ...change })

/** Returns every issuer that has a list. */
export const issuers = () => all(issuersStatement, {})
