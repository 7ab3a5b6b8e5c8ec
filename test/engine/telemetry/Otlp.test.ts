import { Data, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Loops } from "../../../src/engine/Loops.ts"
import * as Otlp from "../../../src/engine/telemetry/Otlp.ts"
import type { Attributes } from "../../../src/engine/telemetry/Tracing.ts"
import { isTracedWithin, traced } from "../../../src/engine/telemetry/Tracing.ts"
import { useTests } from "../../support/UseTests.ts"

class Planted extends Data.TaggedError("Planted")<{ readonly secret: string }> {}

interface Exported {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: object }>
  readonly status: { readonly code: number; readonly message?: string }
}

const within = (name: string, attributes: Attributes): Effect.Effect<void> =>
  Effect.withFiber((fiber) => isTracedWithin(fiber) ? traced(name, () => attributes, Effect.void) : Effect.void)

const spansOf = (bodies: ReadonlyArray<string>): ReadonlyArray<Exported> =>
  bodies.flatMap((body) => {
    const { resourceSpans } = JSON.parse(body) as {
      readonly resourceSpans: ReadonlyArray<{ readonly scopeSpans: ReadonlyArray<{ readonly spans: Array<Exported> }> }>
    }
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
  })

/** Runs a body with an exporter, and returns everything that was sent, including what was sent at the end. */
const exportedBy = <E>(
  body: Effect.Effect<unknown, E>,
  more: Partial<Otlp.OtlpOptions> = {}
): Effect.Effect<ReadonlyArray<string>, E> => {
  const bodies: Array<string> = []
  const send = (text: string) => Effect.sync(() => void bodies.push(text))
  const exporter = Layer.provide(Otlp.layer({ send, version: "1", samplePercent: 100, ...more }), Loops.layer)
  return Effect.as(Effect.provide(body, exporter), bodies)
}

describe("the spans of a trace", () => {
  const { records, test } = useTests()

  test("are sent with their parents, their attributes and the kind of a failure", () =>
    Effect.gen(function*() {
      const body = traced(
        "POST /newOrder",
        () => ({ request_id: "r", "http.route": undefined, size: 3, share: 0.5, isLate: false }),
        Effect.andThen(
          within("order_insert", { "db.system": "sqlite" }),
          Effect.exit(traced("script", () => ({}), new Planted({ secret: "hunter2" })))
        ),
        () => ({ "http.response.status_code": 201 })
      )
      const bodies = yield* exportedBy(
        Effect.andThen(body, traced("alone", () => ({}), Effect.die("hunter2"))).pipe(Effect.exit)
      )
      assert.notInclude(bodies.join(), "hunter2")
      const spans = spansOf(bodies)
      const named = new Map(spans.map((span) => [span.name, span]))
      assert.sameMembers([...named.keys()], ["POST /newOrder", "order_insert", "script", "alone"])
      const root = named.get("POST /newOrder")
      assert.notProperty(root, "parentSpanId")
      for (const name of ["order_insert", "script"]) {
        assert.deepStrictEqual([named.get(name)?.parentSpanId, named.get(name)?.traceId], [root?.spanId, root?.traceId])
      }
      assert.notStrictEqual(named.get("alone")?.traceId, root?.traceId)
      assert.deepStrictEqual(root?.attributes, [
        { key: "request_id", value: { stringValue: "r" } },
        { key: "size", value: { intValue: "3" } },
        { key: "share", value: { doubleValue: 0.5 } },
        { key: "isLate", value: { boolValue: false } },
        { key: "http.response.status_code", value: { intValue: "201" } }
      ])
      assert.deepStrictEqual(root?.status, { code: 1 })
      assert.deepStrictEqual(named.get("script")?.status, { code: 2, message: "Planted" })
      assert.deepStrictEqual(named.get("alone")?.status, { code: 2, message: "defect" })
      for (const { spanId, traceId } of spans) assert.match(`${traceId} ${spanId}`, /^[0-9a-f]{32} [0-9a-f]{16}$/)
    }))

  test("do not exist if nothing is traced, or for a statement that belongs to no trace", () =>
    Effect.gen(function*() {
      yield* traced("GET /directory", () => assert.fail("asked for attributes"), Effect.void)
      const bodies = yield* exportedBy(within("job_claim", {}))
      assert.deepStrictEqual(bodies, [])
    }))

  test("are not sent if they or their parents are not sampled", () =>
    Effect.gen(function*() {
      const body = traced("GET /directory", () => ({}), traced("within", () => ({}), Effect.void))
      assert.deepStrictEqual(yield* exportedBy(body, { samplePercent: 0 }), [])
    }))

  test("are counted in the log if the collector refuses them", () =>
    Effect.gen(function*() {
      const body = Effect.gen(function*() {
        yield* traced("GET /directory", () => ({}), Effect.void)
        yield* TestClock.adjust("2 seconds")
        yield* TestClock.adjust("2 seconds")
      })
      yield* exportedBy(body, { send: () => Effect.fail({ message: "the collector answered 503" }) })
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [
        ["trace_export_failed", { count: 1, error: "the collector answered 503" }],
        ["trace_spans_dropped", { count: 1 }]
      ])
    }))

  test("do not delay the end of the process if the collector does not answer", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const send = () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
      const layer = Otlp.layer({ send, version: "1", samplePercent: 100 })
      const ended = yield* Effect.forkChild(Effect.provide(traced("GET /directory", () => ({}), Effect.void), layer))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.join(ended)
    }))

  test("are dropped beyond the maximum number that may wait", () =>
    Effect.gen(function*() {
      const one = traced("GET /directory", () => ({}), Effect.void)
      const sent = spansOf(yield* exportedBy(Effect.repeat(one, { times: 8192 + 9 })))
      assert.strictEqual(sent.length, 8192)
      assert.deepStrictEqual(records.map(({ event, fields }) => [event, fields]), [["trace_spans_dropped", {
        count: 10
      }]])
    }))
})
