import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Comparable } from "../../../engine/net/Address.ts"

/** The inventory gave no usable answer. `detail` names what was queried, and contains no secret. */
export class InventoryFailed extends Data.TaggedError("InventoryFailed")<{ readonly detail: string }> {}

/**
 * An inventory, which knows which names belong to an address (docs/contribute/decisions/policy.md, "Inventories"). It
 * cannot deny anything, so an outage can never become a verdict.
 */
export interface Inventory {
  /**
   * Returns the first place where an address is looked up, for operators: a product and its URL, or a program. The text
   * contains no secret.
   */
  readonly placeOf: (client: Comparable) => string
  /**
   * Returns the names as they are spelled in the inventory, or `undefined` if the inventory has no record of the
   * address.
   */
  readonly namesFor: (client: Comparable) => Effect.Effect<ReadonlyArray<string> | undefined, InventoryFailed>
}

/** Returns a name in the form in which names are compared. */
export const normalName = (name: string): string => name.trim().toLowerCase().replace(/\.$/, "")

/** Reads an answer with a schema. Returns `None` if the answer does not fit the schema. */
export type Read<A> = (json: unknown) => Option.Option<A>

/** How operators are told that an answer does not fit the schema. */
export const unfit = "answers in a form that is not expected"

/** Custom fields of a record. */
export const Fields = Schema.Record(Schema.String, Schema.Unknown)
