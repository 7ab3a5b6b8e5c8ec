import * as Effect from "effect/Effect"
import type { Role, Roles } from "../domain/Role.ts"
import { rows, text } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import { all } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/*
 * The rights that a process needs on PostgreSQL, which depend on its roles. `docs/recipes/postgres-roles.sql` grants
 * exactly these rights.
 */

type Grants = ReadonlyArray<readonly [privileges: string, objects: string]>

const ofEveryRole: Grants = [
  ["SELECT", "schema_migrations crls revocations profile_states"],
  ["SELECT INSERT UPDATE DELETE", "workers jobs nonces"],
  ["SELECT INSERT", "audit_log"]
]

const ofRole: { readonly [R in Role]: Grants } = {
  acme: [
    ["SELECT INSERT UPDATE", "accounts orders authorizations challenges"],
    ["SELECT INSERT", "order_identifiers burnt_keys revocations"],
    ["SELECT", "eab_keys http01_tokens upstream_orders alternate_chains campaigns campaign_certificates"],
    ["UPDATE", "campaigns.asked campaigns.matched campaigns.replaced campaigns.revoked campaigns.expired"],
    ["UPDATE", "campaign_certificates.asked_at"]
  ],
  admin: [
    [
      "SELECT INSERT UPDATE DELETE",
      "accounts orders authorizations challenges order_identifiers eab_keys upstream_orders admin_users admin_sessions " +
      "admin_recovery_codes admin_password_links api_tokens login_attempts login_failures"
    ],
    ["SELECT INSERT", "revocations burnt_keys compromised_issuers"],
    ["SELECT INSERT UPDATE", "campaigns"],
    [
      "SELECT",
      "expiry_digests expiry_reminders reminded_addresses orphaned_certificates audit_chain audit_chain_checks " +
      "audit_receivers campaign_certificates campaign_samples alternate_chains"
    ]
  ],
  worker: [
    [
      "SELECT INSERT UPDATE DELETE",
      "accounts orders authorizations challenges order_identifiers upstream_orders http01_tokens revocations crls " +
      "burnt_keys orphaned_certificates profile_states authority_notices expiry_digests expiry_reminders " +
      "reminded_addresses login_attempts login_failures"
    ],
    ["SELECT", "eab_keys"],
    ["SELECT", "admin_users.id admin_users.username admin_users.status admin_users.role admin_users.contact_email"],
    ["SELECT DELETE", "admin_sessions admin_password_links"],
    ["DELETE", "audit_log"],
    ["SELECT INSERT DELETE", "audit_chain"],
    ["SELECT INSERT", "alternate_chains campaign_samples"],
    ["SELECT UPDATE", "compromised_issuers campaigns"],
    ["SELECT INSERT UPDATE", "campaign_certificates audit_chain_checks audit_receivers"],
    ["SELECT INSERT UPDATE DELETE", "renewal_hours"],
    ["UPDATE", "audit_chain.signature audit_chain.key_id audit_chain.signed_at"]
  ]
}

/**
 * Returns the rights that a process with these roles needs, such as `INSERT on jobs` or `SELECT on admin_users.role`.
 */
export const needed = (roles: Roles): ReadonlySet<string> =>
  new Set(
    [ofEveryRole, ...[...roles].map((role) => ofRole[role])].flat().flatMap(([privileges, objects]) =>
      objects.split(" ").flatMap((object) => privileges.split(" ").map((privilege) => `${privilege} on ${object}`))
    )
  )

/** A right in parts: its privilege, its table, and its column or an empty text. */
export const partsOfRight = (right: string): readonly [privilege: string, table: string, column: string] => {
  const [privilege = "", of = ""] = right.split(" on ")
  const [object = "", part = ""] = of.split(".")
  return [privilege, object, part]
}

// Each element of `wanted` consists of the right, its privilege, its table, and its column or an empty text.
const missingStatement = statement({
  name: "rights_missing",
  params: { wanted: rows },
  row: { right: text() },
  sql: ({ at, dialect, each }) => {
    const [right, privilege, object, part] = [0, 1, 2, 3].map((index) => at(index, "text"))
    if (dialect === "sqlite") return `SELECT ${right} AS "right" FROM ${each(":wanted")} WHERE 1 = 0`
    return `SELECT ${right} AS "right" FROM ${each(":wanted")}
      WHERE NOT CASE WHEN ${part} = '' THEN has_table_privilege(to_regclass(${object}), ${privilege})
        ELSE has_column_privilege(to_regclass(${object}), ${part}, ${privilege}) END`
  }
})

/**
 * Returns the rights that the user of the database needs for these roles but lacks. Tables that do not exist are left
 * out. SQLite has no rights.
 */
export const missing = (roles: Roles): Effect.Effect<ReadonlyArray<string>, StorageFailed, Database> =>
  Database.use(({ dialect }) =>
    dialect === "sqlite"
      ? Effect.succeed([])
      : Effect.map(
        all(missingStatement, {
          wanted: [...needed(roles)].map((right) => [right, ...partsOfRight(right)])
        }),
        (found) => found.map(({ right }) => right)
      )
  )
