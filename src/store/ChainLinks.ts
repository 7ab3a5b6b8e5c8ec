import * as Effect from "effect/Effect"
import type { Head, Link, LinkContent } from "../domain/AuditChain.ts"
import { hashOfLink } from "../domain/AuditChain.ts"
import { bytes, int, nullable, text } from "../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../engine/sql/Database.ts"
import { all, first } from "../engine/sql/Query.ts"
import { select, statement } from "../engine/sql/Statement.ts"

/*
 * The links of the chain of the audit trail (docs/contribute/decisions/audit-chain.md). `ChainedRows.ts` reads the
 * rows.
 */

const link = {
  sequence: int,
  firstId: int,
  lastId: int,
  rowCount: int,
  newestAt: int,
  chainedAt: int,
  previous: text(),
  hash: text()
}

const signature = { signature: nullable(text()), keyId: nullable(text()), signedAt: nullable(int) }
const stored = { ...link, ...signature, leaves: bytes }

const headStatement = statement({
  name: "chain_head",
  params: {},
  row: { ...link, ...signature },
  sql: () => `SELECT ${select({ ...link, ...signature })} FROM audit_chain ORDER BY sequence DESC LIMIT 1`
})

const firstStatement = statement({
  name: "chain_first",
  params: {},
  row: link,
  sql: () => `SELECT ${select(link)} FROM audit_chain ORDER BY sequence LIMIT 1`
})

const linkStatement = statement({
  name: "chain_link",
  params: { sequence: int },
  row: link,
  sql: () => `SELECT ${select(link)} FROM audit_chain WHERE sequence = :sequence`
})

const signedStatement = statement({
  name: "chain_signed",
  params: {},
  row: { ...link, ...signature },
  sql: ({ indexedBy }) =>
    `SELECT ${select({ ...link, ...signature })} FROM audit_chain ${indexedBy("audit_chain_signed")}
     WHERE signature IS NOT NULL ORDER BY sequence DESC LIMIT 1`
})

const pageStatement = statement({
  name: "chain_page",
  params: { after: int, upto: int, limit: int },
  row: stored,
  sql: () =>
    `SELECT ${select(stored)} FROM audit_chain WHERE sequence > :after AND sequence <= :upto
     ORDER BY sequence LIMIT :limit`
})

const appendStatement = statement({
  name: "chain_append",
  params: { ...link, leaves: bytes },
  row: { sequence: int },
  sql: () =>
    `INSERT INTO audit_chain
       (sequence, first_id, last_id, row_count, newest_at, chained_at, previous, hash, leaves)
     VALUES (:sequence, :firstId, :lastId, :rowCount, :newestAt, :chainedAt, :previous, :hash, :leaves)
     ON CONFLICT (sequence) DO NOTHING RETURNING sequence AS "sequence"`
})

const signStatement = statement({
  name: "chain_sign",
  params: { sequence: int, hash: text(), signature: text(), keyId: text(), signedAt: int },
  row: { sequence: int },
  sql: ({ checked }) =>
    `UPDATE audit_chain SET signature = :signature, key_id = :keyId, signed_at = :signedAt
     WHERE sequence = :sequence AND ${checked("hash")} = :hash AND ${checked("signature")} IS NULL
     RETURNING sequence AS "sequence"`
})

const anchorStatement = statement({
  name: "chain_anchor",
  params: { before: int },
  row: { sequence: int },
  sql: () => `SELECT sequence AS "sequence" FROM audit_chain WHERE newest_at >= :before ORDER BY sequence LIMIT 1`
})

const pruneStatement = statement({
  name: "chain_prune",
  params: { anchor: int, limit: int },
  row: { sequence: int },
  sql: () =>
    `DELETE FROM audit_chain WHERE sequence IN
       (SELECT sequence FROM audit_chain WHERE sequence < :anchor ORDER BY sequence LIMIT :limit)
     RETURNING sequence AS "sequence"`
})

/** A link as it is stored. */
export type StoredLink = Effect.Success<ReturnType<typeof page>>[number]

/** The newest link, or nothing if there is no chain yet. */
export const head = first(headStatement, {})

/** The oldest link that is still stored. */
export const oldest = first(firstStatement, {})

/** Reads one link. */
export const find = (sequence: number) => first(linkStatement, { sequence })

/** The newest link that is signed. */
export const signed = first(signedStatement, {})

/** Reads links in the order of the chain, with their leaves. */
export const page = (range: { readonly after: number; readonly upto: number; readonly limit: number }) =>
  all(pageStatement, range)

/**
 * Appends a link. Returns the link with its hash, or `undefined` if another process has appended a link with the same
 * number. This is one statement, so a link is either stored as a whole or not at all.
 */
export const append = (content: LinkContent): Effect.Effect<Link | undefined, StorageFailed, Database> => {
  const appended = { ...content, hash: hashOfLink(content) }
  return Effect.map(first(appendStatement, appended), (row) => row === undefined ? undefined : appended)
}

/** Stores the signature of a head. Returns `undefined` if the link is gone, or was signed by another process. */
export const sign = (
  signature: Head & { readonly signature: string; readonly keyId: string; readonly signedAt: number }
) => first(signStatement, signature)

/**
 * Deletes up to `limit` links whose rows were all written before an epoch second, and that are followed by another such
 * link. The last of these links remains, so that the hash that the next link names can still be checked. Returns how
 * many links were deleted. Must run only after the rows were deleted, and that was recorded.
 */
export const prune = (before: number, limit: number) =>
  Effect.gen(function*() {
    const kept = yield* first(anchorStatement, { before })
    const anchor = kept?.sequence ?? ((yield* head)?.sequence ?? 0) + 1
    return (yield* all(pruneStatement, { anchor: anchor - 1, limit })).length
  })
