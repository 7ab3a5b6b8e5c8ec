import { Context, Effect, Layer } from "effect"
import type { Config } from "../settings/AppConfig.ts"
import type { Log } from "./Logging.ts"

/** The configuration that is served: that of the start, until a reload goes over to another one. */
export class InForce extends Context.Tag("acme/app/InForce")<InForce, {
  /** As it is now; whatever outlives a generation asks each time. */
  readonly config: () => Config
  /** Goes over to another one, and the log with it. */
  readonly change: (next: Config) => Effect.Effect<void>
}>() {
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
