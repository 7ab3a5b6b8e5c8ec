import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Comparable } from "../../../engine/net/Address.ts"

/** The inventory gave no usable answer. `detail` names what was asked, and contains no secret. */
export class InventoryFailed extends Data.TaggedError("InventoryFailed")<{ readonly detail: string }> {}

/**
 * Answers which names an address owns (docs/decisions/policy.md, "Inventories"). It has no outcome for a denial, so that an
 * outage can never become a verdict.
 */
export interface Inventory {
  /** Where an address is looked up first, for operators: a product and its URL, or a program. Holds no secret. */
  readonly placeOf: (client: Comparable) => string
  /** The names as the inventory spells them; `undefined` when it has no record of the address. */
  readonly namesFor: (client: Comparable) => Effect.Effect<ReadonlyArray<string> | undefined, InventoryFailed>
}

/** The one spelling in which names are compared. */
export const normalName = (name: string): string => name.trim().toLowerCase().replace(/\.$/, "")

/** Reads an answer by a schema; absent if it does not fit. */
export type Read<A> = (json: unknown) => Option.Option<A>

/** The words for an answer that does not fit the schema. */
export const unfit = "answers in a form that is not expected"

/** Custom fields of a record. */
export const Fields = Schema.Record(Schema.String, Schema.Unknown)
