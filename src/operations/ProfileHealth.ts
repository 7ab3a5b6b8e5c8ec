import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { emit } from "../domain/words/Log.ts"
import type { Database, StorageFailed } from "../engine/sql/Database.ts"
import { currentSeconds } from "../engine/Time.ts"
import type { Degraded } from "../services/signing/ProfileStates.ts"
import { ProfileStates } from "../services/signing/ProfileStates.ts"
import type { Signer } from "../services/signing/Signer.ts"
import { Signers } from "../services/signing/Signer.ts"
import * as states from "../store/ProfileStateRows.ts"
import * as compromised from "../store/revocation/CompromisedIssuers.ts"

/* Finds profiles for which no worker can sign (docs/contribute/decisions/degraded-profiles.md). */

/**
 * How recently, in seconds, a worker must have been seen. Reports of workers that were last seen earlier do not count.
 */
const seenWithinSeconds = 30

/** What a profile without a signer has. */
const nothing: Pick<Signer, "crls" | "issuing"> = {}

/** Makes an effect that stores those states of the worker's profiles that have changed since the last call. */
export const makeReport = (owner: string) => {
  const written = new Map<string, string | undefined>()
  return Effect.gen(function*() {
    const now = yield* currentSeconds
    const signers = yield* Signers
    const troubles = yield* signers.troubles
    const lost = yield* compromised.ids
    for (const [profile, own] of troubles) {
      const { issuing = Effect.succeed(undefined) } = yield* Effect.orElseSucceed(signers.of(profile), () => nothing)
      const issuer = lost.size === 0 ? undefined : yield* issuing
      const trouble = issuer !== undefined && lost.has(issuer)
        ? `The CA ${issuer}, which issues, is compromised; put another CA in its place.`
        : own
      if (written.has(profile) && written.get(profile) === trouble) continue
      const { crls = [] } = yield* Effect.orElseSucceed(signers.of(profile), () => nothing)
      const stopped = yield* Effect.filter(
        crls,
        ({ issued }) => Effect.map(issued.trouble, (text) => text !== undefined)
      )
      yield* states.report({ profile, owner, trouble, since: now, stoppedIssuer: stopped[0]?.id })
      const before = written.get(profile)
      written.set(profile, trouble)
      if (trouble !== undefined) yield* emit("profile_degraded", { profile, error: trouble })
      else if (before !== undefined) yield* emit("profile_recovered", { profile })
    }
    if ([...written.keys()].every((profile) => troubles.has(profile))) return
    for (const profile of written.keys()) if (!troubles.has(profile)) written.delete(profile)
    yield* states.forget(owner, [...troubles.keys()])
  })
}

/**
 * Returns the profiles for which every recently seen worker reports trouble, with the latest trouble of each profile.
 */
const degradedOf = (
  words: ReadonlyArray<Pick<states.ProfileState, "profile" | "since" | "trouble">>
): ReadonlyMap<string, Degraded> => {
  const degraded = new Map<string, Degraded>()
  const well = new Set<string>()
  for (const { profile, since, trouble } of words) {
    const known = degraded.get(profile)
    if (trouble === undefined) well.add(profile)
    // The first trouble counts whatever its time is. A time outside the range of integers was replaced by the nearest
    // integer of the range.
    else if (known === undefined || since >= known.since) degraded.set(profile, { trouble, since })
  }
  for (const profile of well) degraded.delete(profile)
  return degraded
}

/**
 * The revocations and lists of a CA have stopped, because no worker can read the record of its last list. `trouble`
 * says why.
 */
class ListsStopped extends Data.TaggedError("ListsStopped")<{ readonly issuer: string; readonly trouble: string }> {}

/**
 * Returns the CAs whose lists no worker signs, and the reasons. A CA is included only if every worker that serves its
 * profile reports this.
 */
const stoppedIssuers = (
  words: ReadonlyArray<Pick<states.ProfileState, "profile" | "stoppedIssuer" | "trouble">>
): ReadonlyMap<string, string> => {
  const lacking = new Set(
    words.filter(({ stoppedIssuer }) => stoppedIssuer === undefined).map(({ profile }) => profile)
  )
  const stopped = new Map<string, string>()
  for (const { profile, stoppedIssuer, trouble } of words) {
    if (stoppedIssuer !== undefined && !lacking.has(profile)) {
      stopped.set(stoppedIssuer, trouble ?? "the record of its last list cannot be used")
    }
  }
  return stopped
}

/** Refuses a revocation if no list would ever contain it. */
export const refuseStopped = Effect.fnUntraced(function*(issuer: string) {
  const trouble = stoppedIssuers(yield* states.verdicts((yield* currentSeconds) - seenWithinSeconds)).get(issuer)
  if (trouble !== undefined) return yield* new ListsStopped({ issuer, trouble })
})

/** Returns the CAs whose lists no worker signs, for the lists and pages that operators see. */
export const stoppedShown = Effect.gen(function*() {
  return stoppedIssuers(yield* states.list((yield* currentSeconds) - seenWithinSeconds))
})

/** Returns the profiles for which no worker can sign, for the lists and pages that operators see. */
export const degradedShown = Effect.gen(function*() {
  return degradedOf(yield* states.list((yield* currentSeconds) - seenWithinSeconds))
})

/** Reads the states that workers have stored. While the database is unavailable, the last known states are kept. */
export const refresh: Effect.Effect<void, StorageFailed, Database | ProfileStates> = Effect.gen(function*() {
  const { set } = yield* ProfileStates
  set(yield* degradedShown)
})
