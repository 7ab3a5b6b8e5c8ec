import * as Effect from "effect/Effect"
import type { AccountId } from "../domain/Id.ts"
import * as burntKeys from "../store/revocation/BurntKeys.ts"

/**
 * Returns the refusal if a key is burnt. A key may be burnt for everybody, or only for the account that presents it.
 */
export const burntFault = Effect.fnUntraced(function*(spki: Uint8Array, broughtBy?: AccountId) {
  return (yield* burntKeys.isBurnt(spki, broughtBy))
    ? { reason: "burnt_key" as const, detail: "A certificate for this key was revoked for key compromise." }
    : undefined
})
