import { int, text } from "../../kernel/sql/Column.ts"
import { first, run } from "../../kernel/sql/Query.ts"
import { statement } from "../../kernel/sql/Statement.ts"

/* What operators were told of the ends of CAs (docs/decisions/notifications.md, "CAs that end"). */

const lastStatement = statement({
  name: "authority_notice_last",
  params: { profile: text(), issuer: text() },
  row: { notAfter: int, days: int },
  sql: () =>
    `SELECT not_after AS "notAfter", days AS "days" FROM authority_notices WHERE profile = :profile AND issuer = :issuer`
})

const toldStatement = statement({
  name: "authority_notice_told",
  params: { profile: text(), issuer: text(), notAfter: int, days: int },
  row: {},
  sql: () =>
    `INSERT INTO authority_notices (profile, issuer, not_after, days) VALUES (:profile, :issuer, :notAfter, :days)
     ON CONFLICT (profile, issuer) DO UPDATE SET not_after = :notAfter, days = :days`
})

/** The end of a CA that was last told of, in epoch seconds, and how many days were left at most. */
export const last = (profile: string, issuer: string) => first(lastStatement, { profile, issuer })

/** The end of a CA is told of. */
export const told = (notice: {
  readonly profile: string
  readonly issuer: string
  readonly notAfter: number
  readonly days: number
}) => run(toldStatement, notice)
