import * as Effect from "effect/Effect"
import { sha256 } from "../../crypto/Digest.ts"
import type { OrderId } from "../../domain/Id.ts"
import { name, text, texts, uuid } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * Chains that a client may choose in place of the usual one (RFC 8555 section 7.4.2). They are stored as PEM without the
 * leaf, so that all certificates of a CA share one row.
 */

const keepStatement = statement({
  name: "alternate_chain_keep",
  params: { id: name(), chain: text() },
  row: {},
  sql: () => `INSERT INTO alternate_chains (id, chain) VALUES (:id, :chain) ON CONFLICT (id) DO NOTHING`
})

const offerStatement = statement({
  name: "order_alternate_chains",
  params: { id: uuid<OrderId>(), chains: texts },
  row: {},
  sql: () => `UPDATE orders SET alternate_chains = :chains WHERE id = :id`
})

const findStatement = statement({
  name: "alternate_chain_find",
  params: { id: name() },
  row: { chain: text() },
  sql: () => `SELECT chain FROM alternate_chains WHERE id = :id`
})

/** Stores the alternate chains of an order's certificate: PEM without the leaf, in the order of their URLs. */
export const offer = Effect.fnUntraced(function*(id: OrderId, chains: ReadonlyArray<string>) {
  const ids: Array<string> = []
  for (const chain of chains) {
    const of = sha256(Buffer.from(chain))
    ids.push(of)
    yield* run(keepStatement, { id: of, chain })
  }
  yield* run(offerStatement, { id, chains: ids })
})

/** Returns an alternate chain by its id: PEM without a leaf. */
export const find = (id: string) => first(findStatement, { id })
