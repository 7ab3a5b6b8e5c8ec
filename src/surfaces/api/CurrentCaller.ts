import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ClientFacts } from "../../kernel/queue/Job.ts"
import type { Sender } from "../admin/Checks.ts"

/* Who sent the request that a handler answers. */

/** A request that has passed the checks, and its sender. */
export interface Caller {
  readonly sender: Sender
  readonly client: ClientFacts
}

/** See {@link Caller}. */
export class CurrentCaller extends Context.Tag("acme/surfaces/api/CurrentCaller")<CurrentCaller, Caller>() {}

const callers = new WeakMap<object, Caller>()

/** Stores the caller of a request, so that the handler finds it. `source` is the request as the platform knows it. */
export const remember = (source: object, caller: Caller): void => {
  callers.set(source, caller)
}

/** Gives handlers their caller. The checks of every route were made before this. */
export class WithCaller extends HttpApiMiddleware.Tag<WithCaller>()("WithCaller", { provides: CurrentCaller }) {
  static readonly layer: Layer.Layer<WithCaller> = Layer.succeed(
    this,
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ source }) => {
      const caller = typeof source === "object" && source !== null ? callers.get(source) : undefined
      return caller === undefined
        ? Effect.dieMessage("a request reached a handler without the checks")
        : Effect.succeed(caller)
    })
  )
}
