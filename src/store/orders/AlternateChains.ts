import * as Effect from "effect/Effect"
import { sha256Octets } from "../../crypto/Digest.ts"
import type { OrderId } from "../../domain/Id.ts"
import type { ValuesOf } from "../../engine/sql/Column.ts"
import { name, text, texts, uuid } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { chainParams, keeping } from "./StoredChain.ts"

/*
 * Chains that a client may choose in place of the usual one (RFC 8555 section 7.4.2). They are stored as PEM without the
 * leaf, so that all certificates of a CA share one row. The issuers of the usual chain have a row here too
 * (`StoredChain.ts`).
 */

const keepStatement = statement({
  name: "alternate_chain_keep",
  params: { issuers: chainParams.issuers, issuersPem: chainParams.issuersPem },
  row: {},
  sql: (f) => keeping(f)
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

/** Stores the issuers of a chain, unless they are `undefined` or their row exists. */
export const keep = (issuers: Pick<ValuesOf<typeof chainParams>, "issuers" | "issuersPem">) =>
  run(keepStatement, issuers)

/** Stores the alternate chains of an order's certificate: PEM without the leaf, in the order of their URLs. */
export const offer = Effect.fnUntraced(function*(id: OrderId, chains: ReadonlyArray<string>) {
  const ids: Array<string> = []
  for (const chain of chains) {
    const issuers = sha256Octets(chain)
    ids.push(issuers.toString("hex"))
    yield* keep({ issuers, issuersPem: chain })
  }
  yield* run(offerStatement, { id, chains: ids })
})

/** Returns an alternate chain by its id: PEM without a leaf. */
export const find = (id: string) => first(findStatement, { id })
