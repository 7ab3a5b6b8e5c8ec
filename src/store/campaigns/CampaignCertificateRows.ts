import * as Effect from "effect/Effect"
import type { CampaignState, Departure } from "../../domain/Campaign.ts"
import type { AccountId, CampaignId, OrderId } from "../../domain/Id.ts"
import { bytes, int, name, nullable, packedUuid, rows, text, texts, uuid, uuidBytes } from "../../engine/sql/Column.ts"
import { all, first, lenient, partitioned, run } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { identifiersColumn } from "../Columns.ts"
import { chain, chainOf } from "../orders/StoredChain.ts"

/*
 * The certificates of campaigns (docs/contribute/decisions/campaigns.md). A row is open until its certificate leaves
 * the campaign.
 */

const campaignId = uuid<CampaignId>()
const orderId = uuid<OrderId>()
const ofCampaign = { id: campaignId }

// The condition on the account comes from the primary key, so each order reads one account.
const walkOf = (certificate: (f: Fragments) => string) =>
  statement({
    name: "campaign_walk",
    params: { now: int, after: orderId, limit: int },
    row: {
      id: orderId,
      profile: name(),
      accountId: uuid<AccountId>(),
      kid: nullable(uuidBytes),
      kind: nullable(name()),
      identifiers: identifiersColumn,
      serial: nullable(name()),
      pubkey: nullable(bytes),
      createdAt: int,
      certificate: nullable(chain)
    },
    sql: (f) =>
      `SELECT o.id AS "id", o.profile AS "profile", o.account_id AS "accountId", a.eab_kid AS "kid", o.kind AS "kind",
         o.identifiers AS "identifiers", o.cert_serial AS "serial", o.cert_pubkey AS "pubkey",
         o.created_at AS "createdAt", ${certificate(f)} AS "certificate"
       FROM orders o JOIN accounts a ON a.id = o.account_id
       WHERE o.id > :after AND o.certificate IS NOT NULL AND o.revoked_at IS NULL
         AND (o.cert_not_after IS NULL OR o.cert_not_after > :now)
       ORDER BY o.id LIMIT :limit`
  })
const walkStatement = walkOf(() => "NULL")
const walkWithChainStatement = walkOf((f) => chainOf("o.", f))

const insertStatement = statement({
  name: "campaign_match",
  params: { ...ofCampaign, orders: rows },
  row: { order: orderId },
  sql: ({ oneOf, typed }) =>
    `INSERT INTO campaign_certificates (order_id, campaign_id)
       SELECT o.id, ${typed(":id", "uuid")} FROM orders o WHERE o.id ${oneOf(":orders", "uuid")}
     ON CONFLICT (order_id, campaign_id) DO NOTHING RETURNING order_id AS "order"`
})

const ofOrderStatement = statement({
  name: "campaigns_of_order",
  params: { order: orderId },
  row: {
    campaign: campaignId,
    state: text<CampaignState>(),
    explanationUrl: nullable(text()),
    begunAt: nullable(int),
    spanSeconds: nullable(int),
    askedAt: int
  },
  sql: () =>
    `SELECT c.campaign_id AS "campaign", k.state AS "state", k.explanation_url AS "explanationUrl",
       k.begun_at AS "begunAt", k.span_seconds AS "spanSeconds", c.asked_at AS "askedAt"
     FROM campaign_certificates c JOIN campaigns k ON k.id = c.campaign_id
     WHERE c.order_id = :order AND c.left_at IS NULL AND k.state <> 'ended' ORDER BY c.campaign_id`
})

// The first request is counted, so it is written by a statement of its own.
const askedFirstStatement = statement({
  name: "campaign_asked_first",
  params: { orders: rows, now: int },
  row: { campaign: campaignId },
  sql: ({ aside, at, each }) =>
    `UPDATE campaign_certificates SET asked_at = :now
     WHERE order_id IN (SELECT ${at(0, "uuid")} FROM ${each(":orders")}) AND left_at IS NULL
       AND ${aside("asked_at")} = 0 RETURNING campaign_id AS "campaign"`
})

const askedAgainStatement = statement({
  name: "campaign_asked_again",
  params: { orders: rows, now: int },
  row: {},
  sql: ({ aside, at, each }) =>
    `UPDATE campaign_certificates SET asked_at = :now
     WHERE order_id IN (SELECT ${at(0, "uuid")} FROM ${each(":orders")}) AND left_at IS NULL
       AND ${aside("asked_at")} < :now`
})

const openPageStatement = statement({
  name: "campaign_open_page",
  params: { ...ofCampaign, after: orderId, limit: int },
  row: {
    id: orderId,
    profile: name(),
    accountId: uuid<AccountId>(),
    certSerial: nullable(name()),
    notAfter: nullable(int),
    revokedAt: nullable(int),
    askedAt: int,
    mailedAt: nullable(int)
  },
  sql: () =>
    `SELECT o.id AS "id", o.profile AS "profile", o.account_id AS "accountId", o.cert_serial AS "certSerial",
       o.cert_not_after AS "notAfter", o.revoked_at AS "revokedAt", c.asked_at AS "askedAt", c.mailed_at AS "mailedAt"
     FROM (SELECT order_id, asked_at, mailed_at FROM campaign_certificates
         WHERE campaign_id = :id AND left_at IS NULL AND order_id > :after ORDER BY order_id LIMIT :limit) c
       CROSS JOIN orders o WHERE o.id = c.order_id ORDER BY o.id`
})

const revocablePageStatement = statement({
  name: "campaign_revocable_page",
  params: { ...ofCampaign, after: orderId, limit: int },
  row: {
    orderId,
    accountId: uuid<AccountId>(),
    profile: name(),
    identifiers: identifiersColumn,
    certificate: nullable(chain),
    serial: nullable(name()),
    certPubkey: nullable(bytes),
    revokedAt: nullable(int)
  },
  sql: (f) =>
    `SELECT o.id AS "orderId", o.account_id AS "accountId", o.profile AS "profile", o.identifiers AS "identifiers",
       ${chainOf("o.", f)} AS "certificate", o.cert_serial AS "serial", o.cert_pubkey AS "certPubkey",
       o.revoked_at AS "revokedAt"
     FROM (SELECT order_id FROM campaign_certificates
         WHERE campaign_id = :id AND left_at IS NULL AND order_id > :after ORDER BY order_id LIMIT :limit) c
       CROSS JOIN orders o WHERE o.id = c.order_id ORDER BY o.id`
})

const membersStatement = statement({
  name: "campaign_members",
  params: { ...ofCampaign, orders: rows },
  row: { order: orderId },
  sql: ({ checked, oneOf }) =>
    `SELECT order_id AS "order" FROM campaign_certificates
     WHERE order_id ${oneOf(":orders", "uuid")} AND ${checked("campaign_id")} = :id`
})

const leaveStatement = statement({
  name: "campaign_leave",
  params: { ...ofCampaign, orders: rows, now: int, as: text<Departure>() },
  row: { order: orderId },
  sql: ({ checked, oneOf }) =>
    `UPDATE campaign_certificates SET left_at = :now, left_as = :as
     WHERE order_id ${oneOf(":orders", "uuid")} AND ${checked("campaign_id")} = :id AND left_at IS NULL
     RETURNING order_id AS "order"`
})

const mailedStatement = statement({
  name: "campaign_mailed",
  params: { ...ofCampaign, orders: rows, now: int },
  row: {},
  sql: ({ checked, oneOf }) =>
    `UPDATE campaign_certificates SET mailed_at = :now
     WHERE order_id ${oneOf(":orders", "uuid")} AND ${checked("campaign_id")} = :id`
})

const remainingStatement = statement({
  name: "campaign_remaining",
  params: { ...ofCampaign, askedBefore: int },
  row: { remaining: int, silent: int },
  sql: () =>
    `SELECT count(*) AS "remaining", count(CASE WHEN asked_at < :askedBefore THEN 1 END) AS "silent"
     FROM campaign_certificates WHERE campaign_id = :id AND left_at IS NULL`
})

const silentPageStatement = statement({
  name: "campaign_silent_page",
  params: { ...ofCampaign, askedBefore: int, limit: int, offset: int },
  row: {
    orderId,
    profile: name(),
    accountId: uuid<AccountId>(),
    identifiers: identifiersColumn,
    certSerial: nullable(name()),
    notAfter: nullable(int),
    askedAt: int,
    mailedAt: nullable(int),
    contact: texts,
    lastSeenAt: nullable(int),
    lastSeenIp: nullable(text()),
    lastSeenPtr: nullable(text())
  },
  sql: ({ aside }) =>
    `SELECT o.id AS "orderId", o.profile AS "profile", o.account_id AS "accountId", o.identifiers AS "identifiers",
       o.cert_serial AS "certSerial", o.cert_not_after AS "notAfter", c.asked_at AS "askedAt",
       c.mailed_at AS "mailedAt", a.contact AS "contact", a.last_seen_at AS "lastSeenAt",
       a.last_seen_ip AS "lastSeenIp", a.last_seen_ptr AS "lastSeenPtr"
     FROM (SELECT order_id, asked_at, mailed_at FROM campaign_certificates
         WHERE campaign_id = :id AND left_at IS NULL AND ${aside("asked_at")} < :askedBefore
         ORDER BY order_id LIMIT :limit OFFSET :offset) c
       CROSS JOIN orders o CROSS JOIN accounts a WHERE o.id = c.order_id AND a.id = o.account_id ORDER BY o.id`
})

const packed = (orders: ReadonlyArray<OrderId>) => orders.map((one) => [packedUuid(one)])

/**
 * Returns the next certificates of every profile that are neither revoked nor expired, by the ids of their orders. The
 * chain is only read on request, because a filter seldom needs it. Orders that cannot be read are logged and left out;
 * `isFull` says whether there may be more orders.
 */
export const walk = (
  { isChainWanted, ...page }: {
    readonly isChainWanted: boolean
    readonly now: number
    readonly after: OrderId
    readonly limit: number
  }
) =>
  Effect.map(
    partitioned(isChainWanted ? walkWithChainStatement : walkStatement, page),
    ({ readable, unreadable }) => ({
      orders: readable,
      isFull: readable.length > 0 && readable.length + unreadable.length === page.limit
    })
  )

/** Adds certificates to a campaign. Returns how many were added. */
export const match = (campaign: CampaignId, orders: ReadonlyArray<OrderId>) =>
  orders.length === 0
    ? Effect.succeed(0)
    : Effect.map(all(insertStatement, { id: campaign, orders: packed(orders) }), (added) => added.length)

/** Returns the open campaigns that a certificate has not left. */
export const campaignsOf = (order: OrderId) => all(ofOrderStatement, { order })

/**
 * Records that clients have asked for renewal information of these certificates. Returns the campaign of each
 * certificate for which no client had asked before.
 */
export const asked = Effect.fnUntraced(function*(orders: ReadonlyArray<OrderId>, now: number) {
  const of = { orders: packed(orders), now }
  const campaigns = yield* all(askedFirstStatement, of)
  yield* run(askedAgainStatement, of)
  return campaigns.map(({ campaign }) => campaign)
})

/** Returns the next open certificates of a campaign, by the ids of their orders. */
export const openPage = (campaign: CampaignId, after: OrderId, limit: number) =>
  lenient(openPageStatement, { id: campaign, after, limit })

/** Returns the next open certificates of a campaign with what their revocation needs. */
export const revocablePage = (campaign: CampaignId, after: OrderId, limit: number) =>
  lenient(revocablePageStatement, { id: campaign, after, limit })

/** Returns those of the orders that a campaign has matched. */
export const membersAmong = (campaign: CampaignId, orders: ReadonlyArray<OrderId>) =>
  orders.length === 0
    ? Effect.succeed<ReadonlySet<OrderId>>(new Set())
    : Effect.map(
      lenient(membersStatement, { id: campaign, orders: packed(orders) }),
      (found): ReadonlySet<OrderId> => new Set(found.map(({ order }) => order))
    )

/** Lets certificates leave a campaign. Returns how many were still open. */
export const leave = (
  campaign: CampaignId,
  orders: ReadonlyArray<OrderId>,
  { as, now }: { readonly as: Departure; readonly now: number }
) =>
  orders.length === 0
    ? Effect.succeed(0)
    : Effect.map(all(leaveStatement, { id: campaign, orders: packed(orders), as, now }), (gone) => gone.length)

/** Records that contacts were written to about these certificates. */
export const mailed = (campaign: CampaignId, orders: ReadonlyArray<OrderId>, now: number) =>
  run(mailedStatement, { id: campaign, orders: packed(orders), now })

/**
 * Counts the open certificates of a campaign, and those for which no client has asked since an epoch second. This reads
 * one entry of an index for each certificate.
 */
export const remaining = (campaign: CampaignId, askedBefore: number) =>
  Effect.map(
    first(remainingStatement, { id: campaign, askedBefore }),
    (row) => row ?? { remaining: 0, silent: 0 }
  )

/** A certificate for which no client asks, as operators see it. */
export type Silent = Effect.Success<ReturnType<typeof silentPage>>[number]

/** Returns a page of the open certificates for which no client has asked since an epoch second. */
export const silentPage = (
  campaign: CampaignId,
  askedBefore: number,
  window: { readonly limit: number; readonly offset: number }
) => lenient(silentPageStatement, { id: campaign, askedBefore, ...window })
