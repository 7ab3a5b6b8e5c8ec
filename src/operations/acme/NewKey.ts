import * as Effect from "effect/Effect"
import type { AccountId } from "../../domain/Id.ts"
import { PublicKeys } from "../../services/keys/PublicKeys.ts"
import { burntFault } from "../BurntKey.ts"

/** Returns why a public key is refused: it is weak, listed or burnt. Stored keys are not checked again. */
export const faultOf = Effect.fnUntraced(function*(spki: Uint8Array, broughtBy: AccountId) {
  return (yield* (yield* PublicKeys).faultOf(spki)) ?? (yield* burntFault(spki, broughtBy))
})
