import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { Answer, Request } from "../../kernel/http/Message.ts"
import type { Caller } from "./CurrentCaller.ts"
import { remember } from "./CurrentCaller.ts"
import type { DeclaredApp } from "./Declared.ts"
import type { RequestInput } from "./RequestInput.ts"

/* Connects the service's own listener to the platform's declaration. */

const host = "http://api.invalid"

const asked = ({ method, path }: Request, { body, query }: RequestInput): globalThis.Request =>
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
export const served = Effect.fnUntraced(function*(
  app: DeclaredApp,
  request: Request,
  brought: RequestInput,
  caller: Caller
) {
  const source = asked(request, brought)
  remember(source, caller)
  const answered = yield* Deferred.make<Answer>()
  yield* Effect.provideService(
    HttpEffect.toHandled(app, (_, response) => Deferred.succeed(answered, answerOf(response))),
    HttpServerRequest.HttpServerRequest,
    HttpServerRequest.fromWeb(source)
  )
  return yield* Deferred.await(answered)
})
