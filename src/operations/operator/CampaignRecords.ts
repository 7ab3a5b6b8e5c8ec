import * as Effect from "effect/Effect"
import { Entropy } from "../../crypto/Entropy.ts"
import type { AuditEvent } from "../../domain/Audit.ts"
import type { CampaignFilter } from "../../domain/Campaign.ts"
import { silentBefore } from "../../domain/Campaign.ts"
import type { OrderId } from "../../domain/Id.ts"
import { CampaignId, isId } from "../../domain/Id.ts"
import { BadRequest, CampaignStateRefused, NoSuch, TooManyCampaigns } from "../../domain/OperatorError.ts"
import { enqueueJob } from "../../domain/words/JobKind.ts"
import type { EventName } from "../../domain/words/Log.ts"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { kept } from "../../engine/sql/KeptCounts.ts"
import { currentSeconds, lifeMillis, rfc3339 } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as accounts from "../../store/AccountSearch.ts"
import * as audit from "../../store/AuditRows.ts"
import * as certificates from "../../store/campaigns/CampaignCertificateRows.ts"
import type { Campaign } from "../../store/campaigns/CampaignRows.ts"
import * as campaigns from "../../store/campaigns/CampaignRows.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf } from "../Operator.ts"
import { matchesOf } from "../work/campaigns/CampaignFilling.ts"
import * as eab from "./Eab.ts"
import { checkFuture } from "./FutureTime.ts"
import { readForOperator } from "./OperatorReads.ts"
import { checkKind } from "./OrderRecords.ts"

/* What operators do with campaigns (docs/contribute/decisions/campaigns.md). */

/** What an operator says about a new campaign. Times are epoch seconds. */
export interface NewCampaign {
  readonly filter: CampaignFilter
  readonly reason: string
  readonly explanationUrl: string | undefined
  /** Certificates an hour. */
  readonly pace: number | undefined
  readonly revokeAt: number | undefined
  readonly revokeReason: number | undefined
}

/** Refuses a filter that names an account, a credential, a kind or a profile that does not exist. */
const checkFilter = Effect.fnUntraced(function*(
  config: Pick<Config, "profiles">,
  { accountId, kid, kind, profile }: CampaignFilter
) {
  if (accountId !== undefined && (yield* accounts.findRecord(accountId)) === undefined) {
    return yield* new NoSuch({ noun: "account", id: accountId })
  }
  if (kid !== undefined) yield* eab.find(kid)
  yield* checkKind(config, kind)
  if (profile === undefined || config.profiles.some(({ name }) => name === profile)) return
  const known = yield* orders.profiles
  if (!known.some((one) => one.profile === profile)) return yield* new NoSuch({ noun: "profile", id: profile })
})

/** Returns a filter without the members that match everything. */
const stated = (filter: CampaignFilter): CampaignFilter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))

const auditedFilter = ({ accountId, issuedBefore, serials, ...filter }: CampaignFilter) =>
  Object.fromEntries(
    Object.entries({
      ...filter,
      account_id: accountId,
      issued_before: issuedBefore === undefined ? undefined : rfc3339(issuedBefore),
      serials: serials?.length
    }).filter((entry): entry is [string, string | number] => entry[1] !== undefined)
  )

/** Finds a campaign. Fails if there is no such campaign. */
const find = Effect.fnUntraced(function*(id: string) {
  const campaign = isId(id) ? yield* campaigns.findShown(CampaignId(id)) : undefined
  return campaign ?? (yield* new NoSuch({ noun: "campaign", id }))
})

/** Returns how many certificates are left, and for how many of them no client asks. */
export const countsOf = Effect.fnUntraced(function*(campaign: Campaign) {
  const { expired, id, matched, replaced, revoked, state } = campaign
  if (state === "ended") return { remaining: Math.max(0, matched - replaced - revoked - expired), silent: 0 }
  const before = silentBefore(campaign, yield* currentSeconds)
  return yield* kept(
    `campaign ${id} ${before === 0}`,
    ({ remaining }) => remaining,
    certificates.remaining(id, before)
  )
})

/** A campaign with its counts. */
export interface CampaignView extends Campaign {
  readonly remaining: number
  /** The number of certificates for which no client asks. */
  readonly silent: number
}

const view = (campaign: Campaign) =>
  Effect.map(countsOf(campaign), (counts): CampaignView => ({ ...campaign, ...counts }))

/** Returns a campaign with its counts. */
export const show = Effect.fn("CampaignRecords.show")(function*(id: string) {
  const campaign = yield* find(id)
  return yield* readForOperator(view(campaign))
})

/** Returns a page of the campaigns, newest first, with their counts. */
export const list = (window: { readonly limit: number; readonly offset: number }) =>
  readForOperator(Effect.gen(function*() {
    const items = yield* Effect.forEach(yield* campaigns.page(window), view)
    return { items, total: yield* campaigns.count }
  }))

/** A day of short steps, and a year of steps of an hour. */
const mostSamples = 9000

/** Returns the samples of a campaign for its chart, oldest first. */
export const samples = (id: string) =>
  readForOperator(
    Effect.map(campaigns.samples(CampaignId(id), mostSamples), (found) => found.toReversed())
  )

/** Returns a page of the open certificates of a campaign for which no client asks. */
export const silent = Effect.fn("CampaignRecords.silent")(
  function*(id: string, window: { readonly limit: number; readonly offset: number }) {
    const campaign = yield* find(id)
    const before = silentBefore(campaign, yield* currentSeconds)
    if (before === 0 || campaign.state === "ended") return { items: [], total: 0 }
    const { silent: total } = yield* readForOperator(countsOf(campaign))
    return { items: yield* readForOperator(certificates.silentPage(campaign.id, before, window)), total }
  }
)

const previewMillis = 5000

/**
 * Counts the certificates that a campaign would match now. At the command line every certificate is tested. Over HTTP
 * this takes at most five seconds; `truncated` then says that there may be more.
 */
export const preview = Effect.fn("CampaignRecords.preview")(function*(
  config: Pick<Config, "profiles">,
  operator: Operator,
  filter: CampaignFilter
) {
  yield* checkFilter(config, filter)
  const begun = yield* lifeMillis
  const createdAt = yield* currentSeconds
  let [matched, after]: [number, OrderId] = [0, campaigns.noOrder]
  for (;;) {
    const page = yield* matchesOf({ createdAt, filter }, after)
    matched += page.matched.length
    after = page.to
    if (!page.isMore) return { matched, truncated: false }
    if (operator.kind !== "cli" && (yield* lifeMillis) - begun >= previewMillis) return { matched, truncated: true }
    yield* Effect.yieldNow
  }
})

/**
 * Starts a campaign. The commit also enqueues the job that looks for the certificates, so this takes equally long for
 * one certificate and for a million.
 */
export const start = Effect.fn("CampaignRecords.start")(
  function*(config: Pick<Config, "profiles">, operator: Operator, given: NewCampaign) {
    yield* checkFilter(config, given.filter)
    yield* checkFuture("revokeAt", given.revokeAt)
    const now = yield* currentSeconds
    const id = CampaignId(yield* Entropy.use(({ uuid }) => uuid))
    const filter = stated(given.filter)
    const { revokeAt } = given
    const actor = actorOf(operator)
    const { actorId, actorKind } = actor
    const inserted = yield* transaction(Effect.gen(function*() {
      const row = yield* campaigns.insert({ ...given, filter, id, now, actorKind, actorId })
      if (row === undefined) return undefined
      yield* audit.insert({
        event: "campaign_started",
        ...actor,
        profile: filter.profile,
        detail: {
          campaign_id: id,
          text: given.reason,
          filter: auditedFilter(filter),
          ...(revokeAt === undefined ? {} : { revoke_at: rfc3339(revokeAt) })
        }
      })
      yield* enqueueJob({ kind: "campaign_fill", dedupKey: id, payload: { campaign_id: id } })
      return row
    }))
    if (inserted === undefined) return yield* new TooManyCampaigns({ most: campaigns.mostOpen })
    yield* emit("admin_campaign_started", { ...actorFields(operator), campaign_id: id })
    return yield* show(id)
  },
  Effect.uninterruptible
)

type Changed = Extract<AuditEvent, "campaign_paused" | "campaign_resumed" | "campaign_ended">
type Told = Extract<EventName, `admin_campaign_${"paused" | "resumed" | "ended"}`>

/** Makes the act that changes the state of a campaign. */
const changing = (
  change: typeof campaigns.pause,
  { act, event, told }: { readonly act: string; readonly event: Changed; readonly told: Told }
) =>
  Effect.fn("CampaignRecords.change")(
    function*(operator: Operator, id: string) {
      const { id: campaignId } = yield* find(id)
      const now = yield* currentSeconds
      const changed = yield* transaction(Effect.tap(change(campaignId, now), (row) =>
        row === undefined
          ? Effect.void
          : audit.insert({ event, ...actorOf(operator), detail: { campaign_id: campaignId } })))
      if (changed === undefined) {
        return yield* new CampaignStateRefused({ id, act, state: (yield* find(id)).state })
      }
      yield* emit(told, { ...actorFields(operator), campaign_id: campaignId })
      return yield* show(id)
    },
    Effect.uninterruptible
  )

/** Pauses a campaign: renewal information is as usual, and nothing is revoked. */
export const pause = changing(campaigns.pause, {
  act: "be paused",
  event: "campaign_paused",
  told: "admin_campaign_paused"
})

/** Resumes a campaign. Its windows begin later by the length of the pause. */
export const resume = changing(campaigns.resume, {
  act: "be resumed",
  event: "campaign_resumed",
  told: "admin_campaign_resumed"
})

/** Ends a campaign, whatever is left. */
export const end = changing(campaigns.end, { act: "be ended", event: "campaign_ended", told: "admin_campaign_ended" })

/** Returns a campaign whose revocation can be confirmed. */
export const confirmable = Effect.fn("CampaignRecords.confirmable")(function*(id: string) {
  const campaign = yield* find(id)
  const { revokeAt, state } = campaign
  if (revokeAt === undefined) {
    return yield* new BadRequest({ detail: `Campaign ${id} has no date at which what is left is revoked.` })
  }
  if (state === "ended") return yield* new CampaignStateRefused({ id, state, act: "revoke anything" })
  return { ...campaign, revokeAt }
})

/**
 * Confirms that what is left of a campaign is revoked at its date, or now if the date has passed. Nothing is revoked
 * without this. To confirm twice changes nothing.
 */
export const confirm = Effect.fn("CampaignRecords.confirm")(
  function*(operator: Operator, id: string) {
    const campaign = yield* confirmable(id)
    const now = yield* currentSeconds
    const actor = actorOf(operator)
    const confirmed = yield* transaction(Effect.gen(function*() {
      const { actorId: by, actorKind: kind } = actor
      const row = yield* campaigns.confirm({ id: campaign.id, now, kind, by })
      if (row === undefined) return undefined
      yield* audit.insert({
        event: "campaign_revocation_confirmed",
        ...actor,
        detail: { campaign_id: campaign.id, revoke_at: rfc3339(campaign.revokeAt) }
      })
      return row
    }))
    if (confirmed !== undefined) {
      yield* emit("admin_campaign_confirmed", { ...actorFields(operator), campaign_id: campaign.id })
    }
    return yield* show(id)
  },
  Effect.uninterruptible
)
