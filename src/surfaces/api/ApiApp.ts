import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress } from "../../domain/ClientAddress.ts"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { Busy, Internal } from "../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import type { Answer, App, Request } from "../../kernel/http/Message.ts"
import { json, unmatched, withHeaders } from "../../kernel/http/Message.ts"
import type { Database } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { askedBy } from "../admin/Asker.ts"
import type { CheckServices } from "../admin/CheckServices.ts"
import { entranceOf } from "../admin/Entrance.ts"
import { matcherOf } from "../admin/RouteMatcher.ts"
import { Api } from "./Api.ts"
import { refusalHeaders, refusalOf } from "./ApiRefusals.ts"
import { routesOf } from "./ApiRoutes.ts"
import type { DeclaredApp } from "./Declared.ts"
import { served } from "./DeclaredAnswer.ts"
import { inputOf } from "./RequestInput.ts"

/*
 * The surface of operators. It makes the checks that every request has in common. Then the declaration answers
 * (docs/decisions/admin.md).
 */

/** The answer to a refused request. */
const refused = (error: OperatorError): Answer => {
  const problem = operatorProblemOf(error)
  return json(problem.status, refusalOf(problem), refusalHeaders(problem, error))
}

/** The settings that the surface uses. */
export interface Settings {
  readonly base_url: string
  readonly max_body_bytes: number
  readonly filter: ProxySettings
}

/** What the checks and the handlers of a request need. */
type Needed = Effect.Services<ReturnType<typeof served>> | Database

const known = matcherOf(routesOf(Api))

/** Makes the surface. `app` is what answers the requests that have passed the checks: the app of the declaration. */
export const make = (settings: Settings, checkServices: CheckServices, app: DeclaredApp): App<Needed> => {
  const enter = entranceOf(settings.base_url, checkServices)
  const addressOf = clientAddress(settings.filter)

  const checked = Effect.fnUntraced(function*(request: Request): Effect.fn.Return<Answer, OperatorError, Needed> {
    const { route, ...caller } = yield* Effect.mapError(
      enter(request, known(request.path), request.path.startsWith("/api/")),
      ({ error }) => error
    )
    const given = yield* inputOf(request, route, settings.max_body_bytes)
    return yield* askedBy(caller.sender)(served(app, request, given, caller))
  })

  const handle = (request: Request): Effect.Effect<Answer, never, Needed> =>
    checked(request).pipe(
      Effect.catch((error) => Effect.succeed(refused(error))),
      Effect.catchDefect((defect) =>
        Effect.as(
          emit("request_handler_panicked", { error: Cause.pretty(Cause.die(defect)).slice(0, 2000) }),
          refused(new Internal())
        )
      ),
      Effect.map((answer) => withHeaders(answer, { "cache-control": "no-store" }))
    )

  return {
    route: (received) => ({
      profile: undefined,
      pattern: known(received.path)?.pattern ?? unmatched,
      clientIp: addressOf(received),
      handle,
      late: () => Effect.succeed(withHeaders(refused(new Busy({ retryAfter: 5 })), { "cache-control": "no-store" }))
    })
  }
}
