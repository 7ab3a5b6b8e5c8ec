import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { OperatorError } from "../../domain/OperatorError.ts"
import type { OperatorCode, OperatorProblem } from "../../domain/OperatorProblem.ts"
import { operatorProblemOf } from "../../domain/OperatorProblem.ts"
import type { Failure } from "../admin/Failures.ts"
import { shownFailure } from "../admin/Failures.ts"

/* Errors of the API: `{"error": "<code>", "message": "<sentence>"}` (docs/decisions/admin.md, "Errors"). */

/** An error as the client gets it. */
export interface Refusal {
  readonly error: OperatorCode
  readonly message: string
}

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
