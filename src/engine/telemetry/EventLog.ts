import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
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

/** Where records go. */
export interface EventLog {
  /** Whether records of this event pass the filter in force; asked before a record is built. */
  readonly enabled: (event: EventName, level: Level) => boolean
  readonly write: (record: Record) => void
}

/** The log of a fiber. The default keeps nothing, so that programs can be composed without a sink. */
export const EventLog = Context.Reference<EventLog>("acme/engine/telemetry/EventLog", {
  defaultValue: () => ({ enabled: () => false, write: () => {} })
})

/** Keeps every record in `records`, except those of spans: for a command that tells of them, and for tests. */
export const layerMemory = (records: Array<Record>): Layer.Layer<never> =>
  Layer.succeed(EventLog, {
    enabled: (event) => event !== "span_opened" && event !== "span_closed",
    write: (record) => records.push(record)
  })

const currentSpan = Context.Reference<Span>("acme/engine/telemetry/EventLog/currentSpan", { defaultValue: () => ({}) })

/** Like {@link emit}, but runs at once, for code that has its fiber and does more in the same step. */
export const emitIn = <E extends EventName>(
  fiber: Fiber.Fiber<unknown, unknown>,
  event: E,
  fields: FieldsOf<E>,
  weight: Weight = events[event]
): void => {
  const log = fiber.getRef(EventLog)
  if (!log.enabled(event, weight.level)) return
  log.write({
    at: millisOf(fiber),
    event,
    level: weight.level,
    outcome: weight.outcome,
    fields,
    span: fiber.getRef(currentSpan)
  })
}

/**
 * Writes one record. It is built only if the filter lets it pass; otherwise it costs a context look-up. Its time comes
 * from the fiber's Clock, its span from {@link withinSpan}. Level and outcome are the declared ones unless `weight`
 * gives others.
 */
export const emit = <E extends EventName>(event: E, fields: FieldsOf<E>, weight?: Weight): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    emitIn(fiber, event, fields, weight)
    return Effect.void
  })

/**
 * Runs an effect whose records all have these facts; the end of the request or job that began at an epoch millisecond is
 * recorded too.
 */
export const withinSpan = <A, E, R>(
  span: Span,
  startedAt: number,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.provideService(
    Effect.withFiber((fiber) => {
      emitIn(fiber, "span_opened", {})
      return Effect.ensuring(
        self,
        Effect.sync(() => emitIn(fiber, "span_closed", { elapsed_ms: millisOf(fiber) - startedAt }))
      )
    }),
    currentSpan,
    span
  )
