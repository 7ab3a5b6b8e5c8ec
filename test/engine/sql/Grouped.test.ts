import { assert, describe, it } from "@effect/vitest"
import Engine from "better-sqlite3"
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import type { Scope } from "effect"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { int, text } from "../../../src/engine/sql/Column.ts"
import { aside, Database, transaction } from "../../../src/engine/sql/Database.ts"
import { all, run } from "../../../src/engine/sql/Query.ts"
import * as Sqlite from "../../../src/engine/sql/Sqlite.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import { eachSynced, oneSync } from "../../../src/engine/sql/Synced.ts"

/* `database.sqlite.synchronous = "grouped"` over a file, with syncs that the test lets end. */

const insert = statement({
  name: "test_insert",
  params: { name: text(), size: int },
  row: {},
  sql: () => "INSERT INTO things (name, size) VALUES (:name, :size)"
})

const list = statement({
  name: "test_list",
  params: {},
  row: { name: text() },
  sql: () => "SELECT name FROM things ORDER BY name"
})

const pragma = (name: string) =>
  Effect.flatMap(
    Database,
    ({ exclusive }) =>
      Effect.map(exclusive(({ execute }) => execute(`PRAGMA ${name}`, [])), ([row]) => Object.values(row ?? {})[0])
  )

/** Holds the syncs of all files, and records which files the process opens. */
const held = Effect.acquireRelease(
  Effect.sync(() => {
    const { fdatasync, openSync } = fs
    const waiting: Array<() => void> = []
    const opened: Array<string> = []
    let failure: Error | undefined
    let isHeld = false
    fs.fdatasync = ((file: number, ended: (error: Error | null) => void) => {
      const begin = () => failure === undefined ? fdatasync(file, ended) : ended(failure)
      if (isHeld) waiting.push(begin)
      else begin()
    }) as typeof fs.fdatasync
    fs.openSync = ((...words: Parameters<typeof openSync>) => {
      opened.push(String(words[0]))
      return openSync(...words)
    }) as typeof fs.openSync
    syncBuiltinESMExports()
    const letGo = () => {
      isHeld = false
      for (const begin of waiting.splice(0)) begin()
    }
    return {
      opened,
      hold: Effect.sync(() => void (isHeld = true)),
      letGo: Effect.sync(letGo),
      fail: (error: Error) =>
        Effect.sync(() => {
          failure = error
          letGo()
        }),
      /** Waits until a sync was asked for. */
      asked: Effect.repeat(Effect.andThen(Effect.sleep(1), Effect.sync(() => waiting.length > 0)), {
        until: (isAsked) => isAsked
      }),
      end: () => {
        Object.assign(fs, { fdatasync, openSync })
        syncBuiltinESMExports()
      }
    }
  }),
  ({ end }) => Effect.sync(end)
)

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "acme-grouped-"))),
  (path) => Effect.sync(() => fs.rmSync(path, { recursive: true, force: true }))
)

const open = (path: string, readers = 0): Effect.Effect<Context.Service.Shape<typeof Database>, never, Scope.Scope> =>
  Effect.map(
    Effect.orDie(Layer.build(Sqlite.layer({ path, synchronous: "grouped", readers }))),
    (built) => Context.get(built, Database)
  )

const opened = Effect.gen(function*() {
  const syncs = yield* held
  const path = join(yield* folder, "acme.db")
  const driver = yield* open(path, 1)
  yield* Effect.orDie(
    driver.exclusive(({ executeRaw }) =>
      executeRaw("CREATE TABLE things (name TEXT NOT NULL, size INTEGER NOT NULL)", [])
    )
  )
  return { syncs, path, driver }
})

const within = <A, E, R>(
  use: (given: Effect.Success<typeof opened>) => Effect.Effect<A, E, R | Database>
) =>
  Effect.scoped(
    Effect.flatMap(opened, (given) => Effect.provideService(use(given), Database, given.driver))
  )

const namesIn = (path: string): ReadonlyArray<unknown> => {
  const engine = new Engine(path, { readonly: true })
  try {
    return engine.prepare("SELECT name FROM things").pluck().all()
  } finally {
    engine.close()
  }
}

const begun = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describe("a file whose commits share syncs", () => {
  it.live("is opened with synchronous = NORMAL and a write-ahead log", () =>
    within(() =>
      Effect.gen(function*() {
        assert.strictEqual(yield* pragma("synchronous"), 1)
        assert.strictEqual(yield* pragma("journal_mode"), "wal")
      })
    ))

  it.live("tells nobody of a commit before its sync, although others can read it", () =>
    within(({ path, syncs }) =>
      Effect.gen(function*() {
        yield* syncs.hold
        const writing = yield* begun(transaction(run(insert, { name: "a", size: 1 })))
        const single = yield* begun(run(insert, { name: "b", size: 1 }))
        yield* syncs.asked
        assert.deepStrictEqual(namesIn(path), ["a", "b"])
        assert.deepStrictEqual([writing, single].map((fiber) => fiber.pollUnsafe()), [undefined, undefined])
        yield* syncs.letGo
        yield* Fiber.joinAll([writing, single])
      })
    ))

  it.live("goes on to commit while a sync is running", () =>
    within(({ path, syncs }) =>
      Effect.gen(function*() {
        yield* syncs.hold
        const first = yield* begun(run(insert, { name: "a", size: 1 }))
        yield* syncs.asked
        const second = yield* begun(run(insert, { name: "b", size: 1 }))
        yield* Effect.repeat(Effect.andThen(Effect.sleep(1), Effect.sync(() => namesIn(path).length)), {
          until: (count) => count === 2
        })
        assert.isUndefined(second.pollUnsafe())
        yield* syncs.letGo
        yield* Fiber.joinAll([first, second])
      })
    ))

  it.live("shows a row of this process, or of another one, only when it is on the disk", () =>
    within(({ driver, path, syncs }) =>
      Effect.gen(function*() {
        yield* run(insert, { name: "a", size: 1 })
        const other = yield* open(path)
        yield* Effect.provideService(all(list, {}), Database, other)
        yield* syncs.hold
        const writing = yield* begun(run(insert, { name: "b", size: 1 }))
        yield* syncs.asked
        const reads = [driver, other].flatMap((from) =>
          [all(list, {}), aside(all(list, {}))].map((read) => Effect.provideService(read, Database, from))
        )
        const reading = yield* Effect.forEach(reads, begun)
        // The process that reads has its rows once it is idle again.
        yield* Effect.repeat(Effect.andThen(Effect.sleep(1), Effect.sync(() => driver.connections().idle)), {
          until: (idle) => idle === 2
        })
        assert.deepStrictEqual(reading.map((fiber) => fiber.pollUnsafe()), reading.map(() => undefined))
        yield* syncs.letGo
        for (const fiber of reading) {
          assert.deepStrictEqual((yield* Fiber.join(fiber)).map(({ name }) => name), ["a", "b"])
        }
        yield* Fiber.join(writing)
      })
    ))

  it.live("lets a request read without waiting, but holds its answer until the sync", () =>
    within(({ syncs }) =>
      Effect.gen(function*() {
        yield* syncs.hold
        const writing = yield* begun(run(insert, { name: "a", size: 1 }))
        yield* syncs.asked
        const seen: Array<number> = []
        const request = yield* begun(oneSync(
          Effect.orDie(Effect.forEach([1, 2], () => Effect.map(all(list, {}), (rows) => seen.push(rows.length))))
        ))
        yield* Effect.repeat(Effect.andThen(Effect.sleep(1), Effect.sync(() => seen.length)), {
          until: (count) => count === 2
        })
        assert.isUndefined(request.pollUnsafe())
        yield* syncs.letGo
        yield* Fiber.joinAll([writing, request])
        assert.deepStrictEqual(seen, [1, 1])
      })
    ))

  it.live("is lost if a sync fails", () =>
    within(({ driver, path, syncs }) =>
      Effect.gen(function*() {
        const lost = yield* begun(driver.lost ?? Effect.never)
        yield* syncs.hold
        const writing = yield* begun(Effect.exit(run(insert, { name: "a", size: 1 })))
        yield* syncs.asked
        yield* syncs.fail(new Error("EIO: i/o error, fdatasync"))
        assert.isTrue(Exit.isFailure(yield* Fiber.join(writing)))
        assert.isTrue(Exit.isFailure(yield* Effect.exit(all(list, {}))))
        assert.strictEqual(
          yield* Fiber.join(lost),
          `The database ${path} could not be written to the disk: EIO: i/o error, fdatasync. The last changes may be lost, and no client was told about them. Check the disk, then start again.`
        )
      })
    ))

  it.live("is lost if its write-ahead file is removed", () =>
    within(({ driver, path }) =>
      Effect.gen(function*() {
        yield* run(insert, { name: "a", size: 1 })
        fs.renameSync(`${path}-wal`, `${path}.away`)
        assert.include(yield* driver.lost ?? Effect.never, `The database file ${path}-wal was removed`)
      })
    ))

  it.live("is synced at each commit as long as the file has no write-ahead file", () =>
    Effect.scoped(Effect.gen(function*() {
      const path = join(yield* folder, "copy.db")
      const engine = new Engine(path)
      engine.exec("CREATE TABLE things (name TEXT NOT NULL, size INTEGER NOT NULL)")
      engine.close()
      const copy = Context.get(
        yield* Layer.build(Sqlite.layer({ path, synchronous: "grouped", mustExist: true })),
        Database
      )
      yield* Effect.gen(function*() {
        yield* run(insert, { name: "a", size: 1 })
        assert.strictEqual(yield* pragma("synchronous"), 2)
      }).pipe(Effect.provideService(Database, copy))
    })))

  it.live("lets the pages of a stream wait for the sync of what they show", () =>
    within(({ syncs }) =>
      Effect.gen(function*() {
        const page = yield* oneSync(Effect.map(
          eachSynced(Effect.context<Database>()),
          (context) => Effect.provideContext(all(list, {}), context)
        ))
        yield* syncs.hold
        const writing = yield* begun(run(insert, { name: "a", size: 1 }))
        yield* syncs.asked
        const reading = yield* begun(oneSync(page))
        assert.isUndefined(reading.pollUnsafe())
        yield* syncs.letGo
        yield* Fiber.joinAll([writing, reading])
      })
    ))

  it.live(
    "has a write-ahead file that does not grow without end while the service writes",
    () =>
      within(({ driver, path }) =>
        Effect.gen(function*() {
          yield* Effect.forkScoped(driver.upkeep ?? Effect.never)
          const name = "x".repeat(3000)
          const write = transaction(Effect.forEach(
            Array.from({ length: 40 }, (_, size) => size),
            (size) => run(insert, { name, size }),
            { discard: true }
          ))
          yield* Effect.repeat(Effect.forEach([1, 2, 3, 4], () => write, { concurrency: 2, discard: true }), {
            times: 100
          })
          assert.strictEqual(yield* pragma("wal_autocheckpoint"), 0, "no commit copies the file itself")
          // 400 transactions of some 40 pages fill 16,000 pages.
          assert.isBelow(fs.statSync(`${path}-wal`).size / 4096, 12_000)
          assert.isAbove(fs.statSync(path).size / 4096, 4096)
        })
      ),
    60_000
  )

  it.live("is never opened by the process itself, which would release the locks of the engine", () =>
    within(({ driver, path, syncs }) =>
      Effect.gen(function*() {
        syncs.opened.length = 0
        yield* Effect.forkScoped(driver.upkeep ?? Effect.never)
        yield* Effect.repeat(run(insert, { name: "a", size: 1 }), { times: 100 })
        yield* aside(all(list, {}))
        assert.deepStrictEqual(syncs.opened.filter((file) => file.startsWith(path) && file !== `${path}-wal`), [])
      })
    ))
})
