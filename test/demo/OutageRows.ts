import Database from "better-sqlite3"
import { NotDelivered, SignerFailed } from "../../src/domain/JobFailure.ts"
import { id, written } from "./PastRows.ts"

/* The rows that several incidents at the same time leave in the database. */

const hourSeconds = 3600
const daySeconds = 86_400

/** Writes what a day of incidents has left, while no service uses the database. */
export const writeOutage = (path: string, now: number): void => {
  const database = new Database(path)
  database.transaction(() => {
    const job = database.prepare(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, last_error, created_at, updated_at, share)
       VALUES (?, ?, ?, ?, ?, ?, ?, 20, ?, ?, ?, '')`
    )
    let jobs = 0
    const add = (
      many: number,
      { age, error, kind, status }: {
        readonly kind: string
        readonly status: "failed" | "ready"
        readonly error: { readonly row: string } | undefined
        readonly age: number
      }
    ) => {
      for (let number = 0; number < many; number++) {
        const row = jobs++
        const at = now - age + number * 7
        const subject = written(id(42, row))
        const payload = JSON.stringify({ order_id: subject, profile: kind.includes("relay") ? "public" : "script" })
        const runAt = status === "ready" ? now + hourSeconds : at + 600
        job.run(id(40, row), kind, subject, payload, status, runAt, 6, error?.row ?? null, at, now - 300)
      }
    }
    const upstream = new SignerFailed({
      cause: "signer_failed",
      detail: "https://acme.upstream.example/directory: 203.0.113.9 port 443: connect ETIMEDOUT"
    })
    add(37, { kind: "signer_relay_issue", status: "ready", error: upstream, age: 3 * hourSeconds })
    for (
      const [many, detail] of [[9, "exit 1: no token in slot 3"], [
        4,
        "exit 7: the directory is not reachable"
      ]] as const
    ) {
      add(many, {
        kind: "signer_issue",
        status: "failed",
        error: new SignerFailed({ cause: "script_failed", detail }),
        age: 9 * hourSeconds
      })
    }
    add(5, {
      kind: "signer_revoke",
      status: "failed",
      error: new SignerFailed({ cause: "signer_failed", detail: "the HSM has no session left" }),
      age: 5 * hourSeconds
    })
    add(12, {
      kind: "notify_deliver",
      status: "ready",
      error: new NotDelivered({ detail: "connect ECONNREFUSED 198.51.100.20:443" }),
      age: 4 * hourSeconds
    })
    database.prepare("UPDATE crls SET this_update = ?, next_update = ?").run(
      now - 9 * daySeconds,
      now - 2 * hourSeconds
    )
    const orphan = database.prepare(
      `INSERT INTO orphaned_certificates VALUES (?, ?, 'public', ?, x'30', ?, 'order_ended', 'kept',
         'the upstream answers 503', ?, ?)`
    )
    for (let number = 0; number < 3; number++) {
      orphan.run(
        id(43, number),
        `${number}`.repeat(64),
        `4${number}`.repeat(16),
        now + 60 * daySeconds,
        now - hourSeconds,
        now - hourSeconds
      )
    }
    const trail = database.prepare(
      `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, cert_serial, reason, detail)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
    )
    const lost = { changes: 3, since: new Date((now - daySeconds) * 1000).toISOString(), counts: { orders: 3 } }
    trail.run(now - 7000, "changes_lost", "failure", "system", null, null, null, JSON.stringify(lost))
    for (let number = 0; number < 2; number++) {
      trail.run(now - 1200, "certificate_revoked", "success", "admin", "corp", `5${number}`.repeat(16), "1", "{}")
    }
    const order = database.prepare(
      `INSERT INTO orders (id, profile, account_id, status, identifiers, created_at, created_ip)
       VALUES (?, 'corp', ?, 'pending', '[{"type":"dns","value":"loop.corp.example"}]', ?, '192.0.2.10')`
    )
    for (let number = 0; number < 90; number++) order.run(id(44, number), id(1, 0), now - 1800 + number * 15)
    database.prepare(
      `INSERT INTO campaigns (id, state, filter, reason, created_at, actor_kind, revoke_at, filled_at, begun_at, span_seconds,
         revoked_to, filled_to, looked_to, matched) VALUES (?, 'running', '{"profile":"corp"}', 'A name that has to go', ?, 'cli', ?, ?,
         ?, 60, zeroblob(16), zeroblob(16), zeroblob(16), 4)`
    ).run(id(45, 0), now - 9 * daySeconds, now - 3 * hourSeconds, now - 9 * daySeconds, now - 9 * daySeconds)
    database.prepare(
      `INSERT INTO campaign_certificates (order_id, campaign_id) SELECT id, ? FROM orders
       WHERE certificate IS NOT NULL AND revoked_at IS NULL ORDER BY id DESC LIMIT 4`
    ).run(id(45, 0))
  })()
  database.close()
}
