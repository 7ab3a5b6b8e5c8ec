import { int, nullable, text } from "../../kernel/sql/Column.ts"
import { first, run } from "../../kernel/sql/Query.ts"
import { statement } from "../../kernel/sql/Statement.ts"

/* When operators were last told of a profile's certificates (docs/decisions/notifications.md, "Expiring certificates"). */

const lastStatement = statement({
  name: "expiry_digest_last",
  params: { profile: text() },
  row: { sentAt: int, doubtedAt: nullable(int) },
  sql: () => `SELECT sent_at AS "sentAt", doubted_at AS "doubtedAt" FROM expiry_digests WHERE profile = :profile`
})

const sentStatement = statement({
  name: "expiry_digest_sent",
  params: { profile: text(), now: int },
  row: {},
  sql: () =>
    `INSERT INTO expiry_digests (profile, sent_at) VALUES (:profile, :now)
     ON CONFLICT (profile) DO UPDATE SET sent_at = :now, doubted_at = NULL`
})

const doubtStatement = statement({
  name: "expiry_digest_doubt",
  params: { profile: text(), at: int },
  row: {},
  sql: () => `UPDATE expiry_digests SET doubted_at = :at WHERE profile = :profile`
})

const forgetStatement = statement({
  name: "expiry_digest_forget",
  params: { profile: text() },
  row: {},
  sql: () => `DELETE FROM expiry_digests WHERE profile = :profile`
})

/** The last digest of a profile. `doubtedAt`: since when somebody knows that its time is later than now. */
export const last = (profile: string) => first(lastStatement, { profile })

/** There is a digest, or there was nothing to tell. */
export const sent = (profile: string, now: number) => run(sentStatement, { profile, now })

/** Somebody asks for a digest although there was one: the next look tells again. */
export const forget = (profile: string) => run(forgetStatement, { profile })

/** The time of the last digest is later than now. */
export const doubt = (profile: string, at: number) => run(doubtStatement, { profile, at })
