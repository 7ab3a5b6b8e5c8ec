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
const aheadSeconds = 86_400

interface Page {
  readonly limit: number
  readonly offset: number
}

/** The ways of a walk, one after the other: rows converted from another service may have ids that do not begin with a time. */
const waysOf = Effect.fnUntraced(function*(sought: Sought) {
  const whole: Stretch = {
    from: zeroId,
    before: lastId,
    fromTime: sought.since ?? 0,
    beforeTime: sought.until ?? Number.MAX_SAFE_INTEGER
  }
  if (nameWalk.sourceOf(sought) !== "names") return [whole]
  const newest = OrderId(firstIdAt((yield* currentSeconds) + aheadSeconds))
  return [{ ...whole, before: newest }, { ...whole, from: newest }]
})

/** The next stretch of a way; the whole rest where that is shorter. */
const next = (sought: Sought, rest: Stretch, size: number) =>
  Effect.map(
    nameWalk.stretchBefore(sought, rest, size),
    (found): Stretch => found === undefined || found.from < rest.from || found.fromTime < rest.fromTime ? rest : found
  )

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
      const count = yield* nameWalk.countMatches(sought, stretch)
      if (total + count > offset && ids.length < limit) {
        const page = { limit: limit - ids.length, offset: Math.max(0, offset - total) }
        ids.push(...yield* nameWalk.matches(sought, stretch, page))
      }
      total += count
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
