import { Effect } from "effect"
import { assert, describe } from "vitest"
import { jobKinds } from "../../../src/domain/words/JobKind.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { databases } from "../../support/Databases.ts"
import { configOf } from "../../support/Graph.ts"
import { madeAt } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

describe.each(databases)("the handlers of jobs on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt: madeAt })

  test("handle every kind of job, each of them once", () =>
    Effect.gen(function*() {
      const made = yield* handlers(configOf())
      assert.deepStrictEqual(made.map(({ kind }) => kind).toSorted(), jobKinds.toSorted())
    }))
})
