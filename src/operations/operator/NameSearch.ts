import * as Effect from "effect/Effect"
import { firstIdAt, OrderId } from "../../domain/Id.ts"
import { hasFilterWord } from "../../domain/Order.ts"
import { forget, kept } from "../../engine/sql/KeptCounts.ts"
import { currentMillis } from "../../engine/Time.ts"
import { isWithin } from "../../store/orders/EndRange.ts"
import type { Sought, Stretch } from "../../store/orders/NameWalk.ts"
import * as nameWalk from "../../store/orders/NameWalk.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"

/*
 * Searches for orders by walking over their names, within fixed bounds (docs/contribute/decisions/data-model.md, "Names
 * that contain a text").
 */

const walkNames = 1_000_000
const walkMillis = 3000
const firstStretch = 10_000
const longestStretch = 200_000
/** The maximum number of matching orders with settled names that are kept. */
const mostFirst = 500
/** Names begin to count as settled when they are between this number and twice this number of seconds old. */
const settledSeconds = 900

const zeroId = OrderId("00000000-0000-0000-0000-000000000000")
const lastId = OrderId("ffffffff-ffff-ffff-ffff-ffffffffffff")
const daySeconds = 86_400

interface Page {
  readonly limit: number
  readonly offset: number
}

/**
 * Returns the ranges of a walk in order: new names first, then settled names. Rows that were converted from another
 * service may have ids that do not begin with a time. For a while, all walks over names begin at the same places, so
 * that their stretches also end at the same places.
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
 * Returns the end of a stretch. Finding the end of a stretch of names takes as long as comparing these names. The end
 * stays nearly the same, so it is kept as long as possible.
 */
const endOf = (sought: Sought, rest: Stretch, size: number) => {
  const found = nameWalk.stretchBefore(sought, rest, size)
  return nameWalk.sourceOf(sought) === "names"
    ? kept(`order_walk_end ${rest.before} ${size}`, (end) => end === undefined ? 0 : Number.POSITIVE_INFINITY, found)
    : found
}

/** Returns the next stretch of a range. If the rest of the range is shorter than a stretch, returns the whole rest. */
const next = (sought: Sought, rest: Stretch, size: number) =>
  Effect.map(
    endOf(sought, rest, size),
    (found): Stretch => found === undefined || found.from < rest.from || found.fromTime < rest.fromTime ? rest : found
  )

/**
 * Returns up to the requested number of matching orders in a stretch, and how many orders match in total. If fewer
 * orders are found than requested, no separate count is needed.
 */
const lookedAt = Effect.fnUntraced(function*(sought: Sought, stretch: Stretch, page: Page) {
  const isFromStart = page.offset === 0 && page.limit > 0
  const ids = isFromStart ? yield* nameWalk.matches(sought, stretch, page) : []
  if (isFromStart && ids.length < page.limit) return { ids, count: ids.length }
  const count = yield* nameWalk.countMatches(sought, stretch)
  const isBehind = page.limit > 0 && !isFromStart && count > page.offset
  return { ids: isBehind ? yield* nameWalk.matches(sought, stretch, page) : ids, count }
})

/** When the search began, in epoch milliseconds, and whether the search continues after the page is full. */
interface Extent {
  readonly started: number
  readonly isTotalWanted?: boolean
}

/**
 * Returns a page of the matching orders, newest first, and how many were found within the limited number of names. If
 * only the page is needed, the walk ends when the page is full. `truncated` means that there may be more matches than
 * were found. `isLate` means that the time ran out.
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

// Comparing a name takes as long as counting this number of rows.
const rowsPerName = 2

type Walked = Effect.Success<ReturnType<typeof walk>>

const nothing: Page = { limit: 0, offset: 0 }

/**
 * Applies {@link kept} to a walk, with the number of walked names as its size. If the time ran out, the result is not
 * kept, because the next walk may get further.
 */
const keptWalk = (key: string, walked: ReturnType<typeof walk>) =>
  kept(key, ({ isLate, names }: Walked) => isLate ? 0 : names * rowsPerName, walked)

/**
 * Reads a page of the first matching orders. Returns `undefined` if the page extends beyond these orders. The first
 * matches among the settled names are kept. If few orders match, all names must be walked to find them, and then the
 * next page or search walks only the new names. The status of an order and the end of its certificate are compared each
 * time, because they change, and because the range of the ends depends on the present time.
 */
const firstOf = Effect.fnUntraced(function*(
  { ends, status, ...sought }: Sought,
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
  if (status !== undefined || ends !== undefined) {
    if (!areAll) return undefined
    const items = (yield* orderSearch.findListed(ids)).filter((one) =>
      (status === undefined || hasFilterWord(status, one)) && (ends === undefined || isWithin(ends, one))
    )
    return { items: items.slice(offset, offset + limit), total: items.length, truncated, isWhole: true }
  }
  if (!areAll && ids.length < offset + limit) return undefined
  const page = ids.slice(offset, offset + limit)
  const items = yield* orderSearch.findListed(page)
  const isWhole = items.length === page.length
  // Some orders were deleted in the meantime. The kept result is forgotten, so that no other page shows these orders.
  if (!isWhole) yield* forget(key)
  return { items, total: recent.total + settled.total, truncated, isWhole }
})

/** Reads a page with a separate walk. */
const anew = (sought: Sought, ways: ReadonlyArray<Stretch>, page: Page, started: number) =>
  Effect.flatMap(
    walk(sought, ways, page, { started }),
    ({ ids, total, truncated }) => Effect.map(orderSearch.findListed(ids), (items) => ({ items, total, truncated }))
  )

/**
 * Returns a page of the matching orders, newest first, and how many were found. `truncated` means that there may be
 * more matches than were found. If many orders match, the page is found soon, and the number is kept for a while.
 */
export const search = Effect.fnUntraced(function*(sought: Sought, page: Page, isTotalWanted: boolean) {
  const started = yield* currentMillis
  const { recent, settled } = waysOf(sought, started)
  const ways = [...recent, ...settled]
  // If the caller needs only a page, the search ends as soon as the page is full.
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

/**
 * If more names than this end with the text, a search by the end of a name uses a walk. Otherwise all these names are
 * read.
 */
const fewNames = 10_000

/** Returns whether so many names end with this text that a walk would be faster than reading all of them. */
export const isCommonEnd = (name: string) =>
  Effect.map(nameWalk.countEnding(name, fewNames + 1), (names) => names > fewNames)

/** Returns whether one of an order's names matches. This is for orders that are read anyway. */
export const hasName =
  ({ comparison, text }: Pick<Sought, "comparison" | "text">) =>
  ({ identifiers }: Pick<orderSearch.ListedOrder, "identifiers">): boolean =>
    identifiers.some(({ value }) =>
      comparison === "contains" ? value.includes(text) : value === text || value.endsWith(`.${text}`)
    )
