import * as Effect from "effect/Effect"
import type { SuggestedWindow } from "../SuggestedWindow.ts"
import { isWebUrl } from "../SuggestedWindow.ts"
import type { AcmeClient } from "./AcmeClient.ts"
import type { Members } from "./UpstreamAnswer.ts"
import { objectOf } from "./UpstreamAnswer.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { isOfUpstream, textIn } from "./UpstreamObjects.ts"
import type { RelayedCertificate } from "./UpstreamRecord.ts"

/** What an upstream says about the renewal of a certificate. */
export interface RenewalAnswer {
  /** The window; `undefined` if the answer cannot be understood, or if the upstream does not know the certificate. */
  readonly window: SuggestedWindow | undefined
  /** The number of seconds that the upstream asks the service to wait before the next such request. */
  readonly retryAfter: number | undefined
}

const nothing: RenewalAnswer = { window: undefined, retryAfter: undefined }
const longestUrl = 2000

const windowIn = (members: Members | undefined): SuggestedWindow | undefined => {
  const suggested = objectOf(members?.["suggestedWindow"]) ?? {}
  const [start = NaN, end = NaN] = ["start", "end"].map((name) =>
    Math.floor(Date.parse(textIn(suggested, name)) / 1000)
  )
  const url = textIn(members ?? {}, "explanationURL")
  return end > start
    ? { start, end, explanationUrl: url.length <= longestUrl && isWebUrl(url) ? url : undefined }
    : undefined
}

/**
 * Asks the upstream when a certificate that it issued should be renewed (RFC 9773 section 4). No request is sent to an
 * upstream that does not offer this.
 */
export const renewalAt = (
  client: AcmeClient,
  { certId, orderUrl }: RelayedCertificate
): Effect.Effect<RenewalAnswer, UpstreamFailed> =>
  Effect.gen(function*() {
    const { newOrder, renewalInfo } = yield* client.directory
    if (renewalInfo === undefined || !isOfUpstream(orderUrl, newOrder)) return nothing
    return yield* client.get("renewalInfo", `${renewalInfo.replace(/\/+$/, "")}/${certId}`).pipe(
      Effect.map(({ json, retryAfter }) => ({ window: windowIn(json), retryAfter })),
      Effect.catchTag("UpstreamRefused", () => Effect.succeed(nothing))
    )
  })
