import { it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { sqlAt } from "../support/OpenDatabase.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"

/* Tests what a command prints for a row that it cannot decode. */

describe("a row that cannot be read", () => {
  it.live("is in the list that a command prints, and is named on stderr", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace(() => minimalConfig)
      assert.strictEqual((yield* run(["migrate"])).code, 0)
      const url = `sqlite://${join(directory, "acme.db")}`
      yield* Effect.promise(() =>
        sqlAt(
          url,
          `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, deadline, created_at, updated_at)
           VALUES (x'01900005000070008000000000000000', 'signer_issue', 'a', '{}', 'ready', 1, 0, 3, 9223372036854775807, 1, 1)`
        )
      )
      const listed = yield* run(["jobs", "list"])
      assert.strictEqual(listed.code, 0, listed.err)
      assert.include(listed.out, "01900005-0000-7000-8000-000000000000")
      assert.match(
        listed.err,
        /^A row of the database cannot be read as it is: id 01900005-0000-7000-8000-000000000000, kind signer_issue: deadline: holds .*$/m
      )
      assert.strictEqual(listed.err.match(/cannot be read/g)?.length, 1)
    }))
})
