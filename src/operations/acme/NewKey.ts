import * as Effect from "effect/Effect"
import type { AccountId } from "../../domain/Id.ts"
import { PublicKeys } from "../../services/keys/PublicKeys.ts"
import * as burntKeys from "../../store/revocation/BurntKeys.ts"

/**
 * Returns why a public key is refused for accounts and certificates, or undefined. The key is weak, on a list, or
 * burnt, either for everybody or for the account that presents it. Stored keys are not checked again.
 */
export const faultOf = Effect.fnUntraced(function*(spki: Uint8Array, broughtBy?: AccountId) {
  const keys = yield* PublicKeys
  const fault = yield* keys.faultOf(spki)
  if (fault !== undefined) return fault
  return (yield* burntKeys.isBurnt(spki, broughtBy))
    ? { reason: "burnt_key" as const, detail: "A certificate for this key was revoked for key compromise." }
    : undefined
})
