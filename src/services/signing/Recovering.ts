import * as Effect from "effect/Effect"
import { lifeMillis } from "../../engine/Time.ts"
import type { Signer } from "./Signer.ts"
import { SigningFailed } from "./Signer.ts"

const againAfterMillis = 10_000

/**
 * Makes the signer of a profile whose backend could not be made, because of a cause outside the configuration. The
 * signer fails every request until the backend has been made. Each read of `trouble` tries again to make the backend,
 * but at most every ten seconds, or after the wait that an upstream asks for. `relays` says whether the backend is a
 * relay.
 */
export const recovering = <E extends { readonly detail: string; readonly retryAfter?: number | undefined }>(
  relays: boolean,
  first: E,
  again: Effect.Effect<Signer, E>
): Signer => {
  let made: Signer | undefined
  let failure = first
  let triedAt: number | undefined
  const failed = Effect.suspend(() =>
    new SigningFailed({
      cause: "signer_failed",
      detail: `the signer of the profile cannot be used: ${failure.detail}`,
      isAway: !relays
    })
  )
  const trouble = Effect.gen(function*() {
    if (made !== undefined) return made.trouble === undefined ? undefined : yield* made.trouble
    const now = yield* lifeMillis
    triedAt ??= now
    if (now - triedAt < Math.max(againAfterMillis, (failure.retryAfter ?? 0) * 1000)) return failure.detail
    triedAt = now
    return yield* Effect.matchEffect(again, {
      onFailure: (error) => {
        failure = error
        return Effect.succeed<string | undefined>(failure.detail)
      },
      onSuccess: (signer) => {
        made = signer
        return signer.trouble ?? Effect.succeed(undefined)
      }
    })
  })
  const revoke: NonNullable<Signer["revoke"]> = (leaf, reason) =>
    Effect.suspend(() => made?.revoke === undefined ? failed : made.revoke(leaf, reason))
  return relays
    ? {
      relay: (request, relaying) =>
        Effect.suspend(() => made?.relay === undefined ? failed : made.relay(request, relaying)),
      renewal: (certificate) => Effect.suspend(() => made?.renewal === undefined ? failed : made.renewal(certificate)),
      leftOver: (orderUrl) => Effect.suspend(() => made?.leftOver === undefined ? failed : made.leftOver(orderUrl)),
      revoke,
      trouble
    }
    : {
      issue: (request) => Effect.suspend(() => made?.issue === undefined ? failed : made.issue(request)),
      // Until the backend is made, it is unknown whether the backend revokes, as a program does, or publishes a list,
      // as a local CA does.
      get revoke() {
        return made?.revoke
      },
      issuing: Effect.suspend(() => made?.issuing ?? Effect.succeed(undefined)),
      get crls() {
        return made?.crls
      },
      trouble
    } as Signer
}
