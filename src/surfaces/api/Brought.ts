import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, MediaTypeRefused } from "../../domain/OperatorError.ts"
import type { Request } from "../../kernel/http/Message.ts"
import { isPlain, octetsOf } from "../admin/Body.ts"
import { isChange } from "../admin/Checks.ts"
import { checkBody, checkQuery } from "./Decoding.ts"
import { readJson } from "./Json.ts"
import type { Route } from "./Routes.ts"

/* The body and the query of a request. */

const queryOf = ({ target }: Request): string => target.includes("?") ? target.slice(target.indexOf("?") + 1) : ""

const jsonType = /^application\/json[ \t]*(?:;|$)/i

/** The body and the query of a request, checked against the declaration. */
export interface Brought {
  /** Without the parameters that are blank. */
  readonly query: URLSearchParams
  /** JSON, or undefined if the route takes no body. */
  readonly body: unknown
}

/** Checks the size and the type of the body, then its members, then the parameters. */
export const brought = (request: Request, route: Route, maxBytes: number): Effect.Effect<Brought, OperatorError> =>
  Effect.gen(function*() {
    const octets = isChange(request.method) ? yield* octetsOf(request, maxBytes, "body") : Buffer.alloc(0)
    const { payload } = route
    let body: unknown
    if (payload !== undefined) {
      // If the body is optional and absent, it needs no media type.
      const isAbsent = octets.length === 0 && request.headers["content-type"] === undefined
      if (!isAbsent && !isPlain(request, jsonType)) return yield* new MediaTypeRefused()
      const read = isAbsent ? Result.succeed({}) : readJson(octets)
      body = yield* Effect.fromResult(Result.mapError(read, (detail) => new BadRequest({ detail })))
      yield* Effect.fromResult(checkBody(payload, body))
    } else if (octets.length > 0) return yield* new BadRequest({ detail: "This route takes no body." })
    const query = yield* Effect.fromResult(checkQuery(route.query, queryOf(request)))
    return { query, body }
  })
