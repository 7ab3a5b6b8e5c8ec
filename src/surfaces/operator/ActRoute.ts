import type { AnyAct } from "./Act.ts"
import type { ActingAtKeyboard } from "./Acting.ts"
import type { Fields } from "./Field.ts"
import { secret } from "./Field.ts"
import type { Guarded } from "./gate/RouteMatcher.ts"

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

/** The caller's own password. It is no member of an act, because a command line has no session. */
export const ofStepUp = { password: secret("The caller's own password.") }

const isOfQuery = (method: string): boolean => method === "GET" || method === "DELETE"

const only = (fields: Fields, isMeant: (member: string) => boolean): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([member]) => isMeant(member)))

/** The route of an act. None if it has no place over HTTP. */
export const routeOf = <R>(act: AnyAct<R>): ReadonlyArray<ActRoute<Exclude<R, ActingAtKeyboard>>> => {
  const { access, http, input } = act
  if (http === undefined) return []
  const [method = "", pattern = ""] = http.route.split(" ")
  const holes = new Set([...pattern.matchAll(/\{(\w+)\}/g)].map(([, hole]) => hole))
  const isStepUp = http.isStepUp ?? false
  const rest = { ...isStepUp ? ofStepUp : {}, ...only(input, (member) => !holes.has(member)) }
  const isBody = !isOfQuery(method) || Object.values(rest).some(({ isSecret }) => isSecret)
  const hasBody = isBody && Object.keys(rest).length > 0
  return [{
    // What asks for the keyboard has no route (`Acting.ts`).
    act: act as AnyAct<Exclude<R, ActingAtKeyboard>>,
    method,
    pattern,
    access,
    isWithoutCsrf: http.isWithoutCsrf ?? false,
    isStepUp,
    path: only(input, (member) => holes.has(member)),
    query: isBody ? {} : rest,
    body: isBody ? rest : {},
    hasBody,
    status: http.status ?? 200
  }]
}
