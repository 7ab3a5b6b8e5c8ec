import * as Effect from "effect/Effect"
import * as workers from "../../../engine/queue/Workers.ts"
import { Database } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { workerObject } from "../Objects.ts"
import type { Concern } from "./Concern.ts"
import { concern, counted } from "./Concern.ts"

/* What processes and the database need attention for. */

const processes = { label: "Show the processes", path: "/ui/workers", command: "worker list" }

const shortOwner = (owner: string): string => owner.split(":").slice(0, 2).join(":")

/** The roles that some process must have. */
const needed = [
  {
    role: "acme",
    cause: "acme_absent",
    title: "No process answers ACME clients",
    effect: "No client gets a certificate or a renewal until one starts."
  },
  {
    role: "worker",
    cause: "worker_absent",
    title: "No worker is present",
    effect: "Nothing is validated, issued, revoked or sent until a worker starts."
  }
] as const

/** Returns the concerns about the processes that share the database. */
export const processConcerns = Effect.gen(function*() {
  const now = yield* currentSeconds
  const known = (yield* workers.list).map((worker) => ({ ...workerObject(worker, now), seen: worker.lastSeenAt }))
  const found: Array<Concern> = []
  for (const { cause, effect, role, title } of needed) {
    const able = known.filter(({ roles }) => roles.includes(role))
    if (able.some(({ stale }) => !stale)) continue
    const since = able.length === 0 ? undefined : Math.max(...able.map(({ seen }) => seen))
    found.push(concern(cause, { title, effect, since, way: processes }))
  }
  const gone = known.filter(({ stale }) => stale)
  if (gone.length > 0) {
    found.push(concern("process_gone", {
      title: `${counted(gone.length, "process", "processes")} ended without a shutdown, or cannot reach the database`,
      effect: "Other processes take over their work. A process that is missed for ten minutes is forgotten.",
      count: gone.length,
      since: Math.min(...gone.map(({ seen }) => seen)),
      error: gone.map(({ owner, roles }) => `${shortOwner(owner)} (${roles.join(", ")})`).join(", "),
      way: processes
    }))
  }
  const troubled = known.filter(({ failing, stale }) => !stale && failing.length > 0)
  if (troubled.length > 0) {
    const loops = [...new Set(troubled.flatMap(({ failing }) => failing))]
    found.push(concern("loops_failing", {
      title: `Background work keeps failing in ${counted(troubled.length, "process", "processes")}: ${
        loops.join(", ")
      }`,
      effect: "The process tries again, and ends if it cannot serve or issue without this work.",
      count: loops.length,
      error: troubled.map(({ failing, owner }) => `${shortOwner(owner)} (${failing.join(", ")})`).join(", "),
      way: processes
    }))
  }
  return found
})

const notUsed: { readonly [state: string]: string } = {
  away: "does not answer",
  behind: "is too far behind",
  foreign: "is no copy of this database",
  failed: "fails to answer"
}

/** Returns the concerns about the database as this process sees it. */
export const databaseConcerns = Effect.map(Database, ({ isReadOnly, standby }) => {
  const found: Array<Concern> = []
  const way = { label: "Show the processes", path: "/ui/workers", command: "config check --online" }
  if (isReadOnly()) {
    found.push(concern("database_read_only", {
      title: "The database accepts no writes",
      effect: "No client gets a certificate, and nothing can be changed.",
      way
    }))
  }
  const state = standby?.state().state
  const trouble = state === undefined ? undefined : notUsed[state]
  if (trouble !== undefined) {
    found.push(concern("standby_unused", {
      title: `The standby ${trouble}`,
      effect: "The primary answers every read, so pages of operators load it.",
      way
    }))
  }
  return found
})
