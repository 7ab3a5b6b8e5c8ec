import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Life } from "../../domain/RenewalHour.ts"
import { emptiestHour, hourSeconds } from "../../domain/RenewalHour.ts"
import { emit } from "../../domain/words/Log.ts"
import type { StorageFailed } from "../../engine/sql/Database.ts"
import { Database, transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as hours from "../../store/RenewalHourRows.ts"

const refreshEvery = "20 seconds"

/** Returns a number from 0 up to but not including 1 that the serial of a certificate (hexadecimal) determines. */
const placeOf = (serial: string): number => Number.parseInt(serial.slice(-8), 16) / 2 ** 32

/**
 * Counts how many renewal windows begin in each hour, and chooses an hour with few for the next certificate
 * (`renewal.spread`, docs/clients/renewal.md). The counts are hints: what a process has counted is written after at
 * most twenty seconds, and other processes learn of it then. A crash loses what was not written, and an issuance that
 * fails later stays counted.
 */
export class RenewalHours extends Context.Service<RenewalHours, {
  /** Chooses and counts the window of a certificate. Returns its start in epoch seconds, or undefined. */
  readonly choose: (life: Life, serial: string) => Effect.Effect<number | undefined>
  /** Writes what was counted, and reads what all processes have counted. */
  readonly refresh: Effect.Effect<void, StorageFailed>
  /** Refreshes every twenty seconds, if a window was chosen since, forever. */
  readonly keepCounting: Effect.Effect<never>
}>()("acme/services/signing/RenewalHours") {
  static readonly layer: Layer.Layer<RenewalHours, never, Database> = Layer.effect(
    this,
    Effect.map(Database, (database) => {
      let known: ReadonlyMap<number, number> = new Map()
      let isRead = false
      const unwritten = new Map<number, number>()
      const read = Effect.gen(function*() {
        const now = Math.floor((yield* currentSeconds) / hourSeconds)
        known = new Map((yield* hours.since(now)).map(({ hour, windows }) => [hour, windows]))
        isRead = true
      })
      const refresh = Effect.provideService(
        Effect.gen(function*() {
          const counted = [...unwritten].toSorted(([one], [other]) => one - other)
          if (counted.length > 0) {
            const now = Math.floor((yield* currentSeconds) / hourSeconds)
            yield* transaction(Effect.andThen(hours.add(counted), hours.removeBefore(now)))
          }
          for (const [hour, windows] of counted) {
            const left = (unwritten.get(hour) ?? 0) - windows
            if (left === 0) unwritten.delete(hour)
            else unwritten.set(hour, left)
          }
          yield* read
        }),
        Database,
        database
      )
      const written = Effect.catch(
        refresh,
        ({ message }) => emit("renewal_hours_unwritten", { error: message })
      )
      return {
        refresh,
        choose: (life, serial) =>
          Effect.gen(function*() {
            // Before its first certificate, a process reads what others have counted.
            if (!isRead) yield* written
            const windowsIn = (hour: number) => (known.get(hour) ?? 0) + (unwritten.get(hour) ?? 0)
            const hour = emptiestHour(life, windowsIn, placeOf(serial))
            if (hour === undefined) return undefined
            unwritten.set(hour, (unwritten.get(hour) ?? 0) + 1)
            return hour * hourSeconds
          }),
        keepCounting: Effect.forever(
          Effect.delay(Effect.suspend(() => unwritten.size > 0 ? written : Effect.void), refreshEvery)
        )
      }
    })
  )
}
