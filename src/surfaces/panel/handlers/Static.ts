import * as Effect from "effect/Effect"
import { NoSuchRoute } from "../../../domain/OperatorError.ts"
import { moved, open } from "../Route.ts"
import type { Statics } from "../Statics.ts"

/** Returns the routes of the panel's files, and the redirects to its first page. */
export const staticRoutes = (statics: Statics) => [
  open("GET", "/", () => Effect.succeed(moved("/ui/"))),
  open("GET", "/ui", () => Effect.succeed(moved("/ui/"))),
  open("GET", "/ui/static/{name}", ({ parameters: { name = "" }, request }) => {
    const answer = statics.answer(name, request)
    return answer === undefined ? new NoSuchRoute() : Effect.succeed({ _tag: "Sent" as const, answer })
  })
]
