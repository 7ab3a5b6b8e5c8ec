import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Config } from "../settings/AppConfig.ts"
import type { Log } from "./Logging.ts"

/** The configuration in force. It is the configuration that was read at startup, until a reload replaces it. */
export class InForce extends Context.Service<InForce, {
  /** Returns the current configuration. Code that outlives a generation must call this each time. */
  readonly config: () => Config
  /** Replaces the configuration, and applies its logging settings to the log. */
  readonly change: (next: Config) => Effect.Effect<void>
}>()("acme/app/InForce") {
  static readonly layer = (first: Config, log: Log): Layer.Layer<InForce> =>
    Layer.sync(this, () => {
      let current = first
      const change = (next: Config) =>
        Effect.suspend(() => {
          current = next
          return log.enforce(next)
        })
      return { config: () => current, change }
    })
}
