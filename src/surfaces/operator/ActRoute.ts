import type { Guarded } from "../admin/RouteMatcher.ts"
import type { AnyAct } from "./Act.ts"
import type { Fields } from "./Field.ts"

/* The route of an act, and where each of its members stands in a request. */

/** The route of an act. */
export interface ActRoute<R> extends Guarded {
  readonly act: AnyAct<R>
  /** The members in the path. */
  readonly path: Fields
  readonly query: Fields
  readonly body: Fields
  /** Whether the route takes a body: its members are there, if it has any besides those of the path. */
  readonly hasBody: boolean
  readonly status: number
}

const isOfQuery = (method: string): boolean => method === "GET" || method === "DELETE"

const only = (fields: Fields, isMeant: (member: string) => boolean): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([member]) => isMeant(member)))

/** The route of an act. None if it has no place over HTTP. */
export const routeOf = <R>(act: AnyAct<R>): ReadonlyArray<ActRoute<R>> => {
  const { access, http, input } = act
  if (http === undefined) return []
  const [method = "", pattern = ""] = http.route.split(" ")
  const holes = new Set([...pattern.matchAll(/\{(\w+)\}/g)].map(([, hole]) => hole))
  const rest = only(input, (member) => !holes.has(member))
  const hasBody = !isOfQuery(method) && Object.keys(rest).length > 0
  return [{
    act,
    method,
    pattern,
    access,
    isWithoutCsrf: http.isWithoutCsrf ?? false,
    isStepUp: http.isStepUp ?? false,
    path: only(input, (member) => holes.has(member)),
    query: isOfQuery(method) ? rest : {},
    body: hasBody ? rest : {},
    hasBody,
    status: http.status ?? 200
  }]
}
