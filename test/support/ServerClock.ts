import { Effect } from "effect"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Driver } from "../../src/engine/sql/Driver.ts"
import { currentSeconds } from "../../src/engine/Time.ts"

/** Runs an effect with a database on whose server the clock shows these epoch seconds, by default the test's time. */
export const withServerClock = <A, E, R>(self: Effect.Effect<A, E, R>, seconds?: number) =>
  Effect.gen(function*() {
    const driver = yield* Database
    const now = yield* currentSeconds
    const single: Driver["single"] = (compiled, params) =>
      compiled.text.endsWith(`AS "millis"`)
        ? Effect.succeed([{ millis: (seconds ?? now) * 1000 }])
        : driver.single(compiled, params)
    return yield* Effect.provideService(self, Database, { ...driver, single })
  })
