import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Goes on with a service. The same as `Effect.flatMap(tag, use)` in one operation in place of four, for what each request does. */
export const using = <I, S, A, E, R>(
  tag: Context.Tag<I, S>,
  use: (service: S) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, I | R> => Effect.withFiberRuntime((fiber) => use(Context.unsafeGet(fiber.currentContext, tag)))
