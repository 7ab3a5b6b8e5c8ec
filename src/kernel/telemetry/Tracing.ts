import { Effect, FiberRef, Layer, Tracer } from "effect"

const isTraced = FiberRef.unsafeMake(false)

/** Values of a span: facts that the log may have too, and never a secret. */
export interface Attributes {
  readonly [name: string]: string | number | boolean | undefined
}

/** Has spans made within its scope; where they go says the tracer. */
export const tracing: Layer.Layer<never> = Layer.fiberRefLocallyScopedWith(isTraced, () => true)

/**
 * Runs an effect in a span of its own, and costs one look at the fiber where nothing is traced. `learnt` are attributes of
 * what it succeeded with.
 */
export const traced = <A, E, R>(
  name: string,
  attributes: () => Attributes,
  self: Effect.Effect<A, E, R>,
  learnt?: (value: A) => Attributes
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) => {
    if (!fiber.getFiberRef(isTraced)) return self
    const told = learnt === undefined
      ? self
      : Effect.tap(self, (value) => Effect.annotateCurrentSpan({ ...learnt(value) }))
    // No span that is here is anybody's requirement: the fiber has it.
    return Effect.withSpan(told, name, { attributes: { ...attributes() }, captureStackTrace: false }) as typeof self
  })

/** The same where a span is open already: the queue looks at its table all day, which is nobody's request. */
export const tracedWithin = <A, E, R>(
  name: string,
  attributes: () => Attributes,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(isTraced) && fiber.currentContext.unsafeMap.has(Tracer.ParentSpan.key)
      ? traced(name, attributes, self)
      : self
  )
