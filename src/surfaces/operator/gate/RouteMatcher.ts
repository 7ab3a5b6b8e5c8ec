import * as Result from "effect/Result"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { MethodRefused, NoSuchRoute } from "../../../domain/OperatorError.ts"
import type { Guard } from "./OperatorChecks.ts"

/* Finds the routes of a surface. */

/** A route with its guard. */
export interface Guarded extends Guard {
  readonly method: string
  /** The path in the form of OpenAPI and the metrics: `/api/orders/{id}`. */
  readonly pattern: string
}

/** The routes that a path matches, by method. */
export interface Matched<R> {
  readonly pattern: string
  readonly methods: ReadonlyMap<string, R>
  /** The segments that are parameters, by their names. */
  readonly parameters: { readonly [name: string]: string }
}

const isParameter = (segment: string): boolean => segment.startsWith("{")

/** Matches a segment of a path that can be an id or a name. No id and no name needs an escape. */
const plainSegment = /^[A-Za-z0-9._~:@-]{1,100}$/

/**
 * Returns a function that finds the routes of a path. The path is compared exactly as it was received: without a
 * trailing slash, a doubled slash, an escape or a change of case. A fixed segment wins over a parameter.
 */
export const matcherOf = <R extends Guarded>(routes: ReadonlyArray<R>): (path: string) => Matched<R> | undefined => {
  const patterns = new Map<string, Map<string, R>>()
  for (const route of routes) {
    const methods = patterns.get(route.pattern) ?? new Map<string, R>()
    methods.set(route.method, route)
    patterns.set(route.pattern, methods)
  }
  const known = [...patterns].map(([pattern, methods]) => ({ pattern, methods, segments: pattern.split("/") }))
    .sort((one, other) => one.segments.filter(isParameter).length - other.segments.filter(isParameter).length)
  return (path) => {
    const given = path.split("/")
    const found = known.find(({ segments }) =>
      segments.length === given.length && segments.every((segment, index) => {
        const actual = given[index] ?? ""
        return isParameter(segment) ? plainSegment.test(actual) && !/^\.+$/.test(actual) : segment === actual
      })
    )
    if (found === undefined) return undefined
    const { methods, pattern, segments } = found
    const parameters = segments.flatMap((segment, index) =>
      isParameter(segment) ? [[segment.slice(1, -1), given[index] ?? ""] as const] : []
    )
    return { pattern, methods, parameters: Object.fromEntries(parameters) }
  }
}

/**
 * Returns whether a request needs no session. This is so if its route is open, or if it has no route and all routes of
 * its path are open.
 */
export const isReachedByAnybody = (matched: Matched<Guarded> | undefined, method: string): boolean => {
  const routes = [...matched?.methods.values() ?? []]
  const meant = routes.filter((route) => route.method === (method === "HEAD" ? "GET" : method))
  const asked = meant.length === 0 ? routes : meant
  return asked.length > 0 && asked.every(({ access }) => access === "public")
}

/**
 * Returns the route of a request. Call this function only when the sender is known, so that a stranger does not learn
 * which routes exist.
 */
export const routeOf = <R>(matched: Matched<R> | undefined, method: string): Result.Result<R, OperatorError> => {
  if (matched === undefined) return Result.fail(new NoSuchRoute())
  const route = matched.methods.get(method === "HEAD" ? "GET" : method)
  if (route !== undefined) return Result.succeed(route)
  const methods = [...matched.methods.keys()]
  return Result.fail(new MethodRefused({ allow: methods.includes("GET") ? ["HEAD", ...methods] : methods }))
}
