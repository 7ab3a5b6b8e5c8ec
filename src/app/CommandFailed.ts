import * as Data from "effect/Data"
import type { OperatorError } from "../domain/OperatorError.ts"
import { operatorProblemOf } from "../domain/OperatorProblem.ts"

/**
 * A command failed. The error has one sentence for the person at the keyboard, and the exit code. Code 1 means that the
 * host failed. Code 2 means that the command line is wrong. Code 3 means that the request cannot be carried out. The
 * codes 130 and 143 mean that a signal ended the command (docs/contribute/decisions/command-line.md, "Exit codes").
 */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly code: 1 | 2 | 3 | 130 | 143
  readonly message: string
}> {}

/**
 * Returns the failure of a command. The code is 3 if the configuration or a file is wrong. The code is 1 if the host or
 * an upstream failed, because then a later try may succeed.
 */
export const filesFailed = (error: { readonly message: string; readonly mayPass?: boolean }): CommandFailed =>
  new CommandFailed({ code: error.mayPass === true ? 1 : 3, message: error.message })

/**
 * Returns the refusal of an operation, with the same sentence as in the API. The code is 1 if the service itself
 * failed, because a later try may succeed.
 */
export const refusedFor = (error: OperatorError): CommandFailed => {
  const { message, status } = operatorProblemOf(error)
  return new CommandFailed({ code: status >= 500 ? 1 : 3, message })
}

/** Returns the message of a command that ended unexpectedly. */
export const messageOf = (defect: unknown): string => defect instanceof Error ? defect.message : String(defect)
