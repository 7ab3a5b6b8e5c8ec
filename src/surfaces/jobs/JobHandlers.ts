import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Entropy } from "../../crypto/Entropy.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import type { SignerBackend } from "../../domain/SignerBackend.ts"
import type { JobKind } from "../../domain/words/JobKind.ts"
import { handler } from "../../domain/words/JobKind.ts"
import type { EventName } from "../../domain/words/Log.ts"
import { emit } from "../../domain/words/Log.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { DatabaseFailed, Done, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import type { Queue } from "../../engine/queue/Queue.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as crl from "../../operations/work/crl/ListPublication.ts"
import * as issuance from "../../operations/work/Issuance.ts"
import * as keyRevocation from "../../operations/work/KeyRevocation.ts"
import * as delivery from "../../operations/work/notify/DeliveryJob.ts"
import * as orphans from "../../operations/work/OrphanedCertificates.ts"
import { longestWait as longestOrphanWait } from "../../operations/work/OrphanedCertificates.ts"
import * as relaying from "../../operations/work/Relaying.ts"
import { sweepsOf } from "../../operations/work/Rounds.ts"
import * as operatorSweeps from "../../operations/work/SessionSweep.ts"
import * as signerRevocation from "../../operations/work/SignerRevocation.ts"
import * as passes from "../../operations/work/Sweeps.ts"
import * as verdicts from "../../operations/work/Verdicts.ts"
import { AuditReceivers } from "../../services/audit/AuditReceivers.ts"
import { Deliveries } from "../../services/notify/Deliveries.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import { hasReminders } from "../../services/notify/NotifyRoutes.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { longestWait as longestRevocationWait } from "../../services/signing/relay/Relay.ts"
import type { RenewalHours } from "../../services/signing/RenewalHours.ts"
import { Signers } from "../../services/signing/Signer.ts"
import { Validator } from "../../services/validation/Validator.ts"
import type { Config, ProfileConfig } from "../../settings/AppConfig.ts"
import { receiversOf } from "../../settings/AuditTable.ts"
import { authorityHandler } from "./AuthorityHandler.ts"
import { campaignHandlers } from "./CampaignHandlers.ts"
import { chainCheckHandler } from "./ChainCheckHandler.ts"
import { chainHandler } from "./ChainHandler.ts"
import { expiryHandlers } from "./ExpiryHandlers.ts"
import { pushHandler } from "./PushHandler.ts"
import { renewalHandler } from "./RenewalHandler.ts"

/**
 * The services that the handlers get from the process. Services that depend on a configuration are provided when the
 * handlers are made.
 */
type Needs = Database | Entropy | Notifier | Queue | RenewalHours

const daySeconds = 86_400
const hourSeconds = 3600
const validationMarginMillis = 5000
const signatureBudgetMillis = 60_000
const scriptMarginMillis = 5000
const deliveryMarginMillis = 5000

type ReaperFailed = Extract<EventName, `${string}_reaper_failed`>

interface Sweep {
  readonly kind:
    | "nonce_sweep"
    | "admin_session_sweep"
    | "http01_token_sweep"
    | "order_sweep"
    | "audit_sweep"
    | "job_retention_sweep"
    | "local_ca_crl_sweep"
  readonly everySeconds: number
  /** The event that is emitted for a failed pass. Absent if the operation itself emits a more precise event. */
  readonly failure?: ReaperFailed
  readonly run: Effect.Effect<void, StorageFailed, Database | Queue>
}

/**
 * Makes the handler of a sweep that runs at a fixed interval. An error is logged and stored in the row, but never ends
 * the schedule: the sweep runs again after a backoff, or at the interval if that is sooner. If there is nothing to
 * sweep, the job ends without a successor, and no job is enqueued.
 */
const sweep = (
  budgetSeconds: number,
  wanted: ReadonlySet<JobKind>,
  { everySeconds, failure, kind, run }: Sweep
): AnyHandler<Needs, JobFailure> => {
  const isIdle = !wanted.has(kind)
  return handler<typeof kind, Needs, JobFailure>({
    kind,
    // The row of a sweep that is no longer wanted becomes due, and then ends.
    ...isIdle ? { subjects: [] } : {},
    reachSeconds: everySeconds,
    budgetMillis: () => budgetSeconds * 1000,
    run: () =>
      isIdle ? Effect.succeed(Done()) : Effect.gen(function*() {
        const error = yield* Effect.match(run, { onSuccess: () => undefined, onFailure: ({ message }) => message })
        if (error === undefined) return Reschedule((yield* currentSeconds) + everySeconds)
        if (failure !== undefined) yield* emit(failure, { error })
        return Retry(new DatabaseFailed({ detail: error }), { atMost: everySeconds })
      }),
    abandon: () => Effect.void
  })
}

/**
 * Returns the time budget, in milliseconds, for one attempt at an upstream. The attempt itself stops a little earlier.
 */
const relayBudget = (profile: ProfileConfig | undefined): number =>
  (profile?.signer.relay.poll_timeout_secs ?? 0) * 1000 + scriptMarginMillis

/** The time budget, in milliseconds, for one request to each backend. A relay gets it only for revocations. */
const signingBudgets: { readonly [B in SignerBackend]: (signer: ProfileConfig["signer"]) => number } = {
  local_ca: () => signatureBudgetMillis,
  relay: () => signatureBudgetMillis,
  custom: ({ custom }) => custom.timeout_ms + scriptMarginMillis
}

/** Returns the time budget, in milliseconds, for one request to the signer of a profile. */
const signingBudget = (profile: ProfileConfig | undefined): number =>
  profile === undefined ? signatureBudgetMillis : signingBudgets[profile.signer.backend](profile.signer)

/**
 * How many requests to a signer that never answers one attempt for an order without its certificate may make: each
 * attempt to sign may have left a certificate, and an upstream is also asked for its order. An attempt that exceeds its
 * budget counts as failed, and the certificates would be given up after a few of them.
 */
const orphanRequests = 6

/**
 * Makes the handlers of all job kinds of this build. Each handler runs the operation of its kind. The signers and the
 * validator come from the configuration of these handlers.
 */
export const handlers = Effect.fnUntraced(function*(config: Config) {
  const deliveries = yield* Deliveries
  // Only these services are provided here: the runner provides all others to an attempt.
  const services = Context.make(Signers, yield* Signers).pipe(
    Context.add(Validator, yield* Validator),
    Context.add(Deliveries, deliveries)
  )
  const within = Effect.provide(services)
  const profiles = new Map(config.profiles.filter(({ enabled }) => enabled).map((profile) => [profile.name, profile]))
  const budgetOf = (timeout: number): number => timeout + validationMarginMillis
  const longestRelay = Math.max(0, ...[...profiles.values()].map(({ signer }) => signer.relay.poll_timeout_secs))
  const { audit, jobs, nonce } = config
  const wanted = sweepsOf(config)
  const sweeps: ReadonlyArray<Sweep> = [
    { kind: "local_ca_crl_sweep", everySeconds: daySeconds, run: within(crl.sweep) },
    {
      kind: "nonce_sweep",
      everySeconds: Math.max(30, Math.floor(nonce.ttl_seconds / 2)),
      failure: "nonce_reaper_failed",
      run: passes.sweepNonces(nonce.ttl_seconds)
    },
    {
      kind: "admin_session_sweep",
      everySeconds: hourSeconds,
      failure: "admin_session_reaper_failed",
      run: operatorSweeps.sweepSessions(config.admin)
    },
    {
      kind: "http01_token_sweep",
      everySeconds: hourSeconds,
      failure: "http_01_token_reaper_failed",
      run: passes.sweepHttp01Tokens
    },
    { kind: "order_sweep", everySeconds: daySeconds, failure: "order_reaper_failed", run: passes.sweepOrders(config) },
    {
      kind: "audit_sweep",
      everySeconds: daySeconds,
      failure: "audit_reaper_failed",
      run: passes.sweepAudit(audit.retention_days, receiversOf(audit))
    },
    {
      kind: "job_retention_sweep",
      everySeconds: daySeconds,
      failure: "job_reaper_failed",
      run: passes.sweepJobs(jobs.retention_days)
    }
  ]
  const terms = {
    retryBaseSeconds: config.jobs.retry_base_seconds,
    retryMaxSeconds: config.jobs.retry_max_seconds,
    remindsAt: (name: string) => {
      const profile = profiles.get(name)
      return profile !== undefined && hasReminders(profile.notify)
    }
  }
  const known: ReadonlyArray<AnyHandler<Needs, JobFailure>> = [
    handler<"challenge_validate", Needs, JobFailure>({
      kind: "challenge_validate",
      budgetMillis: ({ profile }) =>
        budgetOf(profiles.get(profile)?.challenge.timeout_ms ?? config.challenge.timeout_ms),
      run: (payload) => within(verdicts.validate(profiles, payload)),
      abandon: verdicts.abandon
    }),
    ...(["signer_issue", "signer_issue_restricted"] as const).map((kind) =>
      handler<typeof kind, Needs, JobFailure>({
        kind,
        budgetMillis: ({ profile }) => signingBudget(profiles.get(profile)),
        run: (payload, job) => within(issuance.issue(profiles, payload, job)),
        abandon: (payload, failure) => issuance.abandon(payload, failure)
      })
    ),
    ...(["signer_relay_issue", "signer_relay_issue_restricted"] as const).map((kind) =>
      handler<typeof kind, Needs, JobFailure>({
        kind,
        reachSeconds: longestRelay,
        budgetMillis: ({ profile }) => relayBudget(profiles.get(profile)),
        run: (payload, job) => within(relaying.relay(profiles, payload, job)),
        abandon: (payload, failure) => relaying.abandon(payload, failure)
      })
    ),
    handler<"signer_revoke", Needs, JobFailure>({
      kind: "signer_revoke",
      reachSeconds: longestRevocationWait,
      budgetMillis: ({ profile }) => signingBudget(profiles.get(profile)),
      run: (payload, job) => within(signerRevocation.revoke(payload, job)),
      abandon: (payload, failure, { id }) => signerRevocation.abandon(payload, failure, id)
    }),
    handler<"orphan_revoke", Needs, JobFailure>({
      kind: "orphan_revoke",
      reachSeconds: longestOrphanWait,
      budgetMillis: ({ profile }) => orphanRequests * signingBudget(profiles.get(profile)),
      run: (payload, job) => within(orphans.revoke(payload, job)),
      abandon: (payload, failure) => orphans.abandon(payload, failure)
    }),
    handler<"key_revoke", Needs, JobFailure>({
      kind: "key_revoke",
      budgetMillis: () => config.jobs.lease_seconds * 1000,
      run: keyRevocation.revokeAll,
      abandon: () => Effect.void // the key stays burnt; the remaining certificates need `order revoke`
    }),
    handler<"notify_deliver", Needs, JobFailure>({
      kind: "notify_deliver",
      budgetMillis: (payload) =>
        (deliveries.timeoutMillis(payload) ?? config.jobs.lease_seconds * 1000) + deliveryMarginMillis,
      run: (payload, job) => within(delivery.deliver(payload, job, terms)),
      abandon: (payload, failure) => delivery.abandon(payload, failure)
    }),
    handler<"local_ca_crl_regenerate", Needs, JobFailure>({
      kind: "local_ca_crl_regenerate",
      reachSeconds: crl.unsignedSeconds,
      budgetMillis: () => signatureBudgetMillis,
      run: (payload, job) => within(crl.signNext(payload, job)),
      abandon: () => Effect.void // the daily sweep and the next revocation enqueue this job again
    }),
    ...expiryHandlers(config),
    authorityHandler(config, yield* Issuers),
    renewalHandler(config, yield* Signers),
    ...campaignHandlers(config, terms.remindsAt),
    yield* chainHandler(config, yield* Issuers),
    chainCheckHandler(config),
    pushHandler(config, yield* AuditReceivers),
    ...sweeps.map((one) => sweep(config.jobs.lease_seconds, wanted, one))
  ]
  return known
})
