import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { expectTypeOf } from "vitest"
import type { told } from "../../src/app/Generation.ts"
import * as Graph from "../../src/app/Graph.ts"
import type { serve } from "../../src/app/Serve.ts"
import { Scripts } from "../../src/engine/host/Scripts.ts"
import { ReverseNames } from "../../src/engine/net/ReverseNames.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
import type { Metrics } from "../../src/engine/telemetry/Metrics.ts"
import { Deliveries } from "../../src/services/notify/Deliveries.ts"
import type { Notifier, notify } from "../../src/services/notify/Notifier.ts"
import { Policies } from "../../src/services/policy/Policies.ts"
import { ReadHooks } from "../../src/services/signing/ReadHooks.ts"
import type { DnsAnswerer } from "../support/DnsAnswerer.ts"
import { dnsAnswerer } from "../support/DnsAnswerer.ts"
import { configOf } from "../support/Graph.ts"

/*
 * Effect builds a layer only once if the same value is provided twice. So the graph makes its layers with functions: a
 * generation is built while the previous generation is in force, and must not share a layer with it by accident.
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

  it("requires the notifier and the metrics in its types, so that neither can be missing at run time", () => {
    expectTypeOf<Notifier>().toExtend<Effect.Services<ReturnType<typeof notify>>>()
    expectTypeOf<Notifier>().toExtend<Effect.Services<ReturnType<typeof told>>>()
    expectTypeOf<Metrics | Notifier>().toExtend<Effect.Services<ReturnType<typeof serve>>>()
  })

  it.effect("builds new policies for each generation", () =>
    twice(Policies, () => Graph.policiesOf(config, config.profiles, "1")))

  it.effect("builds new deliveries for each generation", () => twice(Deliveries, () => Graph.deliveriesOf(config, "1")))

  it.effect("builds new read hooks for each generation", () =>
    twice(ReadHooks, () => Layer.provide(ReadHooks.layer(config.profiles), Scripts.layer)))
})

describe("the reverse names of clients' addresses", () => {
  const look = (audit: string, answerer: DnsAnswerer) => {
    const records: Array<Record> = []
    const config = configOf(`[dns]\nresolver = "${answerer.address}"\n[audit]\n${audit}`)
    return Effect.as(
      ReverseNames.use(({ look }) => Effect.forEach(["192.0.2.7", "192.0.2.8"], look)),
      records
    ).pipe(Effect.provide(Layer.provideMerge(Graph.reverseNames(config), layerMemory(records))))
  }

  it.live("are looked up only if audit.reverse_dns is on, and a failed look-up is logged", () =>
    Effect.gen(function*() {
      const answerer = yield* dnsAnswerer({
        zone: { "7.2.0.192.in-addr.arpa": { rcode: "SERVFAIL" }, "8.2.0.192.in-addr.arpa": { drop: true } }
      })
      assert.deepStrictEqual(yield* look("reverse_dns = false", answerer), [])
      assert.deepStrictEqual(answerer.queries, [])
      const records = yield* look("reverse_dns = true\nreverse_dns_timeout_ms = 200", answerer)
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields["address"]]), [
        ["audit_reverse_dns_failed", "192.0.2.7"],
        ["audit_reverse_dns_timeout", "192.0.2.8"]
      ])
    }))
})
