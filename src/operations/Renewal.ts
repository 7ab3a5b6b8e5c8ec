import * as Effect from "effect/Effect"
import type { NamedLeaf } from "../crypto/x509/CertId.ts"
import { namedLeaf, parseCertId } from "../crypto/x509/CertId.ts"
import { readStoredChain } from "../crypto/x509/Chain.ts"
import { Malformed, NoSuchCertificate } from "../domain/AcmeError.ts"
import { pollingSeconds, windowFor } from "../domain/Campaign.ts"
import type { AccountId } from "../domain/Id.ts"
import { hourSeconds, usualWindow } from "../domain/RenewalHour.ts"
import { emit } from "../domain/words/Log.ts"
import { currentSeconds } from "../engine/Time.ts"
import { ReadHooks } from "../services/signing/ReadHooks.ts"
import { RenewalAsks } from "../services/signing/RenewalAsks.ts"
import { campaignsOf } from "../store/campaigns/CampaignCertificateRows.ts"
import * as certificates from "../store/orders/CertificateRows.ts"
import { isReadable, refuseChain } from "./StoredCertificate.ts"

/** When a certificate should be renewed, in epoch seconds. `isRevoked` means that the renewal is urgent. */
export interface RenewalWindow {
  readonly start: number
  readonly end: number
  readonly isRevoked: boolean
  /** The reason for this window, for people: an `http` or `https` URL. */
  readonly explanationUrl?: string | undefined
}

/**
 * Certificates that have the serial of a certID but a different authority key identifier, with the owners of these
 * certificates.
 */
interface OtherKey {
  readonly otherKeyOf: ReadonlyArray<AccountId>
}

/**
 * Finds the certificate that a certID names at a profile. Otherwise returns "malformed" if the text is not a certID,
 * {@link OtherKey} if only the serial matches, or "unknown". Fails if there are certificates with that serial but none
 * of them can be read.
 */
export const locate = Effect.fnUntraced(function*(profile: string, text: string) {
  const certId = parseCertId(text)
  if (certId === undefined) return "malformed" as const
  const found = yield* certificates.findBySerial(profile, certId.serial)
  for (const row of found) {
    const leaf = namedLeaf(row.certificate, certId)
    if (leaf !== undefined) return { ...row, leaf, serial: certId.serial }
  }
  const lost = found.find(({ certificate }) => !isReadable(certificate))
  if (lost !== undefined) return yield* refuseChain("certificate_by_serial", lost.orderId)
  if (found.length === 0) return "unknown" as const
  return { otherKeyOf: found.map(({ accountId }) => accountId) } satisfies OtherKey
})

const daySeconds = 86_400

/** Returns the window that follows from the validity alone. */
const estimate = (leaf: NamedLeaf): RenewalWindow => ({ ...usualWindow(leaf), isRevoked: false })

/** Returns a window that has already passed. It tells the client to renew at once. */
const over = (now: number): RenewalWindow => ({ start: now - daySeconds, end: now, isRevoked: true })

/** Returns the window of a stored certificate without a request to the signer. */
export const windowOf = (leaf: NamedLeaf, isRevoked: boolean): Effect.Effect<RenewalWindow> =>
  isRevoked ? Effect.map(currentSeconds, over) : Effect.succeed(estimate(leaf))

/** Returns the suggestion of the signer. A failure is logged, and counts as no suggestion. */
const suggested = Effect.fnUntraced(function*(profile: string, chainPem: string) {
  const leaf = readStoredChain(chainPem)?.leaf
  if (leaf === undefined) return undefined
  return yield* Effect.catch(
    (yield* ReadHooks).window(profile, leaf),
    ({ detail }) => Effect.as(emit("renewal_info_hook_failed", { error: detail }), undefined)
  )
})

type Located = Exclude<Effect.Success<ReturnType<typeof locate>>, OtherKey | string>

/** Returns the window of a certificate that is not revoked and that no campaign matches. */
const suggestedWindow = Effect.fnUntraced(function*(profile: string, found: Located) {
  const { renewalEnd: end, renewalStart: start, renewalUrl: explanationUrl } = found
  if (start !== undefined && end !== undefined) {
    const stored: RenewalWindow = { start, end, explanationUrl, isRevoked: false }
    return stored
  }
  const window = yield* suggested(profile, found.certificate)
  if (window !== undefined) return { ...window, isRevoked: false }
  const { renewsAt } = found
  if (renewsAt === undefined) return estimate(found.leaf)
  return { start: renewsAt, end: renewsAt + hourSeconds, isRevoked: false }
})

/** If a client has asked within this time, another request is not recorded. It is less than a polling interval. */
const askSeconds = pollingSeconds / 2

/**
 * Returns the window of a certificate that campaigns have matched: the earliest one among those of the running
 * campaigns and its usual window. So no campaign delays a renewal. Also notes that a client has asked.
 */
const inCampaigns = Effect.fnUntraced(function*({ leaf, orderId }: Located, usual: RenewalWindow) {
  const now = yield* currentSeconds
  let window = usual
  const campaigns = yield* campaignsOf(orderId)
  if (campaigns.some(({ askedAt }) => askedAt < now - askSeconds)) {
    yield* RenewalAsks.use(({ note }) => note(orderId))
  }
  for (const { begunAt, explanationUrl, spanSeconds, state } of campaigns) {
    if (state !== "running" || begunAt === undefined || spanSeconds === undefined) continue
    const own = windowFor({ begunAt, spanSeconds }, leaf.certId)
    if (own.start < window.start) window = { ...own, explanationUrl, isRevoked: false }
  }
  return window
})

/**
 * Returns renewal information (RFC 9773). For a revoked certificate, the window is in the past. For any other
 * certificate, the window is the one that the signer suggests; without a suggestion it is estimated. A campaign may
 * have an earlier window. The suggestion of an upstream is stored in the row, so that a client's request never causes a
 * request to the upstream.
 */
export const renewalInfo = Effect.fnUntraced(function*(profile: string, certId: string) {
  const found = yield* locate(profile, certId)
  if (found === "malformed") {
    yield* emit("renewal_info_rejected", { reason: "malformed" })
    return yield* new Malformed({ detail: "The certID must be two base64url texts with a dot between them." })
  }
  if (found === "unknown" || "otherKeyOf" in found) {
    const isOtherKey = found !== "unknown"
    yield* emit("renewal_info_rejected", { reason: isOtherKey ? "key_id_mismatch" : "unknown" })
    return yield* new NoSuchCertificate({ isOtherKey })
  }
  if (found.revokedAt === undefined) {
    const usual = yield* suggestedWindow(profile, found)
    return found.campaigns === 0 ? usual : yield* inCampaigns(found, usual)
  }
  return over(yield* currentSeconds)
})
