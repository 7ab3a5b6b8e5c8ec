import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { expectTypeOf } from "vitest"
import type { told } from "../../src/app/Generation.ts"
import * as Graph from "../../src/app/Graph.ts"
import type { serve } from "../../src/app/Serve.ts"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import type { Metrics } from "../../src/engine/telemetry/Metrics.ts"
import { Deliveries } from "../../src/services/notify/Deliveries.ts"
import type { Notifier, notify } from "../../src/services/notify/Notifier.ts"
import { Policies } from "../../src/services/policy/Policies.ts"
import { ReadHooks } from "../../src/services/signing/ReadHooks.ts"
import { configOf } from "../support/Graph.ts"

/*
 * A layer that is provided within another is built once for both where it is the same value. So the graph makes its layers
 * by functions: a generation is built while the one before it is in force, and shares nothing with it that it does not take on
 * purpose.
 */
describe("the graph", () => {
  const config = configOf()

  const twice = <I, S, E>(tag: Context.Key<I, S>, make: () => Layer.Layer<I, E>) =>
    Effect.scoped(Effect.gen(function*() {
      const outer = yield* Layer.build(make())
      const inner = yield* Effect.provide(Layer.build(make()), outer)
      const within = yield* Effect.provide(Effect.provide(tag, make()), make())
      assert.notStrictEqual(Context.get(inner, tag), Context.get(outer, tag))
      assert.notStrictEqual(within, Context.get(outer, tag))
    }))

  it("does not compile without what serves cannot do without: nothing looks for a notifier or metrics that may be missing", () => {
    expectTypeOf<Notifier>().toExtend<Effect.Services<ReturnType<typeof notify>>>()
    expectTypeOf<Notifier>().toExtend<Effect.Services<ReturnType<typeof told>>>()
    expectTypeOf<Metrics | Notifier>().toExtend<Effect.Services<ReturnType<typeof serve>>>()
  })

  it.effect("has policies of its own for each generation", () =>
    twice(Policies, () => Graph.policiesOf(config, config.profiles, "1")))

  it.effect("has ways to deliver of its own for each generation", () =>
    twice(Deliveries, () => Graph.deliveriesOf(config, "1")))

  it.effect("has read hooks of its own for each generation", () =>
    twice(ReadHooks, () => Layer.provide(ReadHooks.layer(config.profiles), Scripts.layer)))
})
