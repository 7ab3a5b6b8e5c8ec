import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { StorageFailed } from "./Database.ts"
import { Database, driverOf } from "./Database.ts"
import type { Position } from "./Driver.ts"

/*
 * Requests whose reads may lack the last changes, because a standby answers them
 * (docs/contribute/decisions/standby.md).
 */

/** The number of changes that the standby must have. */
type Changes = Effect.Effect<number, StorageFailed, Database>

/** What a request may read from a standby. */
export interface Allowance {
  /** The state of the primary when the request began. */
  readonly primary: Position
  readonly changes: Changes
  /** The number of changes at the primary when the request began. */
  readonly known: number
  /** Records that a read was answered by the standby, which was at most this many seconds behind. */
  readonly note: (lagSeconds: number) => void
  /**
   * Returns the highest lag that a read may have. A later read of a stream may have no higher lag than the lag that was
   * returned with the result. If no lag was returned, this is a negative number, so no later read may have a lag.
   */
  readonly mostSeconds: () => number
}

/** The allowance of the request of a fiber. By default no read may go to a standby. */
export const allowance: Context.Reference<Allowance | undefined> = Context.Reference<Allowance | undefined>(
  "acme/engine/sql/Lag/allowance",
  { defaultValue: () => undefined }
)

/** Runs an effect. Its reads go to the primary, even within {@link mayLag}. */
export const atPrimary = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(self, allowance, undefined)

/** A result, and how many seconds old it may be at most. The lag is `undefined` if the primary answered every read. */
export type Lagging<A> = readonly [result: A, lagSeconds: number | undefined]

/** Runs an effect. All its reads go to the primary, so it has no lag. */
export const plainly = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<Lagging<A>, E, R> =>
  Effect.map(self, (result) => [result, undefined] as const)

/**
 * Runs an effect that only reads. Its reads go to the standby, if there is one. No decision about a write may depend on
 * them. `counting` returns an effect that counts the changes that the standby must have. While the standby has fewer
 * changes than the primary, the primary answers. If the effect fails after the standby has answered, it runs again
 * without the standby. The result may be a stream that reads later; the returned lag covers these reads too.
 */
export const mayLag = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  counting: Effect.Effect<Changes>
): Effect.Effect<Lagging<A>, E, R | Database> =>
  Effect.withFiber((fiber) => {
    const { standby } = driverOf(fiber)
    if (standby === undefined) return plainly(self)
    const lagging = Effect.flatMap(counting, (changes) =>
      Effect.matchEffect(Effect.all([standby.primary, changes]), {
        // The reads of the effect report the failure themselves.
        onFailure: () => plainly(self),
        onSuccess: ([primary, known]) => {
          let lag: number | undefined
          let most = Number.POSITIVE_INFINITY
          const note = (seconds: number) => void (lag = Math.max(lag ?? 0, seconds))
          const atStandby = Effect.provideService(
            Effect.updateService(self, Database, () => standby.driver),
            allowance,
            { primary, changes, known, note, mostSeconds: () => most }
          )
          return Effect.matchEffect(atStandby, {
            // The cause may be a record that the standby does not have yet.
            onFailure: (error) => lag === undefined ? Effect.fail(error) : plainly(self),
            onSuccess: (result) => {
              most = lag ?? -1
              return Effect.succeed([result, lag] as const)
            }
          })
        }
      }))
    return Effect.flatMap(standby.isUsable, (isUsable) => isUsable ? lagging : plainly(self))
  })
