import { int, name } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * Stores the last notice to operators about the expiry of each CA (docs/contribute/decisions/notifications.md, "CAs
 * that end").
 */

const lastStatement = statement({
  name: "authority_notice_last",
  params: { profile: name(), issuer: name() },
  row: { notAfter: int, days: int },
  sql: () =>
    `SELECT not_after AS "notAfter", days AS "days" FROM authority_notices WHERE profile = :profile AND issuer = :issuer`
})

const toldStatement = statement({
  name: "authority_notice_told",
  params: { profile: name(), issuer: name(), notAfter: int, days: int },
  row: {},
  sql: () =>
    `INSERT INTO authority_notices (profile, issuer, not_after, days) VALUES (:profile, :issuer, :notAfter, :days)
     ON CONFLICT (profile, issuer) DO UPDATE SET not_after = :notAfter, days = :days`
})

/**
 * Returns the last notice about a CA: the expiry that the notice named, in epoch seconds, and the threshold in days at
 * which it was sent.
 */
export const last = (profile: string, issuer: string) => first(lastStatement, { profile, issuer })

/** Stores that a notice about the expiry of a CA was sent. */
export const told = (notice: {
  readonly profile: string
  readonly issuer: string
  readonly notAfter: number
  readonly days: number
}) => run(toldStatement, notice)
