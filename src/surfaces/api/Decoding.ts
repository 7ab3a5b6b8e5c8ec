import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, UnknownWord } from "../../domain/OperatorError.ts"
import { formOf, pathText } from "../../kernel/JsonForm.ts"
import { isStorable } from "../admin/Body.ts"

/*
 * Bodies and queries are decoded here, before the declaration decodes them. Its own errors would quote what the client
 * sent.
 */

const options = { errors: "first", onExcessProperty: "error" } as const

/** The words of a closed set, if the type is one. */
const wordsOf = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  switch (ast._tag) {
    case "Literal":
      return typeof ast.literal === "string" ? [ast.literal] : []
    case "Union":
      return ast.types.flatMap(wordsOf)
    default:
      return []
  }
}

const isInteger = (ast: SchemaAST.AST): boolean =>
  Option.exists(SchemaAST.getJSONSchemaAnnotation(ast), (schema) => "type" in schema && schema.type === "integer")

const nameOf = (path: ReadonlyArray<PropertyKey>): string => pathText(path).slice(0, 128)

/** The first fault. It names the member or the parameter. It quotes no value, except a word that is not in its set. */
const faultOf = (
  issue: ParseResult.ParseIssue,
  noun: "member" | "parameter",
  path: ReadonlyArray<PropertyKey> = []
): OperatorError => {
  const wrong = (fault: string) =>
    new BadRequest({ detail: path.length === 0 ? `The body ${fault}.` : `The ${noun} ${nameOf(path)} ${fault}.` })
  /** The value has not this form. A parameter is a text, or several texts if it was given more than once. */
  const misformed = (form: string) => wrong(noun === "parameter" ? "was given twice" : `must be ${form}`)
  switch (issue._tag) {
    case "Pointer":
      return faultOf(issue.issue, noun, [...path, ...[issue.path].flat()])
    case "Composite": {
      const words = wordsOf(issue.ast)
      if (words.length > 0) {
        return typeof issue.actual === "string"
          ? new UnknownWord({ name: nameOf(path), word: issue.actual.slice(0, 64), known: words })
          : misformed(`one of ${words.join(", ")}`)
      }
      const [first] = [issue.issues].flat()
      return first === undefined ? wrong("has the wrong form") : faultOf(first, noun, path)
    }
    case "Refinement":
    case "Transformation":
      return isInteger(issue.ast) && !Array.isArray(issue.actual)
        ? wrong("must be an integer")
        : faultOf(issue.issue, noun, path)
    case "Missing":
      return wrong("is missing")
    case "Unexpected":
      return wrong("is unknown")
    case "Type":
      return misformed(formOf(issue.ast))
    default:
      return wrong("is not allowed")
  }
}

/** Where a value has a text that not every database stores. */
const unstorable = (value: unknown, path: ReadonlyArray<PropertyKey>): ReadonlyArray<PropertyKey> | undefined => {
  if (typeof value === "string") return isStorable(value) ? undefined : path
  if (typeof value !== "object" || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const found = unstorable(name, path) ?? unstorable(member, [...path, Array.isArray(value) ? Number(name) : name])
    if (found !== undefined) return found
  }
  return undefined
}

const storable = (value: unknown, noun: "member" | "parameter"): Either.Either<unknown, OperatorError> => {
  const path = unstorable(value, [])
  if (path === undefined) return Either.right(value)
  const whole = noun === "member" ? "The body" : "The query"
  const what = path.length === 0 ? whole : `The ${noun} ${nameOf(path)}`
  return Either.left(new BadRequest({ detail: `${what} contains a character that cannot be stored.` }))
}

/** Checks a body against the schema of an endpoint. */
export const checkBody = (schema: Schema.Schema<unknown>, value: unknown): Either.Either<unknown, OperatorError> =>
  Either.flatMap(
    storable(value, "member"),
    (fit) => Either.mapLeft(Schema.decodeUnknownEither(schema, options)(fit), ({ issue }) => faultOf(issue, "member"))
  )

/** No route has so many parameters. */
const mostParameters = 64

/**
 * Checks a query against the schema of an endpoint. A blank parameter counts as absent. Answers the query without the
 * blank ones.
 */
export const checkQuery = (
  schema: Schema.Schema<unknown> | undefined,
  query: string
): Either.Either<URLSearchParams, OperatorError> => {
  const given = new URLSearchParams(query)
  if (given.size > mostParameters) {
    return Either.left(new BadRequest({ detail: `A query takes ${mostParameters} parameters at most.` }))
  }
  const values = new Map<string, string | ReadonlyArray<string>>()
  const kept = new URLSearchParams()
  for (const [name, value] of given) {
    if (value === "") continue
    const before = values.get(name)
    values.set(name, before === undefined ? value : [before, value].flat())
    kept.append(name, value)
  }
  const [first] = kept.keys()
  return Either.flatMap(storable(Object.fromEntries(values), "parameter"), (fit) => {
    if (schema !== undefined) {
      return Either.mapBoth(Schema.decodeUnknownEither(schema, options)(fit), {
        onLeft: ({ issue }) => faultOf(issue, "parameter"),
        onRight: () => kept
      })
    }
    // No schema says this: one without members takes every parameter.
    return first === undefined
      ? Either.right(kept)
      : Either.left(new BadRequest({ detail: `The parameter ${nameOf([first])} is unknown.` }))
  })
}
