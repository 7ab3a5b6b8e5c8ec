import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Loaded } from "../settings/Load.ts"
import { loadConfig } from "../settings/Load.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"

/** Reads the configuration of a host. It reports every fault at once, with exit code 3. */
const read = ({ cwd, env }: Host["Service"]): Effect.Effect<Loaded, CommandFailed> =>
  Effect.mapError(loadConfig({ env, cwd }), ({ message }) => new CommandFailed({ code: 3, message }))

/** The configuration, from the file and the variables of the host. */
export class Settings extends Context.Service<Settings, {
  /** Read on first use and cached: a command uses one configuration. */
  readonly loaded: Effect.Effect<Loaded, CommandFailed>
  /** Read again, as a reload does. */
  readonly fresh: Effect.Effect<Loaded, CommandFailed>
}>()("acme/app/Settings") {
  static readonly layer: Layer.Layer<Settings, never, Host> = Layer.effect(
    this,
    Effect.flatMap(Host, (host) => {
      const fresh = read(host)
      return Effect.map(Effect.cached(fresh), (loaded) => ({ loaded, fresh }))
    })
  )

  /** The configuration a command uses. */
  static readonly loaded: Effect.Effect<Loaded, CommandFailed, Settings> = Effect.flatMap(this, ({ loaded }) => loaded)
}
