import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ProxySettings } from "../../domain/ClientAddress.ts"
import { clientAddress } from "../../domain/ClientAddress.ts"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { Busy, Internal } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import type { Answer, App, Request } from "../../engine/http/Message.ts"
import { unmatched, withHeaders } from "../../engine/http/Message.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { noted } from "../../engine/sql/Unreadable.ts"
import { lagging } from "../../operations/operator/OperatorReads.ts"
import { contextOf } from "../operator/ActAnswer.ts"
import type { OfRequest } from "../operator/Acting.ts"
import { Configured } from "../operator/Acting.ts"
import { askedBy, entranceOf } from "../operator/gate/Entrance.ts"
import type { CheckServices, Entered } from "../operator/gate/Entrance.ts"
import type { Failure } from "../operator/gate/Failures.ts"
import { shownFailure } from "../operator/gate/Failures.ts"
import { isChange } from "../operator/gate/OperatorChecks.ts"
import type { Sender } from "../operator/gate/OperatorChecks.ts"
import { isLinkFromElsewhere, samePageAt } from "../operator/gate/Origin.ts"
import { matcherOf } from "../operator/gate/RouteMatcher.ts"
import { readForm, readQuery } from "./PanelForm.ts"
import type { Presenting } from "./Presenting.ts"
import { bounce, isConflict, pageOfForm } from "./Presenting.ts"
import type { Reply, Route } from "./Route.ts"

/* The panel checks every request before a page answers it (docs/contribute/decisions/panel.md). */

/** The part of the configuration that the panel uses. */
export interface Settings {
  readonly base_url: string
  readonly tls: { readonly enabled: boolean }
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

/** The services that the pages need from the process. The panel itself provides the caller and the configuration. */
type Needed<R> = Exclude<R, Configured | OfRequest> | Database

/** Makes the panel from its routes. It checks each request, calls the route, and adds headers to the answer. */
export const make = <R>(
  settings: Settings,
  checkServices: CheckServices,
  routes: ReadonlyArray<Route<R>>,
  presenting: Presenting,
  configured: typeof Configured.Service
): App<Needed<R>> => {
  const enter = entranceOf(settings.base_url, checkServices)
  const known = matcherOf(routes)
  const addressOf = clientAddress(settings.filter)

  type Found = ReturnType<typeof known>

  const entering = (request: Request, matched: Found) =>
    enter<Route<R>>(request, matched, request.path.startsWith("/ui"))

  const handling = (request: Request, { route, ...entered }: Entered<Route<R>>) => {
    const { client, held, sender } = entered
    const context = Context.add(contextOf(sender, { client, held, surface: "ui" }), Configured, configured)
    return Effect.gen(function*(): Effect.fn.Return<Reply, Failure, R> {
      const form = isChange(request.method)
        ? yield* readForm(request, settings.max_body_bytes)
        : new URLSearchParams()
      const query = yield* readQuery(request.target, request.path)
      return yield* route.handle({ request, query, form, ...entered })
    }).pipe(Effect.provideContext(context), askedBy(sender))
  }

  /**
   * Returns the current page of a form, with the refusal above the form. Returns undefined if that page no longer
   * exists.
   */
  const conflicted = (page: Request, error: OperatorError): Effect.Effect<Answer | undefined, never, Needed<R>> =>
    Effect.matchEffect(
      Effect.flatMap(
        entering(page, known(page.path)),
        // The page must show the current state, so no standby answers.
        (entered) => Effect.map(handling(page, entered), (reply) => ({ reply, sender: entered.sender }))
      ),
      {
        onFailure: () => Effect.succeed(undefined),
        onSuccess: ({ reply, sender }) =>
          reply._tag === "Page" ? presenting.conflict(page, reply, error, sender) : Effect.succeed(undefined)
      }
    )

  const refused = (request: Request, error: OperatorError, sender: Sender) =>
    Effect.gen(function*() {
      const elsewhere = bounce(request, error)
      if (elsewhere !== undefined) return elsewhere
      const page = isConflict(error) ? pageOfForm(request) : undefined
      const beside = page === undefined ? undefined : yield* conflicted(page, error)
      return beside ?? (yield* presenting.refusal(request, error, sender))
    })

  const answered = Effect.fnUntraced(function*(
    request: Request,
    matched: Found
  ): Effect.fn.Return<Answer, never, Needed<R>> {
    const leading = led(request)
    if (leading !== undefined) {
      const admitted = yield* Effect.result(checkServices.admit(request))
      return yield* Result.isFailure(admitted) ? refused(request, admitted.failure, undefined) : leading
    }
    const entered = yield* Effect.result(entering(request, matched))
    if (Result.isFailure(entered)) return yield* refused(request, entered.failure.error, entered.failure.sender)
    const { route, sender } = entered.success
    const read = yield* Effect.result(noted(lagging(route, handling(request, entered.success))))
    if (Result.isFailure(read)) return yield* refused(request, yield* shownFailure(read.failure), sender)
    const [[reply, lagSeconds], unreadable] = read.success
    return yield* presenting.answer(request, reply, sender, { unreadable, lagSeconds })
  })

  /**
   * Returns the redirect for a page that was requested under another name of loopback or by a link on another site.
   * Returns undefined for every other request.
   */
  const led = (request: Request): Effect.Effect<Answer> | undefined => {
    const location = samePageAt(request, settings.base_url, settings.tls.enabled)
    if (location !== undefined) return Effect.succeed<Answer>({ status: 307, headers: { location } })
    return isLinkFromElsewhere(request) ? presenting.arrival(request) : undefined
  }

  return {
    route: (received) => {
      const matched = known(received.path)
      return {
        facts: {},
        pattern: matched?.pattern ?? unmatched,
        clientIp: addressOf(received),
        handle: (request) =>
          answered(request, matched).pipe(
            Effect.catchDefect((defect) =>
              Effect.andThen(
                emit("request_handler_panicked", { error: Cause.pretty(Cause.die(defect)).slice(0, 2000) }),
                presenting.refusal(request, new Internal(), undefined)
              )
            ),
            Effect.map((answer) => withHeaders(answer, { ...headers, ...answer.headers }))
          ),
        late: (request) =>
          Effect.map(
            presenting.refusal(request, new Busy({ retryAfter: 5 }), undefined),
            (answer) => withHeaders(answer, { ...headers, ...answer.headers })
          )
      }
    }
  }
}
