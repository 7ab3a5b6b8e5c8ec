import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as Semaphore from "effect/Semaphore"
import type { JobKind } from "../kernel/queue/Job.ts"
import * as queueState from "../kernel/queue/QueueState.ts"
import type { Database, StorageFailed } from "../kernel/sql/Database.ts"
import { aside } from "../kernel/sql/Database.ts"
import { emit } from "../kernel/telemetry/EventLog.ts"
import type { Sample, SampledName } from "../kernel/telemetry/Metrics.ts"
import { currentMillis, currentSeconds } from "../kernel/Time.ts"
import * as crls from "../store/revocation/Crls.ts"
import { countOpen } from "./order/Expiring.ts"

const keptMillis = 10_000
const patienceMillis = 2000
/** No sample begins later than this: a scrape is given up after ten seconds, with all that it has. */
const latestMillis = 5000

/** The gauges that the database is asked for. The others tell of certificates (`CertificateEnds.ts`). */
type CountedName = Exclude<SampledName, `${string}_not_after_seconds`>

type Sampling = Effect.Effect<ReadonlyArray<Sample>, StorageFailed, Database>

const statuses = ["ready", "running", "failed"] as const

/** Counts the rows of the queue. A kind that this process knows and that has no rows is reported as 0. */
const jobs = (kinds: ReadonlyArray<JobKind>): Sampling =>
  Effect.map(queueState.counts, (rows) => {
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
    const rows = yield* queueState.oldest(now)
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

const nextUpdates: Sampling = Effect.gen(function*() {
  const now = yield* currentSeconds
  const rows = yield* crls.heads
  return rows.map(({ issuer, nextUpdate }) => ({ labels: { issuer }, value: nextUpdate - now }))
})

const undelivered: Sampling = Effect.gen(function*() {
  const now = yield* currentSeconds
  const since = yield* queueState.undelivered
  return [{ labels: {}, value: since === undefined ? 0 : Math.max(0, now - since) }]
})

/** When it is interrupted, nobody waits for its end: an engine that does not answer cannot be interrupted. */
const abandonable = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkDetach(restore(self), { startImmediately: true }),
      (fiber) => Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )

/**
 * The database metrics a worker reports at a scrape, counted at most once in ten seconds. A sample that fails or takes
 * longer than two seconds is left out, and so are those after five, and logged (docs/decisions/log-and-metrics.md, "Metrics").
 */
export const make = (known: {
  readonly kinds: ReadonlyArray<JobKind>
  readonly profiles: ReadonlyArray<string>
  /** Whether nobody can sign for a profile. */
  readonly isDegraded: (profile: string) => boolean
  /** Whether the configuration notifies anybody. */
  readonly notifies: boolean
}) =>
  Effect.map(Ref.make<{ readonly at: number; readonly samples: Samples } | undefined>(undefined), (kept) => {
    const samplings: { readonly [N in CountedName]: Sampling } = {
      acme_svc_jobs: jobs(known.kinds),
      acme_svc_job_oldest_ready_seconds: oldest(known.kinds),
      acme_svc_certificates_expiring: expiring(known.profiles),
      acme_svc_crl_next_update_seconds: nextUpdates,
      acme_svc_profile_degraded: Effect.sync(() =>
        known.profiles.map((profile) => ({ labels: { profile }, value: known.isDegraded(profile) ? 1 : 0 }))
      ),
      acme_svc_notify_oldest_undelivered_seconds: known.notifies ? undelivered : Effect.succeed([])
    }
    const sampled = Effect.fnUntraced(function*(series: CountedName, sampling: Sampling) {
      // The engine ends the reading itself. A sample that waits for a connection, or for an engine that does not end
      // it, is abandoned.
      const outcome = yield* Effect.result(Effect.timeoutOrElse(abandonable(aside(sampling, patienceMillis)), {
        duration: patienceMillis,
        orElse: () => Effect.fail({ message: "took longer than two seconds" })
      }))
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
