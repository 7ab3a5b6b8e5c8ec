import * as Effect from "effect/Effect"
import type { Conversation } from "./Conversation.ts"
import type { Proof, UpstreamChallenge } from "./Strategy.ts"
import type { Members, UpstreamAnswer } from "./UpstreamAnswer.ts"
import { plain, problemIn } from "./UpstreamAnswer.ts"
import type { UpstreamFailed, UpstreamUnavailable } from "./UpstreamFailed.ts"
import { UpstreamRefused } from "./UpstreamFailed.ts"
import { broken, challengesIn, nameIn, objectOf, textIn, untrusted } from "./UpstreamObjects.ts"

/* Proves one authorization to the upstream. */

const proofOf = ({ client }: Conversation, members: Members, { token = "" }: UpstreamChallenge): Proof => ({
  ...nameIn(members),
  token,
  keyAuthorization: `${token}.${client.key.thumbprint}`
})

/**
 * Removes what an interrupted attempt may have left behind for an authorization that has been decided in the meantime.
 */
const clear = (talk: Conversation, members: Members): Effect.Effect<void> => {
  const { strategy } = talk
  const { isWildcard, name } = nameIn(members)
  if (strategy.clear === undefined || !talk.names.includes(isWildcard ? `*.${name}` : name)) return Effect.void
  const { clear } = strategy
  return Effect.ignore(Effect.flatMap(
    strategy.choose(name, isWildcard, challengesIn(members)),
    (challenge) => clear(proofOf(talk, members, challenge))
  ))
}

const statuses: ReadonlyArray<string> = ["pending", "valid", "invalid", "deactivated", "expired", "revoked"]

/** Reads an authorization from the upstream. Fails if the status of the authorization is unknown. */
const authorizationOf = (answer: UpstreamAnswer): Effect.Effect<Members, UpstreamUnavailable> =>
  Effect.filterOrFail(
    objectOf(answer, "an authorization"),
    (members) => statuses.includes(textIn(members, "status")),
    () => broken("an authorization of no known status")
  )

const isSettled = (members: Members): boolean => textIn(members, "status") !== "pending"

/** Does the same as {@link clear} for the authorization at a URL. Ignores failures. */
export const clearAt = (talk: Conversation, url: unknown): Effect.Effect<void> =>
  talk.client.checked(url, "an authorization").pipe(
    Effect.flatMap((checked) => talk.ask("authorization", checked)),
    Effect.flatMap((answer) => objectOf(answer, "an authorization")),
    Effect.flatMap((members) => clear(talk, members)),
    Effect.ignore
  )

const refusal = (name: string, members: Members): UpstreamRefused => {
  const failed = challengesIn(members).find(({ error }) => error !== undefined)
  const { detail, type } = problemIn(failed?.error, undefined)
  const why = failed === undefined ? `the authorization is ${textIn(members, "status")}` : detail
  return new UpstreamRefused({ detail: plain(`${name}: ${why}`), status: undefined, type })
}

/** Proves a name to the upstream, and waits until the upstream confirms the proof. */
export const authorize = (talk: Conversation, listed: unknown): Effect.Effect<void, UpstreamFailed> =>
  Effect.scoped(Effect.gen(function*() {
    const { ask, client, names, strategy } = talk
    const url = yield* client.checked(listed, "an authorization")
    const first = yield* authorizationOf(yield* ask("authorization", url))
    const { isWildcard, name } = nameIn(first)
    if (isSettled(first)) {
      if (talk.wasBegun) yield* clear(talk, first)
      return textIn(first, "status") === "valid" ? undefined : yield* refusal(name, first)
    }
    if (!names.includes(isWildcard ? `*.${name}` : name)) {
      return yield* untrusted("the upstream wants proof of a name that nobody ordered")
    }
    const chosen = yield* strategy.choose(name, isWildcard, challengesIn(first))
    const challenge = yield* client.checked(chosen.url, "a challenge")
    yield* strategy.prepare(proofOf(talk, first, chosen))
    // The request of an earlier attempt that was interrupted may have arrived. The authorization shows whether the name
    // is already proved.
    const refused = chosen.status !== "pending" ? undefined : yield* ask("challenge", challenge, {}).pipe(
      Effect.flatMap(({ retryAfter = 0 }) =>
        retryAfter > 0 ? talk.pause(`${name} is not proved there yet`, { retryAfter }) : Effect.void
      ),
      Effect.as(undefined),
      Effect.catchTag("UpstreamRefused", (error) => Effect.succeed(error))
    )
    for (;;) {
      const answer = yield* ask("authorization", url)
      const members = yield* authorizationOf(answer)
      if (textIn(members, "status") === "valid") return
      if (isSettled(members)) return yield* refusal(name, members)
      if (
        refused !== undefined &&
        challengesIn(members).some(({ status, url }) => url === challenge && status === "pending")
      ) {
        return yield* refused
      }
      yield* talk.pause(`${name} is not proved there yet`, answer)
    }
  }))
