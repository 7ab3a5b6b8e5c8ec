import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { assert, describe } from "vitest"
import { makeUses } from "../../src/app/Uses.ts"
import { series } from "../../src/domain/words/Series.ts"
import * as Registry from "../../src/engine/telemetry/Registry.ts"
import { counted } from "../support/Counted.ts"

describe("the uses of a generation", () => {
  it.effect("are its requests and attempts, each until its fiber ends", () =>
    Effect.gen(function*() {
      const uses = makeUses()
      const leave = yield* Deferred.make<void>()
      const request = yield* Effect.forkChild(Deferred.await(leave))
      const attempt = yield* Effect.forkChild(Effect.never)
      for (const fiber of [request, attempt]) uses.begun(fiber)
      yield* Effect.yieldNow
      const ended = yield* Effect.forkChild(uses.ended)
      yield* Effect.yieldNow
      assert.isUndefined(ended.pollUnsafe())
      yield* Deferred.succeed(leave, undefined)
      yield* Fiber.join(request)
      assert.isUndefined(ended.pollUnsafe())
      yield* Fiber.interrupt(attempt)
      yield* Fiber.join(ended)
      yield* makeUses().ended
    }))

  it.effect("count a request without a profile under `none`", () =>
    Effect.gen(function*() {
      const uses = makeUses()
      const answered = (facts: { readonly profile?: string }) =>
        Effect.withFiber((fiber) => {
          uses.answered(fiber, { facts, pattern: "/ready", status: 200 }, 0.01)
          return Effect.void
        })
      yield* answered({})
      yield* answered({ profile: "default" })
      for (const profile of ["none", "default"]) {
        const labels = `role="x",profile="${profile}",route="/ready"`
        assert.strictEqual(yield* counted(`acme_svc_requests_total{${labels},status="200"}`), 1)
        assert.strictEqual(yield* counted(`acme_svc_request_duration_seconds_count{${labels}}`), 1)
      }
    }).pipe(Effect.provide(Registry.layer("x", series))))
})
