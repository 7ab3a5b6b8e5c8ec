import { Effect } from "effect"
import { Database } from "../../src/engine/sql/Database.ts"
import { sql } from "./Graph.ts"

/*
 * A database with one large client. Nearly all rows belong to one profile and one account, one name is in every
 * certificate, and almost nothing is unfinished. A query planner that assumes even distributions makes bad plans here.
 */

/** Epoch seconds of the newest row. */
const until = 1_800_000_000

/** Fills a migrated, empty database. */
export const fillTables = Effect.fnUntraced(function*(orders: number) {
  const { dialect } = yield* Database
  const numbers = dialect === "sqlite"
    ? `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${orders - 1}) `
    : ""
  const from = dialect === "sqlite" ? "FROM n" : `FROM generate_series(0, ${orders - 1}) AS n(i)`
  const id = (table: number, number: string) =>
    dialect === "sqlite"
      ? `unhex(printf('0190000070008000%04x%012x', ${table}, ${number}))`
      : `('0190000070008000' || lpad(to_hex(${table}), 4, '0') || lpad(to_hex(${number}), 12, '0'))::uuid`
  const octets = (number: string) =>
    dialect === "sqlite" ? `unhex(printf('%032x', ${number}))` : `decode(lpad(to_hex(${number}), 32, '0'), 'hex')`
  const fill = (table: string, columns: string, values: string, where = "") =>
    sql(`INSERT INTO ${table} (${columns}) ${numbers}SELECT ${values} ${from} ${where}`)
  const at = `${until} - ${orders} + i`
  const named = `'host-' || i || '.example'`
  const few = "WHERE i % 100 = 0"
  yield* fill(
    "eab_keys",
    "kid, secret, label, profile, status, created_at",
    `${octets("i")}, ${octets("i")}, NULL, NULL,
    'active', ${at}`
  )
  yield* fill(
    "accounts",
    "id, profile, pubkey, status, created_at, eab_kid",
    `${id(1, "i")}, CASE WHEN i % 100 = 1 THEN 'rare' ELSE 'default' END, ${octets("i")}, 'valid', ${at}, ${
      octets("i")
    }`
  )
  yield* fill(
    "orders",
    "id, profile, account_id, status, identifiers, certificate, cert_serial, cert_pubkey, cert_not_after, replaces, created_at, kind",
    `${id(2, "i")}, CASE WHEN i % 100 = 1 THEN 'rare' ELSE 'default' END,
     CASE WHEN i % 100 = 1 THEN ${id(1, "i")} ELSE ${id(1, "0")} END,
     CASE i % 100 WHEN 2 THEN 'pending' WHEN 3 THEN 'processing' WHEN 4 THEN 'ready' ELSE 'valid' END, '[]',
     CASE WHEN i % 100 IN (2, 3, 4) THEN NULL ELSE 'a chain' END, 'a' || i, ${octets("i")}, ${at} + 1000,
     CASE WHEN i % 2 = 0 THEN 'AAA.' || i ELSE NULL END, ${at}, CASE WHEN i % 100 = 1 THEN NULL ELSE 'mutual' END`
  )
  yield* fill(
    "order_identifiers",
    "order_id, profile, name, name_rev",
    `${id(2, "i")}, CASE WHEN i % 100 = 1 THEN 'rare' ELSE 'default' END, ${named}, ${named}`
  )
  yield* fill(
    "order_identifiers",
    "order_id, profile, name, name_rev",
    `${id(2, "i")}, CASE WHEN i % 100 = 1 THEN 'rare' ELSE 'default' END, 'all.example', 'elpmaxe.lla'`
  )
  yield* fill(
    "authorizations",
    "id, order_id, identifier, status, created_at",
    `${id(3, "i")}, ${id(2, "i")}, '{}', CASE WHEN i % 100 = 2 THEN 'pending' ELSE 'valid' END, ${at}`
  )
  yield* fill(
    "challenges",
    "id, authz_id, type, position, token, status, created_at",
    `${id(4, "i")}, ${
      id(3, "i")
    }, 'http-01', 0, 'token', CASE WHEN i % 100 = 2 THEN 'processing' ELSE 'valid' END, ${at}`
  )
  yield* fill("nonces", "value, created_at", `'nonce-' || i, ${at}`)
  yield* fill(
    "upstream_orders",
    "order_id, status, csr_der, upstream_order_url, created_at, updated_at",
    `${id(2, "i")}, CASE WHEN i % 100 = 3 THEN 'processing' ELSE 'valid' END, ${
      octets("i")
    }, 'https://ca.example/' || i, ${at}, ${at}`
  )
  yield* fill("revocations", "issuer, serial, revoked_at, not_after", `'ab', 'a' || i, ${at}, ${at} + 1000`)
  yield* fill("http01_tokens", "token, key_authorization, created_at, expires_at", `'token-' || i, 'x', ${at}, ${at}`)
  yield* fill(
    "jobs",
    "id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at",
    `${
      id(5, "i")
    }, 'signer_issue', 'key-' || i, '{}', CASE i % 100 WHEN 1 THEN 'failed' WHEN 2 THEN 'running' ELSE 'done' END, ${at}, 1, 5, ${at}, ${at}`
  )
  yield* fill(
    "jobs",
    "id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at",
    `${id(6, "i")}, 'challenge_validate', 'due-' || i, '{}', 'ready', ${at}, 1, 5, ${at}, ${at}`,
    few
  )
  yield* fill(
    "admin_users",
    "id, username, password_hash, status, role, created_at, updated_at",
    `${id(7, "i")}, 'operator-' || i, 'x', 'active', 'viewer', ${at}, ${at}`,
    few
  )
  const operator = id(7, "(i - i % 100)")
  yield* fill(
    "admin_sessions",
    "token_hash, user_id, csrf_token, state, mfa_attempts, created_at, expires_at, last_seen_at",
    `'hash-' || i, ${operator}, 'x', 'active', 0, ${at}, ${at} + 1000, ${at}`
  )
  yield* fill(
    "admin_password_links",
    "user_id, token_hash, expires_at, owed",
    `${id(7, "i")}, 'hash-' || i, ${at} + 900, 0`,
    few
  )
  yield* fill(
    "admin_recovery_codes",
    "id, user_id, code_hash, created_at",
    `${id(8, "i")}, ${operator}, 'x', ${at}`,
    "WHERE i % 10 = 0"
  )
  yield* fill(
    "api_tokens",
    "id, user_id, name, role, token_hash, created_at, expires_at",
    `${id(9, "i")}, ${operator}, 'token-' || i, 'viewer', 'hash-' || i, ${at}, ${at} + 1000`
  )
  yield* fill("expiry_digests", "profile, sent_at", `'profile-' || i, ${at}`, few)
  yield* fill(
    "orphaned_certificates",
    "order_id, fingerprint, profile, serial, leaf, not_after, cause, status, found_at, updated_at",
    `${id(2, "i")}, 'ab', 'profile-' || i % 10, 'ab' || i, ${
      octets("i")
    }, ${at}, 'order_ended', 'revoked', ${at}, ${at}`,
    few
  )
  yield* fill("authority_notices", "profile, issuer, not_after, days", `'profile-' || i, 'ab', ${at}, 30`, few)
  yield* fill("expiry_reminders", "order_id, sent_at", `${id(2, "i")}, ${at}`)
  yield* fill(
    "campaigns",
    "id, state, filter, reason, created_at, actor_kind, revoked_to, filled_to, looked_to",
    `${id(10, "i")}, 'ended', '{}', 'x', ${at}, 'cli', ${id(0, "0")}, ${id(0, "0")}, ${id(0, "0")}`,
    few
  )
  yield* fill(
    "campaign_certificates",
    "order_id, campaign_id, asked_at, left_at, left_as",
    `${id(2, "i")}, ${
      id(10, "(i - i % 100)")
    }, ${at}, CASE WHEN i % 2 = 1 THEN ${at} END, CASE WHEN i % 2 = 1 THEN 'replaced' END`
  )
  yield* fill(
    "campaign_samples",
    "campaign_id, sampled_at, remaining, asked",
    `${id(10, "(i - i % 100)")}, ${at} + i, i, i`
  )
  yield* fill("reminded_addresses", "key, window_started_at, mails", `'address-' || i, ${until} - i / 100, 5`)
  yield* fill("login_failures", "key, failures, last_failed_at", `'name-' || i, 5, ${until} - i / 100`)
  yield* fill("login_attempts", "key, window_started_at, attempts", `'address-' || i, ${until} - i / 100, 5`)
  yield* fill(
    "audit_log",
    "created_at, event, outcome, actor_kind, account_id, order_id, cert_serial, request_id",
    `${at}, CASE WHEN i % 100 = 2 THEN 'certificate_issue_failed' ELSE 'certificate_issued' END, 'success', 'acme', 'x', 'order-' || i, 'a' || i, 'request-' || i`
  )
  yield* fill(
    "audit_chain",
    "sequence, first_id, last_id, row_count, newest_at, chained_at, previous, hash, signature, leaves",
    `i + 1, i, i, 1, ${at}, ${at}, 'a', 'b', CASE WHEN i % 100 = 2 THEN 'c' END, ${octets("i")}`
  )
})

/** Makes the engine gather the statistics of every table. */
export const gather: Effect.Effect<void, never, Database> = Database.use(({ dialect }) =>
  sql(dialect === "sqlite" ? "ANALYZE" : "VACUUM ANALYZE")
)

/** Fills a migrated, empty database, and makes the engine gather its statistics. */
export const grow: Effect.Effect<void, never, Database> = Effect.andThen(fillTables(2000), gather)
