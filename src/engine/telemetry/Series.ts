import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { OpenMetricsContentType } from "prom-client"
import { Counter, Gauge, Histogram, Registry } from "prom-client"
import { loops } from "../Loops.ts"
import type { SampledName } from "./Metrics.ts"
import { failureCauses, Metrics, sampled, signerCauses, signInOutcomes } from "./Metrics.ts"

/* The metrics of a process that serves. A command counts nothing and does not load the library of metrics. */

const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const upstreamBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const issueBuckets = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]

/** The counters of a process; `roles` is the value of the label `role` of every series. */
export const layer = (roles: string): Layer.Layer<Metrics> => Layer.sync(Metrics, () => make(roles))

const make = (role: string): Metrics["Service"] => {
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
  const unsigned = new Counter({
    name: "acme_svc_signer_failures_total",
    help: "Attempts to have a certificate signed that ended without one.",
    labelNames: ["role", "profile", "cause"],
    registers
  })
  const signIns = new Counter({
    name: "acme_svc_sign_ins_total",
    help: "Attempts of operators to sign in.",
    labelNames: ["role", "outcome"],
    registers
  })
  const databaseFailures = new Counter({
    name: "acme_svc_database_failures_total",
    help: "Statements and transactions that failed.",
    labelNames: ["role", "cause"],
    registers
  })
  const limited = new Counter({
    name: "acme_svc_rate_limited_total",
    help: "Requests refused for a limit of the configuration.",
    labelNames: ["role", "profile", "limit"],
    registers
  })
  const orphans = new Counter({
    name: "acme_svc_orphaned_certificates_total",
    help: "Certificates whose orders ended without them: found, and what became of them.",
    labelNames: ["role", "profile", "state"],
    registers
  })
  const upstreamRequests = new Counter({
    name: "acme_svc_upstream_requests_total",
    help: "Requests to the upstreams of relays.",
    labelNames: ["role", "profile", "operation", "result"],
    registers
  })
  const upstreamDurations = new Histogram({
    name: "acme_svc_upstream_request_duration_seconds",
    help: "From a request to an upstream to its answer, or until there was none.",
    labelNames: ["role", "profile", "operation"],
    buckets: upstreamBuckets,
    registers
  })
  const deliveries = new Counter({
    name: "acme_svc_notify_deliveries_total",
    help: "Attempts to deliver a notification.",
    labelNames: ["role", "profile", "backend", "outcome"],
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
  const restarts = new Counter({
    name: "acme_svc_loop_restarts_total",
    help: "Work in the background that a defect has ended and that ran again.",
    labelNames: ["role", "loop"],
    registers
  })
  const unreadable = new Counter({
    name: "acme_svc_database_rows_unreadable_total",
    help: "Rows of the database that could not be read, once a minute each.",
    labelNames: ["role"],
    registers
  })
  const lostWrites = new Counter({
    name: "acme_svc_log_writes_failed_total",
    help: "Writes of the log that its stream did not take.",
    labelNames: ["role"],
    registers
  })
  unreadable.inc({ role }, 0)
  for (const cause of failureCauses) databaseFailures.inc({ role, cause }, 0)
  if (role.includes("admin")) { for (const outcome of signInOutcomes) signIns.inc({ role, outcome }, 0) }
  for (const loop of Object.keys(loops)) restarts.inc({ role, loop }, 0)
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
    signingFailed: (profile, cause) => unsigned.inc({ role, profile, cause }),
    orphaned: (profile, state) => orphans.inc({ role, profile, state }),
    signIn: (outcome) => signIns.inc({ role, outcome }),
    databaseFailed: (cause) => databaseFailures.inc({ role, cause }),
    rateLimited: (profile, limit) => limited.inc({ role, profile, limit }),
    upstreamAsked: ({ operation, profile, result }, seconds) => {
      upstreamRequests.inc({ role, profile, operation, result })
      upstreamDurations.observe({ role, profile, operation }, seconds)
    },
    delivered: (profile, backend, outcome) => deliveries.inc({ role, profile, backend, outcome }),
    digested: (profile, outcome) => digests.inc({ role, profile, outcome }),
    reminded: (profile, outcome, by = 1) => reminders.inc({ role, profile, outcome }, by),
    expiring: (profile) => {
      for (const outcome of ["queued", "skipped", "failed"]) digests.inc({ role, profile, outcome }, 0)
      for (const outcome of ["queued", "limited", "dropped"]) reminders.inc({ role, profile, outcome }, 0)
    },
    notifying: (profile, backend) => {
      for (const outcome of ["delivered", "retried", "failed"]) deliveries.inc({ role, profile, backend, outcome }, 0)
    },
    rowUnreadable: () => unreadable.inc({ role }),
    loopRestarted: (loop) => restarts.inc({ role, loop }),
    mounted: (profile, limits) => {
      issues.inc({ role, profile }, 0)
      for (const limit of limits) limited.inc({ role, profile, limit }, 0)
      if (role.includes("worker")) {
        for (const cause of signerCauses) unsigned.inc({ role, profile, cause }, 0)
        for (const state of ["found", "revoked", "kept"]) orphans.inc({ role, profile, state }, 0)
      }
      for (const reason of ["badCSR", "serverInternal"]) failures.inc({ role, profile, reason }, 0)
    },
    render: ({ busy, idle }, samples, lost = 0) =>
      Effect.promise(() => {
        lostWrites.reset()
        lostWrites.inc({ role }, lost)
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
