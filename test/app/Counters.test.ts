import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { beginCounters } from "../../src/app/Counters.ts"
import type { Role } from "../../src/domain/Role.ts"
import { everyRole } from "../../src/domain/Role.ts"
import { loops } from "../../src/domain/words/Loop.ts"
import { series } from "../../src/domain/words/Series.ts"
import { Metrics } from "../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../src/engine/telemetry/Registry.ts"
import { configOf } from "../support/Graph.ts"

/** Returns the number of samples of each counter. Every sample must be 0. */
const begunOf = (roles: ReadonlyArray<Role>, text: string) =>
  Effect.gen(function*() {
    yield* beginCounters(new Set(roles), configOf(text))
    const found: Record<string, number> = {}
    const scrape = yield* Metrics.use(({ render }) => render(new Map()))
    for (const [, name = "", value = ""] of scrape.matchAll(/^(acme_svc_\w+_total)\{.*\} (\d+)$/gm)) {
      assert.strictEqual(value, "0", name)
      found[name] = (found[name] ?? 0) + 1
    }
    return found
  }).pipe(Effect.provide(Registry.layer("x", series)))

/** The configuration has two profiles, `default` and `other`. */
const notified = `
[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/secret"
[profiles.default.notify.expiry]
lead_days = 14
interval_days = 7
`

const ofEvery = {
  acme_svc_database_changes_lost_total: 1,
  acme_svc_database_failures_total: 8,
  acme_svc_database_rows_unreadable_total: 1,
  acme_svc_database_standby_reads_total: 7,
  acme_svc_loop_restarts_total: Object.keys(loops).length
}

describe("the counters of a process", () => {
  it.effect("begin at 0 for all work that the process serves, so that a rate includes the first increment", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* begunOf(everyRole, notified), {
        ...ofEvery,
        acme_svc_sign_ins_total: 4,
        acme_svc_audit_chain_faults_total: 4,
        acme_svc_rate_limited_total: 12,
        acme_svc_certificates_issued_total: 2,
        acme_svc_certificate_issue_failures_total: 4,
        acme_svc_signer_failures_total: 16,
        acme_svc_orphaned_certificates_total: 6,
        acme_svc_notify_deliveries_total: 6,
        acme_svc_notify_expiry_digests_total: 3,
        acme_svc_notify_expiry_reminders_total: 3
      })
    }))

  it.effect("depend on its roles and its configuration", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* begunOf(["acme"], ""), {
        ...ofEvery,
        acme_svc_rate_limited_total: 12,
        acme_svc_certificates_issued_total: 2,
        acme_svc_certificate_issue_failures_total: 4
      })
    }))
})
