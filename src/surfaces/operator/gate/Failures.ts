import * as Effect from "effect/Effect"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { Internal } from "../../../domain/OperatorError.ts"
import { isOperatorError } from "../../../domain/OperatorProblem.ts"
import { emit } from "../../../domain/words/Log.ts"

/** A failure of an operation. If it is not an `OperatorError`, an operator cannot fix it. */
export interface Failure {
  readonly _tag: string
  readonly message: string
}

/**
 * Returns the error that an operator sees for a failure: the failure itself, or an internal error. Logs the failure if
 * it is not in the log yet. A failed statement is already in the log.
 */
export const shownFailure = (failure: Failure): Effect.Effect<OperatorError> => {
  if (isOperatorError(failure)) return Effect.succeed(failure)
  const internal = new Internal()
  return failure._tag === "StorageFailed"
    ? Effect.succeed(internal)
    : Effect.as(emit("request_handler_panicked", { error: failure.message.slice(0, 2000) }), internal)
}
