import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type { Guarded } from "../admin/Routes.ts"
import { AccessRule } from "./Access.ts"

/* The routes of the declaration, in the form that the checks need. */

/** One route: its endpoint, who may use it, and what it decodes. */
export interface Route extends Guarded {
  readonly name: string
  readonly payload: Schema.Schema<unknown> | undefined
  readonly query: Schema.Schema<unknown> | undefined
}

const schemaOf = (declared: Option.Option<unknown>) =>
  Option.getOrUndefined(declared) as Schema.Schema<unknown> | undefined

/** Every route of a declaration. An endpoint that does not state who may use it is an error in our code. */
export const routesOf = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyArray<Route> => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      const rule = Option.getOrThrowWith(
        Context.getOption(endpoint.annotations, AccessRule),
        () => new Error(`${endpoint.method} ${endpoint.path} does not state who may use it`)
      )
      routes.push({
        name: endpoint.name,
        method: endpoint.method,
        pattern: endpoint.path.replaceAll(/:(\w+)/g, "{$1}"),
        payload: schemaOf(endpoint.payloadSchema),
        query: schemaOf(endpoint.urlParamsSchema),
        ...rule
      })
    }
  })
  return routes
}
