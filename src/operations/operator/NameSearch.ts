import * as Effect from "effect/Effect"
import { firstIdAt, OrderId } from "../../domain/Id.ts"
import { hasFilterWord } from "../../domain/Order.ts"
import { forget, kept } from "../../engine/sql/KeptCounts.ts"
import { currentMillis } from "../../engine/Time.ts"
import type { Sought, Stretch } from "../../store/orders/NameWalk.ts"
import * as nameWalk from "../../store/orders/NameWalk.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"

/* Walks over names, within fixed bounds (docs/decisions/data-model.md, "Names that contain a text"). */

const walkNames = 1_000_000
const walkMillis = 3000
const firstStretch = 10_000
const longestStretch = 200_000
/** So many orders of the settled names are kept. */
const mostFirst = 500
/** Names are settled after this time, or twice as long. */
const settledSeconds = 900

const zeroId = OrderId("00000000-0000-0000-0000-000000000000")
const lastId = OrderId("ffffffff-ffff-ffff-ffff-ffffffffffff")
const daySeconds = 86_400

interface Page {
  readonly limit: number
  readonly offset: number
}

/**
 * The ways of a walk, one after the other: what is new, and what is settled. Rows converted from another service may have ids that
 * do not begin with a time. All walks over names begin at the same places for a while, so that the ends of their stretches are the same.
 */
const waysOf = (sought: Sought, started: number) => {
  const now = Math.floor(started / 1000)
  const whole: Stretch = {
    from: zeroId,
    before: lastId,
    fromTime: sought.since ?? 0,
    beforeTime: sought.until ?? Number.MAX_SAFE_INTEGER
  }
  if (nameWalk.sourceOf(sought) !== "names") return { recent: [whole], settled: [] }
  const newest = OrderId(firstIdAt(now - now % daySeconds + 2 * daySeconds))
  const settled = OrderId(firstIdAt(now - now % settledSeconds - settledSeconds))
  return {
    recent: [{ ...whole, from: settled, before: newest }],
    settled: [{ ...whole, before: settled }, { ...whole, from: newest }]
  }
}

/**
 * To look for the end of a stretch of names takes as long as to compare them. It stays nearly the same, and is kept for as long as
 * anything is.
 */
const endOf = (sought: Sought, rest: Stretch, size: number) => {
  const found = nameWalk.stretchBefore(sought, rest, size)
  return nameWalk.sourceOf(sought) === "names"
    ? kept(`order_walk_end ${rest.before} ${size}`, (end) => end === undefined ? 0 : Number.POSITIVE_INFINITY, found)
    : found
}

/** The next stretch of a way, or its whole rest if that is shorter. */
const next = (sought: Sought, rest: Stretch, size: number) =>
  Effect.map(
    endOf(sought, rest, size),
    (found): Stretch => found === undefined || found.from < rest.from || found.fromTime < rest.fromTime ? rest : found
  )

/** So many orders of a stretch, and how many it has: those need no counting where fewer are found than were asked for. */
const lookedAt = Effect.fnUntraced(function*(sought: Sought, stretch: Stretch, page: Page) {
  const isFromStart = page.offset === 0 && page.limit > 0
  const ids = isFromStart ? yield* nameWalk.matches(sought, stretch, page) : []
  if (isFromStart && ids.length < page.limit) return { ids, count: ids.length }
  const count = yield* nameWalk.countMatches(sought, stretch)
  const isBehind = page.limit > 0 && !isFromStart && count > page.offset
  return { ids: isBehind ? yield* nameWalk.matches(sought, stretch, page) : ids, count }
})

/** When the search began, in epoch milliseconds, and whether it goes on when the page is full. */
interface Extent {
  readonly started: number
  readonly isTotalWanted?: boolean
}

/**
 * A page of the orders that match, newest first, and how many were met among so many names. A walk for no more than a page
 * ends when the page is full. `truncated` says that there may be more than were met, `isLate` that time was too short.
 */
const walk = Effect.fnUntraced(function*(
  sought: Sought,
  ways: ReadonlyArray<Stretch>,
  { limit, offset }: Page,
  { isTotalWanted = false, started }: Extent
) {
  const ids: Array<OrderId> = []
  let [names, total, size, truncated, isLate] = [0, 0, firstStretch, false, false]
  for (const way of ways) {
    for (let rest: Stretch | undefined = way; rest !== undefined && !truncated;) {
      const stretch: Stretch = yield* next(sought, rest, size)
      const page = { limit: limit - ids.length, offset: Math.max(0, offset - total) }
      const found = yield* lookedAt(sought, stretch, page)
      ids.push(...found.ids)
      total += found.count
      names += stretch === rest ? 0 : size
      rest = stretch === rest ? undefined : { ...rest, before: stretch.from, beforeTime: stretch.fromTime }
      size = Math.min(size * 2, longestStretch)
      isLate = rest !== undefined && (yield* currentMillis) - started >= walkMillis
      const isOver = names >= walkNames || isLate || (!isTotalWanted && ids.length >= limit)
      truncated = rest !== undefined && isOver
      yield* Effect.yieldNow
    }
  }
  return { ids, names, total, truncated, isLate }
})

// To compare a name takes as long as to count so many rows.
const rowsPerName = 2

type Walked = Effect.Success<ReturnType<typeof walk>>

const nothing: Page = { limit: 0, offset: 0 }

/** {@link kept} by how many names were walked, unless there was too little time: then the next walk may come further. */
const keptWalk = (key: string, walked: ReturnType<typeof walk>) =>
  kept(key, ({ isLate, names }: Walked) => isLate ? 0 : names * rowsPerName, walked)

/**
 * Reads a page of the first matching orders. Returns `undefined` if the page reaches further than those. The first
 * matches among the settled names are kept: if few orders match, all names have to be walked to find them, and the next
 * page or search then walks only the names that are new. The status of an order changes, so it is read anew each time.
 */
const firstOf = Effect.fnUntraced(function*(
  { status, ...sought }: Sought,
  { limit, offset }: Page,
  { most, started }: { readonly most: number; readonly started: number }
) {
  if (nameWalk.sourceOf(sought) !== "names") return undefined
  const ways = waysOf(sought, started)
  const first: Page = { limit: most, offset: 0 }
  const recent = yield* walk(sought, ways.recent, first, { started })
  if (recent.truncated || recent.total >= most) return undefined
  const key = `order_walk_settled ${ways.settled[0]?.before} ${most} ${JSON.stringify(sought)}`
  const settled = yield* keptWalk(key, walk(sought, ways.settled, first, { started }))
  const ids = [...recent.ids, ...settled.ids]
  const { truncated } = settled
  const areAll = settled.total < most
  if (status !== undefined) {
    if (!areAll) return undefined
    const items = (yield* orderSearch.findListed(ids)).filter((one) => hasFilterWord(status, one))
    return { items: items.slice(offset, offset + limit), total: items.length, truncated, isWhole: true }
  }
  if (!areAll && ids.length < offset + limit) return undefined
  const page = ids.slice(offset, offset + limit)
  const items = yield* orderSearch.findListed(page)
  const isWhole = items.length === page.length
  // Forgets orders that were deleted since, so that no other page contains them.
  if (!isWhole) yield* forget(key)
  return { items, total: recent.total + settled.total, truncated, isWhole }
})

/** A page by a walk of its own. */
const anew = (sought: Sought, ways: ReadonlyArray<Stretch>, page: Page, started: number) =>
  Effect.flatMap(
    walk(sought, ways, page, { started }),
    ({ ids, total, truncated }) => Effect.map(orderSearch.findListed(ids), (items) => ({ items, total, truncated }))
  )

/**
 * A page of the orders that match, newest first, and how many were met. `truncated` says that there may be more than were
 * met. Where many match, the page is found soon, and the number is kept for a while.
 */
export const search = Effect.fnUntraced(function*(sought: Sought, page: Page, isTotalWanted: boolean) {
  const started = yield* currentMillis
  const { recent, settled } = waysOf(sought, started)
  const ways = [...recent, ...settled]
  // A caller that needs only a page gets it as soon as it is full.
  const most = isTotalWanted ? mostFirst : page.offset + page.limit
  const first = yield* firstOf(sought, page, { most, started })
  const found = first?.isWhole === true ? first : yield* anew(sought, ways, page, started)
  const { items } = found
  if (!isTotalWanted || !found.truncated || items.length < page.limit) {
    return { items, total: found.total, truncated: found.truncated }
  }
  const { total, truncated } = yield* keptWalk(
    `order_walk ${JSON.stringify(sought)}`,
    walk(sought, ways, nothing, { started: yield* currentMillis, isTotalWanted: true })
  )
  return { items, total: Math.max(total, found.total), truncated }
})

/** Up to so many names end so before a search by the end of a name walks instead of reading them all. */
const fewNames = 10_000

/** Whether so many names end so that to collect them would take longer than to walk. */
export const isCommonEnd = (name: string) =>
  Effect.map(nameWalk.countEnding(name, fewNames + 1), (names) => names > fewNames)

/** Whether an order has a name that is sought; for orders that are read in any case. */
export const hasName =
  ({ comparison, text }: Pick<Sought, "comparison" | "text">) =>
  ({ identifiers }: Pick<orderSearch.ListedOrder, "identifiers">): boolean =>
    identifiers.some(({ value }) =>
      comparison === "contains" ? value.includes(text) : value === text || value.endsWith(`.${text}`)
    )
