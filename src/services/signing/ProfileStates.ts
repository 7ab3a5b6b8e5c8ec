import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Why no worker can sign for a profile, as a sentence for operators, and since when, in epoch seconds. */
export interface Degraded {
  readonly trouble: string
  readonly since: number
}

/**
 * The profiles for which no worker can sign, as far as this process knows. They are read from the database every few
 * seconds, because only workers have signers (docs/contribute/decisions/degraded-profiles.md).
 */
export class ProfileStates extends Context.Service<ProfileStates, {
  readonly of: (profile: string) => Degraded | undefined
  readonly all: () => ReadonlyMap<string, Degraded>
  readonly set: (degraded: ReadonlyMap<string, Degraded>) => void
}>()("acme/services/signing/ProfileStates") {
  /** At first, every profile counts as able to sign. */
  static readonly layer: Layer.Layer<ProfileStates> = Layer.effect(
    this,
    Effect.sync(() => {
      let known: ReadonlyMap<string, Degraded> = new Map()
      return { of: (profile) => known.get(profile), all: () => known, set: (degraded) => void (known = degraded) }
    })
  )
}
