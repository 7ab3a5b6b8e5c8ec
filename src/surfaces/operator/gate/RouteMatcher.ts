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

/**
 * Matches a segment of a path that can be an id or a name. Ids and names need no escapes. Some programs would resolve
 * `.` and `..` to a different path.
 */
const plainSegment = String.raw`(?!\.+(?:/|$))[A-Za-z0-9._~:@-]{1,100}`

/** Returns the expression that matches the paths of a pattern. Its groups are the parameters. */
const expressionOf = (pattern: string): RegExp =>
  new RegExp(`^${pattern.replaceAll(".", String.raw`\.`).replaceAll(/\{(\w+)\}/g, `(?<$1>${plainSegment})`)}$`)

/**
 * Returns a function that finds the routes of a path. The path is compared exactly as it was received, so a path with a
 * trailing slash, a doubled slash, an escape or another case matches nothing. A fixed segment wins over a parameter.
 */
export const matcherOf = <R extends Guarded>(routes: ReadonlyArray<R>): (path: string) => Matched<R> | undefined => {
  const patterns = new Map<string, Map<string, R>>()
  for (const route of routes) {
    const methods = patterns.get(route.pattern) ?? new Map<string, R>()
    methods.set(route.method, route)
    patterns.set(route.pattern, methods)
  }
  const fixed = new Map([...patterns].filter(([pattern]) => !pattern.includes("{")))
  const others = [...patterns].filter(([pattern]) => !fixed.has(pattern))
    .map(([pattern, methods]) => ({ pattern, methods, expression: expressionOf(pattern) }))
    .sort((one, other) => one.pattern.split("{").length - other.pattern.split("{").length)
  return (path) => {
    const methods = fixed.get(path)
    if (methods !== undefined) return { pattern: path, methods, parameters: {} }
    for (const { expression, methods, pattern } of others) {
      const match = expression.exec(path)
      if (match !== null) return { pattern, methods, parameters: { ...match.groups } }
    }
    return undefined
  }
}

/**
 * Returns whether a request needs no session. This is true if its route is open, or if it has no route and all routes
 * of its path are open.
 */
export const isReachedByAnybody = (matched: Matched<Guarded> | undefined, method: string): boolean => {
  if (matched === undefined) return false
  const route = matched.methods.get(method === "HEAD" ? "GET" : method)
  return route === undefined
    ? [...matched.methods.values()].every(({ access }) => access === "public")
    : route.access === "public"
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
