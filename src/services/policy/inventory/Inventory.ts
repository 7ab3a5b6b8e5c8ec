import { Data, Either, Schema } from "effect"
import type { Effect } from "effect"
import type { Comparable } from "../../../kernel/net/Address.ts"

/** The inventory gave no answer that could be read. `detail` holds no secret. */
export class InventoryFailed extends Data.TaggedError("InventoryFailed")<{ readonly detail: string }> {}

/**
 * Answers which names an address owns (docs/decisions/policy.md, "Inventories"). There is no outcome for a denial, so that
 * no outage can turn into a verdict.
 */
export interface Inventory {
  /** The names as they were written down; `undefined` when there is no record of the address. */
  readonly namesFor: (client: Comparable) => Effect.Effect<ReadonlyArray<string> | undefined, InventoryFailed>
}

/** The one spelling names are compared in. */
export const normalName = (name: string): string => name.trim().toLowerCase().replace(/\.$/, "")

/** Reads an answer by a schema; what does not fit is a failure that quotes nothing. */
export const decoded = <A, I>(schema: Schema.Schema<A, I>): (json: unknown) => Either.Either<A, InventoryFailed> => {
  const decode = Schema.decodeUnknownEither(schema)
  return (json) =>
    Either.mapLeft(decode(json), () => new InventoryFailed({ detail: "the answer does not have the expected form" }))
}

/** Custom fields of a record. */
export const Fields = Schema.Record({ key: Schema.String, value: Schema.Unknown })
