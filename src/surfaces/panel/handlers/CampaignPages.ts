import * as Effect from "effect/Effect"
import { revocationReasons } from "../../../domain/RevocationReason.ts"
import { parseRfc3339, rfc3339 } from "../../../engine/Time.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import {
  confirmCampaign,
  endCampaign,
  listCampaigns,
  listSilentCertificates,
  pauseCampaign,
  previewCampaign,
  readCampaign,
  resumeCampaign,
  startCampaign
} from "../../operator/acts/CampaignActs.ts"
import { burnDownChart } from "../charts/BurnDown.ts"
import { listView, windowOf } from "../Listing.ts"
import { looked, submitted } from "../PanelActs.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, laggingPage, moved, page } from "../Route.ts"

/* The pages about campaigns. */

const path = "/ui/campaigns"

/** Returns the points of the chart: the start, the samples, and the present or the end. */
const pointsOf = (
  { endedAt, filledAt, matched, remaining, samples }: typeof readCampaign.output.Type,
  now: number
) => {
  const begun = filledAt === undefined ? undefined : parseRfc3339(filledAt)
  const sampled = samples.map((one) => ({ at: parseRfc3339(one.at) ?? 0, remaining: one.remaining }))
  const last = { at: endedAt === undefined ? now : parseRfc3339(endedAt) ?? now, remaining }
  if (begun === undefined) return []
  const between = sampled.filter(({ at }) => at > begun && at < last.at)
  return [{ at: begun, remaining: matched }, ...between, last]
}

/** Returns the routes of the pages about campaigns. */
export const campaignRoutes = (config: Config) => [
  laggingPage(path, (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, problem, total } = yield* orRefused(looked(listCampaigns, given))
      return page("campaigns", "Campaigns", {
        rows: items,
        problem,
        isAdmin: given.sender.role === "admin",
        issuer: query.get("issuer") ?? "",
        profiles: profilesOf(config),
        reasons: revocationReasons.map(({ name }) => name),
        list: listView(path, query, [], { total, limit: windowOf(query, config).limit, shown: items.length })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  forRole("admin")(
    "POST",
    path,
    (given) => Effect.map(submitted(startCampaign, given), ({ id }) => moved(`${path}/${id}?done=started`))
  ),
  forRole("viewer")(
    "GET",
    `${path}/preview`,
    (given) =>
      Effect.map(
        looked(previewCampaign, given),
        (counted) => page("campaign-preview", "Counted certificates", { counted })
      )
  ),
  laggingPage(`${path}/{id}`, (given) =>
    Effect.gen(function*() {
      const campaign = yield* looked(readCampaign, given)
      const points = pointsOf(campaign, yield* currentSeconds)
      const silent = yield* looked(listSilentCertificates, given)
      const { svg, rows } = burnDownChart(points, campaign.matched)
      return page("campaign", `Campaign ${campaign.id}`, {
        campaign,
        isAdmin: given.sender.role === "admin",
        chart: points.length === 0
          ? undefined
          : { svg, rows: rows.map(({ at, remaining }) => ({ at: rfc3339(at), remaining })) },
        silent: silent.items,
        done: given.query.get("done") ?? "",
        list: listView(`${path}/${campaign.id}`, given.query, [], {
          total: silent.total,
          limit: windowOf(given.query, config).limit,
          shown: silent.items.length
        })
      })
    })),
  forRole("operator")(
    "POST",
    `${path}/{id}/pause`,
    (given) => Effect.map(submitted(pauseCampaign, given), ({ id }) => moved(`${path}/${id}?done=paused`))
  ),
  forRole("operator")(
    "POST",
    `${path}/{id}/resume`,
    (given) => Effect.map(submitted(resumeCampaign, given), ({ id }) => moved(`${path}/${id}?done=resumed`))
  ),
  forRole("operator")(
    "POST",
    `${path}/{id}/end`,
    (given) => Effect.map(submitted(endCampaign, given), ({ id }) => moved(`${path}/${id}?done=ended`))
  ),
  forRole("admin")(
    "POST",
    `${path}/{id}/confirm`,
    (given) => Effect.map(submitted(confirmCampaign, given), ({ id }) => moved(`${path}/${id}?done=confirmed`))
  )
]
