import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { clearSession } from "../../admin/Credentials.ts"

/** Removes the session from the browser. */
export const ended = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "set-cookie", clearSession))
)
