import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { Resolved } from "../../settings/Resolve.ts"
import { Api } from "./Api.ts"
import { WithCaller } from "./CurrentCaller.ts"
import { Fitting } from "./Fitting.ts"
import { operatorsHandlers, tokensHandlers } from "./handlers/OperatorsApi.ts"
import { ownHandlers } from "./handlers/OwnApi.ts"

/* The declaration and its handlers as one app. */

type Served = Pick<Resolved, "config" | "sources">

const handlersOf = ({ config }: Served) =>
  Layer.mergeAll(
    ownHandlers(config),
    operatorsHandlers(config),
    tokensHandlers(config)
  )

/** The declaration's router compares paths exactly, like the checks before it. So it answers only what they let through. */
const exactPaths = { caseSensitive: true, ignoreDuplicateSlashes: false, ignoreTrailingSlash: false } as const

/**
 * The app for a configuration. It lives as long as the scope. The library lays the context in which it builds the app over
 * that of each request. So the app is built in an empty one, and handlers take their services from the request.
 */
export const declaredApp = (served: Served) =>
  Effect.flatMap(Effect.scope, (scope) =>
    Effect.setContext(
      HttpRouter.toHttpEffect(
        HttpApiBuilder.layer(Api).pipe(
          Layer.provide(handlersOf(served)),
          Layer.provide([WithCaller.layer, Fitting.layer, HttpServer.layerServices])
        )
      ),
      Context.add(Context.make(Scope.Scope, scope), HttpRouter.RouterConfig, exactPaths)
    ))

/** What {@link declaredApp} makes. */
export type DeclaredApp = Effect.Success<ReturnType<typeof declaredApp>>
