import * as Effect from "effect/Effect"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import type { Check, CheckAnswer, NamedIdentifier } from "./Check.ts"
import { passed, refused, refusedNames, undecided } from "./Check.ts"
import type { Inventory } from "./inventory/Inventory.ts"
import { InventoryFailed, normalName } from "./inventory/Inventory.ts"

const unknown = refused("the client address is not known")
const unlisted = refused("address has no inventory record")

const judge = (wanted: ReadonlyArray<NamedIdentifier>) => (names: ReadonlyArray<string> | undefined): CheckAnswer => {
  if (names === undefined) return unlisted
  const owned = new Set(names.map(normalName))
  const foreign = wanted.filter(({ value }) => !owned.has(normalName(value)))
  if (foreign.length === 0) return passed
  return refusedNames(foreign.map((identifier) => ({ identifier, words: "address is not associated with" })))
}

/** `ipam`: the inventory must have every name of type dns for the client's address. */
export const ipamCheck = ({ backend, timeout_ms }: ProfileConfig["ipam"], inventory: Inventory): Check => ({
  _tag: "Looking",
  ask: (question) => {
    const wanted = question.stage === "identifiers" ? question.identifiers.filter(({ type }) => type === "dns") : []
    if (wanted.length === 0) return Effect.succeed(passed)
    if (question.client === undefined) return Effect.succeed(unknown)
    return inventory.namesFor(question.client).pipe(
      Effect.timeoutOrElse({
        duration: timeout_ms,
        orElse: () => Effect.fail(new InventoryFailed({ detail: `no answer within ${timeout_ms} ms` }))
      }),
      Effect.map(judge(wanted)),
      Effect.catch(({ detail }) =>
        Effect.as(emit("ipam_lookup_failed", { backend, error: detail }), undecided(`ipam: ${detail}`))
      )
    )
  }
})
