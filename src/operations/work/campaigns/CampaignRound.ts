import * as Effect from "effect/Effect"
import { serialPart } from "../../../crypto/x509/CertId.ts"
import type { Departure } from "../../../domain/Campaign.ts"
import { departures, silentBefore } from "../../../domain/Campaign.ts"
import type { OrderId } from "../../../domain/Id.ts"
import { operatorScope } from "../../../domain/Notification.ts"
import { enqueueJob } from "../../../domain/words/JobKind.ts"
import { emit } from "../../../domain/words/Log.ts"
import { afterCommit, aside, transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { notify } from "../../../services/notify/Notifier.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as certificates from "../../../store/campaigns/CampaignCertificateRows.ts"
import type { Campaign } from "../../../store/campaigns/CampaignRows.ts"
import * as campaigns from "../../../store/campaigns/CampaignRows.ts"
import * as expiring from "../../../store/orders/ExpiringRows.ts"
import { replacementsOf } from "../../ExpiringWindow.ts"
import { remindOfCampaign } from "../notify/Reminders.ts"
import { isRevocationDue } from "./CampaignRevocation.ts"

/*
 * Looks at the open certificates of the campaigns: which were replaced or revoked or have expired, and whose clients
 * never ask (docs/contribute/decisions/campaigns.md).
 */

const pageSize = 500
/** How many pages one round reads, over all campaigns. */
const pagesOfRound = 40
const fewestPages = 2

const daySeconds = 86_400

/** The length of the steps of the chart, in seconds: short while the campaign is young. */
const stepOf = ({ createdAt }: Campaign, now: number): number => now - createdAt < 2 * daySeconds ? 600 : 3600

type Open = Effect.Success<ReturnType<typeof certificates.openPage>>[number]

/**
 * Returns which certificates were replaced by one that the campaign does not match. The replacement names the
 * certificate in `replaces`, or has the same names, the same account and a later end.
 */
const replacedAmong = Effect.fnUntraced(function*(
  campaign: Campaign,
  open: ReadonlyArray<Open>,
  known: Map<string, ReadonlyArray<string>>
) {
  const coverings = yield* expiring.coveringsOf(open.map(({ id }) => id))
  const named = yield* replacementsOf(
    open.flatMap(({ certSerial, notAfter, ...one }, number) =>
      certSerial === undefined || notAfter === undefined
        ? []
        : [{ ...one, notAfter, number, serial: serialPart(certSerial) }]
    ),
    known
  )
  const others = [...new Set([...coverings.values(), ...named.values()])]
  const members = yield* certificates.membersAmong(campaign.id, others)
  const isNew = (other: OrderId | undefined) => other !== undefined && !members.has(other)
  return new Set(open.flatMap(({ id }, number) => isNew(named.get(number)) || isNew(coverings.get(id)) ? [id] : []))
})

/**
 * Looks at the next page of a campaign. The certificates that leave, the counts and the place where the next page begins
 * are one transaction. Returns whether this was the last page.
 */
const lookAtPage = Effect.fnUntraced(function*(
  campaign: Campaign,
  after: OrderId,
  known: Map<string, ReadonlyArray<string>>,
  remindsAt: (profile: string) => boolean
) {
  const now = yield* currentSeconds
  const page = yield* aside(certificates.openPage(campaign.id, after, pageSize))
  const isExpired = ({ notAfter }: Open) => notAfter !== undefined && notAfter <= now
  const living = page.filter((one) => one.revokedAt === undefined && !isExpired(one))
  const replaced = yield* aside(replacedAmong(campaign, living, known))
  const leaving: { readonly [D in Departure]: ReadonlyArray<OrderId> } = {
    replaced: [...replaced],
    revoked: page.flatMap(({ id, revokedAt }) => revokedAt === undefined ? [] : [id]),
    expired: page.flatMap((one) => one.revokedAt === undefined && isExpired(one) ? [one.id] : [])
  }
  const last = page.length === pageSize ? page.at(-1) : undefined
  const to = last?.id ?? campaigns.noOrder
  yield* transaction(Effect.gen(function*() {
    for (const as of departures) {
      const gone = yield* certificates.leave(campaign.id, leaving[as], { as, now })
      if (gone > 0) yield* campaigns.add(campaign.id, { [as]: gone })
    }
    yield* campaigns.looked(campaign.id, to)
  }))
  if (campaign.state === "running") {
    const before = silentBefore(campaign, now)
    const silent = living.filter(({ askedAt, id, mailedAt, profile }) =>
      askedAt < before && mailedAt === undefined && !replaced.has(id) && remindsAt(profile)
    )
    yield* remindOfCampaign(campaign, silent, now)
  }
  return { isLast: last === undefined, to }
})

/** Ends a campaign in which nothing is left, and notifies the receivers that want to know. */
const finished = Effect.fnUntraced(function*({ id, reason }: Campaign) {
  const now = yield* currentSeconds
  yield* transaction(Effect.gen(function*() {
    const counts = yield* campaigns.finish(id, now)
    if (counts === undefined) return
    const { expired, matched, replaced, revoked } = counts
    const told = { campaign_id: id, matched, replaced, revoked, expired }
    yield* campaigns.sample({ id, at: now, remaining: 0, asked: matched })
    yield* audit.insert({ event: "campaign_finished", actorKind: "system", detail: told })
    yield* notify({ event: "campaign_finished", scope: operatorScope, fields: { ...told, campaign_reason: reason } })
    yield* afterCommit(emit("campaign_finished", { campaign_id: id, total: matched }))
  }))
})

/** Looks at as many pages of a campaign as its share of the round. Returns whether it has looked at the last page. */
const lookAt = Effect.fnUntraced(function*(
  campaign: Campaign,
  pages: number,
  remindsAt: (profile: string) => boolean
) {
  const known = new Map<string, ReadonlyArray<string>>()
  let after = campaign.lookedTo
  let isLast = false
  for (let page = 0; page < pages && !isLast; page++) {
    const looked = yield* lookAtPage(campaign, after, known, remindsAt)
    after = looked.to
    isLast = looked.isLast
    yield* Effect.yieldNow
  }
  const now = yield* currentSeconds
  const { remaining } = yield* aside(certificates.remaining(campaign.id, 0))
  const step = stepOf(campaign, now)
  const { asked = 0 } = (yield* campaigns.findShown(campaign.id)) ?? {}
  yield* transaction(campaigns.sample({ id: campaign.id, at: now - now % step, remaining, asked }))
  yield* finished(campaign)
  return isLast
})

/**
 * Makes one round over the open campaigns. It also enqueues the jobs that fill a campaign and that revoke what is left,
 * if they are due but do not wait in the queue, because somebody cancelled them. Returns whether every campaign was
 * looked at to its end.
 */
export const makeRound = Effect.fnUntraced(function*(remindsAt: (profile: string) => boolean) {
  const open = yield* campaigns.open
  let isWhole = true
  for (const campaign of open) {
    const payload = { campaign_id: campaign.id }
    if (campaign.filledAt === undefined) {
      yield* transaction(enqueueJob({ kind: "campaign_fill", dedupKey: campaign.id, payload }))
      continue
    }
    const pages = Math.max(fewestPages, Math.floor(pagesOfRound / open.length))
    if (!(yield* lookAt(campaign, pages, remindsAt))) isWhole = false
    if (isRevocationDue(campaign, yield* currentSeconds)) {
      yield* transaction(enqueueJob({ kind: "campaign_revoke", dedupKey: campaign.id, payload }))
    }
  }
  return isWhole
})
