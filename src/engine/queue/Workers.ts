import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { readFileSync, readlinkSync } from "node:fs"
import { Loops } from "../Loops.ts"
import { int, nullable, text } from "../sql/Column.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { Database } from "../sql/Database.ts"
import { all, first, lenient, run } from "../sql/Query.ts"
import { refuseCopied } from "../sql/ServedLock.ts"
import { statement } from "../sql/Statement.ts"
import { vital } from "../sql/Vital.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../Time.ts"
import { clocks, databaseClock } from "./Clocks.ts"
import { refuseUnlike } from "./UnlikeProcesses.ts"

/* The processes that share a queue: their names and their rows in `workers`. */

/*
 * The name of a process, as the owner of a row: `<host>:<pid>:<uuid>:<place>.<begun>`. `place` and `begun` come from
 * the kernel, and are missing if the kernel does not provide them.
 */

/** What a process can find out about the processes of its machine. */
export interface Machine {
  /** The scope in which a process id has the same meaning as here: this boot of this kernel, and this pid namespace. */
  readonly place: string | undefined
  /**
   * Returns when a process of this place began, in the kernel's units. Returns `hidden` if that cannot be read, and
   * `undefined` if the process is gone.
   */
  readonly begun: (pid: number) => string | undefined
}

const hidden = "hidden"

const attempt = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

const placeHere = (): string | undefined =>
  attempt(() => {
    const [boot = ""] = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").split("-")
    const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))
    return namespace === null ? undefined : `${boot}-${namespace[0]}`
  })

// A signal asks the kernel whether the process exists, because `/proc` may hide processes of other users.
const isThere = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

const begunHere = (pid: number): string | undefined => {
  if (!isThere(pid)) return undefined
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
  if (stat === undefined) return hidden
  // The name is in parentheses and may contain any character. The state follows it and, nineteen fields later, the
  // start time.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19] ?? hidden
}

/** Returns the machine on which this process runs. This works on Linux; on other systems nothing is known. */
export const here = (): Machine => ({ place: placeHere(), begun: begunHere })

/** Returns the owner text of a process. The uuid is made only for this process. */
export const ownerOf = (
  { begun, place }: Machine,
  of: { readonly host: string; readonly pid: number; readonly uuid: string }
): string => `${of.host}:${of.pid}:${of.uuid}:${place === undefined ? "" : `${place}.${begun(of.pid) ?? hidden}`}`

const parts = /:(\d+):[^:]+:(?:([^:.]+)\.([^:.]+))?$/

/**
 * Returns whether an owner renews its leases. Owners of earlier versions took a lease once, for as long as an attempt
 * could last (docs/contribute/decisions/compatibility.md, "Neighbours").
 */
export const renews = (owner: string): boolean => parts.test(owner)

/**
 * Returns whether an owner was a process of this machine that has ended. Returns false if this cannot be known. The
 * leases of the owner then show whether the process has ended.
 */
export const isGone = ({ begun, place }: Machine) => (owner: string): boolean => {
  const [, pid, itsPlace, itsBegun] = parts.exec(owner) ?? []
  if (place === undefined || itsPlace !== place || itsBegun === hidden) return false
  const now = begun(Number(pid))
  return now === undefined || (now !== hidden && now !== itsBegun)
}

/** Returns whether an owner is a running process of this machine. No clock is needed to know this. */
export const isRunning = ({ begun, place }: Machine) => (owner: string): boolean => {
  const [, pid, itsPlace, itsBegun] = parts.exec(owner) ?? []
  return place !== undefined && itsPlace === place && itsBegun !== hidden && begun(Number(pid)) === itsBegun
}

/* The rows with which processes report that they are present. */

const upsert = statement({
  name: "worker_upsert",
  params: {
    owner: text(),
    roles: text(),
    version: text(),
    startedAt: int,
    now: int,
    sharesSyncs: int,
    knows: text(),
    failing: text()
  },
  row: {},
  sql: () =>
    `INSERT INTO workers (owner, roles, version, started_at, last_seen_at, shares_syncs, knows, failing)
     VALUES (:owner, :roles, :version, :startedAt, :now, :sharesSyncs, :knows, :failing)
     ON CONFLICT (owner) DO UPDATE SET last_seen_at = excluded.last_seen_at, failing = excluded.failing`
})

const latestStatement = statement({
  name: "worker_latest",
  params: {},
  row: { latest: nullable(int) },
  sql: () => `SELECT max(last_seen_at) AS "latest" FROM workers`
})

const removeStatement = statement({
  name: "worker_remove",
  params: { owner: text() },
  row: {},
  sql: () => `DELETE FROM workers WHERE owner = :owner`
})

// A row seen after `after` was stamped by a wrong clock. If its process is alive, it soon writes its row again.
const sweepStatement = statement({
  name: "worker_sweep",
  params: { before: int, after: int },
  row: { owner: text() },
  sql: () => `DELETE FROM workers WHERE last_seen_at NOT BETWEEN :before AND :after RETURNING owner`
})

const aheadStatement = statement({
  name: "worker_ahead",
  params: { owner: text(), after: int },
  row: { owner: text(), lastSeenAt: int },
  sql: () =>
    `SELECT owner AS "owner", last_seen_at AS "lastSeenAt" FROM workers
     WHERE last_seen_at > :after AND owner <> :owner ORDER BY last_seen_at DESC LIMIT 1`
})

const seenStatement = statement({
  name: "worker_seen",
  params: { prefix: text(), role: text(), since: int, until: int },
  row: { owner: text() },
  sql: () =>
    `SELECT owner FROM workers WHERE substr(owner, 1, length(:prefix)) = :prefix AND last_seen_at BETWEEN :since AND :until
       AND (',' || roles || ',') LIKE ('%,' || :role || ',%') LIMIT 1`
})

const listStatement = statement({
  name: "worker_list",
  params: {},
  row: { owner: text(), roles: text(), version: text(), startedAt: int, lastSeenAt: int, failing: text() },
  sql: () =>
    `SELECT owner AS "owner", roles AS "roles", version AS "version", started_at AS "startedAt",
       last_seen_at AS "lastSeenAt", failing AS "failing" FROM workers ORDER BY started_at DESC, owner`
})

/** Returns every known process, the youngest first. Times are epoch seconds. */
export const list = lenient(listStatement, {})

/** Writes or refreshes the presence of a process. */
export const present = (row: {
  readonly owner: string
  readonly roles: string
  readonly version: string
  readonly startedAt: number
  readonly now: number
  readonly knows?: string
  /** The background loops that keep failing, joined by blanks. By default none. */
  readonly failing?: string
}) =>
  Effect.flatMap(
    Database,
    ({ commits }) => run(upsert, { knows: "", failing: "", ...row, sharesSyncs: commits === undefined ? 0 : 1 })
  )

/** Removes the presence of a process at a clean shutdown. */
export const remove = (owner: string) => run(removeStatement, { owner })

/**
 * Deletes rows that were last refreshed before the epoch second `before`, and rows with a time later than `after`,
 * which only a wrong clock can have written. Returns their number.
 */
export const sweep = (before: number, after: number) =>
  Effect.map(all(sweepStatement, { before, after }), (gone) => gone.length)

/** Returns the process other than `owner` that was seen most recently, if it was seen after an epoch second. */
const ahead = (owner: string, after: number) => first(aheadStatement, { owner, after })

/** Returns whether a process of this host with this role was seen between two epoch seconds. */
export const wasSeen = (host: string, role: string, since: number, until: number) =>
  Effect.map(first(seenStatement, { prefix: `${host}:`, role, since, until }), (row) => row !== undefined)

/** Returns the latest time at which any process was seen. This query is very cheap. */
export const latest = first(latestStatement, {})

/** What operators see of a process. The queue itself depends on leases only. */
export interface PresenceOptions {
  /** The name of the process: `<host>:<pid>:<uuid>:<place>.<begun>`. */
  readonly owner: string
  /** The roles, joined by commas. */
  readonly roles: string
  readonly version: string
  /** What this version knows beyond the first one: words, joined by blanks. By default nothing. */
  readonly knows?: string
}

const refreshMillis = 10_000
const forgottenAfterSeconds = 600

/** Smaller differences between clocks are ignored: rows have times in whole seconds, and an answer takes time. */
const noticedMillis = 2000

/**
 * Returns how far other clocks are ahead of this process's clock, in milliseconds: the clock of the database server,
 * and the clock of the process that was seen latest.
 */
const measure = Effect.fnUntraced(function*(owner: string) {
  const before = yield* currentMillis
  const theirs = yield* databaseClock
  const after = yield* currentMillis
  const offsets: Array<readonly [against: string, millis: number]> = []
  // The database read its clock between the query and the answer. A difference within that interval counts as no
  // difference.
  if (theirs !== undefined && theirs < before) offsets.push(["database", theirs - before])
  if (theirs !== undefined && theirs > after) offsets.push(["database", theirs - after])
  // A row has the time of the server if that time is later. Such a row says nothing about the clock of its process.
  const other = yield* ahead(owner, Math.floor(Math.max(after, theirs ?? after) / 1000))
  if (other !== undefined) offsets.push([other.owner, other.lastSeenAt * 1000 - after])
  return offsets.filter(([, millis]) => Math.abs(millis) >= noticedMillis)
})

/**
 * Keeps a row in `workers` until the scope closes, with the later of the two clocks, so that a process whose clock is
 * behind does not look as if it were gone. Refreshes the row every ten seconds, with the loops that keep failing in this
 * process, and removes rows of processes that are
 * long gone. Reports clocks that differ from this process's clock, and reports them again when the difference has
 * changed by ten seconds.
 */
export const presence = (options: PresenceOptions): Layer.Layer<never, StorageFailed, Database | Loops> =>
  Layer.effectDiscard(
    Effect.gen(function*() {
      const startedAt = yield* currentSeconds
      const { troubled } = yield* Loops
      yield* refuseCopied
      const { later } = yield* clocks
      yield* Effect.acquireRelease(
        present({ ...options, startedAt, now: later }),
        () => Effect.ignore(remove(options.owner)) // the row expires after ten minutes anyway
      )
      yield* refuseUnlike(options.owner, later, isGone(here()))
      const { owner, roles, version } = options
      yield* emit("worker_registered", { owner, roles, version })
      let told = new Map<string, number>()
      const compare = Effect.gen(function*() {
        const now = new Map<string, number>()
        for (const [against, offset_ms] of yield* measure(options.owner)) {
          const before = told.get(against)
          const isKnown = before !== undefined && Math.abs(offset_ms - before) < refreshMillis
          now.set(against, isKnown ? before : offset_ms)
          if (!isKnown) yield* emit("server_clock_skewed", { against, offset_ms })
        }
        told = now
      })
      const refresh = Effect.gen(function*() {
        const { earlier, later } = yield* clocks
        const failing = troubled(yield* lifeMillis).join(" ")
        yield* present({ ...options, startedAt, now: later, failing })
        const rows_removed = yield* sweep(earlier - forgottenAfterSeconds, later + forgottenAfterSeconds)
        if (rows_removed > 0) yield* emit("worker_presence_swept", { rows_removed })
        yield* compare
      }).pipe(Effect.catch((error) => emit("worker_presence_failed", { error: error.message })), vital)
      yield* Effect.ignore(compare)
      yield* supervised("worker_presence", Effect.repeat(Effect.delay(refresh, refreshMillis), Schedule.forever))
    })
  )
