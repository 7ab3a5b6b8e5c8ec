import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import { millisOf } from "../Time.ts"
import type { Level, Outcome } from "./Declaration.ts"
import type { EventName, FieldsOf } from "./Event.ts"
import { events } from "./Event.ts"
import type { Weight } from "./Weight.ts"

/** Facts of the surrounding request or job, which every record written inside it carries. */
export interface Span {
  readonly [name: string]: string | undefined
}

/** One log record before it is rendered. `at` is epoch milliseconds. */
export interface Record {
  readonly at: number
  readonly event: EventName
  readonly level: Level
  readonly outcome: Outcome
  readonly fields: { readonly [name: string]: unknown }
  readonly span: Span
}

/** Where records go. The default keeps nothing, so that programs can be composed without a sink. */
export class EventLog extends Context.Tag("acme/kernel/telemetry/EventLog")<EventLog, {
  /** Whether records of this event pass the filter in force; asked before a record is built. */
  readonly enabled: (event: EventName, level: Level) => boolean
  readonly write: (record: Record) => void
}>() {
  /** Keeps every record in `records`, except those of spans: for tests that check what was logged. */
  static readonly layerMemory = (records: Array<Record>): Layer.Layer<EventLog> =>
    Layer.succeed(this, {
      enabled: (event) => event !== "span_opened" && event !== "span_closed",
      write: (record) => records.push(record)
    })
}

const currentSpan: FiberRef.FiberRef<Span> = FiberRef.unsafeMake<Span>({})

/** The same as {@link emit}, at once, for code that has a fiber at hand and more to do in the same step. */
export const emitIn = <E extends EventName>(
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  event: E,
  fields: FieldsOf<E>,
  weight: Weight = events[event]
): void => {
  const log = fiber.currentContext.unsafeMap.get(EventLog.key) as EventLog["Type"] | undefined
  if (log === undefined || !log.enabled(event, weight.level)) return
  log.write({
    at: millisOf(fiber),
    event,
    level: weight.level,
    outcome: weight.outcome,
    fields,
    span: fiber.getFiberRef(currentSpan)
  })
}

/**
 * Writes one record. It is built only if the filter lets it pass; otherwise it costs a context look-up. Its time comes
 * from the fiber's Clock, its span from {@link enterSpan}. Level and outcome are the declared ones unless `weight`
 * gives others.
 */
export const emit = <E extends EventName>(event: E, fields: FieldsOf<E>, weight?: Weight): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    emitIn(fiber, event, fields, weight)
    return Effect.void
  })

/**
 * Sets the facts of every record that the current fiber writes from here on. For fibers that handle one request or job.
 */
export const enterSpan = (span: Span): Effect.Effect<void> =>
  Effect.zipRight(FiberRef.set(currentSpan, span), emit("span_opened", {}))

/** Records the end of the request or job that began at an epoch millisecond. The facts stay as they are. */
export const leaveSpan = (startedAt: number): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    emitIn(fiber, "span_closed", { elapsed_ms: millisOf(fiber) - startedAt })
    return Effect.void
  })
