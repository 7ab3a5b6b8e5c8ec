import Engine from "better-sqlite3"
import type { Scope } from "effect"
import { Context, Effect, Exit, Layer } from "effect"
import type { Sync } from "../../src/engine/sql/CommitSync.ts"
import { makeCommitSync } from "../../src/engine/sql/CommitSync.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Connection, Driver } from "../../src/engine/sql/Driver.ts"
import { makeGroupCommit } from "../../src/engine/sql/GroupCommit.ts"
import * as Migrations from "../../src/engine/sql/Migrations.ts"
import { SqlError } from "../../src/engine/sql/SqlError.ts"
import * as Sqlite from "../../src/engine/sql/Sqlite.ts"
import type { SqliteOptions } from "../../src/engine/sql/SqliteConnection.ts"
import { synced } from "../../src/engine/sql/Synced.ts"
import { migrationsOf } from "../support/Graph.ts"
import { Disk, syncsCommits } from "./Disk.ts"
import type { Process } from "./Machine.ts"

/*
 * The only database of a simulation, and the connections of processes to it. If a process ends, its transaction is
 * rolled back and its place in the queue is freed, as a real server does when a connection is gone.
 */

/** A row as SQLite returns it. */
export type Row = { readonly [column: string]: unknown }

/**
 * Decides the failures of the database. These functions are called before each statement and each commit of a process.
 */
export interface Mishaps {
  /** Whether the statement is lost before it arrives. */
  readonly statement: (process: Process) => boolean
  /** Whether the fiber that sends the statement ends with a defect. */
  readonly defect: (process: Process) => boolean
  /**
   * With `undone`, nothing is committed, and the process learns that. With `unheard`, everything is committed, but the
   * process is told the opposite.
   */
  readonly commit: (process: Process) => "undone" | "unheard" | undefined
  /** Decides the order of rows of statements without ORDER BY. */
  readonly arrange: <A>(rows: ReadonlyArray<A>) => ReadonlyArray<A>
}

/** Opens a database in memory by the service's own layer. Returns its driver, and the engine below it. */
const openEngine = (synchronous: SqliteOptions["synchronous"]) =>
  Effect.gen(function*() {
    const engines = new Set<Engine.Database>()
    const { prepare } = Engine.prototype
    Engine.prototype.prepare = function(this: Engine.Database, text: string) {
      engines.add(this)
      return prepare.call(this, text)
    } as typeof prepare
    const opened = yield* Effect.ensuring(
      Effect.orDie(Layer.build(Sqlite.layer({ path: ":memory:", synchronous }))),
      Effect.sync(() => void (Engine.prototype.prepare = prepare))
    )
    const [engine] = engines
    if (engine === undefined) return yield* Effect.die(new Error("the layer prepared no statement"))
    return { engine, opened: Context.get(opened, Database) }
  })

interface Turn {
  readonly process: Process
  readonly resume: () => void
}

/** The text of a planted defect. All log records about what this defect ends contain the text. */
export const plantedDefect = "a planted defect"

const planted = new SqlError({ cause: new Error("planted"), message: "planted" })

const tablesOf = new Map<string, ReadonlyArray<string>>()

const tablesWritten = (text: string): ReadonlyArray<string> => {
  const known = tablesOf.get(text)
  if (known !== undefined) return known
  const found = [...text.matchAll(/\b(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+(\w+)/g)].map(([, table = ""]) =>
    table
  )
  tablesOf.set(text, found)
  return found
}

// RETURNING has no fixed order of rows, whatever the order in which the statement found them.
const isOrdered = (text: string): boolean => /\bORDER BY\b/.test(text) && !/\bRETURNING\b/.test(text)

/** The database with its schema. */
export interface Store {
  /** Whether there are uncommitted writes. */
  readonly isInTransaction: () => boolean
  /** Cuts the power while no process has a connection. Returns how many transactions are undone. */
  readonly cut: (below: (limit: number) => number) => number
  /**
   * Adds a job that is due at this second and whose deadline no process can read, as a change by hand or a bad disk may
   * leave one.
   */
  readonly spoil: (key: string, second: number) => void
  /**
   * Deletes the row of an authorization of an unfinished order, as a partial restore may do. Returns the id of the row,
   * if there is one.
   */
  readonly lose: (below: (limit: number) => number) => string | undefined
  /** Reads rows outside of any process. */
  readonly rows: (text: string) => ReadonlyArray<Row>
  /** The driver a process uses. */
  readonly driverOf: (process: Process) => Effect.Effect<Driver, never, Scope.Scope>
}

/**
 * Opens a store. After each committed transaction, before the next statement of any process, `committed` is called with
 * the tables to which the transaction wrote.
 */
export const openStore = (
  synchronous: SqliteOptions["synchronous"],
  mishaps: Mishaps,
  committed: (written: ReadonlySet<string>) => void,
  /** Calls back when the machine has written its unsynced data to the disk. */
  sync: (process: Process, ended: () => void) => void
): Effect.Effect<Store, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { engine, opened } = yield* openEngine(synchronous)
    yield* Effect.orDie(Effect.provideService(
      Effect.flatMap(migrationsOf("sqlite"), Migrations.migrate),
      Database,
      opened
    ))
    const real = yield* Effect.orDie(opened.exclusive(Effect.succeed))
    const perform = (text: string, params: ReadonlyArray<unknown>) => Effect.runSyncExit(real.execute(text, params))
    const rows = (text: string): ReadonlyArray<Row> =>
      Exit.match(perform(text, []), {
        onSuccess: (found) => found,
        onFailure: (cause) => {
          throw new Error(`${text}: ${String(cause)}`)
        }
      })

    const disk = new Disk(real, () => engine.serialize(), yield* syncsCommits(synchronous))
    let commitsOfAll = 0
    let holder: Process | undefined
    let inTransaction = false
    let written = new Set<string>()
    const line: Array<Turn> = []
    const next = () => {
      const turn = line.shift()
      holder = turn?.process
      turn?.resume()
    }

    const driverOf = (process: Process) => {
      process.onKilled.add(() => {
        for (let at = line.length - 1; at >= 0; at--) if (line[at]?.process === process) line.splice(at, 1)
        if (holder !== process) return
        if (inTransaction) perform("ROLLBACK", [])
        inTransaction = false
        next()
      })
      let own = 0
      const syncOfDisk: Sync = (ended) => {
        const upTo = disk.commits
        sync(process, () => {
          disk.synced(upTo)
          ended(null)
        })
      }
      const commits = synchronous !== "grouped" ? undefined : makeCommitSync({
        syncs: [syncOfDisk, syncOfDisk],
        othersCommits: () => commitsOfAll - own,
        slow: () => Effect.void
      })
      const whenSynced = <A, E, R>(self: Effect.Effect<A, E, R>) => synced(commits, self)
      const take = Effect.callback<void>((resume) => {
        const turn = { process, resume: () => resume(Effect.void) }
        if (holder === undefined) {
          holder = process
          turn.resume()
        } else line.push(turn)
      })
      const statement = (text: string, params: ReadonlyArray<unknown>) =>
        Effect.suspend(() => {
          if (mishaps.statement(process)) return planted
          if (mishaps.defect(process)) return Effect.die(new Error(plantedDefect))
          for (const table of tablesWritten(text)) written.add(table)
          const done = perform(text, params)
          return isOrdered(text) ? done : Exit.map(done, mishaps.arrange)
        })
      const connection: Connection = Object.assign(Object.create(real) as Connection, {
        execute: statement,
        executeRaw: (text: string) =>
          Effect.sync(() => {
            if (text === "ROLLBACK") inTransaction = false
            return perform(text, [])
          }).pipe(Effect.flatten)
      })
      const exclusive: Driver["exclusive"] = (use) =>
        Effect.uninterruptible(Effect.andThen(take, Effect.ensuring(use(connection), Effect.sync(next))))
      const begin: Driver["begin"] = () =>
        Effect.suspend(() => {
          if (mishaps.statement(process)) return planted
          inTransaction = true
          written = new Set()
          return Effect.asVoid(perform("BEGIN IMMEDIATE", []))
        })
      const commit: Driver["commit"] = () =>
        Effect.suspend(() => {
          const mishap = mishaps.commit(process)
          if (mishap === "undone") return planted
          const done = perform("COMMIT", [])
          inTransaction = false
          if (Exit.isSuccess(done)) {
            disk.committed()
            commitsOfAll++
            own++
            commits?.committed()
            committed(written)
          }
          return mishap === undefined ? Effect.asVoid(done) : planted
        })
      return Effect.map(makeGroupCommit({ exclusive, begin, commit }), (transact): Driver => ({
        dialect: "sqlite",
        exclusive: (use) => whenSynced(exclusive(use)),
        single: ({ reads, text }, params) =>
          whenSynced(
            reads
              ? exclusive((connection) => connection.execute(text, params))
              : Effect.flatten(transact((connection) => Effect.exit(connection.execute(text, params))))
          ),
        commits,
        transact: (body) => whenSynced(transact(body)),
        aside: undefined,
        lost: undefined,
        begin,
        commit,
        listen: undefined,
        keepsSession: true,
        describe: opened.describe,
        unreadable: opened.unreadable,
        isReadOnly: () => false,
        connections: opened.connections
      }))
    }
    const spoil: Store["spoil"] = (key, second) => {
      rows(`INSERT INTO jobs
        (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, deadline, created_at, updated_at)
        VALUES (x'${key}', 'challenge_validate', '${key}', '{}', 'ready', ${second}, 0, 3, 9223372036854775807, ${second}, ${second})`)
      disk.committed()
    }
    const lose: Store["lose"] = (below) => {
      const open = rows(`SELECT lower(hex(a.id)) AS id FROM authorizations a JOIN orders o ON o.id = a.order_id
        WHERE o.status IN ('pending', 'ready', 'processing') ORDER BY a.id`)
      const lost = open.length === 0 ? undefined : open[below(open.length)]?.["id"]
      if (lost === undefined) return undefined
      rows(`DELETE FROM authorizations WHERE id = x'${String(lost)}'`)
      disk.committed()
      return String(lost)
    }
    return { rows, lose, spoil, driverOf, isInTransaction: () => inTransaction, cut: (below) => disk.cut(below) }
  })
