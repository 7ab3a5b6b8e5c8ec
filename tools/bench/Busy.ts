import type { Engine, Rows } from "./Bulk.ts"
import { fill, rowsOf } from "./Bulk.ts"
import type { Dialect } from "./Statements.ts"

/*
 * A database as operators see it after three years. One account has sixty thousand of ten million orders, and most
 * accounts have one. Names are renewed every sixty days and share their last labels. A tenth of the orders failed, and
 * the audit trail records all of this. Every value is computed from the number of its row, so that the bench knows
 * which values its reads can request.
 */

/** The numbers of rows. */
export interface BusyPopulation {
  readonly accounts: number
  readonly orders: number
  readonly auditRows: number
}

const daySeconds = 86_400
const years = 3 * 365 * daySeconds
const certificateSeconds = 90 * daySeconds
/** Returns the number of orders that renew a name, which is nine of ten. */
const renewedOf = (orders: number): number => Math.max(1, Math.floor(orders * 0.9))
/** Returns the number of names that are renewed. Each name is renewed every sixty days during the three years. */
const namesOf = (orders: number): number => Math.max(150, Math.floor(renewedOf(orders) * 60 / (3 * 365)))
const zones = 5000

/** Returns the id of a row as text. The tables are 1 for accounts, 2 for orders, and 5 for jobs. */
const idOf = (table: 1 | 2 | 5 | 9, number: number): string => {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0")
  const time = hex(1_500_000_000_000 + number, 12)
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-800${table}-${hex(number, 12)}`
}

/** Returns the values that the reads request, computed from the numbers of rows. */
export const facts = ({ accounts, orders }: BusyPopulation) => {
  // The newest order that renewed a name of the first account and has a certificate: number 10 (j / 9) + j % 9 + 1.
  const names = namesOf(orders)
  const last = renewedOf(orders) - 1
  const isValid = (i: number) => i * 7919 % 1000 >= 110
  let j = last - (last % names) % 150
  const numberOf = (renewal: number) => 10 * Math.floor(renewal / 9) + renewal % 9 + 1
  while (!isValid(numberOf(j))) j -= names
  const order = numberOf(j)
  const name = j % names
  return {
    largeAccount: idOf(1, 0),
    smallAccount: idOf(1, accounts - 1),
    order: idOf(2, order),
    failedJob: idOf(5, 7),
    campaign: idOf(9, 1),
    // A CA that no profile has any more.
    issuer: "ab".repeat(32),
    // The newest order that was placed at an upstream.
    relayedOrder: idOf(2, Math.max(0, Math.floor(orders / 100) - 1) * 100 + 1),
    serial: `4${order.toString(16).padStart(31, "0")}`,
    name: `host-${name}.z${name % zones}.example.org`,
    zone: `z${name % zones}.example.org`,
    everyName: "example.org",
    oncePart: `once-${Math.floor(orders / 10) * 10 - 10}`,
    commonPart: `z${name % zones}.`,
    kid: "00000000-0000-0000-0000-000000000001"
  }
}

const tablesOf = (
  { accounts, auditRows, orders }: BusyPopulation,
  until: number,
  certificate: string
) =>
(engine: Engine): ReadonlyArray<Rows> => {
  const { base64url, bytes, hex, id, idText, reverse } = engine
  const rows = rowsOf(engine)
  const from = until - years
  const at = (number: string) => `CAST(${from} + (${number}) * ${years / orders} AS BIGINT)`
  const names = namesOf(orders)
  const j = "(i - i / 10 - 1)"
  const n = `(${j} % ${names})`
  const isOnce = "i % 10 = 0"
  const account = `(CASE WHEN ${isOnce} THEN i / 10 % ${accounts} WHEN ${n} % 150 = 0 THEN 0
    ELSE ${n} % ${Math.max(1, Math.floor(accounts / 10))} + 1 END)`
  const profileOf = (number: string) => `(CASE WHEN ${number} % 20 = 7 THEN 'devices' ELSE 'default' END)`
  const name = `(CASE WHEN ${isOnce} THEN 'once-' || i || '.z' || (i % ${zones}) ELSE 'host-' || ${n} || '.z' ||
    (${n} % ${zones}) END || '.example.org')`
  const identifier = (value: string) => `'{"type":"dns","value":"' || ${value} || '"}'`
  const hasTwo = `(i % 10 = 5)`
  const share = "(i * 7919 % 1000)"
  const status = `(CASE WHEN ${share} < 100 THEN 'invalid' WHEN ${share} < 110 THEN 'pending' ELSE 'valid' END)`
  const ifValid = (value: string) => `CASE WHEN ${share} >= 110 THEN ${value} END`
  const serialOf = (number: string) => `'4' || ${hex(31, number)}`
  // The number of the previous order with the same name.
  const before = `((${j} - ${names}) / 9 * 10 + (${j} - ${names}) % 9 + 1)`
  const newest = Math.max(0, orders - Math.ceil(orders / 10))
  const auditAt = `CAST(${until - 300 * daySeconds} + i * ${300 * daySeconds / auditRows} AS BIGINT)`
  const audited = `(${Math.max(0, orders - auditRows)} + i)`
  const key = `'3059301306072a8648ce3d020106082a8648ce3d030107034200' || ${hex(130, "i")}`
  const credentials = Math.max(1, Math.floor(accounts / 100))
  return [
    rows("eab_keys", credentials, {
      kid: bytes(hex(32, "i")),
      secret: bytes(hex(64, "i")),
      label: "'team ' || i",
      status: "CASE WHEN i % 10 = 3 THEN 'revoked' ELSE 'active' END",
      created_at: `CAST(${from} + i AS BIGINT)`
    }),
    rows("accounts", accounts, {
      id: id(1, "i"),
      profile: profileOf("i"),
      pubkey: bytes(key),
      status: "CASE WHEN i % 50 = 9 THEN 'deactivated' ELSE 'valid' END",
      contact: `'["mailto:owner-' || i || '@example.org"]'`,
      eab_kid: `CASE WHEN i % 10 = 1 THEN ${bytes(hex(32, `i % ${credentials}`))} END`,
      created_at: `CAST(${from} + i * ${years / accounts} AS BIGINT)`,
      created_ip: "'192.0.2.1'",
      last_seen_at: `${until}`,
      last_seen_ip: "'192.0.2.1'"
    }),
    rows("orders", orders, {
      id: id(2, "i"),
      profile: profileOf(account),
      account_id: id(1, account),
      status,
      identifiers: `'[' || ${identifier(name)} || CASE WHEN ${hasTwo} THEN ',' || ${identifier(`'www.' || ${name}`)}
        ELSE '' END || ']'`,
      replaces: `CASE WHEN ${j} >= ${names} AND NOT ${isOnce} AND ${n} % 4 = 0
        THEN 'bW9zdCBjZXJ0aWZpY2F0ZXM.' || ${base64url(serialOf(before))} END`,
      certificate: ifValid(`CASE WHEN i >= ${newest} THEN '${certificate}' ELSE 'kept elsewhere' END`),
      cert_serial: ifValid(serialOf("i")),
      cert_pubkey: ifValid(bytes(hex(182, "i"))),
      cert_not_after: ifValid(`${at("i")} + ${certificateSeconds}`),
      revoked_at: `CASE WHEN ${share} BETWEEN 500 AND 504 THEN ${at("i")} + 3600 END`,
      revocation_reason: `CASE WHEN ${share} BETWEEN 500 AND 504 THEN 4 END`,
      created_at: at("i"),
      created_ip: "'192.0.2.1'"
    }),
    rows("order_identifiers", orders, {
      order_id: id(2, "i"),
      profile: profileOf(account),
      name,
      name_rev: reverse(name)
    }),
    rows("order_identifiers", orders, {
      order_id: id(2, "i"),
      profile: profileOf(account),
      name: `'www.' || ${name}`,
      name_rev: `${reverse(name)} || '.www'`
    }, `WHERE ${hasTwo}`),
    rows("authorizations", orders, {
      id: id(3, "i"),
      order_id: id(2, "i"),
      identifier: identifier(name),
      status: `(CASE WHEN ${share} < 100 THEN 'invalid' WHEN ${share} < 110 THEN 'pending' ELSE 'valid' END)`,
      created_at: at("i")
    }, `WHERE i >= ${newest}`),
    rows("challenges", orders, {
      id: id(4, "i"),
      authz_id: id(3, "i"),
      type: "'http-01'",
      position: "0",
      token: hex(43, "i"),
      status: `(CASE WHEN ${share} < 100 THEN 'invalid' WHEN ${share} < 110 THEN 'pending' ELSE 'valid' END)`,
      validated_at: ifValid(at("i")),
      created_at: at("i")
    }, `WHERE i >= ${newest}`),
    rows("upstream_orders", Math.floor(orders / 100), {
      order_id: id(2, "(i * 100 + 1)"),
      status: "CASE WHEN i % 10 = 0 THEN 'invalid' ELSE 'valid' END",
      csr_der: bytes(hex(400, "i")),
      upstream_order_url: "'https://ca.example/order/' || i",
      created_at: at("i * 100"),
      updated_at: at("i * 100")
    }),
    rows("crls", 1, {
      issuer: `'${"ab".repeat(32)}'`,
      crl_number: "1",
      der: bytes(hex(32, "i")),
      this_update: `${from}`,
      next_update: `${until}`
    }),
    rows("campaigns", 10, {
      id: id(9, "i"),
      state: "'ended'",
      filter: "'{\"profile\":\"default\"}'",
      reason: "'a bug'",
      created_at: `${from}`,
      actor_kind: "'cli'",
      revoked_to: id(0, "0"),
      filled_to: id(0, "0"),
      filled_at: `${from}`,
      looked_to: id(0, "0"),
      begun_at: `${from}`,
      span_seconds: "21600",
      ended_at: `${until}`
    }),
    rows("jobs", Math.floor(orders / 100), {
      id: id(5, "i"),
      kind: "CASE WHEN i % 5 = 0 THEN 'challenge_validate' ELSE 'signer_issue' END",
      dedup_key: idText(2, `(${orders - Math.floor(orders / 100)} + i)`),
      payload: "'{}'",
      status: "CASE WHEN i % 1000 = 7 THEN 'failed' ELSE 'done' END",
      run_at: `${until}`,
      attempts: "1",
      max_attempts: "5",
      created_at: `${until} - 1000 + i % 1000`,
      updated_at: `${until}`
    }),
    rows("audit_log", auditRows, {
      created_at: auditAt,
      event: `CASE WHEN i % 100 < 5 THEN 'certificate_issue_failed' WHEN i % 100 < 8 THEN 'certificate_revoked'
        WHEN i % 100 = 8 THEN 'job_advanced' WHEN i % 100 = 9 THEN 'account_deactivated' ELSE 'certificate_issued' END`,
      outcome: "CASE WHEN i % 100 < 5 THEN 'failure' ELSE 'success' END",
      actor_kind: `CASE WHEN i % 100 = 8 THEN 'admin' WHEN i % 1000 = 9 THEN 'cli' WHEN i % 1000 = 3 THEN 'system'
        ELSE 'acme' END`,
      profile: profileOf("i"),
      account_id: idText(1, `(i % ${accounts})`),
      order_id: idText(2, audited),
      cert_serial: `CASE WHEN i % 100 >= 10 THEN ${serialOf(audited)} END`,
      identifiers: `'["host-' || i || '.example.org"]'`,
      client_ip: "'192.0.2.1'",
      request_id: hex(32, "i"),
      detail: "'{}'"
    })
  ]
}

/** Fills a migrated database while no service uses it. The newest tenth of the orders has this certificate. */
export const populateBusy = (
  dialect: Dialect,
  where: string,
  population: BusyPopulation,
  certificate: string,
  progress: (text: string) => void
): Promise<void> => fill(dialect, where, tablesOf(population, Math.floor(Date.now() / 1000), certificate), progress)
