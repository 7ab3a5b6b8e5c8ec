import { Effect } from "effect"
import { assert, describe } from "vitest"
import { clocks } from "../../src/engine/queue/Clocks.ts"
import * as workers from "../../src/engine/queue/Workers.ts"
import { kindsFault, knownWords } from "../../src/operations/OlderProcesses.ts"
import { databases } from "../support/Databases.ts"
import { configOf, sql } from "../support/Graph.ts"
import { useStore } from "../support/UseTests.ts"

describe.each(databases)("a configuration with kinds of certificates on $name", (backend) => {
  const { test } = useStore(backend)

  const config = configOf("certificates.kinds.default.usages = [\"client_auth\"]")
  const older = "elsewhere:1:b"
  const seen = (owner: string, before: number, knows?: string) =>
    Effect.flatMap(clocks, ({ later: now }) =>
      workers.present({
        owner,
        roles: "worker",
        version: "1",
        startedAt: 0,
        now: now - before,
        ...knows === undefined ? {} : { knows }
      }))

  test("is refused with the name of a running process of an older version", () =>
    Effect.gen(function*() {
      yield* seen(older, 29)
      // Such a version leaves the column empty.
      yield* sql("UPDATE workers SET knows = NULL")
      assert.include(yield* kindsFault(config), `the process ${older} runs an older version`)
    }))

  test("is refused beside a process that knows something else", () =>
    Effect.gen(function*() {
      yield* seen(older, 0, "kindsof scopes")
      assert.isDefined(yield* kindsFault(config))
    }))

  test("is accepted beside processes of this version", () =>
    Effect.gen(function*() {
      yield* seen("elsewhere:1:c", 0, knownWords.join(" "))
      assert.isUndefined(yield* kindsFault(config))
    }))

  test("is accepted after the process of an older version has been gone for half a minute", () =>
    Effect.gen(function*() {
      yield* seen(older, 31)
      assert.isUndefined(yield* kindsFault(config))
    }))

  test("is accepted beside a process of an older version if it has only the plain kind", () =>
    Effect.gen(function*() {
      yield* seen(older, 0)
      assert.isUndefined(yield* kindsFault(configOf("certificates.kinds.default.description = \"d\"")))
    }))
})
