import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"

/** Maps the failure of a layer. */
export const mapLayerError: {
  <E, E2>(told: (error: E) => E2): <A, R>(self: Layer.Layer<A, E, R>) => Layer.Layer<A, E2, R>
  <A, E, R, E2>(self: Layer.Layer<A, E, R>, told: (error: E) => E2): Layer.Layer<A, E2, R>
} = dual(
  2,
  <A, E, R, E2>(self: Layer.Layer<A, E, R>, told: (error: E) => E2): Layer.Layer<A, E2, R> =>
    Layer.catch(self, (error) => Layer.effectContext(Effect.fail(told(error))))
)
