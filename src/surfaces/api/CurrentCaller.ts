import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import type { Entered } from "../admin/Entrance.ts"
import { everywhere } from "../operator/RefusalSchemas.ts"

/* Who sent the request that a handler answers. */

/** A request that has passed the checks, and its sender. */
export type Caller = Omit<Entered<unknown>, "route">

/** See {@link Caller}. */
export class CurrentCaller extends Context.Service<CurrentCaller, Caller>()("acme/surfaces/api/CurrentCaller") {}

const callers = new WeakMap<object, Caller>()

/** Stores the caller of a request, so that the handler finds it. `source` is the request as the platform knows it. */
export const remember = (source: object, caller: Caller): void => {
  callers.set(source, caller)
}

/** Gives handlers their caller. The checks of every route were made before this. */
export class WithCaller
  extends HttpApiMiddleware.Service<WithCaller, { provides: CurrentCaller }>()("acme/surfaces/api/WithCaller", {
    error: everywhere
  }) {
  static readonly layer: Layer.Layer<WithCaller> = Layer.succeed(
    this,
    (handled) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ source }) => {
        const caller = callers.get(source)
        return caller === undefined
          ? Effect.die(new Error("a request reached a handler without the checks"))
          : Effect.provideService(handled, CurrentCaller, caller)
      })
  )
}
