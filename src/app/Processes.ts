import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { Entropy } from "../crypto/Entropy.ts"
import type { Roles } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import { supervised } from "../domain/words/Loop.ts"
import { BoundSocket } from "../engine/http/BoundSocket.ts"
import { Loops } from "../engine/Loops.ts"
import { parseBindAddress } from "../engine/net/SocketAddress.ts"
import { currentMillis } from "../engine/Time.ts"
import type { Config } from "../settings/AppConfig.ts"
import { changedKeys } from "../settings/Changes.ts"
import type { Loaded } from "../settings/Load.ts"
import type { SignInState } from "../surfaces/cli/Welcome.ts"
import { checkAddresses } from "./Addresses.ts"
import { makeChildren } from "./Children.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"
import { InForce } from "./InForce.ts"
import * as Listeners from "./Listeners.ts"
import { metricsSurface } from "./MetricsSurface.ts"
import { placing } from "./Places.ts"
import { adviseOfProcesses, tasksOf } from "./ProcessPlan.ts"
import { readinessOf } from "./Readiness.ts"
import { refused, unfrozen } from "./Reload.ts"
import { Settings } from "./Settings.ts"

/*
 * The parent of several processes that serve together. It serves nothing but metrics, and never opens the database
 * (docs/contribute/decisions/processes.md).
 */

/**
 * Refuses a new configuration if nothing can listen at one of its new addresses. This process tries each of these
 * addresses itself before the children do. If the first try came from a child, this process would keep the socket that
 * could not be bound, and give it to the other children.
 */
const checkPorts = (before: Config, after: Config, roles: Roles) => {
  const own = ({ admin, publish, server }: Config) => [
    ...roles.has("acme") ? [["server.bind_address", server.bind_address] as const] : [],
    ...roles.has("acme") && publish.enabled ? [["publish.bind_address", publish.bind_address] as const] : [],
    ...roles.has("admin") && admin.enabled ? [["admin.bind_address", admin.bind_address] as const] : []
  ]
  const bound = new Map(own(before))
  return Effect.forEach(own(after).filter(([key, address]) => bound.get(key) !== address), ([key, address]) => {
    const { host, port } = parseBindAddress(address) ?? { host: "", port: 0 } // the address was checked with the configuration
    return Effect.mapError(
      Effect.scoped(new BoundSocket(0, () => {}).bind({ host, port, sharing: "nobody" })),
      ({ message }) => new CommandFailed({ code: 1, message: `${key}: ${message}` })
    )
  }, { discard: true })
}

/**
 * How much longer a process may take to stop than its requests. The units of systemd wait as long
 * (docs/operate/service.md, "Under systemd").
 */
const leftMillis = 10_000

/** The options of a run of several processes. */
export interface SupervisedRun {
  readonly roles: Roles
  readonly loaded: Loaded
  /** How many processes serve ACME clients. */
  readonly count: number
  /** Prints the welcome text when everything is served. `signIn` finds out whether somebody can sign in. */
  readonly announce: (signIn: Effect.Effect<SignInState | undefined>) => Effect.Effect<void>
}

/**
 * Serves with several processes until the stop signal: starts the processes, replaces those that end, passes the
 * signals on, and serves the metrics of all of them on one socket. If the first start of a process fails, this fails
 * with the exit code of that process, which has already printed the reason.
 */
export const superviseProcesses = (
  { announce, count, loaded, roles }: SupervisedRun
): Effect.Effect<void, CommandFailed, Host | InForce | Settings> =>
  Effect.scoped(Effect.gen(function*() {
    const { process } = yield* Host
    const { fresh } = yield* Settings
    const inForce = yield* InForce
    const tasks = tasksOf(roles, count, loaded.config)
    let file = loaded.file
    let generation = 0
    const children = yield* makeChildren(tasks, () => file)
    const stopped = Fiber.join(yield* supervised("stop_signal", process.stopSignal))
    // The children are stopped however this program ends.
    const stop = Effect.suspend(() => children.stop(inForce.config().server.request_timeout_ms + leftMillis))
    yield* Effect.addFinalizer(() => stop)
    const listeners = yield* Listeners.make
    const own = readinessOf(roles, children.failing, () => ({}))
    const surfacesOf = (config: Config) => metricsSurface(config, children.scrape, own)

    yield* adviseOfProcesses(tasks, loaded.config)
    const sockets = yield* listeners.prepare(surfacesOf(loaded.config))
    yield* sockets.publish

    const reload = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function*() {
        const begun = yield* currentMillis
        const before = inForce.config()
        const next = yield* restore(fresh(roles))
        const { config } = next
        const judged = Effect.andThen(unfrozen(before, config), checkAddresses(config, roles))
        yield* restore(Effect.catchTag(judged, "CommandFailed", placing(next)))
        yield* restore(checkPorts(before, config, roles))
        const sockets = yield* restore(listeners.prepare(surfacesOf(config)))
        const publish = Effect.suspend(() => {
          file = next.file
          return inForce.change(config)
        })
        const rebound = yield* Effect.onError(restore(children.reload(next.file, publish)), () => sockets.abandon)
        yield* sockets.publish
        generation++
        yield* emit("server_config_reloaded", {
          generation,
          listeners_rebound: rebound + sockets.rebound,
          changed_keys: changedKeys(before, config),
          elapsed_ms: (yield* currentMillis) - begun
        })
      }).pipe(
        Effect.catch(refused),
        Effect.catchDefect((defect) => emit("server_config_reload_failed", { error: String(defect) }))
      )
    )
    const reloading = Effect.forever(Effect.andThen(process.reloadSignal, reload))
    const serving = Effect.andThen(Effect.andThen(children.begin, announce(children.signIn)), reloading)
    yield* Effect.raceFirst(stopped, Effect.raceFirst(serving, process.uncaught))
    yield* stop
    yield* listeners.drain
  })).pipe(Effect.provide(Layer.merge(Loops.layer, Entropy.layer)))
