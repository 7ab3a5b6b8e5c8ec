import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type { Guarded } from "./gate/RouteMatcher.ts"
import { AccessRule } from "./ReachedBy.ts"

/* The routes of the declaration, in the form that the checks need. */

/** A schema that reads a part of a request. */
export type Reader = Schema.ConstraintDecoder<unknown>

/** One route: its endpoint, who may use the route, and which parts of a request it decodes. */
export interface Route extends Guarded {
  readonly name: string
  readonly payload: Reader | undefined
  readonly query: Reader | undefined
}

/**
 * Returns a schema as a reader. The schemas of the declaration need no service to read a value, but the types of
 * endpoints do not show this.
 */
const readerOf = (schema: Schema.Top | undefined): Reader | undefined => schema as Reader | undefined

/** Returns every route of a declaration. An endpoint that does not state who may use it is a defect. */
export const routesOf = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): ReadonlyArray<Route> => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      const rule = Option.getOrThrowWith(
        Context.getOption(endpoint.annotations, AccessRule),
        () => new Error(`${endpoint.method} ${endpoint.path} does not state who may use it`)
      )
      const [payload] = [...endpoint.payload.values()].flatMap(({ schemas }) => schemas)
      routes.push({
        name: endpoint.identifier,
        method: endpoint.method,
        pattern: endpoint.path.replaceAll(/:(\w+)/g, "{$1}"),
        payload: readerOf(payload),
        query: readerOf(endpoint.query),
        ...rule
      })
    }
  })
  return routes
}
