import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { readWhole } from "../../../domain/WholeNumber.ts"

/* Parameters of paths and queries, each with its description for the document. */

const digits = Schema.String.check(
  Schema.makeFilter((text: string) => readWhole(text) !== undefined, { expected: "an integer" })
)

const read = SchemaTransformation.transform<number, string>({ decode: (text) => readWhole(text) ?? 0, encode: String })

/**
 * Returns the schema of an integer in a query. `default` is the value of an omitted parameter. Only the document uses
 * `minimum`.
 */
export const whole = (
  description: string,
  { minimum, ...more }: { readonly default?: number; readonly minimum?: number } = {}
) => {
  const toJsonSchema = () => ({ type: "integer", ...(minimum === undefined ? {} : { minimum }) })
  const number = Schema.Number.check(Schema.isInt({ description, toJsonSchema, ...more }))
  return Schema.optionalKey(digits.pipe(Schema.decodeTo(number, read)))
}

/** Returns the schema of a text in a query. */
export const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

/** Returns the schema of a word of a closed set in a query. */
export const word = <const A extends string>(words: ReadonlyArray<A>, description: string, byDefault?: NoInfer<A>) =>
  Schema.optionalKey(Schema.Literals(words).annotate({ description, default: byDefault }))

/** Returns the schema of a segment of a path. */
export const segment = (description: string) => Schema.String.annotate({ description })
