import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress } from "../../domain/ClientAddress.ts"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { Busy, Internal } from "../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Answer, App, Request } from "../../engine/http/Message.ts"
import { json, unmatched, withHeaders } from "../../engine/http/Message.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { lagging } from "../../operations/operator/OperatorReads.ts"
import { answerOf } from "./ActAnswer.ts"
import type { StepUpServices } from "./ActAnswer.ts"
import type { ActingAtKeyboard, OfRequest } from "./Acting.ts"
import { ApiDocument, Configured } from "./Acting.ts"
import { routeOf } from "./ActRoute.ts"
import { askedBy, entranceOf } from "./gate/Entrance.ts"
import type { CheckServices } from "./gate/Entrance.ts"
import { matcherOf } from "./gate/RouteMatcher.ts"
import type { ActServices } from "./Nouns.ts"
import { nouns } from "./Nouns.ts"
import { documentOf, lagHeader } from "./OpenApiDocument.ts"

/*
 * The API of operators. It makes the checks that all requests share, and then an act answers
 * (docs/contribute/decisions/admin.md).
 */

/**
 * Returns the answer to a refused request: `{"error": "<code>", "message": "<sentence>"}`
 * (docs/contribute/decisions/admin.md, "Errors").
 */
const refused = (error: OperatorError): Answer => {
  const { code, message, retryAfter, status } = operatorProblemOf(error)
  return json(status, { error: code, message }, {
    ...retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
    ...error._tag === "MethodRefused" ? { allow: error.allow.join(", ") } : {}
  })
}

/** The settings that the surface uses. */
export interface Settings {
  readonly base_url: string
  readonly max_body_bytes: number
  readonly filter: ProxySettings
}

/** The services that the checks and the handlers of a request need. */
type Needed =
  | Exclude<ActServices | StepUpServices, ActingAtKeyboard | ApiDocument | Configured | OfRequest>
  | Database

const known = matcherOf(nouns.flatMap(({ acts }) => acts).flatMap(routeOf))

type Known = ReturnType<typeof known>

/** Makes the surface. */
export const make = (
  settings: Settings,
  checkServices: CheckServices,
  configured: typeof Configured.Service
): App<Needed> => {
  const enter = entranceOf(settings.base_url, checkServices)
  const addressOf = clientAddress(settings.filter)
  const document = Effect.sync(() => documentOf(configured.version, settings.base_url))

  const checked = Effect.fnUntraced(function*(
    request: Request,
    matched: Known
  ): Effect.fn.Return<Answer, OperatorError, Needed> {
    const { route, ...caller } = yield* Effect.mapError(
      enter(request, matched, request.path.startsWith("/api/")),
      ({ error }) => error
    )
    const answering = answerOf(request, { route, ...caller }, settings.max_body_bytes).pipe(
      Effect.provideService(Configured, configured),
      Effect.provideService(ApiDocument, { document })
    )
    const [answer, lag] = yield* askedBy(caller.sender)(lagging(route, answering))
    return lag === undefined ? answer : withHeaders(answer, { [lagHeader]: String(Math.ceil(lag * 1000)) })
  })

  return {
    route: (received) => {
      const matched = known(received.path)
      return {
        facts: {},
        pattern: matched?.pattern ?? unmatched,
        clientIp: addressOf(received),
        handle: (request) =>
          checked(request, matched).pipe(
            Effect.catch((error) => Effect.succeed(refused(error))),
            Effect.catchDefect((defect) =>
              Effect.as(
                emit("request_handler_panicked", { error: Cause.pretty(Cause.die(defect)).slice(0, 2000) }),
                refused(new Internal())
              )
            ),
            Effect.map((answer) => withHeaders(answer, { "cache-control": "no-store" }))
          ),
        late: () => Effect.succeed(withHeaders(refused(new Busy({ retryAfter: 5 })), { "cache-control": "no-store" }))
      }
    }
  }
}
