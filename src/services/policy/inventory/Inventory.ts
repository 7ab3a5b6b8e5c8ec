import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Comparable } from "../../../engine/net/Address.ts"

/** The inventory gave no usable answer. `detail` names what was queried, and has no secret. */
export class InventoryFailed extends Data.TaggedError("InventoryFailed")<{ readonly detail: string }> {}

/**
 * An inventory knows which names an address owns (docs/decisions/policy.md, "Inventories"). It has no outcome for a
 * denial, so that an outage can never become a verdict.
 */
export interface Inventory {
  /**
   * Returns where an address is looked up first, for operators: a product and its URL, or a program. The text has no
   * secret.
   */
  readonly placeOf: (client: Comparable) => string
  /** Returns the names as the inventory spells them, or `undefined` if it has no record of the address. */
  readonly namesFor: (client: Comparable) => Effect.Effect<ReadonlyArray<string> | undefined, InventoryFailed>
}

/** Returns a name in the form in which names are compared. */
export const normalName = (name: string): string => name.trim().toLowerCase().replace(/\.$/, "")

/** Reads an answer with a schema. Returns nothing if the answer does not fit. */
export type Read<A> = (json: unknown) => Option.Option<A>

/** The words for an answer that does not fit the schema. */
export const unfit = "answers in a form that is not expected"

/** Custom fields of a record. */
export const Fields = Schema.Record(Schema.String, Schema.Unknown)
