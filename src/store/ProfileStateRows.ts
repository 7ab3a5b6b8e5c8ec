import type * as Effect from "effect/Effect"
import { int, name, nullable, rows, text } from "../engine/sql/Column.ts"
import { all, lenient, run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/* Stores which worker can sign for which profile. Only workers have signers; the other processes read these rows. */

const state = { profile: name(), owner: name(), trouble: nullable(text()), since: int, stoppedIssuer: nullable(text()) }

const reportStatement = statement({
  name: "profile_state_report",
  params: state,
  row: {},
  sql: () =>
    `INSERT INTO profile_states (profile, owner, trouble, since, stopped_issuer)
     VALUES (:profile, :owner, :trouble, :since, :stoppedIssuer)
     ON CONFLICT (profile, owner) DO UPDATE SET trouble = excluded.trouble, since = excluded.since,
       stopped_issuer = excluded.stopped_issuer`
})

const forgetStatement = statement({
  name: "profile_state_forget",
  params: { owner: name(), served: rows },
  row: {},
  sql: ({ at, each }) =>
    `DELETE FROM profile_states WHERE owner = :owner AND profile NOT IN (SELECT ${at(0, "text")} FROM ${
      each(":served")
    })`
})

const forgetGoneStatement = statement({
  name: "profile_state_forget_gone",
  params: {},
  row: {},
  sql: () => `DELETE FROM profile_states WHERE owner NOT IN (SELECT owner FROM workers)`
})

const listStatement = statement({
  name: "profile_state_list",
  params: { seenSince: int },
  row: state,
  sql: () =>
    `SELECT s.profile AS "profile", s.owner AS "owner", s.trouble AS "trouble", s.since AS "since",
       s.stopped_issuer AS "stoppedIssuer"
     FROM workers w JOIN profile_states s ON s.owner = w.owner WHERE w.last_seen_at >= :seenSince ORDER BY s.profile, s.owner`
})

/**
 * The state of a profile at a worker. `since` is the time at which this state began, in epoch seconds. `stoppedIssuer`
 * is the CA that revokes nothing and publishes no list because of the trouble.
 */
export type ProfileState = Effect.Success<ReturnType<typeof list>>[number]

/** Stores the state of a profile at a worker. */
export const report = (row: ProfileState) => run(reportStatement, row)

/** Deletes the states that a worker stored for profiles that it no longer serves. */
export const forget = (owner: string, served: ReadonlyArray<string>) =>
  run(forgetStatement, { owner, served: served.map((profile) => [profile]) })

/** Deletes the states that were stored by workers that are gone. */
export const forgetGone = run(forgetGoneStatement, {})

/** Returns the states that were stored by workers seen since an epoch second. */
export const list = (seenSince: number) => lenient(listStatement, { seenSince })

/** Like {@link list}, but fails if a row cannot be read. Use this function if a decision depends on the states. */
export const verdicts = (seenSince: number) => all(listStatement, { seenSince })
