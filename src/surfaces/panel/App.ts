import { Cause, Effect } from "effect"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress, fromTrusted } from "../../domain/ClientAddress.ts"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { Busy, Internal } from "../../domain/OperatorError.ts"
import type { Answer, App, Request } from "../../kernel/http/Message.ts"
import { unmatched, withHeaders } from "../../kernel/http/Message.ts"
import type { Database } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { isChange } from "../admin/Checks.ts"
import type { Sender } from "../admin/Checks.ts"
import type { Doors } from "../admin/Doors.ts"
import { entranceOf } from "../admin/Entrance.ts"
import type { Failure } from "../admin/Failures.ts"
import { shownFailure } from "../admin/Failures.ts"
import { matcherOf } from "../admin/Routes.ts"
import { readForm, readQuery } from "./Form.ts"
import type { Presenting } from "./Presenting.ts"
import { bounce } from "./Presenting.ts"
import type { Reply, Route } from "./Route.ts"

/* The panel: the checks of every request, then a page (docs/decisions/panel.md). */

/** The part of the configuration that the panel uses. */
export interface Settings {
  readonly base_url: string
  readonly max_body_bytes: number
  readonly filter: ProxySettings
}

const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "same-origin",
  "cache-control": "no-store",
  vary: "HX-Request"
}

/** Makes the panel from its routes: the checks of each request, its route, and the answer with its headers. */
export const make = <R>(
  settings: Settings,
  doors: Doors,
  routes: ReadonlyArray<Route<R>>,
  presenting: Presenting
): App<R | Database> => {
  const enter = entranceOf(settings.base_url, doors)
  const known = matcherOf(routes)
  const addressOf = clientAddress(settings.filter)
  const isProxied = fromTrusted(settings.filter)

  const replied = (request: Request): Effect.Effect<Answer, never, R | Database> => {
    let sender: Sender
    const reply: Effect.Effect<Reply, Failure, R | Database> = Effect.gen(function*() {
      const matched = known(request.path)
      const entered = yield* enter(request, matched, request.path.startsWith("/ui"))
      sender = entered.sender
      const form = isChange(request.method)
        ? yield* readForm(request, settings.max_body_bytes)
        : new URLSearchParams()
      const query = yield* readQuery(request.target, request.path)
      return yield* entered.route.handle({ ...entered, request, query, form, parameters: matched?.parameters ?? {} })
    })
    return Effect.matchEffect(reply, {
      onSuccess: (reply) => presenting.answer(request, reply, sender),
      onFailure: (failure) =>
        Effect.flatMap(shownFailure(failure), (error) => {
          const elsewhere = bounce(request, error)
          return elsewhere === undefined ? presenting.refusal(request, error, sender) : Effect.succeed(elsewhere)
        })
    })
  }

  const handle = (request: Request): Effect.Effect<Answer, never, R | Database> =>
    replied(request).pipe(
      Effect.catchAllDefect((defect) =>
        Effect.zipRight(
          emit("request_handler_panicked", { error: Cause.pretty(Cause.die(defect)).slice(0, 2000) }),
          presenting.refusal(request, new Internal(), undefined)
        )
      ),
      Effect.map((answer) => withHeaders(answer, { ...headers, ...answer.headers }))
    )

  return {
    route: (received) => ({
      profile: undefined,
      pattern: known(received.path)?.pattern ?? unmatched,
      clientIp: addressOf(received),
      isProxied: () => isProxied(received),
      handle,
      late: (request) =>
        Effect.map(
          presenting.refusal(request, new Busy({ retryAfter: 5 }), undefined),
          (answer) => withHeaders(answer, { ...headers, ...answer.headers })
        )
    })
  }
}
