import { HttpApiMiddleware, HttpServerRequest } from "@effect/platform"
import { Context, Effect, Layer } from "effect"
import type { ClientFacts } from "../../kernel/queue/Job.ts"
import type { Sender } from "../admin/Checks.ts"

/* Who sent the request that a handler answers. */

/** A request whose checks have passed. */
export interface Caller {
  readonly sender: Sender
  readonly client: ClientFacts
}

/** See {@link Caller}. */
export class CurrentCaller extends Context.Tag("acme/surfaces/api/CurrentCaller")<CurrentCaller, Caller>() {}

const callers = new WeakMap<object, Caller>()

/** Keeps the caller of a request of the platform's, for its handler. */
export const remember = (source: object, caller: Caller): void => {
  callers.set(source, caller)
}

/** Hands handlers their caller. The checks have been made by then, for every route alike. */
export class WithCaller extends HttpApiMiddleware.Tag<WithCaller>()("WithCaller", { provides: CurrentCaller }) {
  static readonly layer: Layer.Layer<WithCaller> = Layer.succeed(
    this,
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ source }) => {
      const caller = typeof source === "object" && source !== null ? callers.get(source) : undefined
      return caller === undefined ? Effect.dieMessage("a request came past the checks") : Effect.succeed(caller)
    })
  )
}
