import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

/* Reads and sweeps long tables in parts, so that other work can run between two parts. */

/**
 * Streams all rows of a table in the order of a key, one page at a time. `read` returns at most `size` of the rows that
 * follow `after`. The last page is the first page that is not full; it may be empty.
 */
export const pages = <Row, Key, E, R>(options: {
  readonly from: Key
  readonly size: number
  readonly read: (after: Key, size: number) => Effect.Effect<ReadonlyArray<Row>, E, R>
  readonly keyOf: (row: Row) => Key
}): Stream.Stream<ReadonlyArray<Row>, E, R> =>
  Stream.paginate(
    { after: options.from, isFirst: true },
    Effect.fnUntraced(function*({ after, isFirst }) {
      if (!isFirst) yield* Effect.yieldNow
      const page = yield* options.read(after, options.size)
      const last = page.length < options.size ? undefined : page.at(-1)
      const next = last === undefined
        ? Option.none()
        : Option.some({ after: options.keyOf(last), isFirst: false })
      return [[page], next] as const
    })
  )

/** Repeats a pass until it finds fewer than `limit` rows. Returns how many rows all passes found. */
export const inBatches = <E, R>(
  limit: number,
  pass: (limit: number) => Effect.Effect<number, E, R>
): Effect.Effect<number, E, R> =>
  Stream.paginate(
    0,
    (passes) =>
      Effect.map(
        Effect.andThen(passes === 0 ? Effect.void : Effect.yieldNow, pass(limit)),
        (rows) => [[rows], rows < limit ? Option.none() : Option.some(passes + 1)] as const
      )
  ).pipe(Stream.runSum)
