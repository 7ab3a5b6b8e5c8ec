import { Clock, Effect } from "effect"
import type { AcmeClient, UpstreamAnswer } from "./AcmeClient.ts"
import type { Strategy } from "./Strategy.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamUnavailable } from "./UpstreamFailed.ts"

/** Whom to talk to, and how. */
export interface Upstream {
  readonly client: AcmeClient
  readonly kid: string
  readonly strategy: Strategy
  /** How often to look, in milliseconds. */
  readonly pollMillis: number
}

/** What is said about one order. */
export interface Conversation extends Upstream {
  /** In the order's form: wildcards with their `*.`. */
  readonly names: ReadonlyArray<string>
  /** There were attempts before. */
  readonly wasBegun: boolean
  /** A request signed for the account; an empty payload reads. */
  readonly ask: (url: string, payload?: object) => Effect.Effect<UpstreamAnswer, UpstreamFailed>
  /** Waits until it is time to look again; fails when there is none left, and says what was waited for. */
  readonly pause: (
    what: string,
    answer?: Pick<UpstreamAnswer, "retryAfter">
  ) => Effect.Effect<void, UpstreamUnavailable>
}

/** A wait is the configured one at least, and what the upstream asks for up to this many milliseconds. */
const longestPause = 30_000

const late = (what: string) =>
  new UpstreamUnavailable({
    detail: `the upstream was not done when signer.relay.poll_timeout_secs were over: ${what}`,
    status: undefined
  })

/** Begins to talk about an order; what is asked for later than `deadline`, in epoch milliseconds, is not waited for. */
export const converse = (
  upstream: Upstream,
  { deadline, names, wasBegun }: Pick<Conversation, "names" | "wasBegun"> & { readonly deadline: number }
): Conversation => {
  const { client, kid, pollMillis } = upstream
  return {
    ...upstream,
    names,
    wasBegun,
    ask: (url, payload) => client.post(url, payload ?? "", { kid }),
    pause: (what, { retryAfter = 0 } = { retryAfter: 0 }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (now >= deadline) return late(what)
        const wanted = Math.min(Math.max(pollMillis, retryAfter * 1000), Math.max(pollMillis, longestPause))
        return Effect.sleep(Math.min(wanted, deadline - now))
      })
  }
}
