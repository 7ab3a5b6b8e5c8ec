import type { Database } from "better-sqlite3"
import type { SignPast } from "./PastCertificates.ts"
import { id, problem, written } from "./PastRows.ts"

/*
 * Rows that are allowed but unusual, so that people see what pages make of them: the longest names, an order of a
 * hundred names, an error of ten thousand characters, and labels and contacts in other scripts.
 */

const daySeconds = 86_400

/** A name of 253 octets, the longest that DNS allows. */
const longestName: string = `${"a-node-with-a-name-that-a-program-made-".repeat(2).slice(0, 62)}x.${
  "in-a-rack-with-a-name-that-nobody-reads-".repeat(2).slice(0, 62)
}x.${"of-a-site-that-was-called-after-those-who-built-it-".repeat(2).slice(0, 62)}x.${"y".repeat(48)}.corp.example`

/** Labels of credentials: right to left, with combining characters, of the greatest length, and with a mark that hides. */
const labels: ReadonlyArray<string> = [
  "\u0641\u0631\u064a\u0642 \u0627\u0644\u0634\u0628\u0643\u0629 (prod) 3",
  "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd, web-7",
  `Z\u0351\u036b\u0343a\u0334\u0335\u031clgo\u0335\u0321\u0362 e\u0301\u0302\u0303 n\u0303o\u0308`,
  "A team with a label as long as labels may be ".repeat(5).slice(0, 200),
  "\u{1f469}\u200d\u{1f4bb} \u7db2\u8def\u5718\u968a \u0e17\u0e35\u0e21\u0e40\u0e04\u0e23\u0e37\u0e2d\u0e02\u0e48\u0e32\u0e22"
]

const bidiContact = "mailto:\u05d3\u05d5\u05d0\u05e8@corp.example"

/** An error as a program may write it: many lines, one of them without a blank. */
const longError: string = `script_failed: exit 70: Traceback (most recent call last):\n${
  Array.from(
    { length: 90 },
    (_, line) =>
      `  File "/opt/pki/sign/backend_${line}.py", line ${line * 7 + 3}, in call_${line}\n    return next(request)`
  ).join("\n")
}\n${"0123456789abcdef".repeat(200)}`.slice(0, 10_240)

/** Writes the unusual rows in the transaction of the caller, who has made the first account of the profile corp. */
export const writeUnusual = (database: Database, now: number, sign: SignPast): void => {
  const credential = database.prepare(
    "INSERT INTO eab_keys (kid, secret, label, status, created_at) VALUES (?, ?, ?, 'active', ?)"
  )
  const account = database.prepare(
    `INSERT INTO accounts (id, profile, pubkey, status, contact, eab_kid, created_at, created_ip, created_ptr, last_seen_at, last_seen_ip)
     VALUES (?, 'corp', ?, 'valid', ?, ?, ?, '2001:db8:1234:5678:9abc:def0:1234:5678', ?, ?, '2001:db8:1234:5678:9abc:def0:1234:5678')`
  )
  const order = database.prepare(
    `INSERT INTO orders (id, profile, account_id, status, identifiers, error, certificate, cert_serial, cert_pubkey,
       cert_not_after, created_at, created_ip, created_ptr) VALUES (?, 'corp', ?, ?, ?, ?, ?, ?, ?, ?, ?, '192.0.2.10', ?)`
  )
  const name = database.prepare(
    "INSERT INTO order_identifiers (order_id, profile, name, name_rev) VALUES (?, 'corp', ?, ?)"
  )
  const authorization = database.prepare(
    "INSERT INTO authorizations (id, order_id, identifier, status, created_at) VALUES (?, ?, ?, ?, ?)"
  )
  const challenge = database.prepare(
    `INSERT INTO challenges (id, authz_id, type, position, token, status, validated_at, error, cause, created_at)
     VALUES (?, ?, 'dns-01', 0, ?, ?, ?, ?, ?, ?)`
  )
  const trail = database.prepare(
    `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, account_id, order_id, cert_serial, identifiers,
       client_ip, user_agent, detail) VALUES (?, 'certificate_issued', 'success', 'acme', 'corp', ?, ?, ?, ?, '192.0.2.10', ?, '{}')`
  )
  const job = database.prepare(
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, last_error, created_at, updated_at)
     VALUES (?, ?, ?, '{}', 'failed', ?, 5, 5, ?, ?, ?)`
  )
  labels.forEach((label, number) => {
    credential.run(id(30, number), Buffer.alloc(32, number), label, now - (40 - number) * daySeconds)
    account.run(
      id(31, number),
      Buffer.from(`unusual ${number}`),
      JSON.stringify([
        bidiContact,
        `mailto:${"operations-of-the-network-".repeat(2)}${number}@${longestName.slice(-60)}`
      ]),
      id(30, number),
      now - (39 - number) * daySeconds,
      longestName,
      now - number * 60
    )
  })
  let orders = 0
  const place = (
    names: ReadonlyArray<string>,
    owner: number,
    { error, failure, ...state }: {
      readonly isValid?: boolean
      readonly error?: string
      readonly failure?: { readonly problem: string; readonly reason: string; readonly detail: string }
    }
  ) => {
    const number = orders++
    const [of, at] = [id(32, number), now - (number + 1) * 1700]
    const end = at + (40 + number) * daySeconds
    const made = state.isValid === true ? sign(names, at - 3600, end) : undefined
    order.run(
      of,
      id(31, owner),
      made === undefined ? "invalid" : "valid",
      JSON.stringify(names.map((value) => ({ type: "dns", value }))),
      error ?? failure?.problem ?? null,
      made?.chain ?? null,
      made?.serial ?? null,
      made?.pubkey ?? null,
      made === undefined ? null : end,
      at,
      longestName
    )
    names.forEach((value, index) => {
      name.run(of, value, [...value].toReversed().join(""))
      const proved = id(33, number * 1000 + index)
      const isRefused = failure !== undefined && index === 0
      authorization.run(proved, of, JSON.stringify({ type: "dns", value }), isRefused ? "invalid" : "valid", at)
      challenge.run(
        id(34, number * 1000 + index),
        proved,
        `token-unusual-${number}-${index}`,
        isRefused ? "invalid" : "valid",
        isRefused ? null : at + 20 + index,
        isRefused ? failure.problem : null,
        isRefused ? JSON.stringify({ reason: failure.reason, detail: failure.detail }) : null,
        at
      )
    })
    if (made !== undefined) {
      trail.run(
        at + 130,
        written(id(31, owner)),
        written(of),
        made.serial,
        JSON.stringify(names),
        `\u05dc\u05e7\u05d5\u05d7/1.0 (${"compatible; ".repeat(15)})`
      )
    }
    return written(of)
  }
  place([longestName, `*.${longestName.slice(2)}`], 0, { isValid: true })
  place(Array.from({ length: 100 }, (_, index) => `host-${index}.many.corp.example`), 1, { isValid: true })
  place(["xn--mgbh0fb.corp.example", "xn--4dbrk0ce.corp.example"], 2, { isValid: true })
  place([longestName], 3, {
    failure: {
      problem: problem("dns", `${longestName}: dns; the server's log has the reason`),
      reason: "resolve_failed",
      detail: `_acme-challenge.${longestName}: ESERVFAIL at 2001:db8:1234:5678:9abc:def0:1234:5678 port 53`
    }
  })
  const long = place(["sign.corp.example"], 4, { error: problem("serverInternal", longError) })
  job.run(id(35, 0), "signer_issue", long, now - 900, longError, now - 4000, now - 900)
}
