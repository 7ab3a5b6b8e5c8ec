import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { advise } from "../../src/app/Advisories.ts"
import type { Record } from "../../src/subsystems/log/EventLog.ts"
import { EventLog } from "../../src/subsystems/log/EventLog.ts"
import { configOf } from "../support/Graph.ts"

describe("the advisories of a start", () => {
  const told = (toml: string) =>
    Effect.suspend(() => {
      const records: Array<Record> = []
      return Effect.map(
        Effect.provide(advise(configOf(toml), new Set(["acme", "worker"])), EventLog.layerMemory(records)),
        () => records.filter(({ event }) => event === "db_commits_unsynced").map(({ fields }) => fields)
      )
    })

  it.effect("say that a power loss may take answered work with it, where SQLite was told so", () =>
    Effect.gen(function*() {
      const normal = `[database.sqlite]\nsynchronous = "normal"`
      assert.deepStrictEqual(yield* told(""), [])
      assert.deepStrictEqual(yield* told(normal), [{ key: "database.sqlite.synchronous" }])
      assert.deepStrictEqual(yield* told(`database.url = "postgres://localhost/acme"\n${normal}`), [])
    }))
})
