import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApiError from "@effect/platform/HttpApiError"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServer from "@effect/platform/HttpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Resolved } from "../../settings/Resolve.ts"
import { Api } from "./Api.ts"
import { WithCaller } from "./CurrentCaller.ts"
import { accountsHandlers } from "./handlers/Accounts.ts"
import { eabHandlers } from "./handlers/Eab.ts"
import { healthHandlers } from "./handlers/Health.ts"
import { jobsHandlers } from "./handlers/Jobs.ts"
import { notificationsHandlers } from "./handlers/Notifications.ts"
import { operatorsHandlers, tokensHandlers } from "./handlers/Operators.ts"
import { expiringHandlers, ordersHandlers, upstreamOrdersHandlers } from "./handlers/Orders.ts"
import { ownHandlers } from "./handlers/Own.ts"
import { auditHandlers, noncesHandlers, serviceHandlers } from "./handlers/Service.ts"
import { sessionHandlers } from "./handlers/Sessions.ts"

/* The declaration and its handlers as one app. */

type Served = Pick<Resolved, "config" | "sources">

const handlersOf = (served: Served, version: string) => {
  const { config } = served
  return Layer.mergeAll(
    sessionHandlers(config),
    ownHandlers(config),
    accountsHandlers(config),
    ordersHandlers(config),
    expiringHandlers(config),
    upstreamOrdersHandlers(config),
    auditHandlers(config),
    noncesHandlers(config),
    serviceHandlers(served, version),
    eabHandlers(config),
    jobsHandlers(config),
    notificationsHandlers(config),
    operatorsHandlers(config),
    tokensHandlers(config),
    healthHandlers
  )
}

/** The declaration's router compares paths exactly, like the checks before it. So it answers only what they let through. */
const exactPaths = { caseSensitive: true, ignoreDuplicateSlashes: false, ignoreTrailingSlash: false } as const

/**
 * Requests are decoded before they come here. So if the platform reports that a request does not fit the declaration, it
 * is an answer of ours that does not fit. That is a defect: the client is told of an internal error, and the log names
 * the place.
 */
const unfitting = HttpApiBuilder.middleware(
  Api,
  (app) =>
    Effect.catchAll(app, (error: unknown) =>
      error instanceof HttpApiError.HttpApiDecodeError
        ? Effect.dieMessage(
          `an answer does not fit its declaration at ${error.issues.map(({ path }) => path.join(".")).join(", ")}`
        )
        : Effect.fail(error)) as typeof app
)

/** The app for a configuration. It lives as long as the scope. */
export const declaredApp = (served: Served, version: string) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(
      Layer.mergeAll(
        HttpApiBuilder.api(Api).pipe(Layer.provide(handlersOf(served, version)), Layer.provide(WithCaller.layer)),
        HttpApiBuilder.Router.Live,
        Layer.provideMerge(unfitting, HttpApiBuilder.Middleware.layer),
        HttpServer.layerContext
      )
    )
    const app = yield* Effect.provide(HttpRouter.withRouterConfig(HttpApiBuilder.httpApp, exactPaths), context)
    return Effect.provide(app, context) as HttpApp.Default
  })
