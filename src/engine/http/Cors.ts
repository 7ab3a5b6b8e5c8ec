import type { Answer, Request } from "./Message.ts"
import { header, withHeaders } from "./Message.ts"

/* Lets scripts of other origins read answers (the Fetch standard, "CORS protocol"). */

/** What a surface allows scripts of other origins to do. */
export interface Cors {
  /** Returns the answer with headers that let scripts of an allowed origin read it. */
  readonly opened: (request: Request, answer: Answer) => Answer
  /**
   * Returns the answer to the OPTIONS request that a browser sends before the actual request. `methods` are the methods
   * of the path.
   */
  readonly preflight: (request: Request, methods: string) => Answer
}

/** For how many seconds a browser remembers the answer to OPTIONS: two hours, the longest time that browsers accept. */
const rememberedSeconds = "7200"

/**
 * Makes the rules for a surface. Origins are compared octet by octet, in the form that browsers use; `*` allows every
 * origin. `exposed` lists the answer headers that a script may read. `accepted` lists the request headers that a script
 * may set. Credentials are not allowed, because these surfaces use none.
 */
export const makeCors = ({ accepted, exposed, origins }: {
  readonly origins: ReadonlyArray<string>
  readonly exposed: string
  readonly accepted: string
}): Cors => {
  const allowed = new Set(origins)
  const isOpen = allowed.has("*")
  const originOf = (request: Request): string | undefined => {
    const origin = header(request, "origin")
    if (origin === undefined) return undefined
    return isOpen ? "*" : allowed.has(origin) ? origin : undefined
  }
  const opened: Cors["opened"] = (request, answer) => {
    const origin = originOf(request)
    // `Vary` is sent even without an origin, because a cache must not give this answer to a script. The answer may
    // depend on other headers too.
    const vary = [answer.headers["vary"] ?? [], "Origin"].flat().join(", ")
    if (origin === undefined) return withHeaders(answer, { vary })
    return withHeaders(answer, {
      vary,
      "access-control-allow-origin": origin,
      "access-control-expose-headers": exposed
    })
  }
  const preflight: Cors["preflight"] = (request, methods) => {
    const answer: Answer = { status: 204, headers: { allow: methods } }
    return originOf(request) === undefined || header(request, "access-control-request-method") === undefined
      ? answer
      : withHeaders(answer, {
        "access-control-allow-methods": methods,
        "access-control-allow-headers": accepted,
        "access-control-max-age": rememberedSeconds
      })
  }
  return { opened, preflight }
}
