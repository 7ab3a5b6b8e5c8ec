import * as Effect from "effect/Effect"
import { lifeMillis } from "../../../engine/Time.ts"
import type { AcmeClient } from "./AcmeClient.ts"
import type { Strategy } from "./Strategy.ts"
import type { UpstreamAnswer } from "./UpstreamAnswer.ts"
import type { Operation } from "./UpstreamDirectory.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamUnavailable } from "./UpstreamFailed.ts"
import type { WantedValidity } from "./UpstreamObjects.ts"

/** The upstream, and how to communicate with it. */
export interface Upstream {
  readonly client: AcmeClient
  readonly kid: string
  readonly strategy: Strategy
  /** The milliseconds between two polls. */
  readonly pollMillis: number
}

/** The exchange of requests with the upstream about one order. */
export interface Conversation extends Upstream {
  /** The names in the form of the order: a wildcard begins with `*.`. */
  readonly names: ReadonlyArray<string>
  readonly validity: WantedValidity
  /** The certificate profile to request from the upstream. Empty if the upstream chooses. */
  readonly upstreamProfile: string
  /** Whether there were attempts before this one. */
  readonly wasBegun: boolean
  /** When the exchange must stop waiting, in milliseconds since the start of the process. */
  readonly deadline: number
  /** Sends a request that is signed with the account's key. Without a payload, the request is a POST-as-GET. */
  readonly ask: (operation: Operation, url: string, payload?: object) => Effect.Effect<UpstreamAnswer, UpstreamFailed>
  /** Waits until it is time to poll again. If no time is left for that, fails, and the failure names `what`. */
  readonly pause: (
    what: string,
    answer?: { readonly retryAfter?: number | undefined }
  ) => Effect.Effect<void, UpstreamUnavailable>
}

/**
 * The longest wait, in milliseconds, if an upstream asks for a longer wait than the order has time for. Some upstreams
 * ask for a day and are ready in seconds. If the order has enough time, the service waits as long as it was asked to.
 */
const longestPause = 30_000

const late = (what: string) =>
  new UpstreamUnavailable({
    detail: `the upstream did not finish within signer.relay.poll_timeout_secs: ${what}`,
    status: undefined
  })

/** Begins the exchange with the upstream about an order. */
export const converse = (
  upstream: Upstream,
  { deadline, names, upstreamProfile, validity, wasBegun }: Pick<
    Conversation,
    "names" | "validity" | "upstreamProfile" | "wasBegun" | "deadline"
  >
): Conversation => {
  const { client, kid, pollMillis } = upstream
  return {
    ...upstream,
    names,
    validity,
    upstreamProfile,
    wasBegun,
    deadline,
    ask: (operation, url, payload) => client.post(operation, url, payload ?? "", { kid }),
    pause: (what, { retryAfter = 0 } = {}) =>
      Effect.flatMap(lifeMillis, (life) => {
        const left = deadline - life
        if (left <= 0) return late(what)
        const asked = retryAfter * 1000 <= left ? retryAfter * 1000 : longestPause
        return Effect.sleep(Math.min(Math.max(pollMillis, asked), left))
      })
  }
}
