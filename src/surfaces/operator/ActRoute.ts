import * as Schema from "effect/Schema"
import type { AnyAct } from "./Act.ts"
import { formsOf, isFile, statusOf } from "./Act.ts"
import type { ActingAtKeyboard } from "./Acting.ts"
import type { Fields } from "./Field.ts"
import { secret } from "./Field.ts"
import type { Guarded } from "./gate/RouteMatcher.ts"

/* The route of an act, and the place of each member in a request. */

/** The route of an act. */
export interface ActRoute<R> extends Guarded {
  readonly act: AnyAct<R>
  /** The members in the path. */
  readonly path: Fields
  readonly query: Fields
  readonly body: Fields
  /** Whether the route has a body. If so, the members that are not in the path are in the body. */
  readonly hasBody: boolean
  readonly status: number
  /** The forms of the output, each with the status of its answer. Empty if no form has its own status. */
  readonly forms: ReadonlyArray<{ readonly status: number; readonly is: (value: unknown) => boolean }>
  /** Whether the output is a file. */
  readonly isFile: boolean
}

/** The member for the caller's own password. Acts do not declare it, because a command line has no session. */
export const ofStepUp = { password: secret("The caller's own password.") }

const isOfQuery = (method: string): boolean => method === "GET" || method === "DELETE"

const only = (fields: Fields, isMeant: (member: string) => boolean): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([member]) => isMeant(member)))

/** Returns the route of an act, or nothing if the act has no HTTP form. */
export const routeOf = <R>(act: AnyAct<R>): ReadonlyArray<ActRoute<Exclude<R, ActingAtKeyboard>>> => {
  const { access, http, input, mayLag = false, output } = act
  if (http === undefined) return []
  const [method = "", pattern = ""] = http.route.split(" ")
  const holes = new Set([...pattern.matchAll(/\{(\w+)\}/g)].map(([, hole]) => hole))
  const { isStepUp = false, status = 200 } = http
  const rest = { ...isStepUp ? ofStepUp : {}, ...only(input, (member) => !holes.has(member)) }
  const isBody = !isOfQuery(method) || Object.values(rest).some(({ isSecret }) => isSecret)
  const hasBody = isBody && Object.keys(rest).length > 0
  return [{
    // An act that needs the keyboard has no route (`Acting.ts`).
    act: act as AnyAct<Exclude<R, ActingAtKeyboard>>,
    method,
    pattern,
    access,
    mayLag,
    isWithoutCsrf: http.isWithoutCsrf ?? false,
    isStepUp,
    path: only(input, (member) => holes.has(member)),
    query: isBody ? {} : rest,
    body: isBody ? rest : {},
    hasBody,
    status,
    forms: formsOf(output).map((form) => ({ status: statusOf(form) ?? status, is: Schema.is(form) })),
    isFile: isFile(output)
  }]
}
