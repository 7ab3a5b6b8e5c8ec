import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Semaphore from "effect/Semaphore"
import type { ReceiverName } from "../../domain/ReceiverName.ts"
import { reasonName } from "../../domain/RevocationReason.ts"
import type { JobKind } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { SampledName } from "../../domain/words/Series.ts"
import * as jobRecords from "../../engine/queue/JobRecords.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import type { engineSeries } from "../../engine/telemetry/EngineSeries.ts"
import type { Sample } from "../../engine/telemetry/Metrics.ts"
import { currentMillis, currentSeconds } from "../../engine/Time.ts"
import * as auditSignals from "../../store/AuditSignals.ts"
import * as campaigns from "../../store/campaigns/CampaignRows.ts"
import type { ChainCheck } from "../../store/ChainChecks.ts"
import { find as findCheck } from "../../store/ChainChecks.ts"
import { timeAfter } from "../../store/ChainedRows.ts"
import { head as chainHead } from "../../store/ChainLinks.ts"
import * as jobSearch from "../../store/jobs/JobSearch.ts"
import type { Lag } from "./AuditReceiverRecords.ts"
import { lag } from "./AuditReceiverRecords.ts"
import { brief } from "./BriefReading.ts"
import { countsOf } from "./CampaignRecords.ts"
import { countOpen } from "./ExpiringRecords.ts"
import { make as neededLists } from "./NeededLists.ts"

const keptMillis = 10_000
/**
 * How many milliseconds after the start of a scrape a sample may still begin. A scrape that takes ten seconds is
 * abandoned with all its samples.
 */
const latestMillis = 5000

/**
 * The gauges that only a worker reads from the database. All processes report the other gauges (`CertificateEnds.ts`,
 * `DatabaseUp.ts`).
 */
type CountedName = Exclude<
  SampledName,
  keyof typeof engineSeries | `${string}_not_after_seconds` | "acme_svc_database_up" | "acme_svc_database_read_only"
>

type Sampling = Effect.Effect<ReadonlyArray<Sample>, StorageFailed, Database>

const statuses = ["ready", "running", "failed"] as const

/** Counts the rows of the queue. If a known kind has no rows, 0 is reported for the kind. */
const jobs = (kinds: ReadonlyArray<JobKind>): Sampling =>
  Effect.map(jobRecords.counts, (rows) => {
    const every = new Set<string>([...kinds, ...rows.map(({ kind }) => kind)])
    return [...every].flatMap((kind) =>
      statuses.map((status) => ({
        labels: { kind, status },
        value: rows.find((row) => row.kind === kind && row.status === status)?.count ?? 0
      }))
    )
  })

const oldest = (kinds: ReadonlyArray<JobKind>): Sampling =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const rows = yield* jobRecords.oldest(now)
    const every = new Set<string>([...kinds, ...rows.map(({ kind }) => kind)])
    return [...every].map((kind) => {
      const row = rows.find((one) => one.kind === kind)
      return { labels: { kind }, value: row === undefined ? 0 : now - row.runAt }
    })
  })

const windows = { "1d": 1, "7d": 7, "30d": 30 } as const

const expiring = (profiles: ReadonlyArray<string>): Sampling =>
  Effect.gen(function*() {
    const found: Array<Sample> = []
    for (const profile of profiles) {
      const days = yield* countOpen(profile, Object.values(windows))
      Object.keys(windows).forEach((window, index) =>
        found.push({ labels: { profile, window }, value: days[index] ?? 0 })
      )
    }
    return found
  })

const nextUpdates = (issuers: ReadonlySet<string>): Sampling => {
  const needed = neededLists(issuers)
  return Effect.gen(function*() {
    const now = yield* currentSeconds
    const rows = yield* needed
    return rows.map(({ issuer, nextUpdate }) => ({ labels: { issuer }, value: nextUpdate - now }))
  })
}

const undelivered: Sampling = Effect.gen(function*() {
  const now = yield* currentSeconds
  const since = yield* jobSearch.undelivered
  return [{ labels: {}, value: since === undefined ? 0 : Math.max(0, now - since) }]
})

/** The revocation reasons that alerts use. If nothing was revoked for one of these reasons, 0 is reported for it. */
const watchedReasons = [1, 2]

const hourSeconds = 3600

const revoked = (profiles: ReadonlyArray<string>): Sampling =>
  Effect.gen(function*() {
    const rows = yield* auditSignals.revokedSince((yield* currentSeconds) - hourSeconds)
    const found = new Map<string, Sample>()
    const add = (profile: string, reason: string, value: number) =>
      found.set(`${profile} ${reason}`, { labels: { profile, reason }, value })
    for (const profile of profiles) for (const code of watchedReasons) add(profile, reasonName(code), 0)
    for (const { count, profile, reason } of rows) add(profile ?? "none", reasonName(Number(reason ?? 0)), count)
    return [...found.values()]
  })

const retried = (kinds: ReadonlyArray<JobKind>): Sampling =>
  Effect.map(jobRecords.retried, (rows) => {
    const every = new Set<string>([...kinds, ...rows.map(({ kind }) => kind)])
    return [...every].map((kind) => ({
      labels: { kind },
      value: rows.find((one) => one.kind === kind)?.count ?? 0
    }))
  })

const longest = (kinds: ReadonlyArray<JobKind>): Sampling =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const rows = yield* jobRecords.longest
    const every = new Set<string>([...kinds, ...rows.map(({ kind }) => kind)])
    return [...every].map((kind) => {
      const row = rows.find((one) => one.kind === kind)
      return { labels: { kind }, value: row === undefined ? 0 : Math.max(0, now - row.since) }
    })
  })

/** At most as many campaigns run as may be open at once. */
const campaigned: Sampling = Effect.gen(function*() {
  const found: Array<Sample> = []
  for (const campaign of yield* campaigns.open) {
    if (campaign.state !== "running") continue
    const { asked, id, matched, replaced } = campaign
    const { remaining, silent } = yield* countsOf(campaign)
    const values = { matched, asked, replaced, never_asks: silent, remaining }
    for (const [state, value] of Object.entries(values)) found.push({ labels: { campaign: id, state }, value })
  }
  return found
})

const lastRow: Sampling = Effect.map(
  auditSignals.lastRow,
  (row) => row?.id === undefined ? [] : [{ labels: {}, value: row.id }]
)

const unchained: Sampling = Effect.gen(function*() {
  const now = yield* currentSeconds
  const head = yield* chainHead
  const since = head === undefined ? undefined : yield* timeAfter(head.lastId)
  return [{ labels: {}, value: since === undefined ? 0 : Math.max(0, now - since) }]
})

const chainCheck = (value: (check: ChainCheck, now: number) => number): Sampling =>
  Effect.gen(function*() {
    const [check, now] = [yield* findCheck, yield* currentSeconds]
    return check === undefined ? [] : [{ labels: {}, value: value(check, now) }]
  })

const lagOf = (
  receivers: ReadonlyArray<ReceiverName>,
  value: (behind: Lag) => number
): Sampling =>
  Effect.forEach(
    receivers,
    (receiver) => Effect.map(lag(receiver), (found) => ({ labels: { receiver }, value: value(found) }))
  )

/**
 * Makes the metrics that a worker reads from the database at a scrape. They are counted at most once in ten seconds. If
 * a sample fails, takes longer than two seconds, or would begin after five seconds, it is left out, and that is logged
 * (docs/contribute/decisions/log-and-metrics.md, "Metrics").
 */
export const make = (known: {
  readonly kinds: ReadonlyArray<JobKind>
  readonly profiles: ReadonlyArray<string>
  /** The ids of the CAs of the profiles. */
  readonly issuers: ReadonlySet<string>
  /** Returns whether no worker can sign for a profile. */
  readonly isDegraded: (profile: string) => boolean
  /** The receivers of the audit trail. */
  readonly receivers: ReadonlyArray<ReceiverName>
  /** Whether the configuration has any receivers of notifications. */
  readonly notifies: boolean
}) =>
  Effect.map(Ref.make<{ readonly at: number; readonly samples: Samples } | undefined>(undefined), (kept) => {
    const samplings: { readonly [N in CountedName]: Sampling } = {
      acme_svc_jobs: jobs(known.kinds),
      acme_svc_jobs_retried: retried(known.kinds),
      acme_svc_job_oldest_ready_seconds: oldest(known.kinds),
      acme_svc_job_oldest_running_seconds: longest(known.kinds),
      acme_svc_certificates_revoked_last_hour: revoked(known.profiles),
      acme_svc_audit_last_row: lastRow,
      acme_svc_audit_unchained_seconds: unchained,
      acme_svc_audit_chain_checked_seconds: chainCheck(({ begunAt, endedAt = begunAt }, now) =>
        Math.max(0, now - endedAt)
      ),
      acme_svc_audit_chain_check_faults: chainCheck(({ endedFaults = 0, faults }) => Math.max(endedFaults, faults)),
      acme_svc_audit_push_lag_rows: lagOf(known.receivers, ({ rows }) => rows),
      acme_svc_audit_push_lag_seconds: lagOf(known.receivers, ({ seconds }) => seconds),
      acme_svc_campaign_certificates: campaigned,
      acme_svc_certificates_expiring: expiring(known.profiles),
      acme_svc_crl_next_update_seconds: nextUpdates(known.issuers),
      acme_svc_profile_degraded: Effect.sync(() =>
        known.profiles.map((profile) => ({ labels: { profile }, value: known.isDegraded(profile) ? 1 : 0 }))
      ),
      acme_svc_notify_oldest_undelivered_seconds: known.notifies ? undelivered : Effect.succeed([])
    }
    const sampled = Effect.fnUntraced(function*(series: CountedName, sampling: Sampling) {
      const outcome = yield* Effect.result(brief(sampling))
      if (outcome._tag === "Success") return [[series, outcome.success] as const]
      yield* emit("metrics_sample_failed", { series, error: outcome.failure.message })
      return []
    })
    // Concurrent scrapes get the same samples.
    const turns = Semaphore.makeUnsafe(1)
    return turns.withPermits(1)(Effect.gen(function*() {
      const now = yield* currentMillis
      const last = yield* Ref.get(kept)
      if (last !== undefined && now - last.at < keptMillis && now >= last.at) return last.samples
      const found = new Map<SampledName, ReadonlyArray<Sample>>()
      for (const [series, sampling] of Object.entries(samplings)) {
        const spent = (yield* currentMillis) - now
        if (spent < latestMillis) {
          for (const [name, samples] of yield* sampled(series as CountedName, sampling)) found.set(name, samples)
        } else yield* emit("metrics_sample_failed", { series, error: "those before took too long" })
      }
      yield* Ref.set(kept, { at: yield* currentMillis, samples: found })
      return found
    }))
  })

/** The samples of each gauge. */
export type Samples = ReadonlyMap<SampledName, ReadonlyArray<Sample>>
