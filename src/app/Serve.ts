import { Clock, Effect, Fiber, Layer, Ref } from "effect"
import { hostname } from "node:os"
import type { Roles } from "../domain/Role.ts"
import { rolesText } from "../domain/Role.ts"
import * as crl from "../operations/crl.ts"
import { keepExported } from "../operations/crlExport.ts"
import { recover } from "../operations/sweeps.ts"
import type { Config } from "../subsystems/config/AppConfig.ts"
import { Entropy } from "../subsystems/crypto/Entropy.ts"
import { emit } from "../subsystems/log/EventLog.ts"
import * as Presence from "../subsystems/queue/Presence.ts"
import { start } from "../subsystems/queue/Running.ts"
import { advise } from "./Advisories.ts"
import { CommandFailed } from "./CommandFailed.ts"
import type { Generation } from "./Generation.ts"
import * as Generations from "./Generation.ts"
import type * as Graph from "./Graph.ts"
import * as Listeners from "./Listeners.ts"
import type { Surroundings } from "./Reload.ts"
import { reload } from "./Reload.ts"

/** What the process is, beside its configuration. */
export interface Process {
  readonly version: string
  /** Folder that holds `sqlite/` and `postgres/`. */
  readonly migrations: string
  readonly pid: number
  /** Completes with the signal that asks the process to stop. */
  readonly stopSignal: Effect.Effect<"SIGINT" | "SIGTERM">
  /** Completes when the process is asked to reload; requests that come before anybody waits are one. */
  readonly reloadSignal: Effect.Effect<void>
  /** Dies of an exception that reached nobody. */
  readonly uncaught: Effect.Effect<never>
}

const hostError = ({ message }: { readonly message: string }) => new CommandFailed({ code: 1, message })

/** What one run of `serve` has beside the graph. */
export interface Run {
  readonly config: Config
  readonly roles: Roles
  readonly process: Process
  /** Tells people, once everything serves. */
  readonly announce: Effect.Effect<void>
  readonly load: Surroundings["load"]
  readonly enforce: Surroundings["enforce"]
}

const startRunner = Effect.fnUntraced(function*(config: Config, owner: string, generation: Generation) {
  if (generation.signers === undefined) return undefined
  yield* recover(config)
  yield* Effect.provide(crl.initialize, generation.signers)
  return yield* start({ ...config.jobs, owner }, generation.handlers)
})

/**
 * Serves until the stop signal: every socket bound before anything serves, presence and recovery before the first claim,
 * and at the end requests and jobs finish side by side before presence and database go (`process.md`, "Start",
 * "Shutdown"). SIGHUP reloads.
 */
export const serve = (
  { announce, config, enforce, load, process, roles }: Run
): Effect.Effect<void, CommandFailed, Graph.Kept> =>
  Effect.scoped(Effect.gen(function*() {
    const entropy = yield* Entropy
    const build = { roles, version: process.version }
    const first = yield* Generations.build(config, build, {})
    const current = yield* Effect.acquireRelease(Ref.make(first), (ref) =>
      Effect.flatMap(Ref.get(ref), ({ close }) => close))
    const listeners = yield* Listeners.make
    const sockets = yield* listeners.prepare(first.surfaces)
    const owner = `${hostname()}:${process.pid}:${yield* entropy.uuid}`
    yield* Layer.build(Presence.layer({ owner, roles: rolesText(roles), version: process.version }))
    // Heard from the first job on: what has begun is ended in order, however early.
    const stopped = yield* Effect.forkScoped(process.stopSignal)
    yield* Effect.yieldNow()
    const runner = yield* startRunner(config, owner, first)
    if (runner !== undefined) {
      yield* Effect.forkScoped(keepExported(Effect.map(Ref.get(current), ({ signers }) =>
        signers)))
    }
    yield* Generations.mounted(config)
    yield* sockets.publish
    yield* Generations.told(roles, undefined, config)
    yield* advise(config, roles)
    yield* announce

    const count = yield* Ref.make(0)
    const surroundings = { ...build, scope: yield* Effect.scope, listeners, runner, load, enforce }
    const reloading = Effect.forever(Effect.zipRight(process.reloadSignal, reload(current, count, surroundings)))
    const signal = yield* Effect.raceFirst(Fiber.join(stopped), reloading)
    const begun = yield* Clock.currentTimeMillis
    yield* Effect.forkScoped(
      Effect.forever(Effect.zipRight(process.reloadSignal, emit("server_reload_supervisor_gone", {})))
    )
    yield* emit("server_shutdown_started", { signal })
    const stopRunner = runner === undefined ? Effect.succeed(0) : runner.stop
    const [requests_cut, jobs_released] = yield* Effect.all([listeners.drain, stopRunner], { concurrency: 2 })
    const ended = yield* Clock.currentTimeMillis
    yield* emit("server_shutdown_completed", { requests_cut, jobs_released, elapsed_ms: ended - begun })
  })).pipe(Effect.catchTag("StorageFailed", hostError))
