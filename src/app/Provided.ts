import { Context, Effect } from "effect"

/**
 * Provides services to many effects that begin in the same context, as requests do. The contexts are merged once, and not
 * for each effect: both have dozens of services.
 */
export const makeProvided = <S>(services: Context.Context<S>) => {
  let outer: Context.Context<never> | undefined
  let merged: Context.Context<never> | undefined
  return <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, S>> =>
    Effect.mapInputContext(self, (context: Context.Context<Exclude<R, S>>) => {
      if (merged === undefined || outer !== context) {
        outer = context
        merged = Context.merge(context, services)
      }
      return merged as Context.Context<R>
    })
}
