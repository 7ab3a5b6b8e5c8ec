import * as Effect from "effect/Effect"
import type { StorageFailed } from "../sql/Database.ts"
import { Database, ifUndone } from "../sql/Database.ts"
import { lifeMillis } from "../Time.ts"
import type { Job, JobId } from "./Job.ts"
import { groupOf, memberOf } from "./Job.ts"
import { LastTurns } from "./LastTurns.ts"

/** How many jobs of a kind one process may have at once. */
export interface Room {
  readonly slots: number
  /** Slots that are given in order of arrival. Beyond them, the share with the fewest slots comes first. */
  readonly firstCome: number
  /** The highest number of slots that one group may have. */
  readonly group: number
  /**
   * A member may take another slot while it has fewer slots than this fraction of the slots that are left for its
   * group. Every member may have one slot.
   */
  readonly memberPart: number
}

/**
 * Returns the room of a kind if `jobs.max_concurrent` is `most`. Every kind has its own room, so that no kind waits for
 * another kind.
 */
export type RoomBy = (most: number) => Room

/** Returns the room of a kind whose jobs compute. */
export const computing: RoomBy = (most) => {
  // One slot is left for other groups, because a job may run a slow program.
  const others = most < 4 ? 0 : 1
  return { slots: most, firstCome: most - others, group: most - others, memberPart: Number.POSITIVE_INFINITY }
}

/**
 * Makes the room of a kind whose jobs wait for other systems, such as a name server, and do not compute. This room has
 * `factor` slots for each slot of a computing kind. The more slots are taken, the fewer a member may have, so that some
 * slots are left for newcomers.
 */
export const waiting =
  ({ factor, memberPart }: { readonly factor: number } & Pick<Room, "memberPart">): RoomBy => (most) => {
    const slots = factor * most
    // The results are rounded, because `firstCome` becomes the limit of a statement.
    return { slots, firstCome: Math.ceil(slots / 4), group: Math.floor(slots * 3 / 4), memberPart }
  }

type Asked<A> = Effect.Effect<ReadonlyArray<A>, StorageFailed, Database>

/** The oldest waiting row of a share. */
export interface Head {
  readonly id: JobId
  readonly share: string
  readonly runAt: number
}

/** The functions that read, claim and begin rows. */
export interface Source {
  /** Begins a claimed row. It is called at the end of a pass, even after a failure or a defect. */
  readonly begin: (job: Job) => void
  /** Claims the oldest due rows. `among` means that some kinds are left out. */
  readonly claim: (of: {
    readonly limit: number
    readonly kinds: ReadonlyArray<string>
    readonly among: boolean
  }) => Asked<Job>
  /** Reads the oldest due rows of a kind. */
  readonly due: (of: { readonly kind: string; readonly limit: number }) => Asked<Head>
  /** Reads the groups of a kind that have waiting rows. */
  readonly groups: (kind: string) => Asked<string>
  /**
   * Reads the oldest waiting row, due or not, of each share of a group: up to `limit` shares, beginning with `from`, if
   * there is one.
   */
  readonly heads: (of: {
    readonly kind: string
    readonly group: string
    readonly from: string | undefined
    readonly limit: number
  }) => Asked<Head>
  readonly claimThese: (ids: ReadonlyArray<JobId>) => Asked<Job>
}

/** How many of the oldest due rows are read before a choice. If there are more, shares are read too. */
const mostRows = 100

/** How many shares are read before a choice, of how many groups. The next look begins where this one ended. */
const mostShares = 100
const mostGroups = 10

/** The highest number of looks in one pass that find nothing to claim. */
const mostLooks = 8

/** What decides which share gets the next slot. */
export interface Standing {
  /** Returns how many slots the group of a share has, how many its member, and how many the share itself. */
  readonly of: (share: string) => readonly [group: number, member: number, share: number]
  /** {@link LastTurns.waitsSince} */
  readonly waitsSince: (name: string, runAt: number) => number
}

/** The jobs of one kind that one process has. */
class Held implements Standing {
  count = 0
  readonly groups = new Map<string, number>()
  readonly members = new Map<string, number>()
  readonly shares = new Map<string, number>()
  /** Whether more rows may be waiting than there is room for. */
  isCrowded = false
  /** The group before which the next look begins, and for each group that has more shares, the share. */
  nextGroup = ""
  readonly nextShares = new Map<string, string>()
  readonly #turns = new LastTurns()

  of(share: string): readonly [group: number, member: number, share: number] {
    return [
      this.groups.get(groupOf(share)) ?? 0,
      this.members.get(memberOf(share)) ?? 0,
      this.shares.get(share) ?? 0
    ]
  }

  waitsSince(name: string, runAt: number): number {
    return this.#turns.waitsSince(name, runAt)
  }

  setTime(now: number): void {
    this.#turns.setTime(now)
  }

  add(share: string, by: 1 | -1): void {
    this.count += by
    const counts = [[this.groups, groupOf(share)], [this.members, memberOf(share)], [this.shares, share]] as const
    for (const [held, name] of counts) {
      const now = (held.get(name) ?? 0) + by
      if (now === 0) held.delete(name)
      else held.set(name, now)
      if (by === -1) this.#turns.end(name)
    }
  }
}

/**
 * Chooses the heads to claim now. The group, the member and the share with the fewest slots come first, and no group or
 * member gets more than its part. Among equals, those come first that have waited longest, either since the row was due
 * or since their last turn.
 */
export const choose = (
  heads: ReadonlyArray<Head>,
  standing: Standing,
  { free, group, memberPart }: Pick<Room, "group" | "memberPart"> & { readonly free: number }
): ReadonlyArray<Head> => {
  const givenTo = { groups: new Map<string, number>(), members: new Map<string, number>() }
  const chosen = new Set<Head>()
  const ofGroup = (share: string) => standing.of(share)[0] + (givenTo.groups.get(groupOf(share)) ?? 0)
  const ofMember = (share: string) => standing.of(share)[1] + (givenTo.members.get(memberOf(share)) ?? 0)
  const mayHave = (share: string) => {
    const left = Math.min(group - ofGroup(share), free - chosen.size)
    return left > 0 && ofMember(share) < Math.max(1, Math.floor(left * memberPart))
  }
  const order = ({ runAt, share }: Head): ReadonlyArray<number> => [
    ofGroup(share),
    ofMember(share),
    standing.of(share)[2],
    standing.waitsSince(groupOf(share), runAt),
    standing.waitsSince(memberOf(share), runAt),
    standing.waitsSince(share, runAt),
    runAt
  ]
  while (chosen.size < free) {
    let best: { readonly head: Head; readonly order: ReadonlyArray<number> } | undefined
    for (const head of heads) {
      if (chosen.has(head) || !mayHave(head.share)) continue
      const one = { head, order: order(head) }
      if (best === undefined || isBefore(one.order, best.order)) best = one
    }
    if (best === undefined) break
    chosen.add(best.head)
    const { share } = best.head
    for (const [given, name] of [[givenTo.groups, groupOf(share)], [givenTo.members, memberOf(share)]] as const) {
      given.set(name, (given.get(name) ?? 0) + 1)
    }
  }
  return [...chosen]
}

const isBefore = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): boolean => {
  const at = one.findIndex((value, index) => value !== other[index])
  return Number(one[at]) < Number(other[at])
}

/** Makes the slots of one runner. Every kind has its own room, so that no kind waits for another kind. */
export const make = (roomOf: (kind: string, most: number) => Room | undefined) => {
  const held = new Map<string, Held>()
  /** Whether uncounted rows may be waiting: before the first pass, and during a pass. */
  let isLooking = true
  const heldOf = (kind: string): Held => {
    const known = held.get(kind) ?? new Held()
    held.set(kind, known)
    return known
  }
  const take = (all: Array<Job>, claimed: ReadonlyArray<Job>) => {
    for (const { kind, share } of claimed) heldOf(kind).add(share, 1)
    all.push(...claimed)
  }

  /**
   * Claims the oldest rows first, while slots are given in order of arrival. It never claims more rows of a kind than
   * the kind has room for.
   */
  const oldest = Effect.fnUntraced(function*(
    all: Array<Job>,
    most: number,
    kinds: ReadonlyArray<string>,
    { claim }: Source
  ) {
    const roomFor = (kind: string) => {
      const room = roomOf(kind, most)
      if (room === undefined) return most
      const has = heldOf(kind)
      has.isCrowded ||= has.count >= room.firstCome
      return has.isCrowded ? 0 : room.firstCome - has.count
    }
    for (;;) {
      const open = kinds.filter((kind) => roomFor(kind) > 0)
      if (open.length === 0) return
      const limit = Math.min(...open.map(roomFor))
      const claimed = yield* claim({ limit, kinds: open, among: open.length < kinds.length })
      take(all, claimed)
      if (claimed.length < limit) return
    }
  })

  /**
   * Reads the oldest row of some shares of every group that may have another slot, or of some of these groups if there
   * are many. So a group is found however many shares another group has. `isCut` means that there are more shares.
   */
  const window = Effect.fnUntraced(function*(kind: string, room: Room, { groups, heads }: Source) {
    const has = heldOf(kind)
    const all = (yield* groups(kind)).toSorted()
    for (const group of has.nextShares.keys()) if (!all.includes(group)) has.nextShares.delete(group)
    const open = all.filter((group) => (has.groups.get(group) ?? 0) < room.group)
    const first = Math.max(open.findIndex((group) => group >= has.nextGroup), 0)
    const inTurn = [...open.slice(first), ...open.slice(0, first)]
    const some = inTurn.slice(0, mostGroups)
    has.nextGroup = inTurn[mostGroups] ?? ""
    const limit = Math.ceil(mostShares / Math.max(some.length, 1))
    const found = yield* Effect.forEach(
      some,
      (group) =>
        Effect.map(heads({ kind, group, from: has.nextShares.get(group), limit: limit + 1 }), (found) => {
          const next = found[limit]
          if (next === undefined) has.nextShares.delete(group)
          else has.nextShares.set(group, next.share)
          return found.slice(0, limit)
        })
    )
    const isCut = inTurn.length > mostGroups || some.some((group) => has.nextShares.has(group))
    return { shares: found.flat(), isCut }
  })

  /**
   * Claims rows of a crowded kind ({@link Held.isCrowded}). The share with the fewest slots comes first. If many rows are
   * due, the oldest of them are among those to choose from, so that rows that are not due cannot hide them.
   */
  const fairly = Effect.fnUntraced(function*(
    all: Array<Job>,
    most: number,
    kind: string,
    now: number,
    source: Source
  ) {
    const room = roomOf(kind, most)
    const has = heldOf(kind)
    if (room === undefined || !has.isCrowded) return
    for (let looks = 0; looks < mostLooks;) {
      const free = room.slots - has.count
      if (free <= 0) return
      const oldest = yield* source.due({ kind, limit: mostRows })
      const isWhole = oldest.length < mostRows
      const { isCut, shares } = isWhole ? { isCut: false, shares: [] } : yield* window(kind, room, source)
      const heads = new Map<string, Head>()
      for (const one of [...oldest, ...shares]) {
        if (one.runAt <= now && !heads.has(one.share)) heads.set(one.share, one)
      }
      const chosen = choose([...heads.values()], has, { ...room, free })
      const claimed = chosen.length === 0 ? [] : yield* source.claimThese(chosen.map(({ id }) => id))
      take(all, claimed)
      if (claimed.length > 0) continue
      looks++
      if (isCut) continue
      has.isCrowded = oldest.length > 0
      return
    }
  })

  return {
    /** Claims as many rows as there is room for, and begins them. */
    fill: (
      most: number,
      kinds: ReadonlyArray<string>,
      now: number,
      source: Source
    ): Effect.Effect<void, StorageFailed, Database> =>
      Effect.suspend(() => {
        const all: Array<Job> = []
        isLooking = true
        for (const kind of kinds) heldOf(kind).setTime(now)
        return Effect.andThen(
          oldest(all, most, kinds, source),
          Effect.forEach(kinds, (kind) => fairly(all, most, kind, now, source), { discard: true })
        ).pipe(
          Effect.map(() => void (isLooking = false)),
          Effect.ensuring(Effect.sync(() => all.forEach(source.begin)))
        )
      }),
    /**
     * Takes a slot for a row that is about to be written, if the slots of its kind are given in order of arrival and no
     * row is known to wait for a slot. A pass relies on the slots that it found free, so no slot is taken during a
     * pass.
     */
    reserve: (most: number, kind: string, share: string): boolean => {
      const room = roomOf(kind, most)
      if (room === undefined || isLooking) return false
      const has = heldOf(kind)
      has.isCrowded ||= has.count >= room.firstCome
      if (has.isCrowded) return false
      has.add(share, 1)
      return true
    },
    /** Gives a slot back. Returns whether a row may be waiting for it. */
    release: ({ kind, share }: Pick<Job, "kind" | "share">): boolean => {
      const has = heldOf(kind)
      has.add(share, -1)
      return has.isCrowded
    }
  }
}

/* Reserves slots for jobs until their commit. */

/**
 * A slot that is reserved for a job that is about to be written as already claimed
 * (docs/contribute/decisions/wake-up.md, "Jobs that begin with their commit").
 */
export interface ReservedSlot {
  /** The owner that the row names. */
  readonly owner: string
  /** Begins the job's attempt. Call it after the commit. */
  readonly begin: (job: Job) => Effect.Effect<void>
  /** Gives the slot back. Has no effect the second time, or after `begin`. */
  readonly giveBack: Effect.Effect<void>
}

/** Takes a slot for a job. Returns `undefined` if the job must wait for its turn. */
export type Offer = (kind: string, share: string) => ReservedSlot | undefined

/** The connection between the code that enqueues jobs and the runner of the process, if there is one. */
export interface ReservedSlots {
  /** Sets the offer of the runner. There is no offer at first. */
  readonly offer: (offer: Offer | undefined) => void
  /**
   * Takes a slot for a job that the open transaction enqueues. The slot is given back when that transaction is rolled
   * back, and before its body runs again. Returns `undefined` outside a transaction.
   */
  readonly take: (kind: string, share: string) => Effect.Effect<ReservedSlot | undefined>
}

/** Makes a {@link ReservedSlots} that has no offer yet. */
export const makeReserved = (): ReservedSlots => {
  let offered: Offer | undefined
  return {
    offer: (offer) => void (offered = offer),
    take: Effect.fnUntraced(function*(kind, share) {
      const reserved = offered?.(kind, share)
      if (reserved === undefined || (yield* ifUndone(reserved.giveBack))) return reserved
      yield* reserved.giveBack
      return undefined
    })
  }
}

/** Makes the offer of a runner. */
export const offerOf = (runner: {
  readonly owner: string
  /** Takes a slot. */
  readonly reserve: (kind: string, share: string) => boolean
  readonly release: (slot: Pick<Job, "kind" | "share">) => Effect.Effect<void>
  readonly inForce: { readonly isDraining: boolean }
  /** Begins an attempt, which gives the slot back at its end. */
  readonly begin: (job: Job, heldAt: number) => void
  /** Makes the row ready again. */
  readonly handBack: (job: Job, spentAt: number) => Effect.Effect<unknown, StorageFailed, Database>
  readonly database: Database["Service"]
}): Offer =>
(kind, share) => {
  if (runner.inForce.isDraining || !runner.reserve(kind, share)) return undefined
  const handBack = (job: Job, life: number) =>
    Effect.provideService(runner.handBack(job, life), Database, runner.database)
  let isKept = true
  const giveBack = Effect.suspend(() => {
    if (!isKept) return Effect.void
    isKept = false
    return runner.release({ kind, share })
  })
  return {
    owner: runner.owner,
    begin: Effect.fnUntraced(function*(job) {
      const life = yield* lifeMillis
      // The runner stops, so the row is made ready again. Otherwise it would stay claimed until another process notices
      // that this process is dead.
      if (runner.inForce.isDraining) return yield* Effect.andThen(Effect.ignore(handBack(job, life)), giveBack)
      isKept = false
      runner.begin(job, life)
    }),
    giveBack
  }
}
