import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { isOperatorError } from "../../domain/OperatorProblem.ts"
import type { Failure } from "../admin/Failures.ts"

/** Separates the refusals that a page shows itself from the failures that every page shows alike. */
export const orRefusal = <A, E extends Failure, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<Either.Either<A, OperatorError>, E, R> =>
  Effect.catchAll(
    Effect.map(self, (value) => Either.right(value)),
    (failure) => isOperatorError(failure) ? Effect.succeed(Either.left(failure)) : Effect.fail(failure)
  )
