import * as Effect from "effect/Effect"

import type { NamedLeaf } from "../crypto/x509/CertId.ts"
import { namedLeafOf } from "../crypto/x509/CertId.ts"

/** As many chains are parsed in one Effect.yieldNow of the event loop: it takes some milliseconds. */
const parsedAtOnce = 50

/** The leaves of chains, `undefined` for one that cannot be read. Others have their Effect.yieldNow while many are parsed. */
export const leavesOf = Effect.fnUntraced(function*(chains: ReadonlyArray<string | undefined>) {
  const leaves: Array<NamedLeaf | undefined> = []
  for (const chain of chains) {
    if (leaves.length % parsedAtOnce === parsedAtOnce - 1) yield* Effect.yieldNow
    leaves.push(chain === undefined ? undefined : namedLeafOf(chain))
  }
  return leaves
})
