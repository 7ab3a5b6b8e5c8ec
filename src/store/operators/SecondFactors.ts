import { bytes, int, nullable, uuid } from "../../engine/sql/Column.ts"
import { first } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * The secrets of authenticators. Each change names the secrets on which it was decided, so of two concurrent changes
 * only one is made.
 */

const pendStatement = statement({
  name: "totp_pend",
  params: { id: uuid(), pending: bytes, inForce: nullable(bytes), now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET totp_pending_secret = :pending, updated_at = :now
     WHERE id = :id AND status = 'active' AND totp_secret IS NOT DISTINCT FROM :inForce RETURNING id AS "id"`
})

const confirmStatement = statement({
  name: "totp_confirm",
  params: { id: uuid(), pending: bytes, inForce: nullable(bytes), step: int, now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET totp_secret = totp_pending_secret, totp_pending_secret = NULL, totp_last_step = :step,
       updated_at = :now
     WHERE id = :id AND status = 'active' AND totp_pending_secret = :pending
       AND totp_secret IS NOT DISTINCT FROM :inForce RETURNING id AS "id"`
})

const claimStatement = statement({
  name: "totp_claim",
  params: { id: uuid(), secret: bytes, step: int, ahead: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET totp_last_step = :step
     WHERE id = :id AND status = 'active' AND totp_secret = :secret
       AND (totp_last_step IS NULL OR totp_last_step < :step OR totp_last_step > :ahead) RETURNING id AS "id"`
})

const clearStatement = statement({
  name: "totp_clear",
  params: { id: uuid(), now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_users SET totp_secret = NULL, totp_pending_secret = NULL, totp_last_step = NULL, updated_at = :now
     WHERE id = :id AND (totp_secret IS NOT NULL OR totp_pending_secret IS NOT NULL) RETURNING id AS "id"`
})

/** The facts on which a change of the factor was decided: the operator, and the secret in force. */
interface Decided {
  readonly id: string
  readonly inForce: Uint8Array | undefined
  readonly now: number
}

/**
 * Begins an enrolment. It replaces one that was not confirmed. Answers `undefined` if the factor has changed meanwhile.
 */
export const pend = (of: Decided & { readonly pending: Uint8Array }) => first(pendStatement, of)

/**
 * Puts a pending secret in force and claims its step. Answers `undefined` if the pending secret or the factor has
 * changed.
 */
export const confirm = (of: Decided & { readonly pending: Uint8Array; readonly step: number }) =>
  first(confirmStatement, of)

/** An hour, in steps of thirty seconds. */
const farSteps = 120

/**
 * Claims a step of the factor in force. Answers `undefined` if this step or a later one was claimed before. A claim that lies more
 * than an hour ahead was made while a clock was wrong. It is ignored, because it would refuse every code until that time.
 */
export const claim = (of: { readonly id: string; readonly secret: Uint8Array; readonly step: number }) =>
  first(claimStatement, { ...of, ahead: of.step + farSteps })

/** Removes the factor and any enrolment. Answers `undefined` if there was neither. */
export const clear = (id: string, now: number) => first(clearStatement, { id, now })
