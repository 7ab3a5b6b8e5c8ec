import * as Effect from "effect/Effect"
import type { CampaignId } from "../../../domain/Id.ts"
import type { SignerBackend } from "../../../domain/SignerBackend.ts"
import { emit } from "../../../domain/words/Log.ts"
import { Done, Reschedule } from "../../../engine/queue/Outcome.ts"
import { aside, transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { revocablePage } from "../../../store/campaigns/CampaignCertificateRows.ts"
import type { Campaign } from "../../../store/campaigns/CampaignRows.ts"
import * as campaigns from "../../../store/campaigns/CampaignRows.ts"
import { burn, revoke } from "../Revocation.ts"

/* Revokes what is left of a campaign at its date (docs/contribute/decisions/campaigns.md). */

const pageSize = 500

/** If certificates could not be revoked, another walk tries them again after this many seconds. */
const againSeconds = 3600

/**
 * Returns whether it is time to revoke certificates of a campaign: the date of the campaign has passed, somebody has
 * confirmed the revocation after the start, and the search for the certificates has ended.
 */
export const isRevocationDue = (
  { confirmedAt, filledAt, revokeDue, state }: Campaign,
  now: number
): boolean =>
  state === "running" && confirmedAt !== undefined && filledAt !== undefined && revokeDue !== undefined &&
  revokeDue <= now

/**
 * Revokes the next certificates that are left. Each is a transaction of its own, so a crash loses none: a certificate
 * that is revoked already is skipped. `backendOf` returns the signer of a profile that is served.
 */
export const revokeRest = Effect.fnUntraced(function*(
  campaignId: CampaignId,
  backendOf: (profile: string) => SignerBackend | undefined
) {
  const now = yield* currentSeconds
  const campaign = yield* campaigns.find(campaignId)
  if (campaign === undefined || !isRevocationDue(campaign, now)) return Done()
  const { confirmedBy, confirmedKind = campaign.actorKind, id, revokedTo, revokeReason: reason } = campaign
  const by = { actorKind: confirmedKind, actorId: confirmedBy, detail: { authorized_by: "operator" } } as const
  const page = yield* aside(revocablePage(id, revokedTo, pageSize))
  let [count, failed] = [0, 0]
  for (const { certificate, revokedAt, serial, ...order } of page) {
    if (certificate === undefined || serial === undefined || revokedAt !== undefined) continue
    const found = { ...order, certificate, serial }
    const isRevoked = yield* revoke(found, backendOf(order.profile), reason, by, burn(found, reason, by)).pipe(
      Effect.as(true),
      Effect.catchTags({
        WasRevoked: () => Effect.succeed(true),
        IssuerUnknown: () => Effect.succeed(false),
        ListsStopped: () => Effect.succeed(false)
      })
    )
    if (isRevoked) count++
    else failed++
  }
  if (count > 0) yield* emit("campaign_revoked", { campaign_id: id, count })
  if (failed > 0) yield* emit("campaign_revoke_failed", { campaign_id: id, count: failed })
  const last = page.length === pageSize ? page.at(-1) : undefined
  yield* transaction(
    last === undefined
      ? campaigns.revokedTo(id, campaigns.noOrder, now + againSeconds)
      : campaigns.revokedTo(id, last.orderId, now)
  )
  return last === undefined ? Done() : Reschedule(now)
})
