import { Context, Effect, Exit, Layer } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Connection } from "../../src/engine/sql/Driver.ts"
import * as Sqlite from "../../src/engine/sql/Sqlite.ts"
import type { SqliteOptions } from "../../src/engine/sql/SqliteConnection.ts"

/*
 * The database after a power cut. A synced commit is kept, as is every commit before it. Of the unsynced commits, the
 * last ones are lost. This file does not decide which commits are synced, but asks the service's own layer with a real
 * file.
 */

/** The number of commits between two checkpoints. A checkpoint syncs, so no more commits than these are ever lost. */
const mostUnsynced = 30

const full = 2

const inFolder = <A>(use: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "acme-simulation-"))
  try {
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const known = new Map<string, boolean>()

/** Returns whether each commit to a file is synced when the service opens the file with this setting. */
export const syncsCommits = (synchronous: SqliteOptions["synchronous"]): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    const before = known.get(synchronous)
    if (before !== undefined) return Effect.succeed(before)
    const folder = mkdtempSync(join(tmpdir(), "acme-simulation-"))
    return Effect.gen(function*() {
      const layer = Sqlite.layer({ path: join(folder, "acme.db"), synchronous })
      const opened = Context.get(yield* Layer.build(layer), Database)
      const [row] = yield* opened.exclusive((connection) => connection.execute("PRAGMA synchronous", []))
      return Number((row as { readonly synchronous: unknown }).synchronous) >= full
    }).pipe(
      Effect.scoped,
      Effect.orDie,
      Effect.tap((asked) => Effect.sync(() => void known.set(synchronous, asked))),
      Effect.ensuring(Effect.sync(() => rmSync(folder, { recursive: true, force: true })))
    )
  })

/** The disk under a database in memory. `connection` leads to the database, and `copy` returns its present content. */
export class Disk {
  readonly #connection: Connection
  readonly #copy: () => Uint8Array
  readonly #isSynced: boolean
  /** The database as it was last synced, and after each commit since. */
  readonly #states: Array<Uint8Array> = []
  /** The number of commits before the first of these states. */
  #first = 0

  constructor(connection: Connection, copy: () => Uint8Array, isSynced: boolean) {
    this.#connection = connection
    this.#copy = copy
    this.#isSynced = isSynced
    if (!isSynced) this.#states.push(copy())
  }

  /** Records that a transaction was committed. */
  committed(): void {
    if (this.#isSynced) return
    this.#states.push(this.#copy())
    if (this.#states.length > mostUnsynced) this.#drop(1)
  }

  /** The number of commits so far. */
  get commits(): number {
    return this.#first + this.#states.length - 1
  }

  /** Records that everything up to a number of commits is on the disk. */
  synced(commits: number): void {
    if (!this.#isSynced && commits > this.#first) this.#drop(commits - this.#first)
  }

  #drop(states: number): void {
    this.#states.splice(0, states)
    this.#first += states
  }

  /**
   * Cuts the power, which undoes some of the last commits but never a synced one. Returns the number of undone commits.
   */
  cut(below: (limit: number) => number): number {
    const unsynced = this.#states.length - 1
    if (unsynced < 1) return 0
    const left = below(unsynced)
    const state = this.#states[left]
    this.#states.length = left + 1
    if (state !== undefined) this.#restore(state)
    return unsynced - left
  }

  #all(text: string): ReadonlyArray<{ readonly [column: string]: unknown }> {
    return Exit.match(Effect.runSyncExit(this.#connection.execute(text, [])), {
      onSuccess: (rows) => rows,
      onFailure: (cause) => {
        throw new Error(`${text}: ${String(cause)}`)
      }
    })
  }

  // Restores the rows one by one over the shared connection. Meanwhile the triggers that protect rows do not exist.
  #restore(state: Uint8Array): void {
    inFolder((folder) => {
      const path = join(folder, "past.db")
      writeFileSync(path, state)
      const triggers = this.#all("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
      for (const { name } of triggers) this.#all(`DROP TRIGGER ${String(name)}`)
      this.#all("PRAGMA foreign_keys = OFF")
      this.#all(`ATTACH '${path}' AS past`)
      for (const { name } of this.#all("SELECT name FROM past.sqlite_master WHERE type = 'table'")) {
        this.#all(`DELETE FROM main.${String(name)}`)
        this.#all(`INSERT INTO main.${String(name)} SELECT * FROM past.${String(name)}`)
      }
      this.#all("DETACH past")
      this.#all("PRAGMA foreign_keys = ON")
      for (const { sql } of triggers) this.#all(String(sql))
    })
  }
}
