import * as Effect from "effect/Effect"
import type { Roles } from "../domain/Role.ts"
import { loops } from "../domain/words/Loop.ts"
import { begin } from "../domain/words/Series.ts"
import { hasDigest, sectionsOf } from "../services/notify/NotifyRoutes.ts"
import type { Config } from "../settings/AppConfig.ts"

const ofProfile = (roles: Roles, profile: string): ReadonlyArray<Effect.Effect<void>> => [
  begin("acme_svc_certificates_issued_total", { profile }),
  begin("acme_svc_rate_limited_total", { profile }),
  ...roles.has("worker")
    ? [
      begin("acme_svc_signer_failures_total", { profile }),
      ...(["found", "revoked", "kept"] as const).map((state) =>
        begin("acme_svc_orphaned_certificates_total", { profile, state })
      )
    ]
    : [],
  ...["badCSR", "serverInternal"].map((reason) =>
    begin("acme_svc_certificate_issue_failures_total", { profile, reason })
  )
]

const ofExpiry = (profile: string): ReadonlyArray<Effect.Effect<void>> => [
  begin("acme_svc_notify_expiry_digests_total", { profile }),
  begin("acme_svc_notify_expiry_reminders_total", { profile })
]

/** Creates the counters of everything that is served, with the value 0. A counter that already has a value keeps it. */
export const beginCounters = (roles: Roles, config: Config): Effect.Effect<void> => {
  const profiles = config.profiles.filter(({ enabled }) => enabled)
  return Effect.all([
    ...Object.keys(loops).map((loop) => begin("acme_svc_loop_restarts_total", { loop })),
    begin("acme_svc_database_changes_lost_total", {}),
    ...roles.has("admin") ? [begin("acme_svc_sign_ins_total", {})] : [],
    ...roles.has("admin") || roles.has("worker") ? [begin("acme_svc_audit_chain_faults_total", {})] : [],
    ...[...sectionsOf(config)].flatMap(([profile, { enabled }]) =>
      enabled.map((backend) => begin("acme_svc_notify_deliveries_total", { profile, backend }))
    ),
    ...profiles.filter(({ notify }) => hasDigest(notify)).flatMap(({ name }) => ofExpiry(name)),
    ...profiles.flatMap(({ name }) => ofProfile(roles, name))
  ], { discard: true })
}
