import * as Effect from "effect/Effect"
import type { CampaignFilter, CampaignState } from "../../domain/Campaign.ts"
import type { CampaignId } from "../../domain/Id.ts"
import { OrderId } from "../../domain/Id.ts"
import type { ValuesOf } from "../../engine/sql/Column.ts"
import { bool, int, json, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { first, lenient, lenientFirst } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

/* Campaigns (docs/contribute/decisions/campaigns.md). */

/** An id that is lower than the id of every order. */
export const noOrder = OrderId("00000000-0000-0000-0000-000000000000")

const filterColumn = json<CampaignFilter>({
  fits: (value) => !Array.isArray(value) && Object.keys(value).length > 0,
  standIn: {}
})

const campaign = {
  id: uuid<CampaignId>(),
  state: text<CampaignState>(),
  filter: filterColumn,
  reason: text(),
  explanationUrl: nullable(text()),
  pace: nullable(int),
  createdAt: int,
  actorKind: text<"admin" | "cli">(),
  actorId: nullable(text()),
  revokeAt: nullable(int),
  revokeReason: nullable(int),
  confirmedAt: nullable(int),
  confirmedKind: nullable(text<"admin" | "cli">()),
  confirmedBy: nullable(text()),
  revokeDue: nullable(int),
  revokedTo: uuid<OrderId>(),
  filledTo: uuid<OrderId>(),
  filledAt: nullable(int),
  lookedTo: uuid<OrderId>(),
  begunAt: nullable(int),
  spanSeconds: nullable(int),
  pausedAt: nullable(int),
  endedAt: nullable(int),
  finished: bool,
  matched: int,
  asked: int,
  replaced: int,
  revoked: int,
  expired: int
}

/** A campaign. Times are epoch seconds. */
export type Campaign = ValuesOf<typeof campaign>

const id = { id: campaign.id }

/** How many campaigns may be open at once: each is a label of a metric, and each is looked at every minute. */
export const mostOpen = 20

const insertStatement = statement({
  name: "campaign_insert",
  params: {
    id: campaign.id,
    filter: campaign.filter,
    reason: campaign.reason,
    explanationUrl: campaign.explanationUrl,
    pace: campaign.pace,
    now: int,
    actorKind: campaign.actorKind,
    actorId: campaign.actorId,
    revokeAt: campaign.revokeAt,
    revokeReason: campaign.revokeReason,
    from: uuid<OrderId>(),
    most: int
  },
  row: id,
  sql: ({ typed }) =>
    `INSERT INTO campaigns (id, state, filter, reason, explanation_url, pace, created_at, actor_kind, actor_id,
       revoke_at, revoke_reason, revoke_due, revoked_to, filled_to, looked_to)
     SELECT ${typed(":id", "uuid")}, 'running', :filter, :reason, :explanationUrl, ${typed(":pace", "bigint")},
       ${typed(":now", "bigint")}, :actorKind, :actorId, ${typed(":revokeAt", "bigint")},
       ${typed(":revokeReason", "bigint")}, ${typed(":revokeAt", "bigint")}, ${typed(":from", "uuid")},
       ${typed(":from", "uuid")}, ${typed(":from", "uuid")}
     WHERE (SELECT count(*) FROM campaigns WHERE state <> 'ended') < :most RETURNING id AS "id"`
})

const findStatement = statement({
  name: "campaign_find",
  params: id,
  row: campaign,
  sql: () => `SELECT ${select(campaign)} FROM campaigns WHERE id = :id`
})

const pageStatement = statement({
  name: "campaign_page",
  params: { limit: int, offset: int },
  row: campaign,
  sql: () => `SELECT ${select(campaign)} FROM campaigns ORDER BY id DESC LIMIT :limit OFFSET :offset`
})

const countStatement = statement({
  name: "campaign_count",
  params: {},
  row: { total: int },
  sql: () => `SELECT count(*) AS "total" FROM campaigns`
})

const openStatement = statement({
  name: "campaign_open",
  params: {},
  row: campaign,
  sql: () => `SELECT ${select(campaign)} FROM campaigns WHERE state <> 'ended' ORDER BY id`
})

const pauseStatement = statement({
  name: "campaign_pause",
  params: { ...id, now: int },
  row: id,
  sql: ({ checked }) =>
    `UPDATE campaigns SET state = 'paused', paused_at = :now WHERE id = :id AND ${checked("state")} = 'running'
     RETURNING id AS "id"`
})

// A pause that a clock which was ahead began counts as none.
const resumeStatement = statement({
  name: "campaign_resume",
  params: { ...id, now: int },
  row: id,
  sql: ({ checked }) =>
    `UPDATE campaigns SET state = 'running', paused_at = NULL,
       begun_at = CASE WHEN paused_at < :now THEN begun_at + (:now - CASE WHEN paused_at > begun_at THEN paused_at
         ELSE begun_at END) ELSE begun_at END
     WHERE id = :id AND ${checked("state")} = 'paused' RETURNING id AS "id"`
})

const endStatement = statement({
  name: "campaign_end",
  params: { ...id, now: int },
  row: id,
  sql: ({ checked }) =>
    `UPDATE campaigns SET state = 'ended', ended_at = :now WHERE id = :id AND ${checked("state")} <> 'ended'
     RETURNING id AS "id"`
})

const confirmStatement = statement({
  name: "campaign_confirm",
  params: { ...id, now: int, kind: campaign.actorKind, by: campaign.actorId },
  row: id,
  sql: ({ checked }) =>
    `UPDATE campaigns SET confirmed_at = :now, confirmed_kind = :kind, confirmed_by = :by
     WHERE id = :id AND ${checked("state")} <> 'ended' AND revoke_at IS NOT NULL AND confirmed_at IS NULL
     RETURNING id AS "id"`
})

const fillingStatement = statement({
  name: "campaign_filling",
  params: { ...id, from: uuid<OrderId>(), to: uuid<OrderId>() },
  row: id,
  sql: ({ checked }) =>
    `UPDATE campaigns SET filled_to = :to
     WHERE id = :id AND ${checked("filled_to")} = :from AND filled_at IS NULL AND ${checked("state")} <> 'ended'
     RETURNING id AS "id"`
})

const filledStatement = statement({
  name: "campaign_filled",
  params: { ...id, now: int, spanSeconds: int, to: uuid<OrderId>() },
  row: id,
  sql: ({ checked }) =>
    `UPDATE campaigns SET filled_at = :now, begun_at = :now, span_seconds = :spanSeconds
     WHERE id = :id AND ${checked("filled_to")} = :to AND filled_at IS NULL AND ${checked("state")} <> 'ended'
     RETURNING id AS "id"`
})

const counters = { matched: int, asked: int, replaced: int, revoked: int, expired: int }

const addStatement = statement({
  name: "campaign_add",
  params: { ...id, ...counters },
  row: id,
  sql: () =>
    `UPDATE campaigns SET ${Object.keys(counters).map((name) => `${name} = ${name} + :${name}`).join(", ")}
     WHERE id = :id RETURNING id AS "id"`
})

const lookedStatement = statement({
  name: "campaign_looked",
  params: { ...id, to: uuid<OrderId>() },
  row: id,
  sql: () => `UPDATE campaigns SET looked_to = :to WHERE id = :id RETURNING id AS "id"`
})

const revokedStatement = statement({
  name: "campaign_revoked_to",
  params: { ...id, to: uuid<OrderId>(), due: int },
  row: id,
  sql: () => `UPDATE campaigns SET revoked_to = :to, revoke_due = :due WHERE id = :id RETURNING id AS "id"`
})

// Nothing is left once the campaign is filled and every certificate has left it.
const finishStatement = statement({
  name: "campaign_finish",
  params: { ...id, now: int },
  row: { id: campaign.id, matched: int, replaced: int, revoked: int, expired: int },
  sql: ({ checked, dialect }) =>
    `UPDATE campaigns SET state = 'ended', ended_at = :now, finished = ${dialect === "postgres" ? "TRUE" : "1"}
     WHERE id = :id AND ${checked("state")} <> 'ended' AND filled_at IS NOT NULL AND NOT EXISTS (
       SELECT 1 FROM campaign_certificates c WHERE c.campaign_id = campaigns.id AND c.left_at IS NULL)
     RETURNING id AS "id", matched AS "matched", replaced AS "replaced", revoked AS "revoked", expired AS "expired"`
})

const sampleStatement = statement({
  name: "campaign_sample",
  params: { ...id, at: int, remaining: int, asked: int },
  row: { at: int },
  sql: () =>
    `INSERT INTO campaign_samples (campaign_id, sampled_at, remaining, asked) VALUES (:id, :at, :remaining, :asked)
     ON CONFLICT (campaign_id, sampled_at) DO NOTHING RETURNING sampled_at AS "at"`
})

const samplesStatement = statement({
  name: "campaign_samples",
  params: { ...id, limit: int },
  row: { at: int, remaining: int, asked: int },
  sql: () =>
    `SELECT sampled_at AS "at", remaining AS "remaining", asked AS "asked" FROM campaign_samples
     WHERE campaign_id = :id ORDER BY sampled_at DESC LIMIT :limit`
})

/** Inserts a campaign that is running. Returns `undefined` if {@link mostOpen} campaigns are open. */
export const insert = (row: Omit<ValuesOf<typeof insertStatement.params>, "from" | "most">) =>
  first(insertStatement, { ...row, from: noOrder, most: mostOpen })

/** Finds a campaign, for a decision. */
export const find = (campaignId: CampaignId) => first(findStatement, { id: campaignId })

/** Finds a campaign, for operators. */
export const findShown = (campaignId: CampaignId) => lenientFirst(findStatement, { id: campaignId })

/** Returns a page of the campaigns, newest first. */
export const page = (window: { readonly limit: number; readonly offset: number }) => lenient(pageStatement, window)

/** Counts the campaigns. */
export const count = Effect.map(first(countStatement, {}), (row) => row?.total ?? 0)

/** Returns the campaigns that have not ended. A campaign that cannot be read is left out. */
export const open = lenient(openStatement, {})

/** Pauses a campaign. Returns `undefined` if it is not running. */
export const pause = (campaignId: CampaignId, now: number) => first(pauseStatement, { id: campaignId, now })

/** Resumes a campaign. Its windows move by the length of the pause. Returns `undefined` if it is not paused. */
export const resume = (campaignId: CampaignId, now: number) => first(resumeStatement, { id: campaignId, now })

/** Ends a campaign. Returns `undefined` if it has ended. */
export const end = (campaignId: CampaignId, now: number) => first(endStatement, { id: campaignId, now })

/**
 * Confirms that what is left is revoked at the date of the campaign. Returns `undefined` if there is nothing to
 * confirm.
 */
export const confirm = (of: ValuesOf<typeof confirmStatement.params>) => first(confirmStatement, of)

/**
 * Records how far a campaign is filled. Returns `undefined` if another worker has filled it further, or if it has
 * ended.
 */
export const filling = (of: ValuesOf<typeof fillingStatement.params>) => first(fillingStatement, of)

/** Records that a campaign is filled, and begins its windows. Returns `undefined` if this was recorded before. */
export const filled = (of: ValuesOf<typeof filledStatement.params>) => first(filledStatement, of)

const nothing = { matched: 0, asked: 0, replaced: 0, revoked: 0, expired: 0 }

/** Adds to the counts of a campaign. */
export const add = (campaignId: CampaignId, counts: { readonly [C in keyof typeof nothing]?: number }) =>
  first(addStatement, { id: campaignId, ...nothing, ...counts })

/** Records up to which order the certificates of a campaign were looked at. */
export const looked = (campaignId: CampaignId, to: OrderId) => first(lookedStatement, { id: campaignId, to })

/** Records up to which order the certificates of a campaign were revoked, and when to go on. */
export const revokedTo = (campaignId: CampaignId, to: OrderId, due: number) =>
  first(revokedStatement, { id: campaignId, to, due })

/** Ends a campaign in which nothing is left. Returns its counts, or `undefined` if something is left or it has ended. */
export const finish = (campaignId: CampaignId, now: number) => first(finishStatement, { id: campaignId, now })

/** Stores how many certificates are left at a time, unless that is stored already. */
export const sample = (of: ValuesOf<typeof sampleStatement.params>) => first(sampleStatement, of)

/** Returns the last samples of a campaign, newest first. */
export const samples = (campaignId: CampaignId, limit: number) => lenient(samplesStatement, { id: campaignId, limit })
