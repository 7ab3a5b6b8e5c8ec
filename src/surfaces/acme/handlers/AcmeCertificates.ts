import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Entropy } from "../../../crypto/Entropy.ts"
import { pollingSeconds } from "../../../domain/Campaign.ts"
import { tagged } from "../../../engine/http/EntityTag.ts"
import type { Answer } from "../../../engine/http/Message.ts"
import { json } from "../../../engine/http/Message.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { publications } from "../../../operations/acme/Publications.ts"
import { revokeCert } from "../../../operations/acme/RevokeCert.ts"
import type { RenewalWindow } from "../../../operations/Renewal.ts"
import { renewalInfo } from "../../../operations/Renewal.ts"
import type { Endpoint } from "../Endpoint.ts"
import type { BySomeone } from "../Posted.ts"

/*
 * Handles issued certificates: their revocation, their renewal information, and the objects that their issuer
 * publishes.
 */

// Any whole number is decoded here; the operation refuses invalid codes.
const Code = Schema.Number.check(Schema.makeFilter((code) => Number.isInteger(code) || "not a whole number"))

export const RevokeCert = Schema.Struct({ certificate: Schema.String, reason: Schema.optionalKey(Code) })

/** Revokes a certificate (RFC 8555 section 7.6). */
export const revocation = ({ client, endpoint, payload, signer }: BySomeone<typeof RevokeCert.Type>) =>
  Effect.as(
    revokeCert({
      profile: endpoint.profile.name,
      backend: endpoint.profile.signer.backend,
      signer,
      certificate: payload.certificate,
      reason: payload.reason,
      client
    }),
    { status: 200, headers: {} } satisfies Answer
  )

/** Returns the handler of a path at which a profile publishes an object about its CA. */
export const published =
  <P extends keyof typeof publications>(path: P) =>
  ({ endpoint, id }: { readonly endpoint: Endpoint; readonly id: string }) => {
    const { mediaType, of }: (typeof publications)[keyof typeof publications] = publications[path]
    return Effect.map(of(endpoint.profile.name, id), (body) => tagged(mediaType, body))
  }

const revokedRetrySeconds = 60

/**
 * Returns six hours, plus or minus a fifth, so that clients that asked at the same time do not all return at the same
 * time.
 */
const usualRetrySeconds = (fraction: number): number => Math.round(pollingSeconds * (0.8 + 0.4 * fraction))

const leastRetrySeconds = 60

/** Returns when a client should ask again: at the usual time, or earlier if its window begins before. */
const retrySeconds = ({ isRevoked, start }: RenewalWindow, now: number, fraction: number): number => {
  if (isRevoked) return revokedRetrySeconds
  const usual = usualRetrySeconds(fraction)
  return start <= now ? usual : Math.min(usual, Math.max(leastRetrySeconds, start - now))
}

/**
 * Returns the renewal information of a certificate (RFC 9773 section 4). Anyone who knows the certificate may read it.
 */
export const renewalInformation = ({ endpoint, id }: { readonly endpoint: Endpoint; readonly id: string }) =>
  Effect.gen(function*() {
    const window = yield* renewalInfo(endpoint.profile.name, id)
    const fraction = yield* Entropy.use((entropy) => entropy.fraction)
    const { end, explanationUrl, start } = window
    return json(200, {
      suggestedWindow: { start: rfc3339(start), end: rfc3339(end) },
      ...(explanationUrl === undefined ? {} : { explanationURL: explanationUrl })
    }, { "retry-after": String(retrySeconds(window, yield* currentSeconds, fraction)) })
  })
