import * as Effect from "effect/Effect"
import { lifeMillis } from "../../../kernel/Time.ts"
import type { AcmeClient, UpstreamAnswer } from "./AcmeClient.ts"
import type { Strategy } from "./Strategy.ts"
import type { UpstreamFailed } from "./UpstreamFailed.ts"
import { UpstreamUnavailable } from "./UpstreamFailed.ts"

/** The upstream to talk to, and how to talk to it. */
export interface Upstream {
  readonly client: AcmeClient
  readonly kid: string
  readonly strategy: Strategy
  /** Time between two polls, in milliseconds. */
  readonly pollMillis: number
}

/** The conversation about one order. */
export interface Conversation extends Upstream {
  /** In the order's form: wildcards with their `*.`. */
  readonly names: ReadonlyArray<string>
  /** Whether there were attempts before. */
  readonly wasBegun: boolean
  /** Sends a request signed for the account; without a payload it reads. */
  readonly ask: (url: string, payload?: object) => Effect.Effect<UpstreamAnswer, UpstreamFailed>
  /** Waits until it is time to poll again. Fails when no time is left, and says what was waited for. */
  readonly pause: (
    what: string,
    answer?: Pick<UpstreamAnswer, "retryAfter">
  ) => Effect.Effect<void, UpstreamUnavailable>
}

/** A wait is at least the configured one. It is longer if the upstream asks for that, up to this many milliseconds. */
const longestPause = 30_000

const late = (what: string) =>
  new UpstreamUnavailable({
    detail: `the upstream did not finish within signer.relay.poll_timeout_secs: ${what}`,
    status: undefined
  })

/** Begins the conversation about an order; after `deadline`, in milliseconds of the process's life, it waits no more. */
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
      Effect.flatMap(lifeMillis, (life) => {
        if (life >= deadline) return late(what)
        const wanted = Math.min(Math.max(pollMillis, retryAfter * 1000), Math.max(pollMillis, longestPause))
        return Effect.sleep(Math.min(wanted, deadline - life))
      })
  }
}
