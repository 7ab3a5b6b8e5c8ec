import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { isOperatorError } from "../../domain/OperatorProblem.ts"
import type { Failure } from "../operator/gate/Failures.ts"

/** Separates the refusals that a page shows itself from the failures that every page shows alike. */
export const orRefusal = <A, E extends Failure, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<Result.Result<A, OperatorError>, E, R> =>
  Effect.catch(
    Effect.map(self, (value) => Result.succeed(value)),
    (failure) => isOperatorError(failure) ? Effect.succeed(Result.fail(failure)) : Effect.fail(failure)
  )
