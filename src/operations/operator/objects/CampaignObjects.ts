import { reasonName } from "../../../domain/RevocationReason.ts"
import { listMember, member, timeMember } from "../../../engine/Members.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import type { Silent } from "../../../store/campaigns/CampaignCertificateRows.ts"
import type { CampaignView } from "../CampaignRecords.ts"

/* Campaigns as the API and the commands show them. */

/** A campaign. The filter has the number of its serial numbers instead of the numbers. */
export const campaignObject = (
  { begunAt, filter, revokeReason, spanSeconds, ...campaign }: CampaignView
) => ({
  id: campaign.id,
  state: campaign.state,
  finished: campaign.finished,
  filter: {
    ...member("issuer", filter.issuer),
    ...member("profile", filter.profile),
    ...member("kind", filter.kind),
    ...member("key", filter.key),
    ...member("kid", filter.kid),
    ...member("accountId", filter.accountId),
    ...member("name", filter.name),
    ...timeMember("issuedBefore", filter.issuedBefore),
    ...member("serials", filter.serials?.length)
  },
  reason: campaign.reason,
  ...member("explanationUrl", campaign.explanationUrl),
  ...member("pace", campaign.pace),
  startedAt: rfc3339(campaign.createdAt),
  ...member("startedBy", campaign.actorId),
  ...timeMember("filledAt", campaign.filledAt),
  ...timeMember("windowsFrom", begunAt),
  ...timeMember("windowsUntil", begunAt === undefined ? undefined : begunAt + (spanSeconds ?? 0)),
  ...timeMember("revokeAt", campaign.revokeAt),
  ...member("revokeReason", revokeReason === undefined ? undefined : reasonName(revokeReason)),
  ...timeMember("confirmedAt", campaign.confirmedAt),
  ...member("confirmedBy", campaign.confirmedBy),
  ...timeMember("pausedAt", campaign.pausedAt),
  ...timeMember("endedAt", campaign.endedAt),
  matched: campaign.matched,
  asked: campaign.asked,
  replaced: campaign.replaced,
  neverAsks: campaign.silent,
  revoked: campaign.revoked,
  expired: campaign.expired,
  remaining: campaign.remaining
})

/** A certificate for which no client asks, with what helps to find whoever uses it. */
export const silentObject = (
  { accountId, askedAt, certSerial, contact, identifiers, orderId, profile, ...found }: Silent
) => ({
  orderId,
  profile,
  accountId,
  ...member("certSerial", certSerial),
  identifiers: identifiers.map(({ value }) => value),
  ...timeMember("notAfter", found.notAfter),
  ...timeMember("askedAt", askedAt === 0 ? undefined : askedAt),
  ...timeMember("mailedAt", found.mailedAt),
  ...listMember("contact", contact),
  ...timeMember("lastSeenAt", found.lastSeenAt),
  ...member("lastSeenIp", found.lastSeenIp),
  ...member("lastSeenPtr", found.lastSeenPtr)
})
