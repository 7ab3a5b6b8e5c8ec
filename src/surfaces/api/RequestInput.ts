import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, MediaTypeRefused } from "../../domain/OperatorError.ts"
import type { Request } from "../../kernel/http/Message.ts"
import { isPlain, octetsOf } from "../admin/OperatorBody.ts"
import { isChange } from "../admin/OperatorChecks.ts"
import { readJson } from "../operator/Json.ts"
import type { Route } from "./ApiRoutes.ts"
import { checkBody, checkQuery } from "./Decoding.ts"

/* The body and the query of a request. */

const queryOf = ({ target }: Request): string => target.includes("?") ? target.slice(target.indexOf("?") + 1) : ""

/** Whether a text is `{}`, which some clients send where there is nothing to say. */
const isEmptyObject = (octets: Uint8Array): boolean => {
  const read = readJson(octets)
  return Result.isSuccess(read) && JSON.stringify(read.success) === "{}"
}

const jsonType = /^application\/json[ \t]*(?:;|$)/i

/** The body and the query of a request, checked against the declaration. */
export interface RequestInput {
  /** Without the parameters that are blank. */
  readonly query: URLSearchParams
  /** JSON, or undefined if the route takes no body. */
  readonly body: unknown
}

/** Checks the size and the type of the body, then its members, then the parameters. */
export const inputOf = (request: Request, route: Route, maxBytes: number): Effect.Effect<RequestInput, OperatorError> =>
  Effect.gen(function*() {
    const octets = isChange(request.method) ? yield* octetsOf(request, maxBytes, "body") : Buffer.alloc(0)
    const { payload } = route
    let body: unknown
    if (payload !== undefined) {
      // Nothing is no body, whatever media type a client gives all its requests.
      const isAbsent = octets.length === 0
      if (!isAbsent && !isPlain(request, jsonType)) return yield* new MediaTypeRefused()
      const read = isAbsent ? Result.succeed({}) : readJson(octets)
      body = yield* Effect.fromResult(Result.mapError(read, (detail) => new BadRequest({ detail })))
      yield* Effect.fromResult(checkBody(payload, body))
    } else if (octets.length > 0 && !(isPlain(request, jsonType) && isEmptyObject(octets))) {
      return yield* new BadRequest({ detail: "This route takes no body." })
    }
    const query = yield* Effect.fromResult(checkQuery(route.query, queryOf(request)))
    return { query, body }
  })
