import * as Effect from "effect/Effect"
import type { Timed } from "../../domain/IssuerState.ts"
import { stateAt } from "../../domain/IssuerState.ts"
import type { Sample } from "../../engine/telemetry/Metrics.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import type { Samples } from "./Samples.ts"

/** A listener with TLS, and the time at which the first certificate of its chain expires, in epoch seconds. */
export interface ListenerEnd {
  readonly listener: string
  readonly notAfter: number
}

/** A CA of a profile, and the time from which it issues. */
export interface AuthorityEnd extends Timed {
  readonly issuer: Pick<Issuer, "id" | "firstToEnd">
}

/**
 * Returns, for a scrape, how many seconds remain until the certificates of the CAs and listeners of this process
 * expire. After the expiry, the value is negative. The CAs are grouped by the profiles for which one of them issues. The
 * end of a CA that does not issue any more is expected, so it is left out.
 */
export const certificateEnds = (
  authorities: Iterable<ReadonlyArray<AuthorityEnd>>,
  listeners: ReadonlyArray<ListenerEnd>
): Effect.Effect<Samples> =>
  Effect.map(currentSeconds, (now) => {
    // Two files may have certificates for the same key. The earlier expiry counts.
    const ends = new Map<string, number>()
    for (const cas of authorities) {
      for (const ca of cas) {
        if (stateAt(ca, cas, now) === "retired") continue
        const { firstToEnd, id } = ca.issuer
        ends.set(id, Math.min(firstToEnd.notAfter, ends.get(id) ?? Number.POSITIVE_INFINITY))
      }
    }
    const left = [...ends].map(([issuer, end]): Sample => ({ labels: { issuer }, value: end - now }))
    const served = listeners.map(({ listener, notAfter }): Sample => ({ labels: { listener }, value: notAfter - now }))
    return new Map([
      ...left.length === 0 ? [] : [["acme_svc_authority_not_after_seconds", left] as const],
      ...served.length === 0 ? [] : [["acme_svc_listener_not_after_seconds", served] as const]
    ])
  })
