import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Comparable } from "../../../kernel/net/Address.ts"

/** The inventory gave no readable answer. `detail` contains no secret. */
export class InventoryFailed extends Data.TaggedError("InventoryFailed")<{ readonly detail: string }> {}

/**
 * Answers which names an address owns (docs/decisions/policy.md, "Inventories"). It has no outcome for a denial, so that an
 * outage can never become a verdict.
 */
export interface Inventory {
  /** What is asked about an address first, for operators: the product and a URL, or a program. Contains no secret. */
  readonly placeOf: (client: Comparable) => string
  /** The names as the inventory spells them; `undefined` when it has no record of the address. */
  readonly namesFor: (client: Comparable) => Effect.Effect<ReadonlyArray<string> | undefined, InventoryFailed>
}

/** The one spelling in which names are compared. */
export const normalName = (name: string): string => name.trim().toLowerCase().replace(/\.$/, "")

/** Reads an answer by a schema. An answer that does not fit is a failure, which quotes nothing of it. */
export const decoded = <A, I>(schema: Schema.Codec<A, I>): (json: unknown) => Effect.Effect<A, InventoryFailed> => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (json) =>
    Effect.mapError(decode(json), () => new InventoryFailed({ detail: "the answer does not have the expected form" }))
}

/** Custom fields of a record. */
export const Fields = Schema.Record(Schema.String, Schema.Unknown)
