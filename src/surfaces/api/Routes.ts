import type { HttpApiGroup } from "@effect/platform"
import { HttpApi } from "@effect/platform"
import { Context, Option } from "effect"
import type { Schema } from "effect"
import type { Access } from "./Access.ts"
import { AccessRule } from "./Access.ts"

/* The routes of the declaration as the checks before them need them. */

/** One route: its endpoint, who reaches it, and what it decodes. */
export interface Route {
  readonly name: string
  readonly method: string
  /** As OpenAPI and the metrics have it: `/api/orders/{id}`. */
  readonly pattern: string
  readonly access: Access
  readonly isWithoutCsrf: boolean
  readonly isStepUp: boolean
  readonly payload: Schema.Schema<unknown> | undefined
  readonly query: Schema.Schema<unknown> | undefined
}

/** What a path matches: the routes of its pattern by method. */
export interface Matched {
  readonly pattern: string
  readonly methods: ReadonlyMap<string, Route>
}

const schemaOf = (declared: Option.Option<unknown>) =>
  Option.getOrUndefined(declared) as Schema.Schema<unknown> | undefined

/** Every route of a declaration. An endpoint without a rule of access is a mistake of ours. */
export const routesOf = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyArray<Route> => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      const rule = Option.getOrThrowWith(
        Context.getOption(endpoint.annotations, AccessRule),
        () => new Error(`${endpoint.method} ${endpoint.path} does not say who reaches it`)
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

const isParameter = (segment: string): boolean => segment.startsWith("{")

/** A segment of a path that an id or a name can be: anything that needs an escape is none. */
const plainSegment = /^[A-Za-z0-9._~:@-]{1,100}$/

/**
 * Finds the routes of a path, exactly as it was received: no trailing slash, no doubled slash, no escape, no other case. A fixed
 * segment wins over a parameter.
 */
export const matcherOf = (routes: ReadonlyArray<Route>): (path: string) => Matched | undefined => {
  const patterns = new Map<string, Map<string, Route>>()
  for (const route of routes) {
    const methods = patterns.get(route.pattern) ?? new Map<string, Route>()
    methods.set(route.method, route)
    patterns.set(route.pattern, methods)
  }
  const known = [...patterns].map(([pattern, methods]) => ({ pattern, methods, segments: pattern.split("/") }))
    .sort((one, other) => one.segments.filter(isParameter).length - other.segments.filter(isParameter).length)
  return (path) => {
    const given = path.split("/")
    return known.find(({ segments }) =>
      segments.length === given.length && segments.every((segment, index) => {
        const actual = given[index] ?? ""
        return isParameter(segment) ? plainSegment.test(actual) && !/^\.+$/.test(actual) : segment === actual
      })
    )
  }
}

/** Whether a request needs no session: its route is open, or it has none and all others of its path are. */
export const isReachedByAnybody = (matched: Matched | undefined, method: string): boolean => {
  const routes = [...matched?.methods.values() ?? []]
  const meant = routes.filter((route) => route.method === (method === "HEAD" ? "GET" : method))
  const asked = meant.length === 0 ? routes : meant
  return asked.length > 0 && asked.every(({ access }) => access === "public")
}
