import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import type { OperatorCode } from "../../domain/OperatorProblem.ts"
import { isOperatorError } from "../../domain/OperatorProblem.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import type { Exported } from "../../operations/operator/Exports.ts"
import type { Act, FileOutput, Output } from "../operator/Act.ts"
import { perform } from "../operator/Act.ts"
import { fileAnswer, steppedUp } from "../operator/ActAnswer.ts"
import type { StepUpServices } from "../operator/ActAnswer.ts"
import { Acting, Configured } from "../operator/Acting.ts"
import { ofStepUp } from "../operator/ActRoute.ts"
import type { Fields, InputOf } from "../operator/Field.ts"
import type { Failure } from "../operator/gate/Failures.ts"
import { inputOf, membersOfTexts } from "../operator/MemberInput.ts"
import { windowOf } from "./Listing.ts"
import type { Given, Sent } from "./Route.ts"

/* Runs acts for pages, with input from a browser. This input is checked in the same way as the input of the API. */

/**
 * Runs an act with the fields of a form and the parameters of its path. If the act requires the password, the password
 * in the form is checked first. `passed` lists the fields that belong only to the page.
 */
export const submitted = <Id extends string, In extends Fields, Out extends Output, C extends OperatorCode, R>(
  act: Act<Id, In, Out, C, R>,
  { form, parameters }: Pick<Given, "form" | "parameters">,
  passed: ReadonlyArray<string> = []
): Effect.Effect<Out["Type"], OperatorError | StorageFailed, R | StepUpServices> =>
  Effect.gen(function*() {
    const taken = { ...act.http?.isStepUp === true ? ofStepUp : {}, ...act.input }
    const fields = yield* Effect.fromResult(membersOfTexts(taken, form, "field", passed))
    const input = yield* Effect.fromResult(inputOf(taken, { ...fields, ...parameters }, "field"))
    yield* steppedUp(act, input)
    return yield* perform(act, input)
  })

/**
 * Returns the members of an act that the query of a page contains. A page ignores unknown parameters, because people
 * keep links to pages for a long time.
 */
export const askedOf = <In extends Fields>(
  fields: In,
  { parameters, query }: Pick<Given, "parameters" | "query">,
  window: { readonly [member: string]: number } = {}
): Result.Result<InputOf<In>, OperatorError> => {
  const known = new URLSearchParams()
  for (const member of Object.keys(fields)) {
    if (Object.hasOwn(window, member)) continue
    for (const text of query.getAll(member)) known.append(member, text)
  }
  const members = membersOfTexts(fields, known, "parameter")
  return Result.isFailure(members)
    ? Result.fail(members.failure)
    : inputOf(fields, { ...members.success, ...window, ...parameters }, "parameter")
}

/** Reads a list or one record for a page. The filters and the number of the page are in the query. */
export const looked = Effect.fnUntraced(function*<
  Id extends string,
  In extends Fields,
  Out extends Output,
  C extends OperatorCode,
  R
>(
  act: Act<Id, In, Out, C, R>,
  given: Pick<Given, "parameters" | "query">
): Effect.fn.Return<Out["Type"], OperatorError | StorageFailed, R | Configured> {
  const window = Object.hasOwn(act.input, "limit") ? windowOf(given.query, yield* Configured.config) : {}
  return yield* perform(act, yield* Effect.fromResult(askedOf(act.input, given, window)))
})

/** Sends the file of an export. */
export const downloaded = <Id extends string, In extends Fields, C extends OperatorCode, R>(
  act: Act<Id, In, typeof FileOutput, C, R>,
  given: Pick<Given, "parameters" | "query">
): Effect.Effect<Sent, OperatorError | StorageFailed, R | Acting | Configured | Database> =>
  Effect.gen(function*() {
    const file: Exported = yield* looked(act, given)
    const { id } = yield* Acting.operator
    return { _tag: "Sent" as const, answer: yield* fileAnswer(file, id) }
  })

/**
 * Returns refusals as values, because the page itself shows them. All other failures stay failures, and are shown the
 * same way on every page.
 */
export const orRefusal = <A, E extends Failure, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<Result.Result<A, OperatorError>, E, R> =>
  Effect.catch(
    Effect.map(self, Result.succeed),
    (failure) => isOperatorError(failure) ? Effect.succeed(Result.fail(failure)) : Effect.fail(failure)
  )
