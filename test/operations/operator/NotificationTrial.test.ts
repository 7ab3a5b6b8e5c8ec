import { Deferred, Effect, Fiber } from "effect"
import { assert, describe } from "vitest"
import * as trial from "../../../src/operations/operator/NotificationTrial.ts"
import { Deliveries } from "../../../src/services/notify/Deliveries.ts"
import { databases } from "../../support/Databases.ts"
import { column, configOf, eventsOf } from "../../support/Graph.ts"
import { useStore } from "../../support/UseTests.ts"

/* Tests what happens when an operator tries out receivers (docs/configure/notifications.md). */

const config = configOf(`[notify]
enabled = ["webhook"]
webhook_enabled = ["answers", "hangs"]
[notify.webhook.answers]
url = "https://answers.example/"
events = ["certificate_issued"]
[notify.webhook.hangs]
url = "https://hangs.example/"
events = ["certificate_issued"]
`)

const everything = { target: undefined, event: undefined, profile: undefined }

describe.each(databases)("a test of receivers on $name", (backend) => {
  const { records, test } = useStore(backend)

  test("is recorded in the trail even if it is interrupted, with the number of samples sent until then", () =>
    Effect.gen(function*() {
      const hanging = yield* Deferred.make<void>()
      const deliveries = Deliveries.layerScripted(({ entry }) =>
        entry === "answers"
          ? Effect.succeed({ answer: "taken" })
          : Effect.andThen(Deferred.succeed(hanging, undefined), Effect.never)
      )
      const running = yield* Effect.forkChild(
        Effect.provide(trial.test(config, { kind: "cli", id: "tester" }, everything), deliveries)
      )
      yield* Deferred.await(hanging)
      yield* Fiber.interrupt(running)
      const [detail = "{}"] = yield* column("SELECT detail FROM audit_log WHERE event = 'notifications_tested'")
      assert.deepInclude(JSON.parse(detail), { delivered: 2, failed: 0, unanswered: 2 }, "once for each profile")
      assert.include(eventsOf(records), "notify_tested")
    }))
})
