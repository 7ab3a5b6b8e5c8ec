import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { readWhole } from "../../../domain/WholeNumber.ts"

/* Parameters of paths and queries, each with what the document says of it. */

const digits = Schema.String.check(
  Schema.makeFilter((text: string) => readWhole(text) !== undefined, { expected: "an integer" })
)

const read = SchemaTransformation.transform<number, string>({ decode: (text) => readWhole(text) ?? 0, encode: String })

/** An integer in a query; `default` is what counts where it is left out. The document alone has `minimum`. */
export const whole = (
  description: string,
  { minimum, ...more }: { readonly default?: number; readonly minimum?: number } = {}
) => {
  const toJsonSchema = () => ({ type: "integer", ...(minimum === undefined ? {} : { minimum }) })
  const number = Schema.Number.check(Schema.isInt({ description, toJsonSchema, ...more }))
  return Schema.optionalKey(digits.pipe(Schema.decodeTo(number, read)))
}

/** A text in a query. */
export const text = (description: string) => Schema.optionalKey(Schema.String.annotate({ description }))

/** A word of a closed set in a query. */
export const word = <const A extends string>(words: ReadonlyArray<A>, description: string, byDefault?: NoInfer<A>) =>
  Schema.optionalKey(Schema.Literals(words).annotate({ description, default: byDefault }))

/** A segment of a path. */
export const segment = (description: string) => Schema.String.annotate({ description })

/** The path of a record. */
export const byId = (noun: string) => ({ id: segment(`The id of the ${noun}.`) })

/** The window of a list. */
export const paging = {
  limit: whole("Rows of the page. A value below 1 counts as 1, a value above admin.page_size_max as that.", {
    default: 50
  }),
  offset: whole("Rows to skip before the page. A negative value counts as 0.", { default: 0 })
}
