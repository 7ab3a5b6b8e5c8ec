import * as Data from "effect/Data"
import type { OperatorError } from "../domain/OperatorError.ts"
import { operatorProblemOf } from "../domain/OperatorProblem.ts"

/**
 * A command that cannot do what it was asked: one sentence for the person, and the exit code. 1: the host could not do it;
 * 2: the command line is wrong; 3: it cannot be done as asked; 130 and 143: a signal ended it (docs/decisions/command-line.md, "Exit codes").
 */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly code: 1 | 2 | 3 | 130 | 143
  readonly message: string
}> {}

/**
 * Code 3 if the configuration or a file is wrong. Code 1 if the host or an upstream failed, so that a later try may
 * succeed.
 */
export const filesFailed = (error: { readonly message: string; readonly mayPass?: boolean }): CommandFailed =>
  new CommandFailed({ code: error.mayPass === true ? 1 : 3, message: error.message })

/** The refusal of an operation, in the sentence that the API has for it. A failure of the service itself may pass. */
export const refusedFor = (error: OperatorError): CommandFailed => {
  const { message, status } = operatorProblemOf(error)
  return new CommandFailed({ code: status >= 500 ? 1 : 3, message })
}

/** What a command that ends unexpectedly says of it. */
export const messageOf = (defect: unknown): string => defect instanceof Error ? defect.message : String(defect)
