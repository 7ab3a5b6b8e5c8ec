import * as Effect from "effect/Effect"
import type { OperatorError } from "../../../domain/OperatorError.ts"
import { Internal } from "../../../domain/OperatorError.ts"
import { isOperatorError } from "../../../domain/OperatorProblem.ts"
import { emit } from "../../../domain/words/Log.ts"

/** A failure of an operation. If it is not one of `OperatorError`, operators cannot do anything about it. */
export interface Failure {
  readonly _tag: string
  readonly message: string
}

/**
 * The error that an operator sees of a failure: the failure itself, or an internal error. What is not known to the log
 * yet is logged. A statement that failed was logged when it did.
 */
export const shownFailure = (failure: Failure): Effect.Effect<OperatorError> => {
  if (isOperatorError(failure)) return Effect.succeed(failure)
  const internal = new Internal()
  return failure._tag === "StorageFailed"
    ? Effect.succeed(internal)
    : Effect.as(emit("request_handler_panicked", { error: failure.message.slice(0, 2000) }), internal)
}
