import { Effect } from "effect"
import { firstIdAt, OrderId } from "../../domain/Id.ts"
import { turn } from "../../kernel/sql/Database.ts"
import { kept } from "../../kernel/sql/Kept.ts"
import { currentMillis, currentSeconds } from "../../kernel/Time.ts"
import type { Sought, Stretch } from "../../store/orders/NameWalk.ts"
import * as nameWalk from "../../store/orders/NameWalk.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"

/* Walks over names, within fixed bounds (docs/decisions/data-model.md, "Names that contain a text"). */

const walkNames = 1_000_000
const walkMillis = 3000
const firstStretch = 10_000
const longestStretch = 200_000

const zeroId = OrderId("00000000-0000-0000-0000-000000000000")
const lastId = OrderId("ffffffff-ffff-ffff-ffff-ffffffffffff")
const daySeconds = 86_400

interface Page {
  readonly limit: number
  readonly offset: number
}

/**
 * The ways of a walk, one after the other: rows converted from another service may have ids that do not begin with a time. All
 * walks over names begin at the same place for a day, so that the ends of their stretches are the same.
 */
const waysOf = Effect.fnUntraced(function*(sought: Sought) {
  const whole: Stretch = {
    from: zeroId,
    before: lastId,
    fromTime: sought.since ?? 0,
    beforeTime: sought.until ?? Number.MAX_SAFE_INTEGER
  }
  if (nameWalk.sourceOf(sought) !== "names") return [whole]
  const now = yield* currentSeconds
  const newest = OrderId(firstIdAt(now - now % daySeconds + 2 * daySeconds))
  return [{ ...whole, before: newest }, { ...whole, from: newest }]
})

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

/** The next stretch of a way; the whole rest where that is shorter. */
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

/**
 * A page of the orders that match, newest first, and how many were met among so many names. A walk for no more than a page
 * ends when the page is full. `truncated` says that there may be more than were met.
 */
const walk = Effect.fnUntraced(function*(sought: Sought, { limit, offset }: Page, isTotalWanted: boolean) {
  const started = yield* currentMillis
  const ids: Array<OrderId> = []
  let [names, total, size, truncated] = [0, 0, firstStretch, false]
  for (const way of yield* waysOf(sought)) {
    for (let rest: Stretch | undefined = way; rest !== undefined && !truncated;) {
      const stretch: Stretch = yield* next(sought, rest, size)
      const page = { limit: limit - ids.length, offset: Math.max(0, offset - total) }
      const found = yield* lookedAt(sought, stretch, page)
      ids.push(...found.ids)
      total += found.count
      names += size
      rest = stretch === rest ? undefined : { ...rest, before: stretch.from, beforeTime: stretch.fromTime }
      size = Math.min(size * 2, longestStretch)
      const isOver = names >= walkNames || (yield* currentMillis) - started >= walkMillis ||
        (!isTotalWanted && ids.length >= limit)
      truncated = rest !== undefined && isOver
      yield* turn
    }
  }
  return { ids, names, total, truncated }
})

const nothing: Page = { limit: 0, offset: 0 }

/**
 * A page of the orders that match, newest first, and how many were met. `truncated` says that there may be more than were
 * met. Where many match, the page is found soon, and the number is kept for a while.
 */
export const search = Effect.fnUntraced(function*(sought: Sought, page: Page, isTotalWanted: boolean) {
  const found = yield* walk(sought, page, false)
  const items = yield* orderSearch.findListed(found.ids)
  if (!isTotalWanted || !found.truncated || items.length < page.limit) {
    return { items, total: found.total, truncated: found.truncated }
  }
  const key = `order_walk ${JSON.stringify(sought)}`
  const { total, truncated } = yield* kept(key, ({ names }) => names, walk(sought, nothing, true))
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
