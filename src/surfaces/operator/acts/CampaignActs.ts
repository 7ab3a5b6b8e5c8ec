import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { CampaignFilter } from "../../../domain/Campaign.ts"
import { BadRequest } from "../../../domain/OperatorError.ts"
import { keyCompromise, reasonShown } from "../../../domain/RevocationReason.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import * as campaigns from "../../../operations/operator/CampaignRecords.ts"
import { campaignObject, silentObject } from "../../../operations/operator/objects/CampaignObjects.ts"
import { act, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import { key, line, optional, paging, textOf, time, whole } from "../Field.ts"
import { Int, pageOf } from "../schemas/Common.ts"
import { Campaign, CampaignDetail, filterFields, SilentCertificate, StartedCampaign } from "./CampaignShape.ts"
import { reason as revokeReason } from "./Revoking.ts"

/*
 * Declares the acts about campaigns, which ask clients to replace certificates
 * (docs/contribute/decisions/campaigns.md).
 */

const id = key("The id of the campaign.")
const longestReason = 500
const longestUrl = 2000
const mostPace = 100_000_000

const explanationUrl = textOf({
  description: "An http or https URL of a page that explains the reason. Clients get it as explanationURL.",
  shown: "url",
  takes: `an http or https URL of at most ${longestUrl} characters, without a user name`,
  read: (text) => {
    const given = text.trim()
    if (given.length > longestUrl || !/^https?:\/\//i.test(given) || !URL.canParse(given)) return undefined
    const { password, username } = new URL(given)
    return username === "" && password === "" && /^[\x21-\x7e]+$/.test(given) ? given : undefined
  }
})

const filterOf = (
  { accountId, issuedBefore, issuer, key, kid, kind, name, profile, serials }: CampaignFilter
): CampaignFilter => ({ accountId, issuedBefore, issuer, key, kid, kind, name, profile, serials })

const filterNames = Object.keys(filterFields).join(", ")

/**
 * Refuses a campaign without a filter, which would match every certificate of every profile. A command reads the file
 * with serial numbers last, so this is checked when the act runs.
 */
const hasFilter = (given: CampaignFilter): Effect.Effect<void, BadRequest> =>
  Object.values(filterOf(given)).some((value) => value !== undefined)
    ? Effect.void
    : new BadRequest({ detail: `At least one of these is needed: ${filterNames}.` })

/** Returns the lines that show a campaign: those of its filter come last, because there are as many as it has members. */
const membersOf = ({ filter, ...campaign }: typeof Campaign.Type) => ({
  ...campaign,
  ...Object.fromEntries(Object.entries(filter).map(([name, value]) => [`filter ${name}`, value]))
})

const needsConfig = ({ kind, profile }: CampaignFilter): boolean => kind !== undefined || profile !== undefined

/** What operators must know before certificates are revoked because others may know their keys. */
const keyWarning = "Their keys are then refused for ever, so clients that keep their keys will be refused."

/** Starts a campaign. */
export const startCampaign = act({
  id: "startCampaign",
  does: "Ask clients to replace the certificates that a filter matches",
  access: "admin",
  input: {
    ...filterFields,
    reason: line("Why the certificates must be replaced.", { longest: longestReason }),
    explanationUrl: optional(explanationUrl),
    pace: optional(
      whole("Certificates to replace an hour. The default spreads all over one polling interval, six hours.", {
        least: 1,
        most: mostPace
      })
    ),
    revokeAt: optional(
      time("When what is left is revoked, if that is confirmed: an RFC 3339 time, or a day as YYYY-MM-DD.")
    ),
    revokeReason
  },
  output: StartedCampaign,
  errors: ["not_found", "too_many_campaigns"],
  fits: ({ revokeAt, revokeReason }) =>
    revokeReason !== undefined && revokeAt === undefined
      ? new BadRequest({ detail: "revokeReason needs revokeAt." })
      : Effect.void,
  run: ({ explanationUrl, pace, reason, revokeAt, revokeReason, ...filter }) =>
    Effect.gen(function*() {
      yield* hasFilter(filter)
      const given = { filter: filterOf(filter), reason, explanationUrl, pace, revokeAt, revokeReason }
      return campaignObject(yield* campaigns.start(yield* Configured.config, yield* Acting.operator, given))
    }),
  http: { route: "POST /api/campaigns", status: 201 },
  cli: {
    command: "campaign start",
    help:
      "Ask clients to replace certificates. The renewal information of each certificate that the filter matches says when. At least one filter is needed; all that are given must fit.",
    example: "campaign start --key rsa-2048 --reason phase-out",
    needsConfig,
    flags: { serials: { flag: "serials-file" } },
    members: membersOf,
    confirm: ({ revokeAt, revokeReason }) =>
      Effect.succeed(
        revokeAt === undefined || revokeReason !== keyCompromise
          ? undefined
          : `At ${rfc3339(revokeAt)}, what is left is to be revoked with the reason ${
            reasonShown(keyCompromise)
          }. ${keyWarning} Start the campaign?`
      ),
    remark: ({ id, revokeAt }) =>
      [
        `A worker now looks for the certificates; until it has, matched grows: acme-svc campaign show ${id}`,
        ...revokeAt === undefined
          ? []
          : [`Nothing is revoked until somebody confirms it: acme-svc campaign confirm ${id}`]
      ].join("\n")
  }
})

/** Says how many certificates a campaign would match. */
export const previewCampaign = act({
  id: "previewCampaign",
  does: "Count the certificates that a campaign would match; nothing is started",
  access: "operator",
  input: filterFields,
  output: Schema.Struct({
    matched: Int,
    truncated: Schema.Boolean.annotate({
      description: "The counting ended after five seconds, so there may be more. A command counts all."
    })
  }).annotate({ identifier: "CampaignPreview" }),
  errors: ["not_found"],
  run: (filter) =>
    Effect.gen(function*() {
      yield* hasFilter(filter)
      return yield* campaigns.preview(yield* Configured.config, yield* Acting.operator, filterOf(filter))
    }),
  http: { route: "POST /api/campaigns/preview" },
  cli: {
    command: "campaign preview",
    help: "Count the certificates that a campaign would match. Nothing is started.",
    example: "campaign preview --profile default --key rsa-2048",
    needsConfig,
    flags: { serials: { flag: "serials-file" } },
    text: ({ matched, truncated }) => `${truncated ? "At least " : ""}${matched}`
  }
})

/** Lists the campaigns. */
export const listCampaigns = act({
  id: "listCampaigns",
  does: "List campaigns, newest first",
  access: "viewer",
  mayLag: true,
  input: paging,
  output: pageOf(Campaign),
  errors: [],
  run: (window) => paged(window, campaigns.list, campaignObject),
  http: { route: "GET /api/campaigns" },
  cli: {
    command: "campaign list",
    example: "campaign list",
    columns: ({ asked, id, matched, neverAsks, reason, remaining, replaced, startedAt, state }) => ({
      id,
      state,
      started: startedAt,
      matched: String(matched),
      asked: String(asked),
      replaced: String(replaced),
      "never asks": String(neverAsks),
      left: String(remaining),
      reason
    })
  }
})

/** Shows a campaign. */
export const readCampaign = act({
  id: "readCampaign",
  does: "Show a campaign and how many certificates were left over time",
  access: "viewer",
  mayLag: true,
  input: { id },
  output: CampaignDetail,
  errors: ["not_found"],
  run: ({ id }) =>
    Effect.gen(function*() {
      const found = yield* campaigns.show(id)
      const samples = yield* campaigns.samples(id)
      return {
        ...campaignObject(found),
        samples: samples.map(({ asked, at, remaining }) => ({ at: rfc3339(at), remaining, asked }))
      }
    }),
  http: { route: "GET /api/campaigns/{id}" },
  cli: {
    command: "campaign show",
    help: "Show a campaign.",
    example: "campaign show 01890a5d-ac96-774b-bcce-b302099a8057",
    members: ({ samples, ...campaign }) => ({ ...membersOf(campaign), samples: samples.length })
  }
})

/** Lists the certificates of a campaign for which no client asks. */
export const listSilentCertificates = act({
  id: "listSilentCertificates",
  does: "List the certificates of a campaign for which no client asks",
  access: "viewer",
  mayLag: true,
  input: { id, ...paging },
  output: pageOf(SilentCertificate),
  errors: ["not_found"],
  run: ({ id, ...window }) => paged(window, (window) => campaigns.silent(id, window), silentObject),
  http: { route: "GET /api/campaigns/{id}/silent" },
  cli: {
    command: "campaign silent",
    help:
      "List the certificates for which no client asks. They are left, and nobody has asked for their renewal information within twelve hours. The list has what helps to find their users.",
    example: "campaign silent 01890a5d-ac96-774b-bcce-b302099a8057",
    columns: (
      { accountId, contact = [], identifiers, lastSeenAt = "", lastSeenIp = "", notAfter = "", orderId, profile }
    ) => ({
      order: orderId,
      profile,
      names: identifiers.join(" "),
      expires: notAfter,
      account: accountId,
      contact: contact.join(" "),
      "last seen": lastSeenAt,
      address: lastSeenIp
    })
  }
})

/** Pauses a campaign. */
export const pauseCampaign = act({
  id: "pauseCampaign",
  does: "Pause a campaign: clients are told nothing of it, and nothing is revoked",
  access: "operator",
  input: { id },
  output: Campaign,
  errors: ["not_found", "campaign_state"],
  run: ({ id }) =>
    Effect.map(Effect.flatMap(Acting.operator, (operator) => campaigns.pause(operator, id)), campaignObject),
  http: { route: "POST /api/campaigns/{id}/pause" },
  cli: {
    command: "campaign pause",
    help: "Pause a campaign. Clients are told nothing of it, and nothing is revoked.",
    example: "campaign pause 01890a5d-ac96-774b-bcce-b302099a8057",
    text: ({ id }) => `Campaign ${id} is paused.`
  }
})

/** Resumes a campaign. */
export const resumeCampaign = act({
  id: "resumeCampaign",
  does: "Resume a paused campaign; its windows begin later by the length of the pause",
  access: "operator",
  input: { id },
  output: Campaign,
  errors: ["not_found", "campaign_state"],
  run: ({ id }) =>
    Effect.map(Effect.flatMap(Acting.operator, (operator) => campaigns.resume(operator, id)), campaignObject),
  http: { route: "POST /api/campaigns/{id}/resume" },
  cli: {
    command: "campaign resume",
    help: "Resume a paused campaign. Its windows begin later by the length of the pause.",
    example: "campaign resume 01890a5d-ac96-774b-bcce-b302099a8057",
    text: ({ id }) => `Campaign ${id} is running.`
  }
})

/** Ends a campaign. */
export const endCampaign = act({
  id: "endCampaign",
  does: "End a campaign, whatever is left",
  access: "operator",
  input: { id },
  output: Campaign,
  errors: ["not_found", "campaign_state"],
  run: ({ id }) =>
    Effect.map(Effect.flatMap(Acting.operator, (operator) => campaigns.end(operator, id)), campaignObject),
  http: { route: "POST /api/campaigns/{id}/end" },
  cli: {
    command: "campaign end",
    example: "campaign end 01890a5d-ac96-774b-bcce-b302099a8057",
    confirm: ({ id }) => Effect.succeed(`End campaign ${id}? It cannot be started again.`),
    text: ({ id, remaining }) => `Campaign ${id} has ended; ${remaining} certificates were left.`
  }
})

/** Confirms the revocation of what is left. */
export const confirmCampaign = act({
  id: "confirmCampaign",
  does: "Confirm that what is left of a campaign is revoked at its date, or now if the date has passed",
  access: "admin",
  input: { id },
  output: Campaign,
  errors: ["not_found", "campaign_state"],
  run: ({ id }) =>
    Effect.map(Effect.flatMap(Acting.operator, (operator) => campaigns.confirm(operator, id)), campaignObject),
  http: { route: "POST /api/campaigns/{id}/confirm", isStepUp: true },
  cli: {
    command: "campaign confirm",
    help:
      "Confirm that what is left of a campaign is revoked. It is revoked at the date of the campaign, or now if the date has passed.",
    example: "campaign confirm 01890a5d-ac96-774b-bcce-b302099a8057",
    confirm: ({ id }) =>
      Effect.map(campaigns.confirmable(id), ({ revokeAt, revokeReason }) => {
        const reason = revokeReason === undefined ? "" : ` with the reason ${reasonShown(revokeReason)}`
        return `Revoke what is left of campaign ${id} at ${rfc3339(revokeAt)}${reason}? ${
          revokeReason === keyCompromise ? `${keyWarning} ` : ""
        }This cannot be undone.`
      }),
    text: ({ id, revokeAt = "" }) => `What is left of campaign ${id} is revoked at ${revokeAt}.`
  }
})

/** The acts about campaigns. */
export const campaignActs = noun({
  name: "campaigns",
  description: "Campaigns, which ask clients to replace certificates.",
  commands: { campaign: "Campaigns, which ask clients to replace certificates." },
  acts: [
    listCampaigns,
    startCampaign,
    previewCampaign,
    readCampaign,
    listSilentCertificates,
    pauseCampaign,
    resumeCampaign,
    endCampaign,
    confirmCampaign
  ]
})
