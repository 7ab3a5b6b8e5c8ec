import type { AccountId } from "../../domain/Id.ts"
import { nullable, text, uuid, uuidBytes } from "../../engine/sql/Column.ts"
import { first } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import type { EabStatus } from "./EabKeys.ts"

const ofAccountStatement = statement({
  name: "eab_of_account",
  params: { id: uuid<AccountId>() },
  row: { kid: uuidBytes, label: nullable(text()), status: text<EabStatus>() },
  sql: () =>
    `SELECT e.kid AS "kid", e.label AS "label", e.status AS "status"
     FROM accounts a JOIN eab_keys e ON e.kid = a.eab_kid WHERE a.id = :id`
})

/**
 * Returns the credential with which an account was bound, without its secret. Returns `undefined` if the account was
 * not bound with any credential, or if that credential has been deleted.
 */
export const ofAccount = (id: AccountId) => first(ofAccountStatement, { id })
