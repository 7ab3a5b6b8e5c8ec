import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"

const isTraced = Context.Reference("acme/engine/telemetry/Tracing/isTraced", { defaultValue: () => false })

/** The attributes of a span: facts that may be in the log too. They never contain a secret. */
export interface Attributes {
  readonly [name: string]: string | number | boolean | undefined
}

/** Turns spans on within the scope of this layer. The tracer decides where the spans go. */
export const tracing: Layer.Layer<never> = Layer.succeed(isTraced, true)

/**
 * Runs an effect in a span of its own. If tracing is off, this costs one look-up in the fiber. `learnt` makes
 * attributes from the result of the effect.
 */
export const traced = <A, E, R>(
  name: string,
  attributes: () => Attributes,
  self: Effect.Effect<A, E, R>,
  learnt?: (value: A) => Attributes
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    if (!fiber.getRef(isTraced)) return self
    const told = learnt === undefined
      ? self
      : Effect.tap(self, (value) => Effect.annotateCurrentSpan({ ...learnt(value) }))
    // `withSpan` removes the parent span from the requirements. No effect here requires a span, so the type of the
    // effect stays the same.
    return Effect.withSpan(told, name, { attributes: { ...attributes() }, captureStackTrace: false }) as typeof self
  })

/**
 * Returns whether the fiber has an open span. Statements are traced only then: the queue reads its table all the time,
 * and these reads belong to no request.
 */
export const isTracedWithin = (fiber: Fiber.Fiber<unknown, unknown>): boolean =>
  fiber.getRef(isTraced) && Context.getOrUndefined(fiber.context, Tracer.ParentSpan) !== undefined
