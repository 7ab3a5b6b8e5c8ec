import { Effect } from "effect"
import type { Job, JobKind } from "../../domain/Job.ts"
import { mostAtOnce } from "../../domain/Job.ts"
import type { Database, StorageFailed } from "../db/Database.ts"

/** Kinds with the seconds their leases last. */
export type Leases = ReadonlyArray<readonly [kind: JobKind, seconds: number]>

type Claim = (of: {
  readonly limit: number
  readonly leases: Leases
  /** Some kind is passed over. */
  readonly among: boolean
}) => Effect.Effect<ReadonlyArray<Job>, StorageFailed, Database>

/** The places of one runner, and which kinds hold them. Some kinds may not have them all (`mostAtOnce`). */
export const make = () => {
  const held = new Map<JobKind, number>()
  let [active, mayHaveMore] = [0, false]
  const count = (kind: JobKind, by: number) => {
    held.set(kind, (held.get(kind) ?? 0) + by)
    active += by
  }
  return {
    /**
     * Fills the free slots, the oldest rows first; a kind that has its share is passed over. No more are asked for at once than
     * every kind that may still come has room for, so that one question is enough unless a share is about to be used up.
     */
    fill: (slots: number, leases: Leases, claim: Claim): Effect.Effect<ReadonlyArray<Job>, StorageFailed, Database> =>
      Effect.gen(function*() {
        const roomOf = (kind: JobKind) => mostAtOnce(kind, slots) - (held.get(kind) ?? 0)
        const claimed: Array<Job> = []
        mayHaveMore = slots <= active
        for (;;) {
          const free = slots - active
          if (free <= 0) break
          const open = leases.filter(([kind]) => roomOf(kind) > 0)
          const limit = Math.min(free, ...open.map(([kind]) => roomOf(kind)))
          const among = open.length < leases.length
          const asked = claim({ limit, leases: open, among })
          // What was claimed before has to be run.
          const found = yield* claimed.length === 0 ? asked : Effect.orElseSucceed(asked, () => [])
          for (const { kind } of found) count(kind, 1)
          claimed.push(...found)
          mayHaveMore = among || found.length === limit
          if (found.length < limit) break
        }
        return claimed
      }),
    /** Gives a slot back; answers whether somebody may be waiting for it. */
    release: ({ kind }: Job): boolean => {
      count(kind, -1)
      return mayHaveMore
    }
  }
}
