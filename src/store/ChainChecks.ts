import * as Effect from "effect/Effect"
import { int, nullable, text } from "../engine/sql/Column.ts"
import { first, run } from "../engine/sql/Query.ts"
import { select, statement } from "../engine/sql/Statement.ts"

/* The periodic check of the audit chain: how far it is, and what the last whole check found. There is one row. */

const check = {
  begunAt: int,
  nextSequence: nullable(int),
  verified: int,
  faults: int,
  endedAt: nullable(int),
  endedVerified: nullable(int),
  endedFaults: nullable(int),
  head: nullable(text())
}

const findStatement = statement({
  name: "chain_check",
  params: {},
  row: check,
  sql: () => `SELECT ${select(check)} FROM audit_chain_checks WHERE id = 1`
})

const beginStatement = statement({
  name: "chain_check_begin",
  params: { now: int },
  row: {},
  sql: () =>
    `INSERT INTO audit_chain_checks (id, begun_at) VALUES (1, :now)
     ON CONFLICT (id) DO UPDATE SET begun_at = :now, next_sequence = NULL, verified = 0, faults = 0`
})

// 0 stands for the beginning of the chain, because the first link has the number 1.
const stepStatement = statement({
  name: "chain_check_step",
  params: { from: int, next: int, verified: int, faults: int },
  row: {},
  sql: () =>
    `UPDATE audit_chain_checks SET next_sequence = :next, verified = verified + :verified, faults = faults + :faults
     WHERE id = 1 AND COALESCE(next_sequence, 0) = :from`
})

const endStatement = statement({
  name: "chain_check_end",
  params: { from: int, verified: int, faults: int, head: nullable(text()), now: int },
  row: { verified: int, faults: int },
  sql: () =>
    `UPDATE audit_chain_checks SET next_sequence = NULL, ended_at = :now, ended_verified = verified + :verified,
       ended_faults = faults + :faults, head = :head
     WHERE id = 1 AND COALESCE(next_sequence, 0) = :from
     RETURNING ended_verified AS "verified", ended_faults AS "faults"`
})

/**
 * The check. `verified` and `faults` count what the check that began at `begunAt` has found up to the link
 * `nextSequence`. The members `ended…` are about the last whole check, and `head` names the newest link at its end. Times
 * are epoch seconds.
 */
export type ChainCheck = NonNullable<Effect.Success<typeof find>>

/** Reads the check. Returns `undefined` if none has begun yet. */
export const find = first(findStatement, {})

/** Begins a check with the oldest link. The result of the last whole check is kept. */
export const begin = (now: number) => run(beginStatement, { now })

/** What a step has found. `from` is the link after which it began, if it did not begin with the oldest link. */
interface Step {
  readonly from: number | undefined
  readonly verified: number
  readonly faults: number
}

/** Stores a step, unless another process has stored it. */
export const step = ({ from = 0, ...found }: Step & { readonly next: number }) => run(stepStatement, { from, ...found })

/** Stores the last step of a check. Returns what the whole check found, or `undefined` if another process has ended it. */
export const end = ({ from = 0, ...found }: Step & { readonly head: string | undefined; readonly now: number }) =>
  first(endStatement, { from, ...found })
