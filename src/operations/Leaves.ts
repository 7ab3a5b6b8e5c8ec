import * as Effect from "effect/Effect"

import type { NamedLeaf } from "../crypto/x509/CertId.ts"
import { namedLeafOf } from "../crypto/x509/CertId.ts"

/** How many chains are parsed before other fibers run. Parsing this many takes a few milliseconds. */
const parsedAtOnce = 50

/**
 * Returns the leaves of chains, with `undefined` for a chain that cannot be read. Other fibers can run while many
 * chains are parsed.
 */
export const leavesOf = Effect.fnUntraced(function*(chains: ReadonlyArray<string | undefined>) {
  const leaves: Array<NamedLeaf | undefined> = []
  for (const chain of chains) {
    if (leaves.length % parsedAtOnce === parsedAtOnce - 1) yield* Effect.yieldNow
    leaves.push(chain === undefined ? undefined : namedLeafOf(chain))
  }
  return leaves
})
