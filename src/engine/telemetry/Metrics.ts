import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

/**
 * How a series gets its values. A `counter` grows with each event. A `histogram` gets one value with each event. A
 * `gauge` and a `sampledCounter` are read at a scrape, because their values are kept elsewhere.
 */
export type Kind = "counter" | "histogram" | "gauge" | "sampledCounter"

/**
 * The labels of a series, each with all its words. The words are `text` if the configuration or the program supplies
 * them. No label has a value that a client can choose.
 */
export interface Labels {
  readonly [label: string]: "text" | ReadonlyArray<string>
}

/** The declaration of one series. A counted series also has the label `role`. */
export interface Series<K extends Kind = Kind, L extends Labels = Labels> {
  readonly kind: K
  readonly help: string
  readonly labels: L
  /** The upper bounds of a histogram's buckets. */
  readonly buckets: ReadonlyArray<number>
}

const declare = <K extends Kind>(kind: K) => <const L extends Labels>(help: string, labels: L): Series<K, L> => ({
  kind,
  help,
  labels,
  buckets: []
})

export const counter = declare("counter")
export const gauge = declare("gauge")
export const sampledCounter = declare("sampledCounter")
/** Declares a histogram, with the upper bounds of its buckets. */
export const histogram = <const L extends Labels>(
  help: string,
  labels: L,
  buckets: ReadonlyArray<number>
): Series<"histogram", L> => ({ ...declare("histogram")(help, labels), buckets })

/** The values of some labels. */
export interface Values {
  readonly [label: string]: string | number
}

/** One sample of a series that is read at a scrape: its labels and its value. */
export interface Sample {
  readonly labels: Values
  readonly value: number
}

/** The series of a process. They outlive a reload and end with the process. */
export class Metrics extends Context.Service<Metrics, {
  /** Adds to a counter, or adds a value to a histogram. */
  readonly add: (name: string, labels: Values, value: number) => void
  /** Starts a counter at 0. If a label is not given, this is done for each of its words. */
  readonly begin: (name: string, labels: Partial<Values>) => void
  /** Returns the text of a scrape. A gauge or sampled counter that `samples` does not contain is left out. */
  readonly render: (samples: ReadonlyMap<string, ReadonlyArray<Sample>>) => Effect.Effect<string>
}>()("acme/engine/telemetry/Metrics") {}

/** The names of the declared series of these kinds. */
export type NameOf<S, K extends Kind> = { [N in keyof S]: S[N] extends Series<K> ? N : never }[keyof S] & string

/** The values that the labels of a series can have. */
type ValuesOf<S> = S extends Series<Kind, infer L>
  ? { readonly [N in keyof L]: L[N] extends ReadonlyArray<infer Word> ? Word : string | number }
  : never

/**
 * The labels with which a counter starts. A label without declared words must have a value. Any other label may have
 * one; without a value, all its words are meant.
 */
type BegunOf<S> = S extends Series<Kind, infer L> ?
    & Partial<ValuesOf<S>>
    & { readonly [N in keyof L as L[N] extends "text" ? N : never]: string | number }
  : never

/** A counter grows by 1 unless a number is given. A histogram must have a value. */
type AmountOf<S> = S extends Series<"histogram"> ? [value: number] : [by?: number]

/** The functions that count in declared series. Nothing else can be counted. */
export interface Counting<S> {
  /**
   * Counts in the metrics of the process, if it has metrics. As with a log record, this adds no requirement to the
   * effect.
   */
  readonly count: <N extends NameOf<S, "counter" | "histogram">>(
    name: N,
    labels: ValuesOf<S[N]>,
    ...amount: AmountOf<S[N]>
  ) => Effect.Effect<void>
  /** Does the same as `count`, but at once. This is for code that has its fiber and does more in the same step. */
  readonly countIn: <N extends NameOf<S, "counter" | "histogram">>(
    fiber: Fiber.Fiber<unknown, unknown>,
    name: N,
    labels: ValuesOf<S[N]>,
    ...amount: AmountOf<S[N]>
  ) => void
  /**
   * Starts a counter at 0, so that a rate includes its first increment. If a label is not given, this is done for each
   * of its words.
   */
  readonly begin: <N extends NameOf<S, "counter">>(name: N, labels: BegunOf<S[N]>) => Effect.Effect<void>
}

const countIn = (fiber: Fiber.Fiber<unknown, unknown>, name: string, labels: Values, value = 1): void =>
  Context.getOrUndefined(fiber.context, Metrics)?.add(name, labels, value)

/** Makes the functions that count in these series. */
export const makeCounting = <S extends { readonly [N in keyof S]: Series }>(): Counting<S> => ({
  countIn,
  count: (name, labels, value = 1) =>
    Effect.withFiber((fiber) => {
      countIn(fiber, name, labels, value)
      return Effect.void
    }),
  begin: (name, labels) =>
    Effect.withFiber((fiber) => {
      Context.getOrUndefined(fiber.context, Metrics)?.begin(name, labels)
      return Effect.void
    })
})
