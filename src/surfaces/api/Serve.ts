import type * as HttpApp from "@effect/platform/HttpApp"
import * as Apps from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Answer, Request } from "../../kernel/http/Message.ts"
import type { Brought } from "./Brought.ts"
import type { Caller } from "./CurrentCaller.ts"
import { remember } from "./CurrentCaller.ts"

/* Connects the service's own listener to the platform's declaration. */

const host = "http://api.invalid"

const asked = ({ method, path }: Request, { body, query }: Brought): globalThis.Request =>
  new globalThis.Request(`${host}${path}?${query}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
  })

const answerOf = (response: HttpServerResponse.HttpServerResponse): Answer => {
  const { body, headers, status } = response
  // The listener counts the octets itself.
  const { "content-length": _, ...given } = headers
  switch (body._tag) {
    case "Uint8Array":
      return { status, headers: given, body: body.body }
    case "Stream":
      return { status, headers: given, stream: body.stream }
    default:
      return { status, headers: given }
  }
}

/** Lets the declaration answer a request that has passed the checks. */
export const served = <R>(
  app: HttpApp.Default<never, R>,
  request: Request,
  brought: Brought,
  caller: Caller
): Effect.Effect<Answer, never, Exclude<R, HttpServerRequest.HttpServerRequest>> =>
  Effect.gen(function*() {
    const source = asked(request, brought)
    remember(source, caller)
    const answered = yield* Deferred.make<Answer>()
    const handled = Apps.toHandled(app, (_, response) => Deferred.succeed(answered, answerOf(response)))
    yield* Effect.scoped(handled).pipe(
      Effect.provideService(HttpServerRequest.HttpServerRequest, HttpServerRequest.fromWeb(source)),
      // Headers that a handler adds would otherwise stay with the fiber, and go out with its next answer as well.
      Effect.locally(Apps.currentPreResponseHandlers, Option.none())
    )
    return yield* Deferred.await(answered)
  }) as Effect.Effect<Answer, never, Exclude<R, HttpServerRequest.HttpServerRequest>>
