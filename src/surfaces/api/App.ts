import type { HttpApp } from "@effect/platform"
import { Cause, Effect, Either } from "effect"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress, fromTrusted } from "../../domain/ClientAddress.ts"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { Busy, CsrfFailed, Internal, NoSuchRoute, SessionInvalid } from "../../domain/OperatorError.ts"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import type { Answer, App, Request } from "../../kernel/http/Message.ts"
import { json, unmatched, withHeaders } from "../../kernel/http/Message.ts"
import type { Database } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { Api } from "./Api.ts"
import type { Sender } from "./Checks.ts"
import { brought, csrfFits, isChange, roleFits, routeOf, stateFits } from "./Checks.ts"
import { shownBy } from "./Credentials.ts"
import type { Doors } from "./Doors.ts"
import { isForeign, originOf } from "./Origin.ts"
import { refusalHeaders, refusalOf } from "./Refusals.ts"
import { isReachedByAnybody, matcherOf, routesOf } from "./Routes.ts"
import { served } from "./Serve.ts"

/* The surface of operators: the checks of every request, then the declaration answers (docs/decisions/admin.md). */

/** The answer to a refused request. */
const refused = (error: OperatorError): Answer => {
  const problem = operatorProblemOf(error)
  return json(problem.status, refusalOf(problem), refusalHeaders(problem, error))
}

const clientOf = ({ clientIp: ip, id: request_id, userAgent: user_agent }: Request) => ({
  ip,
  request_id,
  user_agent
})

/** What of the configuration the surface goes by. */
export interface Settings {
  readonly base_url: string
  readonly max_body_bytes: number
  readonly filter: ProxySettings
}

const known = matcherOf(routesOf(Api))

/** Why a request was refused by a check, for the log; the other refusals are told by their operations. */
const reasonOf = (error: OperatorError): "csrf" | "role" | "session_state" | undefined => {
  switch (error._tag) {
    case "CsrfFailed":
      return "csrf"
    case "InsufficientRole":
      return "role"
    case "MfaPending":
    case "SessionExpired":
    case "SessionIdle":
    case "SessionInvalid":
      return "session_state"
    default:
      return undefined
  }
}

/** Makes the surface over the declaration's own app. */
export const make = <R>(
  settings: Settings,
  doors: Doors,
  app: HttpApp.Default<never, R>
): App<R | Database> => {
  const origin = originOf(settings.base_url)
  const addressOf = clientAddress(settings.filter)
  const isProxied = fromTrusted(settings.filter)

  const refusing = (error: OperatorError, sender?: Sender): Effect.Effect<never, OperatorError> => {
    const reason = reasonOf(error)
    return reason === undefined
      ? Effect.fail(error)
      : Effect.zipRight(emit("admin_request_refused", { reason, username: sender?.username }), Effect.fail(error))
  }

  const checked = Effect.fnUntraced(function*(request: Request): Effect.fn.Return<Answer, OperatorError, R | Database> {
    yield* doors.admit(request)
    const matched = known(request.path)
    if (matched === undefined && !request.path.startsWith("/api/")) return yield* new NoSuchRoute()
    if (isForeign(request, origin)) {
      yield* emit("admin_request_refused", { reason: "origin", username: undefined })
      return yield* new CsrfFailed()
    }
    const isOpen = isReachedByAnybody(matched, request.method)
    const shown = yield* shownBy(request)
    // Who asks what anybody may ask is not looked up: a probe costs the database nothing.
    const sender = isOpen ? undefined : yield* Effect.catchAll(
      doors.identify(shown, clientOf(request), { touch: request.headers["x-panel-refresh"] !== "1" }),
      (error) => refusing(error)
    )
    // What is not there is not told to strangers.
    if (sender === undefined && !isOpen) return yield* refusing(new SessionInvalid())
    const route = yield* routeOf(matched, request.method)
    const fits = Either.all([
      stateFits(route, sender),
      csrfFits(request, route, sender),
      roleFits(route, sender, shown)
    ])
    if (Either.isLeft(fits)) return yield* refusing(fits.left, sender)
    const given = yield* brought(request, route, settings.max_body_bytes)
    // A name server is asked for changes alone, whose audit rows name the client.
    const client = isChange(request.method) ? yield* doors.named(clientOf(request)) : clientOf(request)
    return yield* served(app, request, given, { sender, client }) as Effect.Effect<Answer, never, R>
  })

  const handle = (request: Request): Effect.Effect<Answer, never, R | Database> =>
    checked(request).pipe(
      Effect.catchAll((error) => Effect.succeed(refused(error))),
      Effect.catchAllDefect((defect) =>
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
      isProxied: () => isProxied(received),
      handle,
      late: () => Effect.succeed(withHeaders(refused(new Busy({ retryAfter: 5 })), { "cache-control": "no-store" }))
    })
  }
}
