import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as workers from "../../src/engine/queue/Workers.ts"
import { currentSeconds } from "../../src/engine/Time.ts"
import { refresh } from "../../src/operations/ProfileHealth.ts"
import { ProfileStates } from "../../src/services/signing/ProfileStates.ts"
import * as states from "../../src/store/ProfileStateRows.ts"
import { databases } from "../support/Databases.ts"
import { sql } from "../support/Graph.ts"
import { useStore } from "../support/UseTests.ts"

/* Tests which profiles count as degraded in a process (docs/contribute/decisions/degraded-profiles.md). */

describe.each(databases)("degraded profiles on $name", (backend) => {
  const { test } = useStore(backend, { layer: () => ProfileStates.layer })

  const owner = "host:1:a"
  const told = Effect.fnUntraced(function*(trouble: string | undefined, by = owner) {
    const now = yield* currentSeconds
    yield* workers.present({ owner: by, roles: "worker", version: "1", startedAt: now, now })
    yield* states.report({ profile: "default", owner: by, trouble, since: now, stoppedIssuer: undefined })
  })

  test("are those for which no worker can sign", () =>
    Effect.gen(function*() {
      yield* told("the CA has ended")
      yield* refresh
      assert.isDefined((yield* ProfileStates).of("default"))
      yield* told(undefined, "host:2:b")
      yield* refresh
      assert.isUndefined((yield* ProfileStates).of("default"))
    }))

  for (const since of ["9223372036854775807", "-9223372036854775808"]) {
    test(`remain degraded if the time of their state cannot be read (${since})`, () =>
      Effect.gen(function*() {
        yield* told("the CA has ended")
        yield* sql(`UPDATE profile_states SET since = ${since}`)
        yield* refresh
        assert.isDefined((yield* ProfileStates).of("default"))
      }))
  }
})
