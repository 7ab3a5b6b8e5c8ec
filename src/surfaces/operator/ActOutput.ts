import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AnyAct } from "./Act.ts"

const ownStatus = (form: Schema.Top | undefined): unknown => form?.ast.annotations?.["httpApiStatus"]

/** The forms of an answer, if it is a union and one of them has a status of its own. */
export const formsOf = (output: Schema.Top): ReadonlyArray<Schema.Top> => {
  const forms = "members" in output ? output.members as ReadonlyArray<Schema.Top> : []
  return forms.some((form) => ownStatus(form) !== undefined) ? forms : []
}

/** The status of an answer in a form that has its own. */
export const statusOf = (output: Schema.Top, value: unknown): number | undefined => {
  const status = ownStatus(formsOf(output).find((one) => Schema.is(one)(value)))
  return typeof status === "number" ? status : undefined
}

/** What an act answers, as JSON. What does not fit its declaration is a defect, and what is not declared is left out. */
export const encoded = <R>({ output }: AnyAct<R>, value: unknown): Effect.Effect<unknown> =>
  Effect.orDie(Schema.encodeUnknownEffect(output)(value))
