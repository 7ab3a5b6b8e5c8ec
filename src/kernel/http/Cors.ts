import type { Answer, Request } from "./Message.ts"
import { header, withHeaders } from "./Message.ts"

/* Answers that scripts of other origins may read (the Fetch standard, "CORS protocol"). */

/** What one surface lets scripts of other origins do. */
export interface Cors {
  /** The answer, with what lets the script of an allowed origin read it. */
  readonly opened: (request: Request, answer: Answer) => Answer
  /** The answer to OPTIONS, by which a browser asks before it sends: the methods that a path takes. */
  readonly preflight: (request: Request, methods: string) => Answer
}

/** How long a browser remembers the answer to OPTIONS: two hours, the longest that browsers keep to. */
const rememberedSeconds = "7200"

/**
 * Origins are compared as the browser writes them, octet by octet; `*` is every origin. `exposed` are the headers of an answer that
 * a script may read, `accepted` those of a request that it may set. No credentials are allowed: there are none on such a surface.
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
    // Also where there is no origin: a cache is not to hand the answer to the script of one.
    if (origin === undefined) return withHeaders(answer, { vary: "Origin" })
    return withHeaders(answer, {
      vary: "Origin",
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
