import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import type { OperatorError } from "../../domain/OperatorError.ts"
import type { OperatorCode, OperatorProblem } from "../../domain/OperatorProblem.ts"
import { operatorCodes, operatorProblemOf } from "../../domain/OperatorProblem.ts"
import type { Failure } from "../admin/Failures.ts"
import { shownFailure } from "../admin/Failures.ts"

/* Errors of the API: `{"error": "<code>", "message": "<sentence>"}` (docs/decisions/admin.md, "Errors"). */

const statusOf = (code: OperatorCode): number => operatorCodes.find((row) => row.code === code)?.status ?? 500

/** An error as the client gets it. */
export interface Refusal {
  readonly error: OperatorCode
  readonly message: string
}

const ofStatus = (status: number, codes: ReadonlyArray<OperatorCode>) =>
  Schema.Struct({
    error: Schema.Literals(codes),
    message: Schema.String.annotate({ description: "A sentence for people. It may change." })
  }).annotate({ httpApiStatus: status, description: codes.join(", ") })

/** The schemas of the errors with these codes, one for each status. An endpoint states which of them it may answer. */
export const refusals = (...codes: ReadonlyArray<OperatorCode>) => {
  const statuses = [...new Set(codes.map(statusOf))]
  return statuses.map((status) => ofStatus(status, codes.filter((code) => statusOf(code) === status)))
}

/** The codes that every route may answer. */
export const usualCodes: ReadonlyArray<OperatorCode> = [
  "bad_request",
  "invalid_status",
  "session_invalid",
  "session_expired",
  "session_idle",
  "mfa_pending",
  "csrf_failed",
  "insufficient_role",
  "access_denied",
  "not_found",
  "method_not_allowed",
  "body_too_large",
  "unsupported_media_type",
  "rate_limited",
  "internal",
  "busy"
]

/** The schemas of the usual codes. */
export const everywhere = refusals(...usualCodes)

/** The headers that an error adds to those of every answer. */
export const refusalHeaders = (
  problem: OperatorProblem,
  error: OperatorError
): { readonly [name: string]: string } => ({
  ...(problem.retryAfter === undefined ? {} : { "retry-after": String(problem.retryAfter) }),
  ...(error._tag === "MethodRefused" ? { allow: error.allow.join(", ") } : {})
})

/** An error as the body of an answer. */
export const refusalOf = ({ code, message }: OperatorProblem): Refusal => ({ error: code, message })

/**
 * Turns the failures of an operation into those of the API. If operators cannot do anything about a failure, it is
 * answered as `internal`.
 */
export const answering = <A, E extends Failure, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, Refusal, R | HttpServerRequest.HttpServerRequest> =>
  Effect.catch(self, (failure) =>
    Effect.flatMap(shownFailure(failure), (error) => {
      const problem = operatorProblemOf(error)
      const headers = refusalHeaders(problem, error)
      return Effect.andThen(
        HttpEffect.appendPreResponseHandler((_, response) =>
          Effect.succeed(HttpServerResponse.setHeaders(response, headers))
        ),
        Effect.fail(refusalOf(problem))
      )
    }))
