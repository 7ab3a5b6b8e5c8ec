import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { millisOf } from "../Time.ts"
import type { Declaration, Dictionary, FieldTypes, Level, Outcome } from "./Declaration.ts"

/** The facts about the request or job in which a record is written. Every record within it has them. */
export interface Span {
  readonly [name: string]: string | undefined
}

/** The level and the outcome of one record. */
export interface Weight {
  readonly level: Level
  readonly outcome: Outcome
}

/** One log record before it is rendered. `at` is in epoch milliseconds. */
export interface Record extends Weight {
  readonly at: number
  readonly event: string
  readonly fields: { readonly [name: string]: unknown }
  readonly span: Span
}

/** The place where records go. */
export interface EventLog {
  /** Returns whether the filter in force lets records of this event pass. This is called before a record is built. */
  readonly enabled: (event: string, level: Level) => boolean
  readonly write: (record: Record) => void
}

/** The log of a fiber. The default keeps nothing, so that programs can be composed without a sink. */
export const EventLog = Context.Reference<EventLog>("acme/engine/telemetry/EventLog", {
  defaultValue: () => ({ enabled: () => false, write: () => {} })
})

/**
 * Keeps every record in `records`, except the records of spans. This is for tests, and for commands that report the
 * records.
 */
export const layerMemory = (records: Array<Record>): Layer.Layer<never> =>
  Layer.succeed(EventLog, {
    enabled: (event) => event !== "span_opened" && event !== "span_closed",
    write: (record) => records.push(record)
  })

/** The facts that all records of a fiber have. `withinSpan` sets them. */
export const currentSpan = Context.Reference<Span>("acme/engine/telemetry/EventLog/currentSpan", {
  defaultValue: () => ({})
})

/** The fields that must be stated when a declared event is emitted. An unknown fact is stated as `undefined`. */
export type FieldsOf<Fields extends Dictionary, D extends Declaration<keyof Fields & string>> = {
  readonly [F in D["fields"][number]]: FieldTypes[Fields[F]] | undefined
}

/** Declared events, by their names. */
type Events<Fields extends Dictionary, Name extends PropertyKey> = {
  readonly [N in Name]: Declaration<keyof Fields & string>
}

/** The functions that write records of declared events. Nothing else can be written. */
export interface Log<Fields extends Dictionary, E extends Events<Fields, keyof E>> {
  /**
   * Writes one record. The record is built only if the filter lets it pass; otherwise this costs only a look-up in the
   * context. The time comes from the fiber's Clock, and the span comes from `withinSpan`. Level and outcome come from
   * the declaration, unless `weight` is given.
   */
  readonly emit: <N extends keyof E & string>(
    event: N,
    fields: FieldsOf<Fields, E[N]>,
    weight?: Weight
  ) => Effect.Effect<void>
  /** Does the same as `emit`, but at once. This is for code that has its fiber and does more in the same step. */
  readonly emitIn: <N extends keyof E & string>(
    fiber: Fiber.Fiber<unknown, unknown>,
    event: N,
    fields: FieldsOf<Fields, E[N]>,
    weight?: Weight
  ) => void
}

/** Makes the log of a vocabulary: these events, with fields from this dictionary. */
export const makeLog = <Fields extends Dictionary, E extends Events<Fields, keyof E>>(events: E): Log<Fields, E> => {
  const emitIn: Log<Fields, E>["emitIn"] = (fiber, event, fields, weight: Weight = events[event]) => {
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
  return {
    emitIn,
    emit: (event, fields, weight) =>
      Effect.withFiber((fiber) => {
        emitIn(fiber, event, fields, weight)
        return Effect.void
      })
  }
}
