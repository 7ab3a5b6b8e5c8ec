import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import { expiryOf } from "../../domain/Order.ts"
import { reasonShown } from "../../domain/RevocationReason.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { AuditRecord } from "../../store/AuditSearch.ts"
import * as auditSearch from "../../store/AuditSearch.ts"
import { jobObject } from "./Objects.ts"
import type { detail } from "./OrderRecords.ts"
import { validityOf } from "./OrderRecords.ts"

/* What has happened to an order, from its creation to its certificate, as far as the database still knows it. */

type Detail = Effect.Success<ReturnType<typeof detail>>

/** Something that has happened to an order, or that will happen by itself. */
export interface TimelineEntry {
  /** What has happened, as a sentence without a full stop. */
  readonly what: string
  readonly outcome: "good" | "bad" | "plain" | "ahead"
  /** The time in RFC 3339. Absent if it is not stored. */
  readonly at?: string
  /** The time of the last of several events that are shown as one. */
  readonly until?: string
  /** The seconds from the order to the last of these events. */
  readonly after?: number
  readonly names: ReadonlyArray<string>
  /** A text that others wrote, or that contains their texts. */
  readonly detail?: string
}

interface Event {
  readonly what: string
  readonly outcome?: TimelineEntry["outcome"]
  readonly times: ReadonlyArray<number>
  readonly names?: ReadonlyArray<string>
  readonly detail?: string | undefined
}

const mostRefused = 10
const mostRows = 50

const nameOf = ({ identifier: { value } }: Detail["challenges"][number]): string => value

/** Returns the events of the challenges. Answers, and proofs of one type, are shown as one event for all names. */
const ofChallenges = ({ challenges, jobs }: Detail): ReadonlyArray<Event> => {
  const jobOf = new Map(jobs.filter(({ kind }) => kind === "challenge_validate").map((job) => [job.dedupKey, job]))
  const answered = challenges.flatMap((one) => {
    const job = one.id === undefined ? undefined : jobOf.get(one.id)
    return job === undefined ? [] : [{ one, job }]
  })
  const proved = Array.groupBy(
    challenges.filter(({ validatedAt }) => validatedAt !== undefined),
    ({ type = "" }) => type
  )
  const refused = challenges.filter(({ error }) => error !== undefined)
  return [
    ...answered.length === 0 ? [] : [{
      what: answered.length === 1 ? "The client answered a challenge" : "The client answered the challenges",
      times: answered.map(({ job }) => job.createdAt),
      names: answered.map(({ one }) => nameOf(one))
    }],
    ...Object.entries(proved).map(([type, ones]): Event => ({
      what: `Validated by ${type}`,
      outcome: "good",
      times: ones.flatMap(({ validatedAt = 0 }) => validatedAt),
      names: ones.map(nameOf)
    })),
    ...refused.slice(0, mostRefused).map((one): Event => {
      const job = one.id === undefined ? undefined : jobOf.get(one.id)
      return {
        what: `The validation by ${one.type} failed`,
        outcome: "bad",
        times: job === undefined ? [] : [job.updatedAt],
        names: [nameOf(one)],
        detail: one.cause === undefined ? one.error?.detail : `${one.cause.reason}: ${one.cause.detail}`
      }
    })
  ]
}

const signs = /^signer_(?:relay_)?issue/

/** Returns the events of the jobs that sign. */
const ofSigning = ({ jobs, order }: Detail): ReadonlyArray<Event> =>
  jobs.filter(({ kind }) => signs.test(kind)).toReversed().flatMap((job): ReadonlyArray<Event> => {
    const { attempts, lastError, maxAttempts } = { lastError: undefined, ...jobObject(job) }
    return [
      { what: "The client sent the signing request", times: [job.createdAt] },
      ...lastError === undefined || job.status === "done" || order.status === "valid" ? [] : [{
        what: `Attempt ${attempts} of ${maxAttempts} to sign failed`,
        outcome: "bad" as const,
        times: [job.updatedAt],
        detail: lastError
      }]
    ]
  })

const by = ({ actorId, actorKind }: AuditRecord): string => {
  switch (actorKind) {
    case "admin":
      return ` by ${actorId ?? "an operator"}`
    case "cli":
      return " at the command line"
    case "system":
      return " by the service"
    case "acme":
      return " by the client"
  }
}

/** Returns the events of the trail. The revocation is in the order's row too, so it is shown if the trail has lost it. */
const ofTrail = ({ order }: Detail, rows: ReadonlyArray<AuditRecord>): ReadonlyArray<Event> => {
  const known = (event: string) => rows.some((row) => row.event === event)
  const reason = order.revocationReason === undefined ? undefined : reasonShown(order.revocationReason)
  return [
    ...order.certificate !== undefined && !known("certificate_issued")
      ? [{ what: "The certificate was issued", outcome: "good" as const, times: [] }]
      : [],
    ...rows.map((row): Event => {
      const cause = row.detail?.["cause"]
      const times = [row.createdAt]
      switch (row.event) {
        case "certificate_issued":
          return { what: "The certificate was issued", outcome: "good", times }
        case "certificate_issue_failed":
          return {
            what: "No certificate was issued",
            outcome: "bad",
            times,
            detail: typeof cause === "string" ? cause : row.reason
          }
        case "certificate_revoked":
          return { what: `The certificate was revoked${by(row)}`, outcome: "bad", times, detail: reason }
        default:
          return { what: `${row.event.replaceAll("_", " ")}${by(row)}`, times }
      }
    }),
    ...order.revokedAt === undefined || known("certificate_revoked")
      ? []
      : [{ what: "The certificate was revoked", outcome: "bad" as const, times: [order.revokedAt], detail: reason }]
  ]
}

const ended = new Set(["valid", "invalid"])

/** Returns what happens by itself: the order or its certificate expires. */
const ahead = (config: Pick<Config, "order" | "profiles">, { order, status }: Detail, now: number) => {
  if (order.certNotAfter !== undefined && order.revokedAt === undefined) {
    return [{
      what: order.certNotAfter > now ? "The certificate expires" : "The certificate expired",
      outcome: order.certNotAfter > now ? "ahead" as const : "bad" as const,
      times: [order.certNotAfter]
    }]
  }
  return ended.has(status)
    ? []
    : [{
      what: "The order expires",
      outcome: "ahead" as const,
      times: [expiryOf(order, validityOf(config, order.profile))]
    }]
}

/** Sorts events by their times. An event whose time is not stored stays behind the event that it followed. */
const sorted = (events: ReadonlyArray<Event>): ReadonlyArray<Event> => {
  let last = 0
  const keyed = events.map((event) => {
    last = event.times.length === 0 ? last : Math.max(...event.times)
    return { event, key: last }
  })
  return keyed.toSorted((one, other) => one.key - other.key).map(({ event }) => event)
}

/** Returns what has happened to an order, the earliest first. */
export const timelineOf = Effect.fn("OrderTimeline.timelineOf")(
  function*(config: Pick<Config, "order" | "profiles">, found: Detail, now: number) {
    const { order } = found
    const rows = yield* auditSearch.search({ orderId: order.id }, { limit: mostRows, offset: 0 })
    const events: ReadonlyArray<Event> = [
      {
        what: "The client placed the order",
        times: [order.createdAt],
        detail: order.createdIp === undefined ? undefined : `from ${order.createdIp}`
      },
      ...ofChallenges(found),
      ...ofSigning(found),
      ...ofTrail(found, rows.toReversed()),
      ...ahead(config, found, now)
    ]
    return sorted(events).map(({ detail, names = [], outcome = "plain", times, what }): TimelineEntry => {
      const [first, last] = [Math.min(...times), Math.max(...times)]
      return {
        what,
        outcome,
        names,
        ...times.length === 0 ? {} : { at: rfc3339(first), after: last - order.createdAt },
        ...times.length === 0 || first === last ? {} : { until: rfc3339(last) },
        ...detail === undefined ? {} : { detail }
      }
    })
  }
)
