import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type { OpenMetricsContentType } from "prom-client"
import { Counter, Gauge, Histogram, Registry } from "prom-client"

/** One sample of a gauge: its labels and its value. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const issueBuckets = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]

/** Gauges that are sampled at a scrape, by name, with their help text and their labels (docs/metrics.md, "Series"). */
export const sampled = {
  acme_svc_jobs: { help: "Rows of the queue.", labels: ["kind", "status"] },
  acme_svc_job_oldest_ready_seconds: { help: "Age of the oldest row that is due and has not begun.", labels: ["kind"] },
  acme_svc_certificates_expiring: {
    help: "Unrevoked certificates without a successor that end within the window.",
    labels: ["profile", "window"]
  },
  acme_svc_notify_oldest_undelivered_seconds: {
    help: "Age of the oldest notification that is not delivered; 0 when every one is.",
    labels: []
  },
  acme_svc_crl_next_update_seconds: {
    help: "Seconds until the stored revocation list is out of date; negative once it is.",
    labels: ["issuer"]
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

/** The counters of a process. They outlive a reload and end with the process. */
export class Metrics extends Context.Tag("acme/kernel/telemetry/Metrics")<Metrics, {
  /** `seconds` from the parsed head to the answer handed to the socket. */
  readonly requestFinished: (labels: RequestLabels, seconds: number) => void
  /** `seconds` from the accepted finalize to the stored certificate. */
  readonly issued: (profile: string, seconds: number) => void
  /** `reason` is a problem type, as in the audit trail. */
  readonly issueFailed: (profile: string, reason: string) => void
  /** `limit` is a key of `[limits]`. */
  readonly rateLimited: (profile: string, limit: string) => void
  /** One attempt to tell a receiver, by the backend that told it. */
  readonly delivered: (backend: string, outcome: "delivered" | "retried" | "failed") => void
  /** One digest of certificates that expire soon: told, or without anything to tell. */
  readonly digested: (profile: string, outcome: "queued" | "skipped" | "failed") => void
  /** Mails to contacts: queued, left for another day because an address had enough, or dropped before they were sent. */
  readonly reminded: (profile: string, outcome: "queued" | "limited" | "dropped", by?: number) => void
  /** Starts the counters of a profile that tells of expiring certificates at 0. */
  readonly expiring: (profile: string) => void
  /** Starts the counters of a backend of notifications at 0. */
  readonly notifying: (backend: string) => void
  /** Starts the counters of a profile and of its limits at 0, so that a rate sees the first increment. */
  readonly mounted: (profile: string, limits: ReadonlyArray<string>) => void
  /** The text of a scrape, with these samples. A gauge without samples is left out. */
  readonly render: (
    pool: { readonly idle: number; readonly busy: number },
    samples: ReadonlyMap<SampledName, ReadonlyArray<Sample>>
  ) => Effect.Effect<string>
}>() {
  /** `roles` is the value of the label `role` of every series. */
  static readonly layer = (roles: string): Layer.Layer<Metrics> => Layer.sync(this, () => make(roles))
}

type Tell = (metrics: Metrics["Type"]) => void

/** The same as {@link count}, at once, for code that has a fiber at hand and more to do in the same step. */
export const countIn = (fiber: Fiber.RuntimeFiber<unknown, unknown>, tell: Tell): void => {
  const metrics = fiber.currentContext.unsafeMap.get(Metrics.key) as Metrics["Type"] | undefined
  if (metrics !== undefined) tell(metrics)
}

/**
 * Updates the metrics of the process, if it has any. Like a log record, a count adds no requirement to the effect that
 * makes it.
 */
export const count = (tell: Tell): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    countIn(fiber, tell)
    return Effect.void
  })

const make = (role: string): Metrics["Type"] => {
  const registry = new Registry<OpenMetricsContentType>()
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  const registers = [registry]
  const requests = new Counter({
    name: "acme_svc_requests_total",
    help: "Requests answered.",
    labelNames: ["role", "profile", "route", "status"],
    registers
  })
  const durations = new Histogram({
    name: "acme_svc_request_duration_seconds",
    help: "From the parsed request head to the answer handed to the socket.",
    labelNames: ["role", "profile", "route"],
    buckets: requestBuckets,
    registers
  })
  const issues = new Counter({
    name: "acme_svc_certificates_issued_total",
    help: "Certificates issued.",
    labelNames: ["role", "profile"],
    registers
  })
  const failures = new Counter({
    name: "acme_svc_certificate_issue_failures_total",
    help: "Issuances refused or failed.",
    labelNames: ["role", "profile", "reason"],
    registers
  })
  const limited = new Counter({
    name: "acme_svc_rate_limited_total",
    help: "Requests refused for a limit of the configuration.",
    labelNames: ["role", "profile", "limit"],
    registers
  })
  const deliveries = new Counter({
    name: "acme_svc_notify_deliveries_total",
    help: "Attempts to deliver a notification.",
    labelNames: ["role", "backend", "outcome"],
    registers
  })
  const digests = new Counter({
    name: "acme_svc_notify_expiry_digests_total",
    help: "Digests of certificates that expire soon.",
    labelNames: ["role", "profile", "outcome"],
    registers
  })
  const reminders = new Counter({
    name: "acme_svc_notify_expiry_reminders_total",
    help: "Mails to contacts about certificates that expire soon.",
    labelNames: ["role", "profile", "outcome"],
    registers
  })
  const issueDurations = new Histogram({
    name: "acme_svc_certificate_issue_duration_seconds",
    help: "From the accepted finalize to the stored certificate, in whole seconds.",
    labelNames: ["role", "profile"],
    buckets: issueBuckets,
    registers
  })
  const connections = new Gauge({
    name: "acme_svc_database_pool_connections",
    help: "Connections of the process to its database.",
    labelNames: ["role", "state"],
    registers
  })
  const gauges = Object.entries(sampled).map(([name, { help, labels }]) =>
    [name as SampledName, new Gauge({ name, help, labelNames: [...labels], registers: [] })] as const
  )
  return {
    requestFinished: ({ profile, route, status }, seconds) => {
      requests.inc({ role, profile, route, status })
      durations.observe({ role, profile, route }, seconds)
    },
    issued: (profile, seconds) => {
      issues.inc({ role, profile })
      issueDurations.observe({ role, profile }, seconds)
    },
    issueFailed: (profile, reason) => failures.inc({ role, profile, reason }),
    rateLimited: (profile, limit) => limited.inc({ role, profile, limit }),
    delivered: (backend, outcome) => deliveries.inc({ role, backend, outcome }),
    digested: (profile, outcome) => digests.inc({ role, profile, outcome }),
    reminded: (profile, outcome, by = 1) => reminders.inc({ role, profile, outcome }, by),
    expiring: (profile) => {
      for (const outcome of ["queued", "skipped", "failed"]) digests.inc({ role, profile, outcome }, 0)
      for (const outcome of ["queued", "limited", "dropped"]) reminders.inc({ role, profile, outcome }, 0)
    },
    notifying: (backend) => {
      for (const outcome of ["delivered", "retried", "failed"]) deliveries.inc({ role, backend, outcome }, 0)
    },
    mounted: (profile, limits) => {
      issues.inc({ role, profile }, 0)
      for (const limit of limits) limited.inc({ role, profile, limit }, 0)
      for (const reason of ["badCSR", "serverInternal"]) failures.inc({ role, profile, reason }, 0)
    },
    render: ({ busy, idle }, samples) =>
      Effect.promise(() => {
        connections.set({ role, state: "idle" }, idle)
        connections.set({ role, state: "busy" }, busy)
        for (const [name, gauge] of gauges) {
          const found = samples.get(name)
          registry.removeSingleMetric(name)
          if (found === undefined) continue
          gauge.reset()
          for (const { labels, value } of found) gauge.set(labels, value)
          registry.registerMetric(gauge)
        }
        return registry.metrics()
      })
  }
}
