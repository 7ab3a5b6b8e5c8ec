import { Effect } from "effect"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Canonical } from "../../src/store/transfer/CopiedTable.ts"
import { encodeRow, insertText } from "../../src/store/transfer/CopiedTable.ts"
import { tables } from "../../src/store/transfer/Tables.ts"
import { sql } from "./Graph.ts"

/* A database with rows in every table, with ordinary, absent and odd values in every column. */

const idOf = (table: number, row: number): string =>
  `0190${table.toString(16).padStart(4, "0")}-0000-7000-8000-${row.toString(16).padStart(12, "0")}`

/**
 * A text with characters beyond the basic plane, combining characters, text from right to left, control characters and
 * quotes. Both engines order such texts by bytes.
 */
const odd = "naïve \u{1F510} e\u0301 \u05D0\u202E \u0001\t\n\r\\ ' \" ; -- \uFFFD \u00A0"

type Row = { readonly [column: string]: Canonical }

/**
 * The number of orders, which with their names are more than a page. One order has every value, and the others have as
 * few as possible.
 */
export const orders = 1100

const rows: { readonly [table: string]: ReadonlyArray<Row> } = {
  eab_keys: [
    {
      kid: "00".repeat(16),
      secret: "",
      label: odd,
      profile: "default",
      status: "active",
      created_at: "0",
      names: `["**.corp.example"]`,
      wildcards: "true",
      kinds: `["mutual"]`,
      validity_seconds: "3600",
      orders_per_day: "10",
      max_accounts: "1",
      expires_at: "1700000000",
      prevalidated: "false",
      external_kid: odd
    },
    { kid: "ff".repeat(16), secret: "00ff10", status: "revoked", created_at: "-1" }
  ],
  accounts: [
    {
      id: idOf(1, 1),
      profile: "default",
      pubkey: "00010203",
      status: "valid",
      contact: JSON.stringify([`mailto:${odd}`]),
      terms_of_service_agreed: "true",
      eab_kid: "00".repeat(16),
      created_at: "1700000000",
      created_ip: "2001:db8::1",
      created_ptr: "client.example",
      last_seen_at: "1700000001",
      last_seen_ip: "192.0.2.1",
      last_seen_ptr: odd,
      scope_lost: "1700000000",
      blocked_at: "1700000002",
      block_reason: odd
    },
    {
      id: idOf(1, 2),
      profile: "other",
      pubkey: "",
      status: "deactivated",
      contact: "[]",
      terms_of_service_agreed: "false",
      created_at: "1"
    },
    { id: idOf(1, 3), profile: "other", pubkey: "aa", status: "revoked", contact: "[]", created_at: "2" }
  ],
  orders: [
    {
      id: idOf(2, 0),
      profile: "default",
      account_id: idOf(1, 1),
      status: "valid",
      identifiers: `[{"type":"dns","value":"a.example"}]`,
      not_before: "1",
      not_after: "2",
      replaces: "AAA.BBB",
      error: "{}",
      certificate: `-----BEGIN CERTIFICATE-----\n${"QUJD".repeat(2000)}\n-----END CERTIFICATE-----\n`,
      cert_serial: "0badcafe",
      cert_pubkey: "3000",
      cert_not_after: "9007199254740993",
      revoked_at: "1700000000",
      revocation_reason: "1",
      created_at: "1700000000",
      created_ip: "192.0.2.1",
      created_ptr: "",
      expires_at: "1700604800",
      kind: "mutual",
      restricted: "1",
      validity_bound: "3600",
      alternate_chains: `["${"ab".repeat(32)}"]`,
      renews_at: "7200",
      leaf: "3001",
      issuers: "ab".repeat(32)
    },
    ...Array.from({ length: orders - 1 }, (_, index): Row => ({
      id: idOf(2, index + 1),
      profile: "default",
      account_id: idOf(1, 1),
      status: "pending",
      identifiers: "[]",
      created_at: `${index}`
    }))
  ],
  order_identifiers: Array.from({ length: orders * 2 }, (_, index) => ({
    order_id: idOf(2, Math.floor(index / 2)),
    profile: "default",
    name: ["Z.example", "a.example"][index % 2],
    name_rev: "elpmaxe"
  })),
  authorizations: [
    { id: idOf(3, 1), order_id: idOf(2, 0), identifier: `{"type":"dns"}`, status: "expired", created_at: "5" }
  ],
  challenges: ["http-01", "dns-01"].map((type, position) => ({
    id: idOf(4, position),
    authz_id: idOf(3, 1),
    type,
    position: `${position}`,
    token: `token-${position}`,
    status: position === 0 ? "valid" : "pending",
    validated_at: position === 0 ? "1700000000" : undefined,
    error: position === 0 ? undefined : `{"detail":"x"}`,
    created_at: "6",
    cause: position === 0 ? undefined : `{"reason":"status","detail":"status 404"}`
  })),
  nonces: ["_", "A", "a", "-", "é", "\u{1F510}", "\uFFFD"].map((value) => ({
    value,
    created_at: "7",
    created_millisecond: value === "_" ? undefined : "999"
  })),
  upstream_orders: [
    {
      order_id: idOf(2, 0),
      status: "processing",
      upstream_order_url: "https://ca.example/o/1",
      upstream_finalize_url: "https://ca.example/f/1",
      upstream_certificate_url: "https://ca.example/c/1",
      csr_der: "",
      error: odd,
      client_ip: "192.0.2.1",
      client_ptr: "x",
      user_agent: "agent/1",
      request_id: "request-1",
      started_at: "8",
      asks: "1",
      asked_at: "8",
      renewal_start: "10",
      renewal_end: "11",
      renewal_url: "https://ca.example/why",
      renewal_due: "12",
      created_at: "8",
      updated_at: "9"
    },
    { order_id: idOf(2, 1), status: "invalid", csr_der: "00", asks: "0", created_at: "8", updated_at: "9" }
  ],
  revocations: [
    { issuer: "ab", serial: "01", revoked_at: "10", reason: "4", not_after: "11" },
    { issuer: "ab", serial: "02", revoked_at: "10" }
  ],
  crls: [{ issuer: "ab", crl_number: "9223372036854775807", der: "30", this_update: "1", next_update: "2" }],
  orphaned_certificates: [
    {
      order_id: idOf(2, 1),
      fingerprint: "aa",
      profile: "default",
      serial: "0b",
      leaf: "30",
      not_after: "9",
      cause: "order_ended",
      status: "kept",
      error: odd,
      found_at: "1",
      updated_at: "2"
    }
  ],
  burnt_keys: [{ pubkey: "07", account_id: "00000000-0000-0000-0000-000000000000", burnt_at: "1" }],
  alternate_chains: [{ id: "ab".repeat(32), chain: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n" }],
  compromised_issuers: [{
    issuer: "ef".repeat(32),
    compromised_at: "1",
    actor_kind: "cli",
    actor_id: "root",
    scanned_to: "00000000-0000-0000-0000-000000000000",
    scanned_at: undefined
  }],
  http01_tokens: [{ token: "t", key_authorization: "t.k", created_at: "1", expires_at: "2" }],
  jobs: ["ready", "running", "done"].map((status, index) => ({
    id: idOf(5, index),
    kind: "signer_issue",
    dedup_key: `${index}`,
    payload: `{"text":"\\u0000 escaped"}`,
    status,
    run_at: "1",
    attempts: "0",
    max_attempts: "3",
    deadline: index === 0 ? undefined : "2",
    lease_until: index === 1 ? "3" : undefined,
    lease_owner: index === 1 ? "host:1:x" : undefined,
    last_error: index === 2 ? odd : undefined,
    created_at: "1",
    updated_at: "1",
    share: "p/a",
    spent_seconds: `${index}`,
    joined: `${index % 2}`
  })),
  workers: [{
    owner: "host:1:x",
    roles: "acme,worker",
    version: "0.1.0",
    started_at: "1",
    last_seen_at: "2",
    shares_syncs: "0",
    knows: odd,
    failing: odd
  }],
  profile_states: [
    { profile: "default", owner: "host:1:x", trouble: odd, since: "1", stopped_issuer: odd },
    { profile: "other", owner: "host:1:x", since: "2" }
  ],
  admin_users: [
    {
      id: idOf(6, 1),
      username: "olga",
      password_hash: "pbkdf2",
      status: "active",
      role: "admin",
      contact_email: "olga@example.org",
      totp_secret: "00",
      totp_pending_secret: "",
      totp_last_step: "-9223372036854775808",
      known_login_ips: `["192.0.2.1"]`,
      created_at: "1",
      updated_at: "2",
      last_login_at: "3"
    },
    {
      id: idOf(6, 2),
      username: "Olga",
      password_hash: "x",
      status: "disabled",
      known_login_ips: "[]",
      created_at: "1",
      updated_at: "2"
    }
  ],
  admin_sessions: [
    {
      token_hash: "h",
      user_id: idOf(6, 1),
      csrf_token: "c",
      state: "active",
      mfa_attempts: "0",
      created_at: "1",
      expires_at: "2",
      last_seen_at: "1",
      created_ip: "192.0.2.1",
      user_agent: odd
    }
  ],
  admin_password_links: [
    { user_id: idOf(6, 1), token_hash: "p1", expires_at: "2", used_at: "1", owed: "0" },
    { user_id: idOf(6, 2), owed: "1" }
  ],
  admin_recovery_codes: [
    { id: idOf(7, 1), user_id: idOf(6, 1), code_hash: "h1", created_at: "1", used_at: "2" },
    { id: idOf(7, 2), user_id: idOf(6, 1), code_hash: "h2", created_at: "1" }
  ],
  api_tokens: [
    {
      id: idOf(8, 1),
      user_id: idOf(6, 1),
      name: odd,
      role: "operator",
      token_hash: "t1",
      allowed_addresses: `["192.0.2.0/24"]`,
      created_at: "1",
      expires_at: "2",
      last_used_at: "1",
      last_used_ip: "192.0.2.1",
      revoked_at: "2"
    },
    {
      id: idOf(8, 2),
      user_id: idOf(6, 2),
      name: "backup",
      role: "viewer",
      token_hash: "t2",
      allowed_addresses: "[]",
      created_at: "1",
      expires_at: "2"
    }
  ],
  campaigns: [
    {
      id: idOf(12, 0),
      state: "running",
      filter: `{"profile":"default"}`,
      reason: odd,
      explanation_url: "https://status.example/",
      pace: "100",
      created_at: "1",
      actor_kind: "admin",
      actor_id: odd,
      revoke_at: "9",
      revoke_reason: "1",
      confirmed_at: "2",
      confirmed_kind: "cli",
      confirmed_by: odd,
      revoke_due: "9",
      revoked_to: idOf(2, 0),
      filled_to: idOf(2, 0),
      filled_at: "3",
      looked_to: idOf(2, 0),
      begun_at: "3",
      span_seconds: "21600",
      paused_at: "4",
      ended_at: "5",
      finished: "true",
      matched: "5",
      asked: "4",
      replaced: "3",
      revoked: "2",
      expired: "1"
    },
    {
      id: idOf(12, 1),
      state: "ended",
      filter: `{"key":"rsa"}`,
      reason: "x",
      created_at: "1",
      actor_kind: "cli",
      revoked_to: idOf(0, 0),
      filled_to: idOf(0, 0),
      looked_to: idOf(0, 0),
      finished: "false",
      matched: "0",
      asked: "0",
      replaced: "0",
      revoked: "0",
      expired: "0"
    }
  ],
  campaign_certificates: [
    {
      order_id: idOf(2, 0),
      campaign_id: idOf(12, 0),
      asked_at: "1",
      mailed_at: "2",
      left_at: "3",
      left_as: "replaced"
    },
    { order_id: idOf(2, 0), campaign_id: idOf(12, 1), asked_at: "0" }
  ],
  campaign_samples: [{ campaign_id: idOf(12, 0), sampled_at: "1", remaining: "2", asked: "1" }],
  expiry_digests: [
    { profile: "default", sent_at: "1" },
    { profile: "other", sent_at: "2", doubted_at: "1" }
  ],
  authority_notices: [{ profile: "default", issuer: "aa", not_after: "9", days: "30" }],
  expiry_reminders: [{ order_id: idOf(2, 0), sent_at: "1" }],
  reminded_addresses: [{ key: "h", window_started_at: "1", mails: "5" }],
  login_failures: [{ key: "name:0badcafe", failures: "11", last_failed_at: "1" }],
  login_attempts: [{ key: "192.0.2.0/24", window_started_at: "1", attempts: "2" }],
  audit_log: ["1", "2", "10", "40"].map((id) => ({
    id,
    created_at: "1",
    event: "certificate_issued",
    outcome: "success",
    actor_kind: "acme",
    actor_id: id === "1" ? "someone" : undefined,
    profile: id === "1" ? "default" : undefined,
    account_id: id === "1" ? idOf(1, 1) : undefined,
    order_id: id === "1" ? idOf(2, 0) : undefined,
    cert_serial: id === "1" ? "0badcafe" : undefined,
    identifiers: "[]",
    client_ip: id === "1" ? "192.0.2.1" : undefined,
    client_ptr: id === "1" ? "x" : undefined,
    user_agent: id === "1" ? odd : undefined,
    request_id: id === "1" ? "request-1" : undefined,
    reason: id === "1" ? "4" : undefined,
    detail: id === "1" ? "{}" : undefined
  })),
  audit_chain: ["1", "2"].map((sequence) => ({
    sequence,
    first_id: "1",
    last_id: sequence,
    row_count: "1",
    newest_at: "1",
    chained_at: "2",
    previous: "a",
    hash: odd,
    signature: sequence === "2" ? "c2lnbmVk" : undefined,
    key_id: sequence === "2" ? "ab" : undefined,
    signed_at: sequence === "2" ? "3" : undefined,
    leaves: sequence === "2" ? "00ff" : ""
  })),
  audit_chain_checks: [{
    id: "1",
    begun_at: "1",
    next_sequence: "2",
    verified: "3",
    faults: "0",
    ended_at: "4",
    ended_verified: "5",
    ended_faults: "6",
    head: "1:ab"
  }],
  audit_receivers: ["http", "syslog"].map((name) => ({
    name,
    pushed_id: "40",
    repeat_from: "10",
    pushed_at: name === "http" ? "1" : undefined,
    failures: "2",
    failing_since: name === "http" ? "2" : undefined,
    error: name === "http" ? odd : undefined,
    lost_upto: name === "http" ? "50" : undefined
  })),
  renewal_hours: [{ hour: "2", windows: "3" }]
}

/** How many rows {@link populate} writes. */
export const populatedRows: number = Object.values(rows).reduce((sum, { length }) => sum + length, 0)

/** Fills an empty database. */
export const populate: Effect.Effect<void, never, Database> = Effect.gen(function*() {
  const { dialect } = yield* Database
  for (const table of tables) {
    const parameters = (rows[table.name] ?? []).map((row) =>
      encodeRow(table, table.columns.map(([column]) => row[column]), dialect)
    )
    for (let at = 0; at < parameters.length; at += 20) {
      const part = parameters.slice(at, at + 20)
      yield* sql(insertText(table, dialect, part.length), part.flat())
    }
  }
  // A sequence continues from the previous test, and may have reached one of the ids above.
  if (dialect === "postgres") {
    const last = "GREATEST(nextval(pg_get_serial_sequence('audit_log', 'id')), 1 + (SELECT max(id) FROM audit_log))"
    yield* sql(`SELECT setval(pg_get_serial_sequence('audit_log', 'id'), ${last})`)
  }
})

const plain = (value: unknown): unknown =>
  Buffer.isBuffer(value)
    ? value.toString("hex")
    : typeof value === "boolean"
    ? String(Number(value))
    : typeof value === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)
    ? value.replaceAll("-", "") // One engine stores a uuid as bytes. As text inside a column, a uuid is the same on both engines.
    : typeof value === "number"
    ? String(value)
    : value

/** Returns every row of a table, read by this module in a form that is the same for both engines. */
export const dump = (name: string) =>
  Effect.gen(function*() {
    const columns = tables.find((table) => table.name === name)?.columns ?? []
    const list = columns.map(([column, kind]) => kind === "int" ? `CAST(${column} AS TEXT) AS "${column}"` : column)
    const found = yield* sql(`SELECT ${list.join(", ")} FROM ${name}`)
    return found.map((row) =>
      JSON.stringify(Object.fromEntries(Object.entries(row).map(([column, value]) => [column, plain(value)])))
    ).sort()
  })
