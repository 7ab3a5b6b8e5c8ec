import * as Effect from "effect/Effect"
import { readStoredChain } from "../../../crypto/x509/Chain.ts"
import { matcherOf, spanOf } from "../../../domain/Campaign.ts"
import type { CampaignId, OrderId } from "../../../domain/Id.ts"
import { emit } from "../../../domain/words/Log.ts"
import { Done, Reschedule } from "../../../engine/queue/Outcome.ts"
import { afterCommit, aside, transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { match, walk } from "../../../store/campaigns/CampaignCertificateRows.ts"
import type { Campaign } from "../../../store/campaigns/CampaignRows.ts"
import * as campaigns from "../../../store/campaigns/CampaignRows.ts"

/* Finds the certificates that a campaign matches (docs/contribute/decisions/campaigns.md). */

/** The number of certificates on a page. A page is one transaction. */
const pageSize = 500
/** How many pages one run of the job reads. */
const pagesOfRun = 200
/** How many certificates are tested before other fibers run. */
const testedAtOnce = 100

const endOfLeaf = "-----END CERTIFICATE-----"

/**
 * Makes a function that returns the id of the CA that signed a chain. All certificates of a CA have the same text after
 * the leaf, so that text is parsed once.
 */
const makeIssuerOf = () => {
  const known = new Map<string, string | undefined>()
  return (chain: string): string | undefined => {
    const above = chain.slice(chain.indexOf(endOfLeaf) + endOfLeaf.length)
    if (!known.has(above)) known.set(above, readStoredChain(chain)?.issuerId)
    return known.get(above)
  }
}

/**
 * Reads the next page of certificates, and returns those that a campaign matches. A certificate whose order was placed
 * after the campaign began is not matched: it may be the one that replaces another.
 */
export const matchesOf = Effect.fnUntraced(function*(
  { createdAt, filter }: Pick<Campaign, "createdAt" | "filter">,
  after: OrderId
) {
  const now = yield* currentSeconds
  const isChainWanted = filter.issuer !== undefined
  const { isFull, orders } = yield* aside(walk({ isChainWanted, now, after, limit: pageSize }))
  const matches = matcherOf(filter)
  const issuerOf = makeIssuerOf()
  const matched: Array<OrderId> = []
  for (const [index, order] of orders.entries()) {
    if (index % testedAtOnce === testedAtOnce - 1) yield* Effect.yieldNow
    const { certificate } = order
    const candidate = { ...order, issuer: () => certificate === undefined ? undefined : issuerOf(certificate) }
    if (order.createdAt <= createdAt && matches(candidate)) matched.push(order.id)
  }
  return { matched, to: orders.at(-1)?.id ?? after, isMore: isFull }
})

/** Adds one page to a campaign. The rows and the place where the next page begins are one transaction. */
const fillPage = Effect.fnUntraced(function*(campaign: Campaign) {
  const { filledTo: from, id, pace } = campaign
  const { isMore, matched, to } = yield* matchesOf(campaign, from)
  const now = yield* currentSeconds
  yield* transaction(Effect.gen(function*() {
    // Another worker may have added this page.
    if ((yield* campaigns.filling({ id, from, to })) === undefined) return
    const added = yield* match(id, matched)
    if (added > 0) yield* campaigns.add(id, { matched: added })
    if (isMore) return
    const total = campaign.matched + added
    if ((yield* campaigns.filled({ id, now, spanSeconds: spanOf(pace, total), to })) === undefined) return
    yield* afterCommit(emit("campaign_filled", { campaign_id: id, total }))
  }))
})

/**
 * Adds pages to a campaign, until it is filled or has ended. A crash loses only the page that is being added; the next
 * attempt adds it again.
 */
export const fill = Effect.fnUntraced(function*(campaignId: CampaignId) {
  for (let page = 0; page < pagesOfRun; page++) {
    const campaign = yield* campaigns.find(campaignId)
    if (campaign === undefined || campaign.state === "ended" || campaign.filledAt !== undefined) return Done()
    yield* fillPage(campaign)
    yield* Effect.yieldNow
  }
  return Reschedule(yield* currentSeconds)
})
