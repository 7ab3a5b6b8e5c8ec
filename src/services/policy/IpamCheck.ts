import * as Effect from "effect/Effect"
import { emit } from "../../domain/words/Log.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import type { Check, CheckAnswer, NamedIdentifier } from "./Check.ts"
import { addressUnknown, passed, refused, refusedNames, undecided } from "./Check.ts"
import type { Inventory } from "./inventory/Inventory.ts"
import { InventoryFailed, normalName } from "./inventory/Inventory.ts"

const judge = (
  wanted: ReadonlyArray<NamedIdentifier>,
  address: string,
  place: string
) =>
(names: ReadonlyArray<string> | undefined): CheckAnswer => {
  if (names === undefined) return refused(`the client address ${address} has no inventory record`, place)
  const owned = new Set(names.map(normalName))
  const foreign = wanted.filter(({ value }) => !owned.has(normalName(value)))
  if (foreign.length === 0) return passed
  const words = `the client address ${address} is not associated with`
  const found = names.length === 0 ? "no names" : names.join(", ")
  return refusedNames(foreign.map((identifier) => ({ identifier, words })), `${place} has ${found}`)
}

/** Makes a check of type `ipam`, which passes if the inventory has every name of type dns for the client's address. */
export const ipamCheck = ({ backend, timeout_ms }: ProfileConfig["ipam"], inventory: Inventory): Check => ({
  _tag: "Looking",
  ask: (question) => {
    const wanted = question.stage === "identifiers" ? question.identifiers.filter(({ type }) => type === "dns") : []
    if (wanted.length === 0) return Effect.succeed(passed)
    const { client } = question
    if (client === undefined) return Effect.succeed(addressUnknown)
    const late = `${inventory.placeOf(client)}: no answer within ${timeout_ms} ms (ipam.timeout_ms)`
    const names = inventory.namesFor(client)
    // A program has this limit too, but without its wait for a turn.
    const limited = backend === "custom"
      ? names
      : Effect.timeoutOrElse(names, {
        duration: timeout_ms,
        orElse: () => Effect.fail(new InventoryFailed({ detail: late }))
      })
    return limited.pipe(
      Effect.map(judge(wanted, client.text, inventory.placeOf(client))),
      Effect.catch(({ detail }) => Effect.as(emit("ipam_lookup_failed", { backend, error: detail }), undecided(detail)))
    )
  }
})
