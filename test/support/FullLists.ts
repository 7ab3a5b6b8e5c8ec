import { Effect } from "effect"
import type { Database } from "../../src/engine/sql/Database.ts"
import { sql } from "./Graph.ts"
import { startsAt } from "./Operators.ts"

/* Enough rows for a full page in every list of the panel, with texts as long as in a real company. Only for SQLite. */

/** The number of rows, which is more than fits on a page. */
const rows = 60

const id = (table: number) => `unhex(printf('01933%03xd5a87c3e9f04%012x', ${table}, i * 7919))`
const written = (table: number) => `printf('01933%03x-d5a8-7c3e-9f04-%012x', ${table}, i * 7919)`
const profile = "CASE i % 3 WHEN 0 THEN 'default' ELSE 'other' END"
const named = `printf('node-%03d.eu.corp.example', i)`
const at = `${startsAt} - i * 4321`

/** Fills an empty database. */
export const fillLists: Effect.Effect<void, never, Database> = Effect.gen(function*() {
  const fill = (table: string, columns: string, values: string, many = rows) =>
    sql(
      `INSERT INTO ${table} (${columns}) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${
        many - 1
      }) SELECT ${values} FROM n`
    )
  yield* fill(
    "eab_keys",
    "kid, secret, label, profile, status, created_at",
    `${id(1)}, x'00', 'Web servers of the shop, rack ' || i, ${profile},
     CASE i % 4 WHEN 0 THEN 'revoked' ELSE 'active' END, ${at}`
  )
  yield* fill(
    "accounts",
    "id, profile, pubkey, status, contact, eab_kid, created_at, created_ip, last_seen_at, last_seen_ip, last_seen_ptr",
    `${id(2)}, ${profile}, ${id(2)}, CASE i % 9 WHEN 0 THEN 'deactivated' ELSE 'valid' END,
     printf('["mailto:platform-%d@corp.example"]', i), ${id(1)}, ${at}, '192.0.2.' || i, ${at} + 99, '192.0.2.' || i,
     ${named}`
  )
  yield* fill(
    "orders",
    "id, profile, account_id, status, identifiers, certificate, cert_serial, cert_not_after, created_at, revoked_at",
    `${id(3)}, ${profile}, ${id(2)}, 'valid',
     CASE i % 3 WHEN 0 THEN printf('[{"type":"dns","value":"%s"},{"type":"dns","value":"alias-%s"}]', ${named}, ${named})
       ELSE printf('[{"type":"dns","value":"%s"}]', ${named}) END,
     'a chain', printf('%032x', i), ${startsAt} + 86400 + i * 40000, ${at}, CASE i % 7 WHEN 3 THEN ${at} ELSE NULL END`
  )
  for (const alias of ["", "'alias-' || "]) {
    yield* fill("order_identifiers", "order_id, profile, name, name_rev", `${id(3)}, ${profile}, ${alias}${named}, 'r'`)
  }
  yield* fill(
    "upstream_orders",
    "order_id, status, upstream_order_url, csr_der, error, created_at, updated_at",
    `${id(3)}, CASE i % 2 WHEN 0 THEN 'invalid' ELSE 'valid' END, 'https://acme.upstream.example/order/' || i, x'00',
     CASE i % 2 WHEN 0 THEN printf('urn:ietf:params:acme:error:rejectedIdentifier: the policy forbids %s', ${named}) END,
     ${at}, ${at} + 60`
  )
  const job =
    "id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, last_error, created_at, updated_at, share"
  yield* fill(
    "jobs",
    job,
    `${id(4)}, 'signer_issue', ${written(3)}, printf('{"order_id":"%s"}', ${written(3)}), 'failed', ${at}, 8, 8,
     'script_failed: exit 1: there is no token in slot ' || i, ${at}, ${at} + 600, ''`
  )
  yield* fill(
    "jobs",
    job,
    `${id(5)}, 'notify_deliver', ${written(5)} || '/webhook/chat',
     printf('{"scope":"default","backend":"webhook","entry":"operations","event":"certificate_issued","fields":{"hook":"certificate_issued","profile":"default","at":1,"delivery_id":"%s"}}',
       ${written(5)}),
     CASE i % 2 WHEN 0 THEN 'failed' ELSE 'done' END, ${at}, 8, 8,
     CASE i % 2 WHEN 0 THEN 'not_delivered: 404 no such channel' END, ${at}, ${at} + 600, ''`
  )
  yield* fill(
    "audit_log",
    `created_at, event, outcome, actor_kind, actor_id, profile, account_id, order_id, cert_serial, identifiers,
     client_ip, client_ptr, user_agent, request_id`,
    `${at}, CASE i % 3 WHEN 0 THEN 'certificate_issue_failed' ELSE 'certificate_issued' END,
     CASE i % 3 WHEN 0 THEN 'failure' ELSE 'success' END, CASE i % 4 WHEN 0 THEN 'admin' ELSE 'acme' END,
     CASE i % 4 WHEN 0 THEN 'olga' ELSE ${written(2)} END, ${profile}, ${written(2)}, ${written(3)}, printf('%032x', i),
     printf('["%s","alias-%s"]', ${named}, ${named}), '192.0.2.' || i, ${named}, 'certbot/4.1.1', ${written(6)}`
  )
  yield* fill(
    "workers",
    "owner, roles, version, started_at, last_seen_at",
    `printf('node-%d.corp.example:%d:%s', i, 4000 + i, ${written(7)}), 'acme,worker', '1.4.2', ${at}, ${startsAt}`,
    20
  )
  yield* fill(
    "admin_users",
    "id, username, password_hash, status, role, contact_email, known_login_ips, created_at, updated_at, last_login_at",
    `${id(8)}, printf('operator-%02d', i), 'x', 'active', 'viewer', printf('operator-%02d@corp.example', i), '[]',
     ${at}, ${at}, ${at} + 60`
  )
})
