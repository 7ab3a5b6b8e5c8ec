import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

/*
 * The clock in whole seconds, the unit that rows and certificates use, and functions that read and write RFC 3339
 * times.
 */

/** Returns the current time in epoch milliseconds, from the clock of a fiber. */
export const millisOf = (fiber: Fiber.Fiber<unknown, unknown>): number =>
  fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()

/** The current time in epoch milliseconds. */
export const currentMillis: Effect.Effect<number> = Effect.withFiber((fiber) => Effect.succeed(millisOf(fiber)))

/**
 * The milliseconds since the start of the process. Waits and limits are measured in this way, so that changes of the
 * clock do not matter.
 */
export const lifeMillis: Effect.Effect<number> = Effect.withFiber((fiber) =>
  Effect.succeed(Number(fiber.getRef(Clock.Clock).monotonicTimeNanosUnsafe() / 1_000_000n))
)

/** The current time in epoch seconds. */
export const currentSeconds: Effect.Effect<number> = Effect.withFiber((fiber) =>
  Effect.succeed(Math.floor(millisOf(fiber) / 1000))
)

/**
 * The last second of the year 9999, and the first second of the year 0. RFC 3339 cannot express times outside this
 * range.
 */
const [latest, earliest] = [253_402_300_799, -62_167_219_200]

/**
 * Returns whole epoch seconds as an RFC 3339 time in UTC, without a fraction. A time outside the range of RFC 3339, for
 * example in a row that was edited by hand, is shown as the nearest time in the range.
 */
export const rfc3339 = (epochSeconds: number): string => {
  const shown = Math.min(Math.max(epochSeconds, earliest), latest)
  return `${new Date(shown * 1000).toISOString().slice(0, -".000Z".length)}Z`
}

// RFC 3339 allows lower case, any offset and a leap second. The parser of the runtime accepts all of these except the
// leap second. It also accepts days and hours that do not exist.
const form =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * Returns the epoch seconds of an RFC 3339 time. Returns `undefined` for any other text, and for a time that RFC 3339
 * cannot express in UTC.
 */
export const parseRfc3339 = (text: string): number | undefined => {
  const [, year, month, day] = form.exec(text)?.map(Number) ?? []
  if (year === undefined || month === undefined || day === undefined) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined
  const millis = Date.parse(text.toUpperCase())
  const written = new Date(millis).getUTCFullYear()
  return Number.isNaN(millis) || written < 0 || written > 9999 ? undefined : Math.floor(millis / 1000)
}

const day = /^\d{4}-\d{2}-\d{2}$/

/** Returns the epoch seconds of an RFC 3339 time or of a calendar day. A day begins at midnight in UTC. */
export const parseMoment = (text: string): number | undefined =>
  parseRfc3339(day.test(text) ? `${text}T00:00:00Z` : text)
