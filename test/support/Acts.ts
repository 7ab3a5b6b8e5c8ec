import { Effect } from "effect"
import type { Dialect } from "../../src/engine/sql/Column.ts"
import type { Database } from "../../src/engine/sql/Database.ts"
import * as blocking from "../../src/operations/operator/AccountBlocking.ts"
import * as campaigns from "../../src/operations/operator/CampaignRecords.ts"
import * as eab from "../../src/operations/operator/Eab.ts"
import * as operators from "../../src/operations/operator/identity/Operators.ts"
import * as tokens from "../../src/operations/operator/identity/Tokens.ts"
import type { Passwords } from "../../src/services/operators/Passwords.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import * as nonces from "../../src/store/NonceRows.ts"
import * as crls from "../../src/store/revocation/Crls.ts"
import type { World } from "./Graph.ts"
import { accountKeyOf, callerAt, column, newPrivateKey, orderOf, profileOf, sql } from "./Graph.ts"
import { enrolled, enter, keyboard, made, password, startsAt } from "./Operators.ts"

/*
 * Every act that operators can perform over the API, in the panel and on the command line. Each act is performed once
 * in each of these ways.
 */

/** The way in which an act is performed. */
export type Way = "api" | "panel" | "cli"

/** The subject of an act, which is made anew for each way. `more` is further input that the ways need. */
export interface Subject {
  readonly id: string
  readonly more?: string
}

type Needs = Database | World | Passwords

export interface Act {
  readonly subject: (way: Way) => Effect.Effect<Subject, unknown, Needs>
  /** Method, path and body. */
  readonly api: (subject: Subject) => readonly [string, string, unknown?]
  /** The path and the fields of a form. */
  readonly panel: (subject: Subject) => readonly [string, Readonly<Record<string, string>>?]
  readonly cli: (subject: Subject) => ReadonlyArray<string>
  /** The events of the audit rows that each way writes. */
  readonly rows: ReadonlyArray<string>
  readonly records: ReadonlyArray<string>
}

/** The password of the caller, which changes of operators need. */
export const step = { password }

/** Returns the acts on a database, and the subjects of some of them. */
export const actsOn = (dialect: Dialect, config: Config) => {
  /** Returns the literal of a credential's id, which both databases store as octets. */
  const octets = (kid: string) => {
    const hex = kid.replaceAll("-", "")
    return dialect === "sqlite" ? `X'${hex}'` : `'\\x${hex}'`
  }
  const literal = (id: string) => dialect === "sqlite" ? `X'${id.replaceAll("-", "")}'` : `'${id}'`

  const campaign = (revokeAt?: number) =>
    Effect.map(
      campaigns.start(config, keyboard, {
        filter: { profile: "default" },
        reason: "a bug",
        explanationUrl: undefined,
        pace: undefined,
        revokeAt,
        revokeReason: undefined
      }),
      ({ id }): Subject => ({ id })
    )
  const account = Effect.map(
    Effect.suspend(() => callerAt(profileOf(config), accountKeyOf(newPrivateKey()))),
    ({ accountId }): Subject => ({ id: accountId })
  )
  const order = Effect.gen(function*() {
    const caller = yield* callerAt(profileOf(config), accountKeyOf(newPrivateKey()))
    const { id } = yield* orderOf(caller, "a.example")
    const subject: Subject = { id, more: caller.accountId }
    return subject
  })
  const live = Effect.tap(order, ({ id }) =>
    sql(
      `UPDATE orders SET status = 'valid', certificate = 'PEM', cert_serial = 'ab${id.slice(-4)}', cert_not_after = ${
        startsAt + 1000
      }
       WHERE id = ${literal(id)}`
    ))
  const revoked = Effect.tap(live, ({ id }) => sql(`UPDATE orders SET revoked_at = 1 WHERE id = ${literal(id)}`))
  const credential = Effect.map(
    eab.create(keyboard, { label: "web", profile: undefined }),
    ({ credential: { kid } }): Subject => ({ id: kid })
  )
  const bound = Effect.gen(function*() {
    const { id } = yield* credential
    const owner = yield* account
    yield* sql(`UPDATE accounts SET eab_kid = ${octets(id)} WHERE id = ${literal(owner.id)}`)
    const subject: Subject = { id, more: owner.id }
    return subject
  })
  const job = (status: "ready" | "failed") =>
    Effect.gen(function*() {
      const [count = "0"] = yield* column("SELECT count(*) FROM jobs")
      const id = `01890a5d-ac96-774b-bcce-${count.padStart(12, "0")}`
      yield* sql(
        `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
         VALUES (${literal(id)}, 'local_ca_crl_regenerate', 'ca-${count}', '{}', '${status}', ${startsAt + 900}, 1, 3,
           ${startsAt}, ${startsAt})`
      )
      const subject: Subject = { id, more: `ca-${count}` }
      return subject
    })
  const person = (way: string) => Effect.as(made(`p-${way}`, "operator"), { id: `p-${way}` })
  const factored = (way: string) =>
    Effect.tap(person(way), ({ id }) => Effect.flatMap(enter(id), ({ identity }) => enrolled(identity)))
  const seated = (way: string) =>
    Effect.map(Effect.andThen(person(way), enter(`p-${way}`)), ({ identity }): Subject => ({
      id: `p-${way}`,
      more: identity.tokenHash.slice(0, 16)
    }))
  const owned = (way: string) =>
    Effect.flatMap(person(way), ({ id }) =>
      Effect.map(
        tokens.create(keyboard, { username: id, name: "t", role: "viewer", expiresInDays: 1, allowedAddresses: [] }),
        ({ record }): Subject => ({ id: record.id, more: id })
      ))

  const acts: Readonly<Record<string, Act>> = {
    "changes contacts": {
      subject: () => account,
      api: ({ id }) => ["PATCH", `/api/accounts/${id}`, { contact: ["mailto:a@example.org"] }],
      panel: ({ id }) => [`/ui/accounts/${id}/contact`, { contact: "mailto:a@example.org" }],
      cli: ({ id }) => ["account", "update-contact", id, "--contact", "mailto:a@example.org"],
      rows: ["account_contact_updated"],
      records: ["admin_account_contact_updated"]
    },
    "deactivates an account": {
      subject: () => account,
      api: ({ id }) => ["POST", `/api/accounts/${id}/deactivate`],
      panel: ({ id }) => [`/ui/accounts/${id}/deactivate`],
      cli: ({ id }) => ["account", "deactivate", id, "--yes"],
      rows: ["account_deactivated"],
      records: ["admin_account_deactivated"]
    },
    "blocks an account": {
      subject: () => account,
      api: ({ id }) => ["POST", `/api/accounts/${id}/block`, { reason: "r" }],
      panel: ({ id }) => [`/ui/accounts/${id}/block`, { reason: "r" }],
      cli: ({ id }) => ["account", "block", id, "--reason", "r"],
      rows: ["account_blocked"],
      records: ["admin_account_blocked"]
    },
    "unblocks an account": {
      subject: () => Effect.tap(account, ({ id }) => blocking.block(keyboard, id, "r")),
      api: ({ id }) => ["POST", `/api/accounts/${id}/unblock`],
      panel: ({ id }) => [`/ui/accounts/${id}/unblock`],
      cli: ({ id }) => ["account", "unblock", id],
      rows: ["account_unblocked"],
      records: ["admin_account_unblocked"]
    },
    "deletes an account": {
      subject: () => Effect.map(order, ({ id, more = "" }) => ({ id: more, more: id })),
      api: ({ id }) => ["DELETE", `/api/accounts/${id}`],
      panel: ({ id }) => [`/ui/accounts/${id}/delete`],
      cli: ({ id }) => ["account", "delete", id, "--yes"],
      rows: ["account_deleted"],
      records: ["admin_account_deleted"]
    },
    "deletes an order": {
      subject: () => order,
      api: ({ id }) => ["DELETE", `/api/orders/${id}`],
      panel: ({ id }) => [`/ui/orders/${id}/delete`],
      cli: ({ id }) => ["order", "delete", id, "--yes"],
      rows: ["order_deleted"],
      records: ["admin_order_deleted"]
    },
    "revokes what is revoked": {
      subject: () => revoked,
      api: ({ id }) => ["POST", `/api/orders/${id}/revoke`, {}],
      panel: ({ id }) => [`/ui/orders/${id}/revoke`],
      cli: ({ id }) => ["order", "revoke", id],
      rows: ["certificate_revoke_failed"],
      records: []
    },
    "revokes certificates of which one is revoked": {
      subject: () => Effect.map(revoked, ({ id }) => ({ id, more: `ab${id.slice(-4)}` })),
      api: ({ more = "" }) => ["POST", "/api/certificates/revoke", { serials: [more] }],
      panel: ({ more = "" }) => ["/ui/certificates/revoke", { serials: more }],
      cli: ({ more = "" }) => ["cert", "revoke", more],
      rows: ["certificate_revoke_failed"],
      records: []
    },
    "makes a credential": {
      subject: () => Effect.succeed({ id: "-" }),
      api: () => ["POST", "/api/eab", { label: "web", profile: "default" }],
      panel: () => ["/ui/eab", { label: "web", profile: "default" }],
      cli: () => ["eab", "create", "--label", "web", "--profile", "default"],
      rows: ["eab_created"],
      records: ["admin_eab_created"]
    },
    "changes what a credential may ask for": {
      subject: () => credential,
      api: ({ id }) => ["PATCH", `/api/eab/${id}`, { names: ["**.example"], maxAccounts: 3 }],
      panel: ({ id }) => [`/ui/eab/${id}/scope`, { names: "**.example", maxAccounts: "3" }],
      cli: ({ id }) => ["eab", "set", id, "--names", "**.example", "--max-accounts", "3"],
      rows: ["eab_scope_changed"],
      records: ["admin_eab_scope_changed"]
    },
    "revokes a credential": {
      subject: () => credential,
      api: ({ id }) => ["POST", `/api/eab/${id}/revoke`],
      panel: ({ id }) => [`/ui/eab/${id}/revoke`],
      cli: ({ id }) => ["eab", "revoke", id],
      rows: ["eab_revoked"],
      records: ["admin_eab_revoked"]
    },
    "deletes a credential and keeps its accounts": {
      subject: () => bound,
      api: ({ id }) => ["DELETE", `/api/eab/${id}`],
      panel: ({ id }) => [`/ui/eab/${id}/delete`],
      cli: ({ id }) => ["eab", "delete", id, "--yes"],
      rows: ["eab_deleted"],
      records: ["admin_eab_deleted"]
    },
    "deletes a credential and deactivates its accounts": {
      subject: () => bound,
      api: ({ id }) => ["DELETE", `/api/eab/${id}?accounts=deactivate`],
      panel: ({ id }) => [`/ui/eab/${id}/delete`, { accounts: "deactivate" }],
      cli: ({ id }) => ["eab", "delete", id, "--deactivate-accounts", "--yes"],
      rows: ["eab_deleted", "account_deactivated"],
      records: ["admin_eab_deleted"]
    },
    "deletes a credential with its accounts": {
      subject: () => bound,
      api: ({ id }) => ["DELETE", `/api/eab/${id}?accounts=delete`],
      panel: ({ id }) => [`/ui/eab/${id}/delete`, { accounts: "delete" }],
      cli: ({ id }) => ["eab", "delete", id, "--delete-accounts", "--yes"],
      rows: ["eab_deleted", "account_deleted"],
      records: ["admin_eab_deleted"]
    },
    "cleans nonces up": {
      subject: () => Effect.as(nonces.insert(["a", "b"], 1000), { id: "-" }),
      api: () => ["POST", "/api/nonces/cleanup", {}],
      panel: () => ["/ui/nonces/sweep"],
      cli: () => ["nonce", "cleanup", "--yes"],
      rows: ["nonce_cleanup_completed"],
      records: ["admin_nonces_cleaned"]
    },
    "cancels a job that waits": {
      subject: () => job("ready"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/cancel`],
      panel: ({ id }) => [`/ui/jobs/${id}/cancel`],
      cli: ({ id }) => ["jobs", "cancel", id, "--yes"],
      rows: ["job_cancelled"],
      records: ["admin_job_cancelled"]
    },
    "cancels a job that has failed": {
      subject: () => job("failed"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/cancel`],
      panel: ({ id }) => [`/ui/jobs/${id}/cancel`],
      cli: ({ id }) => ["jobs", "cancel", id, "--yes"],
      rows: ["job_cancelled"],
      records: ["admin_job_cancelled"]
    },
    "has a job run now": {
      subject: () => job("ready"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/run`],
      panel: ({ id }) => [`/ui/jobs/${id}/run`],
      cli: ({ id }) => ["jobs", "run-now", id],
      rows: ["job_advanced"],
      records: ["admin_job_advanced"]
    },
    "has a failed job run once more": {
      subject: () => job("failed"),
      api: ({ id }) => ["POST", `/api/jobs/${id}/run`],
      panel: ({ id }) => [`/ui/jobs/${id}/run`],
      cli: ({ id }) => ["jobs", "run-now", id],
      rows: ["job_advanced"],
      records: ["admin_job_advanced"]
    },
    "has all jobs with an error run now": {
      subject: (way) =>
        Effect.tap(
          job("failed"),
          ({ id }) => sql(`UPDATE jobs SET last_error = 'planted ${way}' WHERE id = ${literal(id)}`)
        ),
      api: () => ["POST", "/api/jobs/run", { kind: "local_ca_crl_regenerate", error: "planted api" }],
      panel: ({ id }) => ["/ui/jobs/run-alike", { id }],
      cli: () => ["jobs", "run-all", "--kind", "local_ca_crl_regenerate", "--error", "planted cli", "--yes"],
      rows: ["job_advanced"],
      records: ["admin_job_advanced"]
    },
    "declares a CA compromised": {
      subject: (way) => {
        const id = ({ api: "a", panel: "b", cli: "c" } as const)[way].repeat(64)
        const list = { issuer: id, number: 1, der: Buffer.from("list"), thisUpdate: 0, nextUpdate: 4_102_444_800 }
        return Effect.as(crls.insert(list), { id })
      },
      api: ({ id }) => ["POST", `/api/cas/${id}/compromise`, step],
      panel: ({ id }) => [`/ui/authorities/${id}/compromise`, step],
      cli: ({ id }) => ["ca", "compromise", id, "--yes"],
      rows: ["authority_compromised"],
      records: ["admin_authority_compromised"]
    },
    "starts a campaign": {
      subject: () => Effect.succeed({ id: "default" }),
      api: () => ["POST", "/api/campaigns", { profile: "default", reason: "a bug" }],
      panel: () => ["/ui/campaigns", { profile: "default", reason: "a bug" }],
      cli: () => ["campaign", "start", "--profile", "default", "--reason", "a bug"],
      rows: ["campaign_started"],
      records: ["admin_campaign_started"]
    },
    "pauses a campaign": {
      subject: () => campaign(),
      api: ({ id }) => ["POST", `/api/campaigns/${id}/pause`],
      panel: ({ id }) => [`/ui/campaigns/${id}/pause`],
      cli: ({ id }) => ["campaign", "pause", id],
      rows: ["campaign_paused"],
      records: ["admin_campaign_paused"]
    },
    "resumes a campaign": {
      subject: () => Effect.tap(campaign(), ({ id }) => campaigns.pause(keyboard, id)),
      api: ({ id }) => ["POST", `/api/campaigns/${id}/resume`],
      panel: ({ id }) => [`/ui/campaigns/${id}/resume`],
      cli: ({ id }) => ["campaign", "resume", id],
      rows: ["campaign_resumed"],
      records: ["admin_campaign_resumed"]
    },
    "ends a campaign": {
      subject: () => campaign(),
      api: ({ id }) => ["POST", `/api/campaigns/${id}/end`],
      panel: ({ id }) => [`/ui/campaigns/${id}/end`],
      cli: ({ id }) => ["campaign", "end", id, "--yes"],
      rows: ["campaign_ended"],
      records: ["admin_campaign_ended"]
    },
    "confirms the revocation of a campaign": {
      subject: () => campaign(startsAt + 86_400),
      api: ({ id }) => ["POST", `/api/campaigns/${id}/confirm`, step],
      panel: ({ id }) => [`/ui/campaigns/${id}/confirm`, step],
      cli: ({ id }) => ["campaign", "confirm", id, "--yes"],
      rows: ["campaign_revocation_confirmed"],
      records: ["admin_campaign_confirmed"]
    },
    "disables an operator": {
      subject: seated,
      api: ({ id }) => ["POST", `/api/operators/${id}/disable`, step],
      panel: ({ id }) => [`/ui/operators/${id}/disable`, step],
      cli: ({ id }) => ["admin", "user", "disable", id],
      rows: ["operator_disabled"],
      records: ["admin_operator_disabled"]
    },
    "enables an operator": {
      subject: (way) => Effect.tap(person(way), ({ id }) => operators.disable(keyboard, id)),
      api: ({ id }) => ["POST", `/api/operators/${id}/enable`, step],
      panel: ({ id }) => [`/ui/operators/${id}/enable`, step],
      cli: ({ id }) => ["admin", "user", "enable", id],
      rows: ["operator_enabled"],
      records: ["admin_operator_enabled"]
    },
    "changes a role": {
      subject: seated,
      api: ({ id }) => ["POST", `/api/operators/${id}/role`, { ...step, role: "viewer" }],
      panel: ({ id }) => [`/ui/operators/${id}/role`, { ...step, role: "viewer" }],
      cli: ({ id }) => ["admin", "user", "role", id, "viewer"],
      rows: ["operator_role_changed"],
      records: ["admin_operator_role_changed"]
    },
    "changes an operator's contact": {
      subject: person,
      api: ({ id }) => ["POST", `/api/operators/${id}/contact`, { ...step, contact: "p@example.org" }],
      panel: ({ id }) => [`/ui/operators/${id}/contact`, { ...step, contact: "p@example.org" }],
      cli: ({ id }) => ["admin", "user", "contact", id, "--contact", "p@example.org"],
      rows: ["operator_contact_updated"],
      records: ["admin_operator_contact_changed"]
    },
    "takes a second factor away": {
      subject: factored,
      api: ({ id }) => ["POST", `/api/operators/${id}/totp/reset`, step],
      panel: ({ id }) => [`/ui/operators/${id}/reset-factor`, step],
      cli: ({ id }) => ["admin", "user", "totp", "reset", id, "--yes"],
      rows: ["operator_totp_disabled"],
      records: ["admin_operator_totp_reset"]
    },
    "ends a session": {
      subject: seated,
      api: ({ id, more = "" }) => ["POST", `/api/operators/${id}/sessions/${more}/revoke`, step],
      panel: ({ id, more = "" }) => [`/ui/operators/${id}/sessions/${more}/revoke`, step],
      cli: ({ id, more = "" }) => ["admin", "session", "revoke", "--user", id, "--session", more],
      rows: ["session_revoked"],
      records: ["admin_operator_session_revoked"]
    },
    "ends the sessions of an operator": {
      subject: seated,
      api: ({ id }) => ["POST", `/api/operators/${id}/sessions/revoke`, step],
      panel: ({ id }) => [`/ui/operators/${id}/sessions/revoke`, step],
      cli: ({ id }) => ["admin", "session", "revoke", "--user", id],
      rows: ["session_revoked"],
      records: ["admin_operator_session_revoked"]
    },
    "makes a token": {
      subject: person,
      api: ({ id }) => ["POST", "/api/tokens", { ...step, user: id, name: "t", role: "viewer", expiresInDays: 2 }],
      panel: ({ id }) => [`/ui/operators/${id}/tokens`, { ...step, name: "t", role: "viewer", expiresInDays: "2" }],
      cli: ({ id }) => ["admin", "token", "create", id, "--name", "t", "--expires-in", "2"],
      rows: ["token_created"],
      records: ["admin_token_created"]
    },
    "revokes a token": {
      subject: owned,
      api: ({ id }) => ["POST", `/api/tokens/${id}/revoke`],
      panel: ({ id, more = "" }) => [`/ui/operators/${more}/tokens/${id}/revoke`, step],
      cli: ({ id }) => ["admin", "token", "revoke", id, "--yes"],
      rows: ["token_revoked"],
      records: ["admin_token_revoked"]
    }
  }

  return { acts, credential, factored, live, literal, octets }
}
