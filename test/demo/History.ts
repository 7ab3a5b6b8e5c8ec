import Database from "better-sqlite3"
import type { SignPast } from "./PastCertificates.ts"
import { id, numbersFrom, problem, written } from "./PastRows.ts"
import { writeUnusual } from "./Unusual.ts"

/*
 * Rows of the past, which clients cannot create today: the issuances of a month, and orders and jobs with every
 * possible end.
 */

const daySeconds = 86_400

/** A failed order with the stored facts that let its page explain the failure. */
interface Failed {
  readonly name: string
  readonly profile: string
  readonly error?: string
  /** The error of the order's challenge. */
  readonly challenge?: string
  readonly met?: readonly [reason: string, detail: string]
  /** The cause in its audit row. */
  readonly cause?: string
}

const failures: ReadonlyArray<Failed> = [
  {
    name: "printer-4.corp.example",
    profile: "corp",
    challenge: problem("connection", "printer-4.corp.example: connection; the server's log has the reason"),
    met: ["connect_failed", "192.0.2.44 port 80: connect ECONNREFUSED"]
  },
  {
    name: "wiki.corp.example",
    profile: "corp",
    challenge: problem("unauthorized", "wiki.corp.example: unauthorized; the server's log has the reason"),
    met: ["status", "status 404"]
  },
  {
    name: "vpn.corp.example",
    profile: "corp",
    challenge: problem("dns", "vpn.corp.example: dns; the server's log has the reason"),
    met: ["resolve_failed", "_acme-challenge.vpn.corp.example: ENOTFOUND"]
  },
  {
    name: "mail.corp.example",
    profile: "corp",
    challenge: problem("incorrectResponse", "mail.corp.example: incorrectResponse; the server's log has the reason"),
    met: ["txt_mismatch", "none of 2 TXT records at _acme-challenge.mail.corp.example"]
  },
  {
    name: "ldap.corp.example",
    profile: "corp",
    challenge: problem("tls", "ldap.corp.example: tls; the server's log has the reason"),
    met: ["handshake_failed", "192.0.2.60 port 443: connection reset"]
  },
  { name: "db.corp.example", profile: "corp", challenge: problem("serverInternal", "The validation was given up.") },
  {
    name: "git.corp.example",
    profile: "corp",
    error: problem("badCSR", "The key of the request has 1024 bits; 2048 is the least."),
    cause: "bad_csr"
  },
  {
    name: "ci.corp.example",
    profile: "corp",
    error: problem("unauthorized", "The account or an authorization was deactivated."),
    cause: "authority_withdrawn"
  },
  {
    name: "shop.example",
    profile: "script",
    error: problem("serverInternal", "The certificate could not be issued."),
    cause: "script_failed"
  },
  {
    name: "blog.example",
    profile: "script",
    error: problem("serverInternal", "The certificate could not be issued."),
    cause: "chain_rejected"
  },
  {
    name: "api.example",
    profile: "public",
    error: problem("rejectedIdentifier", "The upstream refused api.example: the policy forbids issuing for it."),
    cause: "upstream_refused"
  },
  {
    name: "cdn.example",
    profile: "public",
    error: problem("serverInternal", "The upstream did not finish within signer.relay.poll_timeout_secs."),
    cause: "poll_timeout"
  },
  {
    name: "backup.corp.example",
    profile: "corp",
    error: problem("serverInternal", "The order expired while it waited."),
    cause: "order_expired"
  },
  {
    name: "old.corp.example",
    profile: "corp",
    error: problem("serverInternal", "An operator cancelled the job."),
    cause: "cancelled"
  },
  {
    name: "lab.corp.example",
    profile: "corp",
    error: problem("serverInternal", "The certificate could not be issued."),
    cause: "attempts_exhausted"
  }
]

const jobs = [
  { kind: "signer_issue", status: "failed", error: "script_failed: exit 1: no token in slot 3", attempts: 5 },
  { kind: "signer_issue", status: "done", error: null, attempts: 1 },
  { kind: "challenge_validate", status: "done", error: null, attempts: 1 },
  { kind: "signer_issue", status: "cancelled", error: "cancelled", attempts: 2 },
  {
    kind: "signer_revoke",
    status: "failed",
    error: "script_failed: exit 7: the directory is not reachable",
    attempts: 5
  }
]

/** Finished deliveries, with the event, and with the receiver's answer if the event was not accepted. */
const deliveries = [
  { event: "certificate_issued", status: "done", error: null, attempts: 1 },
  { event: "certificate_revoked", status: "failed", error: "not_delivered: 404 no such channel", attempts: 1 },
  { event: "challenge_failed", status: "failed", error: "not_delivered: connection refused", attempts: 5 }
]

/** Returns how many seconds an issuance took: mostly a few, sometimes an hour. */
const secondsTaken = (random: () => number): number => {
  const chance = random()
  const most = chance < 0.62 ? 4 : chance < 0.9 ? 14 : chance < 0.97 ? 200 : 3000
  return Math.ceil(random() * most)
}

/** Writes the past into a migrated SQLite database that no service uses yet. `sign` is the signer of the profile corp. */
export const writeHistory = (path: string, now: number, sign: SignPast): void => {
  const database = new Database(path)
  const random = numbersFrom(7)
  database.transaction(() => {
    const account = database.prepare(
      `INSERT INTO accounts (id, profile, pubkey, status, contact, created_at, created_ip, created_ptr, last_seen_at, last_seen_ip)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
    )
    const owners = ["corp", "script", "public"].map((profile, number) => {
      const owner = id(1, number)
      account.run(
        owner,
        profile,
        Buffer.from(`key ${number}`),
        number === 2 ? "valid" : "valid",
        JSON.stringify([`mailto:${profile}-ops@corp.example`]),
        now - 40 * daySeconds,
        `192.0.2.${10 + number}`,
        `host-${number}.corp.example`,
        now - number * 3600,
        `192.0.2.${10 + number}`
      )
      return { profile, owner }
    })
    account.run(
      id(1, 9),
      "corp",
      Buffer.from("key 9"),
      "deactivated",
      "[]",
      now - 35 * daySeconds,
      "198.51.100.7",
      null,
      now - 20 * daySeconds,
      "198.51.100.7"
    )
    const audit = database.prepare(
      `INSERT INTO audit_log (created_at, event, outcome, actor_kind, actor_id, profile, account_id, order_id, cert_serial,
       identifiers, client_ip, user_agent, request_id, reason, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
    )
    const tell = (at: number, event: string, outcome: string, more: { readonly [name: string]: string | null }) =>
      audit.run(
        at,
        event,
        outcome,
        more["actor"] ?? "acme",
        more["actorId"] ?? null,
        more["profile"] ?? null,
        more["account"] ?? null,
        more["order"] ?? null,
        more["serial"] ?? null,
        more["names"] ?? "[]",
        more["ip"] ?? "192.0.2.10",
        more["agent"] ?? "certbot/2.11.0",
        more["request"] ?? null,
        more["reason"] ?? null,
        more["detail"] ?? null
      )
    const past = database.prepare(
      `INSERT INTO orders (id, profile, account_id, status, identifiers, certificate, cert_serial, cert_pubkey, cert_not_after,
         revoked_at, revocation_reason, created_at, created_ip) VALUES (?, 'corp', ?, 'valid', ?, ?, ?, ?, ?, ?, ?, ?, '192.0.2.10')`
    )
    const name = database.prepare(
      "INSERT INTO order_identifiers (order_id, profile, name, name_rev) VALUES (?, ?, ?, ?)"
    )
    const authorization = database.prepare(
      "INSERT INTO authorizations (id, order_id, identifier, status, created_at) VALUES (?, ?, ?, ?, ?)"
    )
    const proof = database.prepare(
      `INSERT INTO challenges (id, authz_id, type, position, token, status, validated_at, created_at)
       VALUES (?, ?, 'http-01', 0, ?, 'valid', ?, ?)`
    )
    let issuances = 0
    /** Writes an order with its certificate, and returns what the trail says of it. */
    const issuedAt = (at: number, value: string, revokedAt: number | undefined) => {
      const [number, begun] = [issuances++, at - secondsTaken(random)]
      const [of, proved] = [id(20, number), id(21, number)]
      const end = at + (random() < 0.3 ? 47 : 90) * daySeconds
      const { chain, pubkey, serial } = sign([value], at - 3600, end)
      const identifier = { type: "dns", value }
      past.run(
        of,
        id(1, 0),
        JSON.stringify([identifier]),
        chain,
        serial,
        pubkey,
        end,
        revokedAt ?? null,
        revokedAt === undefined ? null : 4,
        begun
      )
      name.run(of, "corp", value, [...value].toReversed().join(""))
      authorization.run(proved, of, JSON.stringify(identifier), "valid", begun)
      proof.run(id(22, number), proved, `token-past-${number}`, Math.max(begun, at - 1), begun)
      return { serial, order: written(of), account: written(id(1, 0)) }
    }
    for (let day = 29; day >= 0; day--) {
      const isWeekend = new Date((now - day * daySeconds) * 1000).getUTCDay() % 6 === 0
      const issued = Math.round((isWeekend ? 6 : 22) + random() * 14)
      for (let number = 0; number < issued; number++) {
        const at = now - day * daySeconds - Math.floor(random() * 0.9 * daySeconds) - 60
        const chance = random()
        const profile = chance < 0.7 ? "corp" : chance < 0.9 ? "public" : "script"
        const value = `node-${Math.floor(random() * 400)}.corp.example`
        const names = JSON.stringify([value])
        const serial = Math.floor(random() * 1e15).toString(16).padStart(32, "4")
        const fate = random()
        const facts = fate >= 0.07 && profile === "corp"
          ? issuedAt(at, value, fate > 0.96 ? at + 30 : undefined)
          : { serial }
        if (fate < 0.07) {
          tell(at, "certificate_issue_failed", "failure", {
            profile,
            names,
            reason: "serverInternal",
            detail: JSON.stringify({ cause: "attempts_exhausted" })
          })
        } else tell(at, "certificate_issued", "success", { profile, names, ...facts })
        if (fate > 0.96) {
          tell(at + 30, "certificate_revoked", "success", { profile, names, ...facts, actor: "admin", actorId: "olga" })
        }
      }
    }
    const order = database.prepare(
      `INSERT INTO orders (id, profile, account_id, status, identifiers, error, created_at, created_ip) VALUES (?, ?, ?, 'invalid', ?, ?, ?, ?)`
    )
    const challenge = database.prepare(
      `INSERT INTO challenges (id, authz_id, type, position, token, status, error, cause, created_at)
       VALUES (?, ?, 'http-01', 0, ?, ?, ?, ?, ?)`
    )
    failures.forEach((failed, number) => {
      const at = now - (number + 1) * 5400
      const of = id(2, number)
      const owner = owners.find(({ profile }) => profile === failed.profile)?.owner ?? id(1, 0)
      const identifier = { type: "dns", value: failed.name }
      order.run(of, failed.profile, owner, JSON.stringify([identifier]), failed.error ?? null, at, "192.0.2.10")
      name.run(of, failed.profile, failed.name, [...failed.name].toReversed().join(""))
      authorization.run(
        id(3, number),
        of,
        JSON.stringify(identifier),
        failed.challenge === undefined ? "valid" : "invalid",
        at
      )
      challenge.run(
        id(4, number),
        id(3, number),
        `token-${number}`,
        failed.challenge === undefined ? "valid" : "invalid",
        failed.challenge ?? null,
        failed.met === undefined ? null : JSON.stringify({ reason: failed.met[0], detail: failed.met[1] }),
        at
      )
      if (failed.cause !== undefined) {
        tell(at + 90, "certificate_issue_failed", "failure", {
          profile: failed.profile,
          account: written(owner),
          order: written(of),
          names: JSON.stringify([failed.name]),
          request: written(id(5, number)),
          reason: failed.error === undefined
            ? null
            : (JSON.parse(failed.error) as { type: string }).type.split(":").at(-1) ?? null,
          detail: JSON.stringify({ cause: failed.cause })
        })
      }
    })
    database.prepare(
      `INSERT INTO campaigns (id, state, filter, reason, created_at, actor_kind, actor_id, revoked_to, filled_to, filled_at,
         looked_to, begun_at, span_seconds, ended_at, matched, asked, replaced, expired)
       VALUES (?, 'ended', '{"profile":"corp","key":"rsa-2048"}', 'RSA keys of 2048 bits', ?, 'admin', 'olga', zeroblob(16),
         zeroblob(16), ?, zeroblob(16), ?, 21600, ?, 42, 40, 39, 1)`
    ).run(id(9, 0), now - 500_000, now - 499_990, now - 499_990, now - 400_000)
    const job = database.prepare(
      `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, last_error, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, 5, ?, ?, ?)`
    )
    jobs.forEach(({ attempts, error, kind, status }, number) => {
      const at = now - (number + 2) * 3000
      const subject = written(id(2, 8 + number))
      job.run(
        id(6, number),
        kind,
        subject,
        JSON.stringify({ orderId: subject }),
        status,
        at,
        attempts,
        error,
        at - 600,
        at
      )
    })
    deliveries.forEach(({ attempts, error, event, status }, number) => {
      const at = now - (number + 1) * 4000
      const delivery = written(id(8, number))
      job.run(
        id(7, number),
        "notify_deliver",
        `${delivery}/webhook/chat`,
        JSON.stringify({
          scope: "corp",
          backend: "webhook",
          entry: "chat",
          event,
          fields: { hook: event, profile: "corp", at, delivery_id: delivery }
        }),
        status,
        at,
        attempts,
        error,
        at,
        at + 60
      )
    })
    writeUnusual(database, now, sign)
  })()
  database.close()
}
