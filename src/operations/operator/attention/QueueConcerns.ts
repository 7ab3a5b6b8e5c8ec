import * as Effect from "effect/Effect"
import { readFailure, shown } from "../../../domain/JobFailure.ts"
import type { AttentionCause } from "../../../domain/words/AttentionCause.ts"
import * as jobRecords from "../../../engine/queue/JobRecords.ts"
import * as troubled from "../../../engine/queue/TroubledJobs.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import * as jobSearch from "../../../store/jobs/JobSearch.ts"
import { sweepsOf } from "../../work/Rounds.ts"
import type { Concern } from "./Concern.ts"
import { concern, counted } from "./Concern.ts"

/* What the queue needs attention for. */

/** For how many seconds a job may have been tried before a failure counts. Most failures are over by then. */
const patienceSeconds = 60
/** For how many seconds the oldest job of a kind may be overdue before it is a warning, and before it is an alarm. */
const late = { warning: 60, alarm: 600 }
/** For how many seconds an attempt may run. */
const longSeconds = 900
/** For how many seconds a notification may be undelivered. */
const undeliveredSeconds = 3600
const mostGroups = 500
/** The highest number of concerns about failures of one sort. The rest are counted in the last of them. */
const mostShown = 10

/** The failures of one sort, with the newest text. */
interface Group {
  readonly kind: string
  readonly cause: AttentionCause
  count: number
  since: number
  readonly error: string
}

/** Kinds whose failures clients cause: they answer a challenge wrongly, or not at all. */
const ofClients = new Set(["challenge_validate"])

const signs = /^signer_(?:relay_)?issue/

/** Returns what a failure of a job means for operators. */
const causeOf = (kind: string, lastError: string): AttentionCause => {
  const failure = readFailure(lastError)
  if (failure?._tag !== "SignerFailed" || !signs.test(kind)) return "jobs_retried"
  if (failure.cause === "script_failed") return "script_fails"
  return kind.startsWith("signer_relay_") && (failure.cause === "signer_failed" || failure.cause === "poll_timeout")
    ? "upstream_away"
    : "jobs_retried"
}

/** Returns the part of a failure that is the same for all jobs that fail for the same reason. */
const sortOf = (lastError: string): string => {
  const failure = readFailure(lastError)
  if (failure === undefined) return lastError
  return failure._tag === "SignerFailed" ? `${failure._tag} ${failure.cause}` : failure._tag
}

const grouped = (
  rows: ReadonlyArray<
    { readonly kind: string; readonly lastError: string | undefined } & Pick<Group, "count" | "since">
  >,
  given?: AttentionCause
): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const { count, kind, lastError = "", since } of rows) {
    if (ofClients.has(kind) && readFailure(lastError)?._tag !== "ValidationPostponed") continue
    const key = `${kind} ${sortOf(lastError)}`
    const known = groups.get(key)
    if (known === undefined) {
      groups.set(key, { kind, cause: given ?? causeOf(kind, lastError), count, since, error: shown(lastError) })
    } else {
      known.count += count
      known.since = Math.min(known.since, since)
    }
  }
  return [...groups.values()].toSorted((one, other) => other.count - one.count)
}

const jobsAt = (status: string, kind?: string) => ({
  path: `/ui/jobs?status=${status}${kind === undefined ? "" : `&kind=${encodeURIComponent(kind)}`}`,
  command: `jobs list --status ${status}${kind === undefined ? "" : ` --kind ${kind}`}`
})

const effects: { readonly [C in AttentionCause]?: string } = {
  upstream_away: "Orders at the upstream stay processing until it answers, or until they expire.",
  script_fails: "Orders that the script should sign stay processing until it succeeds, or until they expire."
}

const titles: { readonly [C in AttentionCause]?: (group: Group) => string } = {
  upstream_away: ({ count }) => `An upstream CA gives no certificate for ${counted(count, "order")}`,
  script_fails: ({ count }) => `A script of yours gives no certificate for ${counted(count, "order")}`
}

const retried = Effect.gen(function*() {
  const before = (yield* currentSeconds) - patienceSeconds
  return grouped(yield* troubled.waiting({ before, limit: mostGroups })).slice(0, mostShown).map((group) =>
    concern(group.cause, {
      title: titles[group.cause]?.(group) ??
        `${counted(group.count, "job")} of the kind ${group.kind} ${
          group.count === 1 ? "fails" : "fail"
        } and will be tried again`,
      effect: effects[group.cause] ?? "What these jobs should do is delayed.",
      count: group.count,
      since: group.since,
      error: group.error,
      way: { label: "Show the jobs", ...jobsAt("ready", group.kind) }
    })
  )
})

const failed = Effect.map(
  troubled.failed(mostGroups),
  (rows) =>
    grouped(rows, "jobs_failed").slice(0, mostShown).map((group) =>
      concern("jobs_failed", {
        title: `${counted(group.count, "job")} of the kind ${group.kind} failed for good`,
        effect: "What these jobs should have done was not done. Run them again, or cancel them.",
        count: group.count,
        since: group.since,
        error: group.error,
        way: { label: "Show the jobs", ...jobsAt("failed", group.kind) }
      })
    )
)

const stalled = Effect.gen(function*() {
  const now = yield* currentSeconds
  return (yield* jobRecords.oldest(now)).filter(({ runAt }) => now - runAt > late.warning).map(({ kind, runAt }) =>
    concern("queue_stalled", {
      severity: now - runAt > late.alarm ? "alarm" : "warning",
      title: `No worker takes jobs of the kind ${kind}`,
      effect: "What these jobs should do is delayed.",
      since: runAt,
      way: { label: "Show the jobs", ...jobsAt("ready", kind) }
    })
  )
})

const runsLong = Effect.gen(function*() {
  const now = yield* currentSeconds
  return (yield* jobRecords.longest).filter(({ since }) => now - since > longSeconds).map(({ kind, since }) =>
    concern("job_runs_long", {
      title: `An attempt of a job of the kind ${kind} does not end`,
      effect: "It takes a slot that other jobs of this kind need.",
      since,
      way: { label: "Show the jobs", ...jobsAt("running", kind) }
    })
  )
})

/**
 * Returns the sweeps that have no waiting or running row, because an operator cancelled them. The next start of a worker
 * brings them back.
 */
const stopped = (config: Config) =>
  Effect.map(jobRecords.counts, (rows) => {
    const live = new Set(rows.filter(({ status }) => status !== "failed").map(({ kind }) => kind))
    const absent = [...sweepsOf(config)].filter((kind) => !live.has(kind))
    if (absent.length === 0) return []
    return [concern("sweep_stopped", {
      title: absent.length === 1
        ? `The sweep ${absent.join()} is stopped`
        : `${absent.length} sweeps are stopped: ${absent.join(", ")}`,
      effect: "An operator cancelled them. The next start of a worker brings them back.",
      count: absent.length,
      way: { label: "Show the jobs", ...jobsAt("cancelled") }
    })]
  })

const undelivered = Effect.gen(function*() {
  const [since, now] = [yield* jobSearch.undelivered, yield* currentSeconds]
  if (since === undefined || now - since <= undeliveredSeconds) return []
  return [concern("notifications_stuck", {
    title: "Notifications are not delivered",
    effect: "Their receivers do not learn what has happened.",
    since,
    way: { label: "Show the notifications", path: "/ui/notifications", command: "jobs list --kind notify_deliver" }
  })]
})

/** Returns the concerns about jobs whose last attempt failed. Their number may be large, so this may take long. */
export const failureConcerns = Effect.map(Effect.all([retried, failed]), (all): ReadonlyArray<Concern> => all.flat())

/** Returns the concerns about jobs that are not taken, not ended or not there. */
export const queueConcerns = (config: Config) =>
  Effect.map(
    Effect.all([stalled, runsLong, stopped(config), undelivered]),
    (all): ReadonlyArray<Concern> => all.flat()
  )
