import * as Effect from "effect/Effect"
import { availableParallelism } from "node:os"
import type { Roles } from "../domain/Role.ts"
import { everyRole } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { Task } from "./ProcessMessage.ts"

/**
 * Returns how many processes serve ACME clients. `auto` means one for each core, but at most one for each concurrent
 * request.
 */
export const processesOf = ({ server: { max_concurrent_requests, processes } }: Pick<Config, "server">): number =>
  processes === "auto" ? Math.min(availableParallelism(), max_concurrent_requests) : processes

/**
 * Returns the tasks of the processes of a service. Numbers 1 to `count` serve ACME clients and share the slots for
 * requests. Number 0 has the other roles, if there are any. Number 1 logs the records about the whole service.
 */
export const tasksOf = (
  roles: Roles,
  count: number,
  { server: { max_concurrent_requests: slots } }: Pick<Config, "server">
): ReadonlyArray<Task> => {
  const all = everyRole.filter((role) => roles.has(role))
  const others = all.filter((role) => role !== "acme")
  const acme = Array.from({ length: count }, (_, index): Task => ({
    process: index + 1,
    roles: ["acme"],
    speaksFor: index === 0 ? all : [],
    requests: Math.floor(slots / count) + (index < slots % count ? 1 : 0)
  }))
  return others.length === 0 ? acme : [{ process: 0, roles: others, speaksFor: [], requests: slots }, ...acme]
}

/**
 * Logs how many connections to the database all processes together may have. Warns if more processes serve clients than
 * the host has cores.
 */
export const adviseOfProcesses = (
  tasks: ReadonlyArray<Task>,
  { database: { pool_max } }: Pick<Config, "database">
): Effect.Effect<void> =>
  Effect.gen(function*() {
    const processes = tasks.filter(({ process }) => process > 0).length
    const listening = tasks.some(({ roles }) => roles.includes("worker")) ? 1 : 0
    const facts = { processes, connections: tasks.length * pool_max + listening }
    yield* emit("server_processes_supervised", facts)
    const cores = availableParallelism()
    if (processes > cores) yield* emit("server_processes_exceed_cores", { ...facts, cores })
  })
