import { Context, Effect, Layer } from "effect"
import type { Loaded } from "../settings/Load.ts"
import { loadConfig } from "../settings/Load.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { Host } from "./Host.ts"

/** Reads the configuration of a host; every fault at once, exit 3. */
const read = ({ cwd, env }: Host["Type"]): Effect.Effect<Loaded, CommandFailed> =>
  Effect.mapError(loadConfig({ env, cwd }), ({ message }) => new CommandFailed({ code: 3, message }))

/** The configuration, as the file and the variables of the host have it. */
export class Settings extends Context.Tag("acme/app/Settings")<Settings, {
  /** Read when first asked for, and not again: a command goes by one configuration. */
  readonly loaded: Effect.Effect<Loaded, CommandFailed>
  /** Read anew, as a reload does. */
  readonly fresh: Effect.Effect<Loaded, CommandFailed>
}>() {
  static readonly layer: Layer.Layer<Settings, never, Host> = Layer.effect(
    this,
    Effect.flatMap(Host, (host) => {
      const fresh = read(host)
      return Effect.map(Effect.cached(fresh), (loaded) => ({ loaded, fresh }))
    })
  )

  /** The configuration a command goes by. */
  static readonly loaded: Effect.Effect<Loaded, CommandFailed, Settings> = Effect.flatMap(this, ({ loaded }) => loaded)
}
