import * as Effect from "effect/Effect"
import { millisOf } from "../Time.ts"
import type { engineFields } from "./EngineEvent.ts"
import { engineEvents } from "./EngineEvent.ts"
import type { Span } from "./EventLog.ts"
import { currentSpan, makeLog } from "./EventLog.ts"

/** Writes one record of the engine's own events. */
export const { emit, emitIn } = makeLog<typeof engineFields, typeof engineEvents>(engineEvents)

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
