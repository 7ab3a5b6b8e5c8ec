import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { notificationActs } from "../../surfaces/operator/acts/NotificationActs.ts"
import * as Graph from "../Graph.ts"
import { Host } from "../Host.ts"
import { placing } from "../Places.ts"
import { Settings } from "../Settings.ts"
import { actCommand } from "./ActCommand.ts"

/**
 * Provides the deliveries to the configured receivers. If the configuration is refused, the refusal says where in the
 * file the fault is.
 */
const deliveries = Layer.effectContext(Effect.gen(function*() {
  const loaded = yield* Settings.loaded
  const { version } = (yield* Host).process
  return yield* Effect.catchTag(
    Layer.build(Graph.deliveriesOf(loaded.config, version)),
    "CommandFailed",
    placing(loaded)
  )
}))

/** `notify`: the notifications to people and programs. */
export const notifyCommand = actCommand(notificationActs, "notify", {}, { "notify test": deliveries })
