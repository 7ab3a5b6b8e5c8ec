import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { millisOf } from "../Time.ts"
import type { Declaration, Dictionary, FieldTypes, Level, Outcome } from "./Declaration.ts"

/** Facts of the surrounding request or job. Every record that is written inside it has them. */
export interface Span {
  readonly [name: string]: string | undefined
}

/** Level and outcome of one record. */
export interface Weight {
  readonly level: Level
  readonly outcome: Outcome
}

/** One log record before it is rendered. `at` is epoch milliseconds. */
export interface Record extends Weight {
  readonly at: number
  readonly event: string
  readonly fields: { readonly [name: string]: unknown }
  readonly span: Span
}

/** Where records go. */
export interface EventLog {
  /** Returns whether records of this event pass the filter in force. It is called before a record is built. */
  readonly enabled: (event: string, level: Level) => boolean
  readonly write: (record: Record) => void
}

/** The log of a fiber. The default keeps nothing, so that programs can be composed without a sink. */
export const EventLog = Context.Reference<EventLog>("acme/engine/telemetry/EventLog", {
  defaultValue: () => ({ enabled: () => false, write: () => {} })
})

/** Keeps every record in `records`, except records of spans. Tests use it, and commands that report the records. */
export const layerMemory = (records: Array<Record>): Layer.Layer<never> =>
  Layer.succeed(EventLog, {
    enabled: (event) => event !== "span_opened" && event !== "span_closed",
    write: (record) => records.push(record)
  })

/** The facts that the records of a fiber have. `withinSpan` sets them. */
export const currentSpan = Context.Reference<Span>("acme/engine/telemetry/EventLog/currentSpan", {
  defaultValue: () => ({})
})

/** The fields that an emission of a declared event must state. An unknown fact is stated as `undefined`. */
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
   * Writes one record. The record is built only if it passes the filter; otherwise it costs a context look-up. Its time
   * comes from the fiber's Clock, its span from `withinSpan`. Level and outcome are as declared, unless `weight` gives
   * others.
   */
  readonly emit: <N extends keyof E & string>(
    event: N,
    fields: FieldsOf<Fields, E[N]>,
    weight?: Weight
  ) => Effect.Effect<void>
  /** Like `emit`, but runs at once, for code that has its fiber and does more in the same step. */
  readonly emitIn: <N extends keyof E & string>(
    fiber: Fiber.Fiber<unknown, unknown>,
    event: N,
    fields: FieldsOf<Fields, E[N]>,
    weight?: Weight
  ) => void
}

/** Makes the log of a vocabulary: of these events, with fields from this dictionary. */
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
