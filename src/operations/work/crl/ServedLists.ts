import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { listedSerials } from "../../../crypto/x509/Crl.ts"
import { readRevocationList } from "../../../crypto/x509/RevocationList.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { ForkedList } from "../../../services/signing/PublishedCrls.ts"
import { latestRevocation } from "./ListDate.ts"
import { enqueueList } from "./ListJob.ts"
import { compare, restore } from "./RestoredRevocations.ts"

/*
 * Restores revocations to the database from a list that a process has served, if the database has gone back to a state
 * without them (docs/contribute/decisions/issued-lists.md).
 */

/** How the rows of the trail and the log name the source. */
const source = "a list that was served"

/** No list omits a revocation that is less than this many seconds old, because such a revocation is never pruned. */
const neverPrunedSeconds = 3600

/**
 * Compares a list that was served with the list that is stored now. If the stored list lacks a revocation that is still
 * needed, records the revocation again, and queues the signing of a list that is newer than both. Returns whether the
 * served list must continue to be served. If no order has the certificate of an entry, the entry is needed only if it
 * is recent, or if the number of the stored list shows that the database has gone back.
 */
export const takeBack = Effect.fnUntraced(function*({ issuer, isOlder, served, stored }: ForkedList) {
  const list = yield* Effect.option(readRevocationList(served))
  if (list._tag === "None") return isOlder
  const listed = stored === undefined ? new Set() : Result.getOrElse(listedSerials(stored), () => new Set<string>())
  const entries = list.value.entries.filter(({ serial }) => !listed.has(serial))
  const of = { issuer, path: source, list: { ...list.value, entries } }
  const compared = yield* compare(of)
  const young = (yield* currentSeconds) - neverPrunedSeconds
  const lacking = compared.lacking.filter((entry) =>
    isOlder || entry.certificate !== undefined || latestRevocation(entry, list.value) > young
  )
  yield* restore(of, { ...compared, lacking }, { actorKind: "system" })
  const isNeeded = isOlder || lacking.length > 0 || compared.recorded > 0
  if (isNeeded) yield* enqueueList(issuer, list.value.number)
  return isNeeded
})
