import { bytes, int, nullable, uuid } from "../../engine/sql/Column.ts"
import { first } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * The secrets of authenticators. Each change states the secrets that its caller has read, so that only one of two
 * concurrent changes is made.
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

/** The facts that a change of the factor is based on: the operator, and the secret in force. */
interface Decided {
  readonly id: string
  readonly inForce: Uint8Array | undefined
  readonly now: number
}

/**
 * Begins an enrolment. An earlier enrolment that was not confirmed is replaced. Returns `undefined` if the factor has
 * changed in the meantime.
 */
export const pend = (of: Decided & { readonly pending: Uint8Array }) => first(pendStatement, of)

/**
 * Puts a pending secret in force, and claims the time step of its code. Returns `undefined` if the pending secret or
 * the factor has changed.
 */
export const confirm = (of: Decided & { readonly pending: Uint8Array; readonly step: number }) =>
  first(confirmStatement, of)

/** An hour, in steps of thirty seconds. */
const farSteps = 120

/**
 * Claims a time step of the factor in force. Returns `undefined` if this step or a later step has already been claimed.
 * A claim that is more than an hour ahead was made while a clock was wrong. It is ignored, because otherwise every code
 * would be refused until that time.
 */
export const claim = (of: { readonly id: string; readonly secret: Uint8Array; readonly step: number }) =>
  first(claimStatement, { ...of, ahead: of.step + farSteps })

/** Removes the factor and any enrolment. Returns `undefined` if the operator has neither. */
export const clear = (id: string, now: number) => first(clearStatement, { id, now })
