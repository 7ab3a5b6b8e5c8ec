import SqliteDatabase from "better-sqlite3"
import { Effect } from "effect"
import { createHash, createPublicKey, pbkdf2Sync, X509Certificate } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { totpCode } from "../../src/crypto/Totp.ts"
import { printApiToken } from "../../src/domain/ApiToken.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import { migrated, openDriver } from "../support/Graph.ts"
import { password, startsAt } from "../support/Operators.ts"
import { caCertificate, caKey, leafCertificate, leafSerial } from "./Ca.ts"

/*
 * What every play begins with: a database with a few rows of each kind, whose ids, tokens and times are fixed. There are few rows,
 * so that a recorded list can be read.
 */

/** The id of a row. Every id that begins otherwise was drawn by the service. */
const idOf = (table: number, row: number): string =>
  `0190${table.toString(16).padStart(4, "0")}-0000-7000-8000-${row.toString(16).padStart(12, "0")}`

/** What plays are about, by names. */
export const ids = {
  bound: idOf(1, 1),
  revokedCredential: idOf(1, 2),
  narrowCredential: idOf(1, 3),
  freeCredential: idOf(1, 4),
  owner: idOf(2, 1),
  deactivated: idOf(2, 2),
  revokedAccount: idOf(2, 3),
  idle: idOf(2, 4),
  starter: idOf(2, 5),
  valid: idOf(3, 1),
  revokedOrder: idOf(3, 2),
  pending: idOf(3, 3),
  ready: idOf(3, 4),
  processing: idOf(3, 5),
  invalid: idOf(3, 6),
  expired: idOf(3, 7),
  expiring: idOf(3, 8),
  superseded: idOf(3, 9),
  relayed: idOf(3, 10),
  waiting: idOf(5, 1),
  running: idOf(5, 2),
  failed: idOf(5, 3),
  done: idOf(5, 4),
  cancelled: idOf(5, 5),
  delivery: idOf(5, 6),
  token: idOf(8, 2),
  ownToken: idOf(8, 1),
  revokedToken: idOf(8, 4),
  nobody: idOf(9, 9)
} as const

/** The operators. `dora` and `hugo` have a second factor, `erin` has begun to enrol one, and `carl` is disabled. */
const people = [
  { name: "anna", role: "admin" },
  { name: "olga", role: "operator" },
  { name: "vera", role: "viewer" },
  { name: "bob", role: "viewer" },
  { name: "carl", role: "operator" },
  { name: "dora", role: "operator" },
  { name: "erin", role: "viewer" },
  { name: "hugo", role: "admin" }
] as const

export type Person = typeof people[number]["name"]

const digest = (text: string): string => createHash("sha256").update(text).digest("hex")

const padded = (text: string): string => text.padEnd(43, "0")

/** The token of a session, by the name of its seat. */
export const sessionToken = (seat: string): string => padded(`session-${seat}-`)

/** The CSRF token of a session. */
export const csrfToken = (seat: string): string => padded(`csrf-${seat}-`)

/** The id of a session, as operators see it. */
export const sessionId = (seat: string): string => digest(sessionToken(seat)).slice(0, 16)

/** A token of the API, by the name of its seat. */
export const apiToken = (seat: string): string => printApiToken(padded(`token-${seat}-`))

/** The secret of every authenticator. */
const secret = Buffer.from("a secret of replays!")

/** What every authenticator shows. */
export const code: string = totpCode(secret, startsAt)

/** The recovery code of everybody with a second factor. */
const recoveryCode = "ABCDE-FGHIJ"

const hashed = (text: string, iterations: number): string => {
  const salt = Buffer.from("a salt of replays!".slice(0, 16))
  const unpadded = (octets: Buffer): string => octets.toString("base64").replaceAll("=", "")
  return `$pbkdf2-sha256$i=${iterations}$${unpadded(salt)}$${
    unpadded(pbkdf2Sync(text.normalize("NFC"), salt, iterations, 32, "sha256"))
  }`
}

/** Letters beyond the basic plane, right to left, combining. */
const odd = "naïve \u{1F510} e\u0301 \u05D0 <b>' \" & \\"

/** The id of the CA of {@link caCertificate}. */
export const issuer: string = createHash("sha256")
  .update(new X509Certificate(caCertificate).publicKey.export({ type: "spki", format: "der" }))
  .digest("hex")

// The public key of RFC 7515, appendix A.3.
const spki = createPublicKey({
  format: "jwk",
  key: {
    kty: "EC",
    crv: "P-256",
    x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
  }
}).export({ type: "spki", format: "der" })

type Row = { readonly [column: string]: string | number | Uint8Array | undefined }

const day = 86_400
const octets = (id: string): Buffer => Buffer.from(id.replaceAll("-", ""), "hex")
const names = (...values: ReadonlyArray<string>): string =>
  JSON.stringify(values.map((value) => ({ type: "dns", value })))

const credentials: ReadonlyArray<Row> = [
  { kid: octets(ids.bound), label: "Build farm", status: "active", created_at: startsAt - 400 * day },
  {
    kid: octets(ids.revokedCredential),
    label: odd,
    profile: "default",
    status: "revoked",
    created_at: startsAt - 30 * day
  },
  { kid: octets(ids.narrowCredential), profile: "other", status: "active", created_at: startsAt - day },
  { kid: octets(ids.freeCredential), label: "Printers", status: "active", created_at: startsAt - 60 }
].map((row) => ({ ...row, secret: Buffer.alloc(32, 7) }))

const accounts: ReadonlyArray<Row> = [
  {
    id: octets(ids.owner),
    profile: "default",
    pubkey: spki,
    status: "valid",
    contact: `["mailto:platform@example.org"]`,
    terms_of_service_agreed: 1,
    eab_kid: octets(ids.bound),
    created_at: startsAt - 300 * day,
    created_ip: "192.0.2.10",
    created_ptr: "build.example.org",
    last_seen_at: startsAt - 90,
    last_seen_ip: "2001:db8::1",
    last_seen_ptr: odd
  },
  { id: octets(ids.deactivated), profile: "other", pubkey: Buffer.from("02", "hex"), status: "deactivated" },
  { id: octets(ids.revokedAccount), profile: "other", pubkey: Buffer.from("03", "hex"), status: "revoked" },
  { id: octets(ids.idle), profile: "default", pubkey: Buffer.from("04", "hex"), status: "valid" },
  { id: octets(ids.starter), profile: "default", pubkey: Buffer.from("05", "hex"), status: "valid" }
].map((row, index) => ({ contact: "[]", created_at: startsAt - (100 - index) * day, ...row }))

const order = (id: string, status: string, name: string, more: Row = {}): Row & { readonly name: string } => ({
  id: octets(id),
  profile: "default",
  account_id: octets(ids.owner),
  status,
  identifiers: names(name),
  created_at: startsAt - 10 * day + Number.parseInt(id.slice(-4), 16) * 600,
  expires_at: startsAt + 7 * day,
  created_ip: "192.0.2.10",
  name,
  ...more
})

const certified = (serial: string, notAfter: number): Row => ({
  certificate: leafCertificate + caCertificate,
  cert_serial: serial,
  cert_not_after: notAfter
})

const orders = [
  order(ids.valid, "valid", "www.example.org", {
    ...certified(leafSerial, 1_803_859_200),
    identifiers: names("www.example.org", "alias.example.org"),
    cert_pubkey: Buffer.from("3001", "hex")
  }),
  order(ids.revokedOrder, "valid", "old.example.org", {
    ...certified("0a01", startsAt + 40 * day),
    revoked_at: startsAt - day,
    revocation_reason: 4
  }),
  order(ids.pending, "pending", "new.example.org", { account_id: octets(ids.starter) }),
  order(ids.ready, "ready", "ready.example.org", { not_before: startsAt, not_after: startsAt + 30 * day }),
  order(ids.processing, "processing", "*.wild.example.org"),
  order(ids.invalid, "invalid", "bad.example.org", {
    error: JSON.stringify({
      type: "urn:ietf:params:acme:error:connection",
      status: 400,
      detail: "bad.example.org could not be reached"
    })
  }),
  order(ids.expired, "valid", "gone.example.org", {
    ...certified("0a02", startsAt - 20 * day),
    created_at: startsAt - 110 * day,
    expires_at: startsAt - 103 * day
  }),
  order(ids.expiring, "valid", "soon.example.org", certified("0a03", startsAt + 5 * day)),
  order(ids.superseded, "valid", "www.example.org", {
    ...certified("0a04", startsAt + 3 * day),
    identifiers: names("www.example.org", "alias.example.org")
  }),
  order(ids.relayed, "processing", "relayed.example.org", { profile: "other", account_id: octets(ids.deactivated) })
]

const job = (id: string, kind: string, status: string, more: Row = {}): Row => ({
  id: octets(id),
  kind,
  dedup_key: id,
  payload: "{}",
  status,
  run_at: startsAt + 900,
  attempts: 1,
  max_attempts: 3,
  created_at: startsAt - 3600 + Number.parseInt(id.slice(-4), 16),
  updated_at: startsAt - 600,
  ...more
})

const ofOrder = (id: string): Row => ({ dedup_key: id, payload: JSON.stringify({ order_id: id }) })

const seats: ReadonlyArray<{ readonly seat: string; readonly of: Person; readonly more?: Row }> = [
  ...people.map(({ name }) => ({ seat: name, of: name })),
  { seat: "anna-elsewhere", of: "anna", more: { created_ip: "2001:db8::7", user_agent: odd } },
  { seat: "dora-half", of: "dora", more: { state: "pending_mfa" } },
  { seat: "bob-half", of: "bob", more: { state: "pending_mfa" } },
  { seat: "erin-half", of: "erin", more: { state: "pending_mfa" } },
  { seat: "late", of: "olga", more: { expires_at: startsAt - 5 } },
  { seat: "sleepy", of: "olga", more: { last_seen_at: startsAt - 3 * day } }
]

const personId = (name: string): Buffer => octets(idOf(6, 1 + people.findIndex((one) => one.name === name)))

const rows: { readonly [table: string]: ReadonlyArray<Row> } = {
  eab_keys: credentials,
  accounts,
  orders: orders.map((one) => {
    const { name: _, ...row } = one
    return row
  }),
  order_identifiers: orders.flatMap((row) =>
    (JSON.parse(String(row.identifiers)) as ReadonlyArray<{ readonly value: string }>).map(({ value }) => ({
      order_id: row.id,
      profile: row.profile,
      name: value,
      name_rev: [...value].toReversed().join("")
    }))
  ),
  authorizations: [
    { row: 1, of: ids.pending, status: "pending" },
    { row: 2, of: ids.invalid, status: "invalid" },
    { row: 3, of: ids.valid, status: "valid" }
  ].map(({ of, row, status }) => ({
    id: octets(idOf(4, row)),
    order_id: octets(of),
    identifier: JSON.stringify({ type: "dns", value: orders.find(({ id }) => octets(of).equals(id as Buffer))?.name }),
    status,
    created_at: startsAt - 9 * day
  })),
  challenges: [
    { row: 1, authz: 1, type: "http-01", status: "pending" },
    { row: 2, authz: 1, type: "dns-01", status: "processing" },
    {
      row: 3,
      authz: 2,
      type: "http-01",
      status: "invalid",
      error: `{"type":"urn:ietf:params:acme:error:connection","status":400,"detail":"refused"}`,
      cause: `{"reason":"status","detail":"status 404"}`
    },
    { row: 4, authz: 3, type: "tls-alpn-01", status: "valid", validated_at: startsAt - 8 * day }
  ].map(({ authz, row, ...rest }, position): Row => ({
    id: octets(idOf(11, row)),
    authz_id: octets(idOf(4, authz)),
    position,
    token: `token-${row}`,
    created_at: startsAt - 9 * day,
    ...rest
  })),
  nonces: [5, 100, 4000, 90_000].map((age) => ({ value: `nonce-${age}`, created_at: startsAt - age })),
  upstream_orders: [
    {
      order_id: octets(ids.relayed),
      status: "processing",
      upstream_order_url: "https://ca.example/order/1",
      upstream_finalize_url: "https://ca.example/order/1/finalize",
      csr_der: Buffer.from("3000", "hex"),
      client_ip: "192.0.2.20",
      client_ptr: "relayed.example.org",
      user_agent: "certbot/4.1.1",
      request_id: "request-0",
      created_at: startsAt - 8 * day,
      updated_at: startsAt - 7 * day
    },
    {
      order_id: octets(ids.invalid),
      status: "invalid",
      csr_der: Buffer.from("3000", "hex"),
      error: "urn:ietf:params:acme:error:rejectedIdentifier: the policy forbids bad.example.org",
      created_at: startsAt - 9 * day,
      updated_at: startsAt - 9 * day
    }
  ],
  revocations: [{ issuer, serial: "0a01", revoked_at: startsAt - day, reason: 4, not_after: startsAt + 40 * day }],
  crls: [{
    issuer,
    crl_number: 7,
    der: Buffer.from("3000", "hex"),
    this_update: startsAt - 2 * day,
    next_update: startsAt + 5 * day
  }],
  orphaned_certificates: [
    { order_id: octets(ids.pending), fingerprint: "aa", serial: "0b01", cause: "order_ended", status: "waiting" },
    {
      order_id: octets(ids.invalid),
      fingerprint: "bb",
      serial: "0b02",
      cause: "signer_failed",
      status: "kept",
      error: odd
    }
  ].map((row, index) => ({
    profile: "default",
    leaf: new X509Certificate(leafCertificate).raw,
    not_after: startsAt + 20 * day,
    found_at: startsAt - day + index,
    updated_at: startsAt - day + index,
    ...row
  })),
  jobs: [
    job(ids.waiting, "signer_issue", "ready", ofOrder(ids.processing)),
    job(ids.running, "challenge_validate", "running", {
      lease_until: startsAt + 30,
      lease_owner: "host:1:a",
      payload: JSON.stringify({ challenge_id: idOf(11, 2) })
    }),
    job(ids.failed, "signer_issue", "failed", {
      ...ofOrder(ids.invalid),
      last_error: `script_failed: ${odd}`,
      attempts: 3
    }),
    job(ids.done, "local_ca_crl_regenerate", "done", { dedup_key: "ca" }),
    job(ids.cancelled, "signer_revoke", "cancelled"),
    job(ids.delivery, "notify_deliver", "failed", {
      attempts: 3,
      last_error: "not_delivered: 404 no such channel",
      payload: JSON.stringify({
        scope: "default",
        backend: "webhook",
        entry: "chat",
        event: "certificate_issued",
        fields: { hook: "certificate_issued", profile: "default", at: 1, delivery_id: idOf(12, 1) }
      })
    })
  ],
  workers: [
    {
      owner: "host-1:1:a",
      roles: "acme,worker",
      version: "0.0.0-test",
      started_at: startsAt - day,
      last_seen_at: startsAt - 2
    },
    {
      owner: "host-2:1:b",
      roles: "admin",
      version: "0.0.0-old",
      started_at: startsAt - day,
      last_seen_at: startsAt - 90
    }
  ],
  profile_states: [
    { profile: "default", owner: "host-1:1:a", since: startsAt - day },
    { profile: "other", owner: "host-1:1:a", since: startsAt - day, trouble: "The upstream was not reached." }
  ],
  admin_users: people.map(({ name, role }, index) => ({
    id: personId(name),
    username: name,
    password_hash: hashed(password, 2),
    status: name === "carl" ? "disabled" : "active",
    role,
    contact_email: name === "bob" ? "bob@example.org" : undefined,
    totp_secret: name === "dora" || name === "hugo" ? secret : undefined,
    totp_pending_secret: name === "erin" ? secret : undefined,
    known_login_ips: `["192.0.2.1"]`,
    created_at: startsAt - 200 * day + index,
    updated_at: startsAt - 200 * day + index,
    last_login_at: index === 0 ? startsAt - 60 : undefined
  })),
  admin_sessions: seats.map(({ more, of, seat }) => ({
    token_hash: digest(sessionToken(seat)),
    user_id: personId(of),
    csrf_token: csrfToken(seat),
    state: "active",
    mfa_attempts: 0,
    created_at: startsAt - 60,
    expires_at: startsAt + 240,
    last_seen_at: startsAt - 30,
    created_ip: "192.0.2.1",
    user_agent: "test/1",
    ...more
  })),
  admin_recovery_codes: ["dora", "hugo"].map((name, index) => ({
    id: octets(idOf(7, index + 1)),
    user_id: personId(name),
    code_hash: hashed(recoveryCode.replace("-", ""), 1),
    created_at: startsAt - day
  })),
  api_tokens: [
    { seat: "anna", role: "admin" },
    { seat: "olga", role: "operator" },
    { seat: "vera", role: "viewer", last_used_at: startsAt - 50, last_used_ip: "192.0.2.1" },
    { seat: "vera-revoked", role: "viewer", revoked_at: startsAt - 9 },
    { seat: "olga-expired", role: "operator", expires_at: startsAt - 9 },
    { seat: "olga-elsewhere", role: "operator", allowed_addresses: `["198.51.100.0/24"]` },
    { seat: "carl", role: "operator" }
  ].map(({ seat, ...more }, index): Row => ({
    id: octets(idOf(8, index + 1)),
    user_id: personId(seat.split("-")[0] ?? ""),
    name: `token of ${seat}`,
    token_hash: digest(apiToken(seat)),
    allowed_addresses: "[]",
    created_at: startsAt - day,
    expires_at: startsAt + 30 * day,
    ...more
  })),
  audit_log: [
    { event: "account_created", actor_kind: "acme", actor_id: ids.owner, account_id: ids.owner, profile: "default" },
    {
      event: "certificate_issued",
      actor_kind: "system",
      profile: "default",
      account_id: ids.owner,
      order_id: ids.valid,
      cert_serial: leafSerial,
      identifiers: `["www.example.org","alias.example.org"]`,
      client_ip: "192.0.2.10",
      client_ptr: "build.example.org",
      user_agent: odd,
      request_id: "request-0"
    },
    {
      event: "certificate_issue_failed",
      outcome: "failure",
      actor_kind: "acme",
      profile: "default",
      order_id: ids.invalid,
      reason: "connection",
      detail: `{"attempts":3}`
    },
    { event: "eab_created", actor_kind: "admin", actor_id: "olga", detail: JSON.stringify({ target: ids.bound }) },
    { event: "operator_created", actor_kind: "cli", actor_id: "root", detail: `{"target":"olga"}` },
    { event: "certificate_revoked", actor_kind: "admin", actor_id: "anna", cert_serial: "0a01", reason: "4" }
  ].map((row, index): Row => ({ outcome: "success", created_at: startsAt - (60 - index) * 3600, ...row }))
}

/** The configuration of every play. */
export const toml = `[server]
base_url = "https://acme.example.org"
[admin]
base_url = "https://panel.example.org"
[admin.notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[admin.notify.webhook.chat]
url = "http://127.0.0.1:1/hook"
[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "http://127.0.0.1:1/hook"
[filter]
rules = ["offices"]
[filter.check.near]
type = "allowed_ip"
allow = ["192.0.2.0/24"]
[filter.rule.offices]
when = "near"
then = "allow"
message = "Only the offices order here."
[profiles.closed]
enabled = false
`

/** The origin of {@link toml}. */
export const origin = "https://panel.example.org"

/** Writes the files of the CA into a directory. */
export const writeCa = (directory: string): void => {
  writeFileSync(join(directory, "ca.pem"), caCertificate)
  writeFileSync(join(directory, "ca.key"), caKey, { mode: 0o600 })
}

/** The database of a directory. */
export const fileIn = (directory: string): string => join(directory, "acme.db")

const fill = (file: string): void => {
  const database = new SqliteDatabase(file)
  database.pragma("foreign_keys = OFF")
  database.transaction(() => {
    for (const [table, all] of Object.entries(rows)) {
      for (const row of all) {
        const given = Object.entries(row).filter(([, value]) => value !== undefined)
        const [columns, marks] = [given.map(([column]) => column), given.map(() => "?")]
        database.prepare(`INSERT INTO ${table} (${columns.join()}) VALUES (${marks.join()})`)
          .run(...given.map(([, value]) => value))
      }
    }
  })()
  database.close()
}

/** Makes the database of a directory, with all rows. */
export const makeDatabase = (directory: string): Effect.Effect<void> =>
  Effect.andThen(
    Effect.scoped(
      Effect.flatMap(
        openDriver(`sqlite://${fileIn(directory)}`),
        (driver) => Effect.provideService(migrated, Database, driver)
      )
    ),
    Effect.sync(() => fill(fileIn(directory)))
  )

/** The database between plays. */
export interface Rewinding {
  /** The events of the audit trail since the last time, if anything was written; then everything is as it was. */
  readonly rewind: () => ReadonlyArray<string>
  readonly close: () => void
}

/** Keeps the rows of a database, and puts them back. */
export const rewinding = (file: string): Rewinding => {
  const database = new SqliteDatabase(file, { timeout: 10_000 })
  database.pragma("foreign_keys = OFF")
  const tables = database.prepare<[], { readonly name: string }>(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND (name NOT LIKE 'sqlite_%' OR name = 'sqlite_sequence')"
  ).all().map(({ name }) => name)
  database.exec(tables.map((name) => `CREATE TEMP TABLE kept_${name} AS SELECT * FROM main.${name};`).join("\n"))
  const restore = tables.map((name) =>
    `DELETE FROM main.${name}; INSERT INTO main.${name} SELECT * FROM temp.kept_${name};`
  ).join("\n")
  const version = (): number => Number(database.pragma("data_version", { simple: true }))
  const added = database.prepare<[], { readonly event: string }>(
    "SELECT event || ' ' || outcome AS event FROM audit_log WHERE id > (SELECT max(id) FROM temp.kept_audit_log) ORDER BY id"
  )
  let seen = version()
  return {
    rewind: () => {
      const now = version()
      if (now === seen) return []
      seen = now
      const events = added.all().map(({ event }) => event)
      database.exec(`BEGIN IMMEDIATE;\n${restore}\nCOMMIT;`)
      return events
    },
    close: () => database.close()
  }
}
