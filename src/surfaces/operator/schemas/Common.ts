import * as Schema from "effect/Schema"

/* Forms that many routes share (docs/contribute/decisions/admin.md, "Conventions"). */

/** The id of a record, with hyphens and in lower case. No record has an id in another form. */
export const Id = Schema.String.annotate({ examples: ["01890a5d-ac96-774b-bcce-b302099a8057"] })

/** A time in RFC 3339, in UTC and whole seconds. */
export const Time = Schema.String.annotate({ format: "date-time" })

/** The document omits the bounds, because the numbers of this service are far within them. */
const integer = Schema.Number.check(Schema.isInt({ title: "int", toJsonSchema: () => ({ type: "integer" }) }))

/** A whole number. */
export const Int = integer.annotate({ identifier: "Int", description: "an integer" })

/** Returns the schema of a whole number, with a description for the document. */
export const intOf = (description: string) => integer.annotate({ description })

/**
 * An object with any members. The document states this explicitly, because some readers would otherwise assume an
 * object without members.
 */
export const Members = Schema.Record(Schema.String, Schema.Unknown).annotate({ additionalProperties: true })

/** Returns the annotations for the schema of a new object: its name, and the status 201. */
export const created = (identifier: string) => ({ identifier, httpApiStatus: 201 })

/** Returns the schema of a page of a list. */
export const pageOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({
    items: Schema.Array(item),
    total: intOf("How many rows match, on all pages."),
    limit: Int,
    offset: Int
  })

/** Returns the schema of a page of a list whose search may end before all rows were read. */
export const walkedPageOf = <S extends Schema.Constraint>(item: S) =>
  Schema.Struct({
    ...pageOf(item).fields,
    truncated: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "The search ended early. items and total contain only what it had found."
      })
    )
  })

/** An identifier in the form of ACME (RFC 8555 section 9.7.7). */
export const Identifier = Schema.Struct({
  type: Schema.String.annotate({ examples: ["dns"] }),
  value: Schema.String.annotate({ examples: ["www.example.org"] })
}).annotate({ identifier: "Identifier" })

/** A problem document that the ACME client received (RFC 7807). */
export const Problem = Schema.Struct({
  type: Schema.optionalKey(Schema.String.annotate({ examples: ["urn:ietf:params:acme:error:badCSR"] })),
  status: Int,
  detail: Schema.String,
  identifier: Schema.optionalKey(Identifier),
  algorithms: Schema.optionalKey(Schema.Array(Schema.String)),
  subproblems: Schema.optionalKey(
    Schema.Array(Schema.Struct({ type: Schema.String, detail: Schema.String, identifier: Identifier }))
  )
}).annotate({ identifier: "Problem" })

/** Returns the schema of an optional member of a body. Clients may also write `null`. */
export const optionalMember = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
