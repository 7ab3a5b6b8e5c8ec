import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Loop } from "../Loops.ts"

/** One sample of a gauge: its labels and its value. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Gauges that are sampled at a scrape, by name, with their help text and their labels (docs/metrics.md, "Series"). */
export const sampled = {
  acme_svc_jobs: { help: "Rows of the queue.", labels: ["kind", "status"] },
  acme_svc_jobs_retried: { help: "Waiting rows of the queue that were begun before.", labels: ["kind"] },
  acme_svc_job_oldest_ready_seconds: { help: "Age of the oldest row that is due and has not begun.", labels: ["kind"] },
  acme_svc_job_oldest_running_seconds: {
    help: "How long the oldest attempt that is under way has been running.",
    labels: ["kind"]
  },
  acme_svc_certificates_expiring: {
    help: "Unrevoked certificates without a successor that end within the window.",
    labels: ["profile", "window"]
  },
  acme_svc_notify_oldest_undelivered_seconds: {
    help: "Age of the oldest notification that is not delivered; 0 when every one is.",
    labels: []
  },
  acme_svc_profile_degraded: {
    help: "1 while no worker can sign for the profile, else 0.",
    labels: ["profile"]
  },
  acme_svc_crl_next_update_seconds: {
    help: "Seconds until the stored revocation list is out of date; negative once it is.",
    labels: ["issuer"]
  },
  acme_svc_certificates_revoked_last_hour: {
    help: "Certificates revoked within the last hour.",
    labels: ["profile", "reason"]
  },
  acme_svc_audit_last_row: {
    help: "Number of the newest row of the audit trail. It falls when the database goes back to an older state.",
    labels: []
  },
  acme_svc_database_up: {
    help: "1 if the database answers this process within two seconds, else 0.",
    labels: ["role"]
  },
  acme_svc_authority_not_after_seconds: {
    help: "Seconds until the first certificate in the chain of a CA ends; negative once it has.",
    labels: ["issuer"]
  },
  acme_svc_listener_not_after_seconds: {
    help: "Seconds until the first certificate in the chain of a listener ends; negative once it has.",
    labels: ["listener"]
  }
} as const

/** The name of a gauge that is sampled. */
export type SampledName = keyof typeof sampled

/** The labels of a finished request. All are closed sets: no label has a value that a client chooses. */
export interface RequestLabels {
  /** A mounted profile, or `none`. */
  readonly profile: string
  /** The matched route pattern, or `<unmatched>`. */
  readonly route: string
  readonly status: number
}

/**
 * The kinds of failures that are counted: the server is `away`, the disk is `full`, another process holds the lock
 * (`locked`), the file or the server denies access (`refused`), the file is `damaged`, two transactions were in
 * conflict and run again (`conflict`), the time was up (`late`), and all `other` ones.
 */
export const failureCauses = ["away", "full", "locked", "refused", "damaged", "conflict", "late", "other"] as const
export type FailureCause = (typeof failureCauses)[number]

/**
 * Why a signer gave no certificate: the causes of a job's failure, `script_timeout` for a program that was ended at its
 * timeout, and `upstream_unavailable` for an upstream without an answer or with one that makes no sense.
 */
export const signerCauses = [
  "script_failed",
  "script_timeout",
  "upstream_refused",
  "upstream_unavailable",
  "poll_timeout",
  "lint_failed",
  "chain_rejected",
  "signer_failed"
] as const
export type SignerCause = (typeof signerCauses)[number]

/** How an attempt to sign in ended. `limited`: too many attempts, so nothing was compared. */
export const signInOutcomes = ["signed_in", "password_refused", "second_factor_refused", "limited"] as const
export type SignInOutcome = (typeof signInOutcomes)[number]

/** How a request to an upstream of a relay ended. */
export const upstreamResults = ["ok", "refused", "bad_nonce", "limited", "failed", "unanswered", "unreachable"] as const
export type UpstreamResult = (typeof upstreamResults)[number]

/** The labels of a request to an upstream. `operation` is one of the client's own words. */
export interface UpstreamLabels {
  readonly profile: string
  readonly operation: string
  readonly result: UpstreamResult
}

/** The counters of a process. They outlive a reload and end with the process. */
export class Metrics extends Context.Service<Metrics, {
  /** `seconds` from the parsed head to the answer handed to the socket. */
  readonly requestFinished: (labels: RequestLabels, seconds: number) => void
  /** `seconds` from the accepted finalize to the stored certificate. */
  readonly issued: (profile: string, seconds: number) => void
  /** `reason` is a problem type, as in the audit trail. */
  readonly issueFailed: (profile: string, reason: string) => void
  /** An attempt to have a certificate signed that ended without one; `cause` is a word of {@link signerCauses}. */
  readonly signingFailed: (profile: string, cause: SignerCause) => void
  /** A certificate whose order ended without it: that it was found, or what became of it. */
  readonly orphaned: (profile: string, state: "found" | "revoked" | "kept" | "stored" | "expired") => void
  /** One attempt of an operator to sign in, or one step of it. */
  readonly signIn: (outcome: SignInOutcome) => void
  /** A statement that has failed, or a transaction. */
  readonly databaseFailed: (cause: FailureCause) => void
  /** `limit` is a key of `[limits]`. */
  readonly rateLimited: (profile: string, limit: string) => void
  /** `seconds` from the request to an upstream to its answer, or until there was none. */
  readonly upstreamAsked: (labels: UpstreamLabels, seconds: number) => void
  /** One attempt to deliver a notification, by its backend. */
  readonly delivered: (profile: string, backend: string, outcome: "delivered" | "retried" | "failed") => void
  /** One digest of certificates that expire soon: queued, skipped because there was nothing in it, or failed. */
  readonly digested: (profile: string, outcome: "queued" | "skipped" | "failed") => void
  /** Mails to contacts: queued, left for another day because an address had enough, or dropped before they were sent. */
  readonly reminded: (profile: string, outcome: "queued" | "limited" | "dropped", by?: number) => void
  /** Starts the counters of a profile that tells of expiring certificates at 0. */
  readonly expiring: (profile: string) => void
  /** Starts the counters of a backend of notifications, in one section, at 0. */
  readonly notifying: (profile: string, backend: string) => void
  /** A row that a statement has found and that cannot be read. */
  readonly rowUnreadable: () => void
  /** Background work that died of a defect and runs again. */
  readonly loopRestarted: (loop: Loop) => void
  /** Starts the counters of a profile and of its limits at 0, so that a rate sees the first increment. */
  readonly mounted: (profile: string, limits: ReadonlyArray<string>) => void
  /** The text of a scrape, with these samples. A gauge without samples is left out. */
  readonly render: (
    pool: { readonly idle: number; readonly busy: number },
    samples: ReadonlyMap<SampledName, ReadonlyArray<Sample>>,
    /** How many writes of the log were lost. */
    lost?: number
  ) => Effect.Effect<string>
}>()("acme/engine/telemetry/Metrics") {}

type Tell = (metrics: Metrics["Service"]) => void

/** Like {@link count}, but runs at once, for code that has its fiber and does more in the same step. */
export const countIn = (fiber: Fiber.Fiber<unknown, unknown>, tell: Tell): void => {
  const metrics = Context.getOrUndefined(fiber.context, Metrics)
  if (metrics !== undefined) tell(metrics)
}

/**
 * Updates the metrics of the process, if it has any. Like a log record, a count adds no requirement to the effect that
 * makes it.
 */
export const count = (tell: Tell): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    countIn(fiber, tell)
    return Effect.void
  })
