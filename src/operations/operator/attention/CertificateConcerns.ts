import * as Effect from "effect/Effect"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import * as campaigns from "../../../store/campaigns/CampaignRows.ts"
import * as orphans from "../../../store/orders/OrphanedCertificateRows.ts"
import * as unfinished from "../../../store/orders/UnfinishedOrders.ts"
import * as expiring from "../ExpiringRecords.ts"
import type { Concern } from "./Concern.ts"
import { concern, counted } from "./Concern.ts"

/* What certificates, and the clients that order them, need attention for. */

const hourSeconds = 3600
const soonDays = 7
/**
 * The highest number of certificates that are checked. Each check needs a few look-ups, and there may be very many
 * certificates.
 */
const mostSoon = 10_000
/** An account loops if it places this number of orders within an hour and gets no certificate for them: one a minute. */
const loopsFrom = 60
const mostOrders = 20_000
const mostAccounts = 10

const renewals = Effect.map(
  expiring.countLate(soonDays, mostSoon),
  ({ count, isCut }) =>
    count === 0 ? [] : [concern("renewals_missing", {
      title: `${isCut ? "At least " : ""}${
        counted(count, "certificate expires", "certificates expire")
      } within ${soonDays} days, and no client has renewed ${count === 1 ? "it" : "them"}`,
      effect: "Services that use them fail when they expire.",
      count,
      way: {
        label: "Show the certificates",
        path: `/ui/expiring?days=${soonDays}&superseded=hide`,
        command: `order expiring --within ${soonDays} --hide-superseded`
      }
    })]
)

const loops = Effect.gen(function*() {
  const since = (yield* currentSeconds) - hourSeconds
  const accounts = yield* unfinished.top({ since, least: loopsFrom, most: mostOrders, limit: mostAccounts })
  return accounts.map(({ accountId, count }) =>
    concern("client_loops", {
      title: `An account placed ${count} orders within the hour and got no certificate for them`,
      effect: "It may use up limits that other clients share, and its own certificates are not renewed.",
      count,
      since,
      way: {
        label: "Show the account",
        path: `/ui/accounts/${accountId}`,
        command: `order list --account-id ${accountId} --since ${rfc3339(since)}`
      }
    })
  )
})

const kept = Effect.map(
  orphans.countMatches({ status: "kept" }),
  (count) =>
    count === 0 ? [] : [concern("certificates_orphaned", {
      title: `${counted(count, "certificate")} without an order could not be revoked`,
      effect: "They are valid, and nobody has asked for them. Revoke them where they were issued.",
      count,
      way: {
        label: "Show the audit trail",
        path: "/ui/audit?event=certificate_orphan_kept",
        command: "order orphaned --status kept"
      }
    })]
)

const unconfirmed = Effect.gen(function*() {
  const now = yield* currentSeconds
  return (yield* campaigns.open).filter(({ confirmedAt, revokeAt }) =>
    revokeAt !== undefined && revokeAt <= now && confirmedAt === undefined
  ).map(({ id, revokeAt }) =>
    concern("campaign_unconfirmed", {
      title: "The day has come on which a campaign should revoke what is left, and nobody has confirmed it",
      effect: "The certificates that are left stay valid.",
      since: revokeAt,
      way: { label: "Show the campaign", path: `/ui/campaigns/${id}`, command: `campaign show ${id}` }
    })
  )
})

/** Returns the concerns about certificates that are not renewed, wanted or revoked. */
export const certificateConcerns = Effect.map(
  Effect.all([kept, unconfirmed]),
  (all): ReadonlyArray<Concern> => all.flat()
)

/** Returns the concerns about certificates that no client renews. */
export const renewalConcerns = renewals

/** Returns the concerns about clients. */
export const clientConcerns = loops
