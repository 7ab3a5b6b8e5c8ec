import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Schema from "effect/Schema"

/* Forms that many routes share (docs/decisions/admin.md, "Conventions"). */

/** The id of a record, hyphenated and in lower case. A text in another form is the id of no record. */
export const Id = Schema.String.annotations({ examples: ["01890a5d-ac96-774b-bcce-b302099a8057"] })

/** A time in RFC 3339, in UTC and whole seconds. */
export const Time = Schema.String.annotations({
  jsonSchema: { type: "string", format: "date-time" },
  examples: ["2026-01-31T12:00:00Z"]
})

/** Members of whatever kind. What the platform says of them in the document has the same id at each place. */
export const Members = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  jsonSchema: { type: "object", additionalProperties: true }
})

/** The annotations of the schema of a new object: its name, and the status 201. */
export const created = <A>(identifier: string): Schema.Annotations.Schema<A> =>
  HttpApiSchema.annotations({ identifier, status: 201 })

/** A page of a list. */
export const pageOf = <A, I>(item: Schema.Schema<A, I>) =>
  Schema.Struct({
    items: Schema.Array(item),
    total: Schema.Int.annotations({ description: "How many rows match, on all pages." }),
    limit: Schema.Int,
    offset: Schema.Int
  })

/** A page of a list whose search may end early. */
export const walkedPageOf = <A, I>(item: Schema.Schema<A, I>) =>
  Schema.Struct({
    ...pageOf(item).fields,
    truncated: Schema.optional(
      Schema.Boolean.annotations({
        description: "The search ended early. items and total hold what it had found until then."
      })
    )
  })

/** An identifier as ACME has it (RFC 8555 section 9.7.7). */
export const Identifier = Schema.Struct({
  type: Schema.String.annotations({ examples: ["dns"] }),
  value: Schema.String.annotations({ examples: ["www.example.org"] })
}).annotations({ identifier: "Identifier" })

/** A problem document that the ACME client got (RFC 7807). */
export const Problem = Schema.Struct({
  type: Schema.optional(Schema.String.annotations({ examples: ["urn:ietf:params:acme:error:badCSR"] })),
  status: Schema.Int,
  detail: Schema.String,
  identifier: Schema.optional(Identifier),
  algorithms: Schema.optional(Schema.Array(Schema.String)),
  subproblems: Schema.optional(
    Schema.Array(Schema.Struct({ type: Schema.String, detail: Schema.String, identifier: Identifier }))
  )
}).annotations({ identifier: "Problem" })

/** The caller's own password. Some changes need it. */
export const password = Schema.String.annotations({ description: "The caller's own password." })
