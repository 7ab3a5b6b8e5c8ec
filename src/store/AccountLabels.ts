import * as Effect from "effect/Effect"
import type { AccountId } from "../domain/Id.ts"
import { nullable, packedUuid, rows, text } from "../engine/sql/Column.ts"
import { lenient } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"
import { accountColumns } from "./AccountRows.ts"

const labelsStatement = statement({
  name: "account_labels",
  params: { ids: rows },
  row: { id: accountColumns.id, contact: accountColumns.contact, label: nullable(text()) },
  sql: ({ at, each }) =>
    `SELECT a.id AS "id", a.contact AS "contact",
       (SELECT e.label FROM eab_keys e WHERE e.kid = a.eab_kid) AS "label"
     FROM accounts a WHERE a.id IN (SELECT ${at(0, "uuid")} FROM ${each(":ids")})`
})

/**
 * Returns what people call these accounts, by their ids: the address of the first contact, or the label of the
 * credential that bound the account. An account with neither is left out.
 */
export const labelsOf = (ids: ReadonlyArray<AccountId>) =>
  ids.length === 0 ? Effect.succeed(new Map<AccountId, string>()) : Effect.map(
    lenient(labelsStatement, { ids: [...new Set(ids)].map((id) => [packedUuid(id)]) }),
    (found) =>
      new Map(found.flatMap(({ contact, id, label }) => {
        const text = contact[0]?.replace(/^mailto:/i, "") ?? label
        return text === undefined ? [] : [[id, text] as const]
      }))
  )
