import { int, name, nullable } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * Stores when the last digest of a profile's certificates was sent (docs/contribute/decisions/notifications.md,
 * "Expiring certificates").
 */

const lastStatement = statement({
  name: "expiry_digest_last",
  params: { profile: name() },
  row: { sentAt: int, doubtedAt: nullable(int) },
  sql: () => `SELECT sent_at AS "sentAt", doubted_at AS "doubtedAt" FROM expiry_digests WHERE profile = :profile`
})

const sentStatement = statement({
  name: "expiry_digest_sent",
  params: { profile: name(), now: int },
  row: {},
  sql: () =>
    `INSERT INTO expiry_digests (profile, sent_at) VALUES (:profile, :now)
     ON CONFLICT (profile) DO UPDATE SET sent_at = :now, doubted_at = NULL`
})

const doubtStatement = statement({
  name: "expiry_digest_doubt",
  params: { profile: name(), at: int },
  row: {},
  sql: () => `UPDATE expiry_digests SET doubted_at = :at WHERE profile = :profile`
})

const forgetStatement = statement({
  name: "expiry_digest_forget",
  params: { profile: name() },
  row: {},
  sql: () => `DELETE FROM expiry_digests WHERE profile = :profile`
})

/**
 * Returns the last digest of a profile. `doubtedAt` is when it was first noticed that the time of this digest is in the
 * future.
 */
export const last = (profile: string) => first(lastStatement, { profile })

/** Stores `now` as the time of the last digest. This time is stored even if there was nothing to send. */
export const sent = (profile: string, now: number) => run(sentStatement, { profile, now })

/** Forgets the last digest, so that the next pass sends a digest. */
export const forget = (profile: string) => run(forgetStatement, { profile })

/** Stores that the time of the last digest was found to be in the future. */
export const doubt = (profile: string, at: number) => run(doubtStatement, { profile, at })
