import * as Effect from "effect/Effect"
import type { Sample } from "../../engine/telemetry/Metrics.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import type { Samples } from "./Samples.ts"

/** A listener with TLS, and the time at which the first certificate of its chain expires, in epoch seconds. */
export interface ListenerEnd {
  readonly listener: string
  readonly notAfter: number
}

/**
 * Returns, for a scrape, how many seconds remain until the certificates of the CAs and listeners of this process
 * expire. After the expiry, the value is negative.
 */
export const certificateEnds = (
  issuers: Iterable<Pick<Issuer, "id" | "firstToEnd">>,
  listeners: ReadonlyArray<ListenerEnd>
): Effect.Effect<Samples> =>
  Effect.map(currentSeconds, (now) => {
    // Two files may have certificates for the same key. The earlier expiry counts.
    const ends = new Map<string, number>()
    for (const { firstToEnd, id } of issuers) {
      ends.set(id, Math.min(firstToEnd.notAfter, ends.get(id) ?? Number.POSITIVE_INFINITY))
    }
    const authorities = [...ends].map(([issuer, end]): Sample => ({ labels: { issuer }, value: end - now }))
    const served = listeners.map(({ listener, notAfter }): Sample => ({ labels: { listener }, value: notAfter - now }))
    return new Map([
      ...authorities.length === 0 ? [] : [["acme_svc_authority_not_after_seconds", authorities] as const],
      ...served.length === 0 ? [] : [["acme_svc_listener_not_after_seconds", served] as const]
    ])
  })
