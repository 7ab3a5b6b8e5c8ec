import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import type { JobFailure } from "../domain/JobFailure.ts"
import { emit } from "../domain/words/Log.ts"
import { supervised } from "../domain/words/Loop.ts"
import type { Running } from "../engine/queue/Runner.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { currentMillis } from "../engine/Time.ts"
import { kindsFault } from "../operations/OlderProcesses.ts"
import * as crl from "../operations/work/crl/ListPublication.ts"
import { ProfileStates } from "../services/signing/ProfileStates.ts"
import type { Config } from "../settings/AppConfig.ts"
import { changedKeys } from "../settings/Changes.ts"
import { shownAt } from "../settings/Effective.ts"
import { frozenChanges } from "../settings/Frozen.ts"
import type { Loaded } from "../settings/Load.ts"
import { checkAddresses } from "./Addresses.ts"
import { advise, adviseOfFile, adviseOnOperators } from "./Advisories.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { beginCounters } from "./Counters.ts"
import type { Build, Generation } from "./Generation.ts"
import * as Generations from "./Generation.ts"
import type { Kept } from "./Graph.ts"
import { InForce } from "./InForce.ts"
import type * as Listeners from "./Listeners.ts"
import { placing } from "./Places.ts"
import { Settings } from "./Settings.ts"

/** The parts of the process that outlive its generations. */
export interface Surroundings extends Build {
  readonly listeners: Effect.Success<typeof Listeners.make>
  /** The scope of the process. Work of an old generation ends with this scope at the latest. */
  readonly scope: Scope.Scope
  /** The runner of jobs. It exists only in a process with the worker role. */
  readonly runner: Running<Kept, JobFailure> | undefined
}

/** Returns the old and the new value of a key. If only a secret has changed, returns nothing. */
const fromTo = (key: string, before: Config, after: Config): string => {
  const [one, other] = [shownAt(before, key), shownAt(after, key)]
  return one === other ? "" : ` from ${JSON.stringify(one)} to ${JSON.stringify(other)}`
}

/** Refuses a configuration that changes keys which cannot change while the service runs. */
export const unfrozen = (before: Config, after: Config): Effect.Effect<void, CommandFailed> => {
  const changed = frozenChanges(before, after)
  return changed.length === 0
    ? Effect.void
    : new CommandFailed({
      code: 3,
      message: changed.map((key) => `${key}: cannot change${fromTo(key, before, after)} while the service runs.`).join(
        "\n"
      )
    })
}

const room = 440 // of the 500 characters that a record may have

/** Joins the lines of a refusal into one line. The line also says how many faults did not fit into the record. */
const lineOf = (message: string): string => {
  const [head = "", ...faults] = message.split(/\n\s*/)
  const kept: Array<string> = []
  let length = head.length
  for (const fault of faults) {
    length += fault.length + 2
    if (kept.length > 0 && length > room) break
    kept.push(fault)
  }
  const left = faults.length - kept.length
  if (left > 0) kept.push(`and ${left} more, which \`acme-svc config check\` shows`)
  return kept.length === 0 ? head : `${head} ${kept.join("; ")}`
}

/** Logs why a reload was refused, or failed. */
export const refused = (error: Pick<CommandFailed, "message"> & { readonly code?: number }): Effect.Effect<void> =>
  error.code === 3
    ? emit("server_config_reload_refused", { error: lineOf(error.message) })
    : emit("server_config_reload_failed", { error: lineOf(error.message) })

/** A configuration that is ready to be served, beside the one that is served. */
export interface Prepared {
  /** How many of the existing listeners have a new address. */
  readonly rebound: number
  /**
   * Serves the configuration. The old generation is closed when its last request has ended. The publication cannot
   * fail.
   */
  readonly publish: Effect.Effect<void, never, Kept | InForce>
  /** Closes what was made for the configuration. */
  readonly abandon: Effect.Effect<void>
}

/**
 * Builds and binds everything that a configuration needs, while the old generation still serves. If any part of it
 * cannot be made, nothing changes (docs/contribute/decisions/process.md, "Reload").
 */
export const prepare = (
  loaded: Loaded,
  current: Ref.Ref<Generation>,
  surroundings: Surroundings
): Effect.Effect<Prepared, CommandFailed | StorageFailed, Kept> => {
  const { listeners, roles, runner, scope, speaksFor } = surroundings
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const { config } = loaded
      const before = yield* Ref.get(current)
      const states = yield* ProfileStates
      const mayDegrade = before.signers === undefined
        ? undefined
        : (profile: string) => states.of(profile) !== undefined
      const judged = Effect.all([unfrozen(before.config, config), checkAddresses(config, roles), beside(config)])
      const built = Effect.andThen(
        judged,
        Generations.build(loaded, surroundings, { ...before.before, mayDegrade })
      )
      const next = yield* restore(Effect.catchTag(built, "CommandFailed", placing(loaded)))
      const sockets = yield* Effect.onError(restore(listeners.prepare(next.surfaces)), () => next.close)
      const publish = Effect.gen(function*() {
        yield* (yield* InForce).change(config)
        yield* Ref.set(current, next)
        yield* beginCounters(roles, config)
        yield* sockets.publish
        if (runner !== undefined) yield* runner.retune(config.jobs, next.handlers)
        yield* Generations.told(surroundings, before.config, config)
        if (speaksFor !== undefined) {
          yield* adviseOfFile(loaded)
          yield* advise(config, speaksFor)
        }
        yield* adviseOnOperators(config, roles)
        yield* Scope.provide(supervised("generation_retired", Effect.uninterruptible(before.retire)), scope)
        if (next.signers === undefined) return
        // A new CA gets its first list now. If that fails, the failure is logged, and the next revocation or sweep makes
        // the list.
        yield* Scope.provide(
          supervised("crl_first_list", Effect.ignore(Effect.provide(crl.initialize, next.signers))),
          scope
        )
      })
      return { rebound: sockets.rebound, publish, abandon: Effect.andThen(sockets.abandon, next.close) }
    })
  )
}

/** Refuses a configuration that cannot be used beside the other processes on the database. */
const beside = (config: Config) =>
  Effect.flatMap(
    kindsFault(config),
    (fault) => fault === undefined ? Effect.void : new CommandFailed({ code: 3, message: fault })
  )

/** Reads the configuration again, and applies either all of it or nothing. */
export const reload = (
  current: Ref.Ref<Generation>,
  count: Ref.Ref<number>,
  surroundings: Surroundings
): Effect.Effect<void, never, Kept | InForce | Settings> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const begun = yield* currentMillis
      const before = yield* Ref.get(current)
      const { fresh } = yield* Settings
      const loaded = yield* restore(fresh(surroundings.roles))
      const next = yield* restore(prepare(loaded, current, surroundings))
      // From here on, nothing can fail any more.
      yield* next.publish
      yield* emit("server_config_reloaded", {
        generation: yield* Ref.updateAndGet(count, (known) => known + 1),
        listeners_rebound: next.rebound,
        changed_keys: changedKeys(before.config, loaded.config),
        elapsed_ms: (yield* currentMillis) - begun
      })
    }).pipe(
      Effect.catch(refused),
      Effect.catchDefect((defect) => emit("server_config_reload_failed", { error: String(defect) }))
    )
  )
