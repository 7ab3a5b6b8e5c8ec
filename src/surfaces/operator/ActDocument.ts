import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import type { AnyAct, Noun } from "./Act.ts"
import { formsOf } from "./Act.ts"
import type { ActRoute } from "./ActRoute.ts"
import { routeOf } from "./ActRoute.ts"
import type { Field, Fields } from "./Field.ts"
import { nouns } from "./Nouns.ts"
import { reachedBy } from "./ReachedBy.ts"
import { everywhere, refusals } from "./RefusalSchemas.ts"
import { Int, intOf, optionalMember } from "./schemas/Common.ts"
import { segment, text, whole, word } from "./schemas/Parameters.ts"

/*
 * Declares the acts as endpoints of Effect's `HttpApi`. The OpenAPI document is made from this declaration, but
 * `HttpApi` does not serve the endpoints.
 */

const described = ({ description, document: { default: byDefault }, form, words }: Field<unknown>): Schema.Top => {
  switch (form) {
    case "text":
      return words.length > 0
        ? Schema.Literals(words).annotate({
          description,
          default: typeof byDefault === "string" ? byDefault : undefined
        })
        : Schema.String.annotate({ description })
    case "integer":
      return intOf(description)
    case "code":
      return Schema.Union([Int, Schema.String]).annotate({ description })
    case "boolean":
      return Schema.Boolean.annotate({ description })
    case "texts":
      return Schema.Array(Schema.String).annotate({ description })
  }
}

const inBody = (field: Field<unknown>): Schema.Top =>
  field.isNeeded ? described(field) : optionalMember(described(field))

const inQuery = ({ description, document, form, isNeeded, words }: Field<unknown>): Schema.Top => {
  if (form === "integer") {
    const { default: byDefault, ...more } = document
    return whole(description, { ...more, ...typeof byDefault === "number" ? { default: byDefault } : {} })
  }
  if (form === "boolean") return word(["true", "false"], description, String(document.default) as "true" | "false")
  if (words.length > 0) {
    return word(words, description, typeof document.default === "string" ? document.default : undefined)
  }
  return isNeeded ? Schema.String.annotate({ description }) : text(description)
}

const fieldsOf = (fields: Fields, schemaOf: (field: Field<unknown>) => Schema.Top) =>
  Object.fromEntries(Object.entries(fields).map(([member, field]) => [member, schemaOf(field)]))

/** Each schema is annotated only once, because the document would treat every copy as a separate schema. */
const annotated = new Map<Schema.Top, Schema.Top>()

const withStatus = (output: Schema.Top, status: number): Schema.Top => {
  const known = annotated.get(output) ?? output.annotate({ httpApiStatus: status })
  annotated.set(output, known)
  return known
}

/** Returns the schema of the answer that a successful act gives. */
const successOf = <R>({ http, output }: AnyAct<R>): Schema.Top | ReadonlyArray<Schema.Top> => {
  const forms = formsOf(output)
  if (forms.length > 0) return forms
  if (http?.status === 204) return HttpApiSchema.NoContent
  return http?.status === undefined ? output : withStatus(output, http.status)
}

const hasMembers = (fields: Fields): boolean => Object.keys(fields).length > 0

const endpointOf = <R>({
  act,
  body,
  hasBody,
  isStepUp,
  isWithoutCsrf,
  mayLag = false,
  method,
  path,
  pattern,
  query
}: ActRoute<R>) =>
  // The methods of the declaration differ only in the types of their bodies.
  HttpApiEndpoint.make(method as "POST")(act.id, pattern.replaceAll(/\{(\w+)\}/g, ":$1") as `/${string}`, {
    ...hasMembers(path) ? { params: fieldsOf(path, ({ description }) => segment(description)) } : {},
    ...hasMembers(query) ? { query: fieldsOf(query, inQuery) } : {},
    ...hasBody ? { payload: Schema.Struct(fieldsOf(body, inBody) as Schema.Struct.Fields) } : {},
    success: successOf(act),
    error: [...everywhere, ...refusals(...isStepUp ? ["step_up_failed" as const] : [], ...act.errors)]
  })
    .annotate(OpenApi.Summary, act.does)
    .annotateMerge(reachedBy(act.access, { isStepUp, isWithoutCsrf, mayLag }))

/** Returns the endpoints of a noun as a group. */
const groupOf = ({ acts, description, name }: Noun<unknown>) => {
  const [first, ...rest] = acts.flatMap(routeOf).map(endpointOf)
  const empty = HttpApiGroup.make(name).annotate(OpenApi.Description, description)
  return first === undefined ? empty : empty.add(first, ...rest)
}

/** All acts with a route, declared as endpoints of `HttpApi`. */
export const declaration = nouns.map(groupOf).reduce(
  (api, group) => api.add(group) as unknown as typeof api,
  HttpApi.make("acme-svc")
    .annotate(OpenApi.Title, "acme-svc")
    .annotate(OpenApi.Description, "Operators of acme-svc read and change its records here.")
)
