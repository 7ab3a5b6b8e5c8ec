import Engine from "better-sqlite3"
import { Effect } from "effect"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { whole } from "../../src/app/Commands.ts"
import { leavesOf, wordOf } from "../../src/surfaces/cli/CommandTree.ts"
import type { Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* Commands that only read make no file, and leave every octet of the database unchanged. */

const { test } = useTests({ startsAt: 1_800_000_000 })

const reads = ["list", "queue", "count", "export", "check"]

/** The commands that only read. They are taken from the tree of commands, so that new commands are included. */
const reading = Effect.map(whole, (root) => [
  ...leavesOf(root).filter((leaf) => reads.includes(wordOf(leaf)) && leaf.args.length === 0)
    .map(({ path }) => path.slice(1)),
  ["migrate", "--check"],
  ["health", "--role", "worker"],
  ["order", "purge", "--expired-for", "1", "--dry-run"],
  ["order", "show", "01234567-89ab-7def-8123-456789abcdef"]
])

const file = "acme.db"

const runAll = ({ run }: Place) =>
  Effect.flatMap(
    reading,
    (commands) =>
      Effect.forEach(commands, (words) =>
        Effect.map(run(words), ({ code, err }) => [words.join(" "), code, err] as const))
  )

/** Returns the name and the content of each file of a place. */
const contentOf = ({ directory }: Place) =>
  readdirSync(directory).sort().map((name) => [name, readFileSync(join(directory, name)).toString("base64")])

describe("commands that read", () => {
  test("create no file if there is no database", () =>
    Effect.gen(function*() {
      const place = freshPlace()
      const before = contentOf(place)
      const ended = yield* runAll(place)
      assert.isAbove(ended.length, 12)
      assert.deepStrictEqual(contentOf(place), before)
    }))

  test("do not change an empty database file", () =>
    Effect.gen(function*() {
      const place = freshPlace()
      writeFileSync(join(place.directory, file), "")
      const before = contentOf(place)
      const ended = yield* runAll(place)
      assert.deepStrictEqual(contentOf(place), before)
      assert.deepStrictEqual(ended.find(([words]) => words === "migrate --check")?.[1], 3)
    }))

  test("do not change the journal mode of a restored database", () =>
    Effect.gen(function*() {
      const place = freshPlace()
      assert.strictEqual((yield* place.run(["migrate"])).code, 0)
      const engine = new Engine(join(place.directory, file))
      engine.pragma("journal_mode = DELETE")
      engine.close()
      const before = contentOf(place)
      const ended = yield* runAll(place)
      assert.deepStrictEqual(contentOf(place), before)
      const failed = ended.filter(([, code]) => code === 1).map(([words]) => words)
      assert.deepStrictEqual(failed, ["health --role worker"], "no worker runs here; the others were answered")
    }))
})
