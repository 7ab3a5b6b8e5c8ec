import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { madeAt } from "../../domain/Id.ts"
import { aside } from "../../engine/sql/Database.ts"
import { kept } from "../../engine/sql/KeptCounts.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as expiring from "../../store/orders/ExpiringRows.ts"
import { shown } from "../Expiring.ts"
import { batch, judged, walk } from "../ExpiringWindow.ts"
import { readForOperator } from "./OperatorReads.ts"

/**
 * Which certificates are wanted: those of one profile or of all profiles that expire within `days` days, with or
 * without replaced certificates.
 */
export interface Wanted {
  readonly profile?: string | undefined
  readonly days: number
  readonly hideSuperseded: boolean
}

/** The longest window of a list. */
export const mostDays = 100_000

const usualDays = 30

/**
 * Returns the number of days in a list's window if the operator gives none. For a list of one profile, this is the
 * window of its digests; for a list of all profiles, it is the longest window of their digests. Without digests, it is
 * thirty days.
 */
export const usualDaysOf = ({ profiles }: Pick<Config, "profiles">, name?: string): number => {
  const asked = profiles.filter((profile) => profile.enabled && (name === undefined || profile.name === name))
  return Math.max(...asked.map(({ notify }) => notify.expiry.lead_days), 0) || usualDays
}

/**
 * Returns which certificates a request selects. A window that is out of bounds is replaced by the nearest bound.
 * Replaced certificates are included unless the request hides them.
 */
export const wantedOf = (
  config: Pick<Config, "profiles">,
  { profile, superseded, ...given }: {
    readonly profile?: string | undefined
    readonly days?: number | undefined
    readonly superseded?: "show" | "hide" | undefined
  }
): Wanted => {
  const { days = usualDaysOf(config, profile) } = given
  return { profile, days: Math.min(Math.max(days, 1), mostDays), hideSuperseded: superseded === "hide" }
}

const daySeconds = 86_400
const hourSeconds = 3600

/**
 * For each of these numbers of days, counts the certificates of a profile that expire within that time and have not
 * been replaced.
 */
export const countOpen = Effect.fnUntraced(function*(profile: string, days: ReadonlyArray<number>) {
  const now = yield* currentSeconds
  const window = { profile, now, until: now + Math.max(...days) * daySeconds }
  const counts = days.map(() => 0)
  yield* walk(window, true, ({ notAfter }, isFollowed) => {
    if (isFollowed) return
    days.forEach((many, index) => {
      if (notAfter <= now + many * daySeconds) counts[index] = (counts[index] ?? 0) + 1
    })
  }, () => false)
  return counts
})

const lateMillis = 2000
/** A client is late if this share of the lifetime is left. Clients renew when a third is left, or a half. */
const lateShare = 0.2

/**
 * Returns whether a client should have renewed a certificate that has at most `left` seconds left. The order is as old
 * as the certificate, but for the time that validation took.
 */
const isLate = ({ id, notAfter }: expiring.Place, left: number, now: number): boolean => {
  const orderedAt = madeAt(id)
  return notAfter - now <= (orderedAt === undefined ? left : Math.min(left, (notAfter - orderedAt) * lateShare))
}

/**
 * Counts the certificates of all profiles that have not been replaced and should have been: they expire within `days`
 * days, and less than a fifth of their lifetime is left. Checks at most `most` certificates, soonest first. `isCut`
 * means that there may be more.
 */
export const countLate = Effect.fnUntraced(function*(days: number, most: number) {
  const now = yield* currentSeconds
  const left = days * daySeconds
  let [count, seen] = [0, 0]
  yield* walk({ profile: undefined, now, until: now + left }, true, (place, isFollowed) => {
    seen++
    if (!isFollowed && isLate(place, left, now)) count++
  }, () => seen >= most)
  return { count, isCut: seen >= most }
}, (self) => readForOperator(self, lateMillis))

/**
 * What is known about the certificates that end in one part of the window: their number, and the first ones that have
 * not been replaced. `isCut` means that some certificates were not checked.
 */
interface Part {
  readonly places: number
  readonly open: number
  readonly first: ReadonlyArray<expiring.Place>
  readonly isCut: boolean
}

const mostOfPart = 500
// Finding out whether one certificate was replaced takes as long as counting this number of rows.
const rowsPerPlace = 500
/** The number of certificates that are read at once. If nothing is in memory, reading a thousand can take a second. */
const partBatch = 500

/**
 * Reads a part of the window, until `hasEnough` returns true for the number of open certificates. A complete part is
 * kept for a while, because most certificates of a window are replaced, and a replaced certificate stays replaced.
 */
const partOf = (
  { now, profile, until }: expiring.Window,
  { hasEnough, key }: { readonly key: number; readonly hasEnough: (open: number) => boolean }
) => {
  const read = Effect.gen(function*() {
    const first: Array<expiring.Place> = []
    let [places, open, isCut] = [0, 0, false]
    yield* walk(
      { profile, now, until },
      true,
      (place, isFollowed) => {
        places++
        if (isFollowed) return
        open++
        if (first.length < mostOfPart) first.push(place)
      },
      () => {
        isCut = hasEnough(open)
        return isCut
      },
      partBatch
    )
    return { places, open, first, isCut } satisfies Part
  })
  const costOf = (part: Part) => part.isCut ? 0 : part.places * rowsPerPlace
  return { read, kept: kept(`expiring ${profile ?? ""} ${key} ${until}`, costOf, read) }
}

const mostParts = 31

/** Returns the times at which the parts of a window end: whole days, the last full hour, and the end of the window. */
const endsOf = (now: number, until: number): ReadonlyArray<number> => {
  const step = Math.ceil((until - now) / daySeconds / mostParts) * daySeconds
  const ends: Array<number> = []
  for (let end = now - now % step + step; end < until; end += step) ends.push(end)
  const hour = until - until % hourSeconds
  return [...new Set([...ends, ...hour > now ? [hour] : [], until])]
}

/** The page of a list. */
interface Paging {
  readonly limit: number
  readonly offset: number
}

/**
 * Returns the open certificates of a window, part by part. The search for the page has no time limit. The rest of the
 * window is only counted. This counting has a time limit, because it would take minutes on a large database that has
 * not been read recently. A finished part is kept for the next read. A part is read again if the page needs more than
 * the first certificates of that part.
 */
const openOf = Effect.fnUntraced(function*(window: expiring.Window, { limit, offset }: Paging, countMillis: number) {
  const { now, profile, until } = window
  const clock = yield* Clock.Clock
  const late = clock.currentTimeMillisUnsafe() + countMillis
  const page: Array<expiring.Place> = []
  let [from, seen, places, isCut] = [now, 0, 0, false]
  for (const end of endsOf(now, until)) {
    const [begin, stop] = [Math.max(0, offset - seen), offset + limit - seen]
    const { kept: keptPart, read } = partOf({ profile, now: from, until: end }, {
      // The first part begins later each time it is read, but it counts as the same part.
      key: from === now ? 0 : from,
      hasEnough: (open) => open >= stop && clock.currentTimeMillisUnsafe() >= late
    })
    const part = yield* end % hourSeconds === 0 ? keptPart : read
    if (begin < part.open && page.length < limit) {
      if (Math.min(stop, part.open) <= part.first.length) page.push(...part.first.slice(begin, stop))
      else {
        let number = 0
        yield* walk({ profile, now: from, until: end }, true, (place, isFollowed) => {
          if (!isFollowed && number++ >= begin && page.length < limit) page.push(place)
        }, () => page.length >= limit)
      }
    }
    seen += part.open
    places += part.places
    from = end
    isCut = part.isCut
    if (isCut) break
    yield* Effect.yieldNow
  }
  const total = isCut ? yield* expiring.countEnding(window) : places
  return { page, hidden: places - seen, total, truncated: places < total }
})

/** Returns the certificates of a window, soonest first, whether or not they were replaced. */
const everyOf = Effect.fnUntraced(function*(window: expiring.Window, { limit, offset }: Paging) {
  const page: Array<expiring.Place> = []
  let seen = 0
  yield* walk(
    window,
    false,
    (place) => {
      if (++seen > offset && page.length < limit) page.push(place)
    },
    () => page.length >= limit,
    Math.min(batch, offset + limit)
  )
  return { page, hidden: 0, total: yield* expiring.countEnding(window), truncated: false }
})

const usualCountMillis = 400

/**
 * Lists the certificates that expire within the wanted number of days and are neither revoked nor expired, soonest
 * first (docs/contribute/decisions/expiring.md). `total` is the number of certificates in the window. With
 * `hideSuperseded`, replaced certificates are left out, and `hidden` is their number. The counting takes at most
 * `countMillis`. `truncated` means that there may be more.
 */
export const list = (wanted: Wanted, paging: Paging, countMillis = usualCountMillis) =>
  readForOperator(Effect.gen(function*() {
    const now = yield* currentSeconds
    const window = { profile: wanted.profile, now, until: now + wanted.days * daySeconds }
    const { page, ...counts } = yield* wanted.hideSuperseded
      ? openOf(window, paging, countMillis)
      : everyOf(window, paging)
    return { items: yield* shown(page, now), ...counts }
  }))

const exportBatch = 1000

/** Streams all certificates that {@link list} finds, one page at a time. No transaction spans several pages. */
export const every = ({ days, hideSuperseded, profile }: Wanted) =>
  Stream.unwrap(Effect.map(currentSeconds, (now) =>
    Stream.mapEffect(
      judged({ profile, now, until: now + days * daySeconds }, exportBatch, hideSuperseded),
      ({ gone, page }) => aside(shown(page.filter((_, number) => !gone.has(number)), now))
    )))
