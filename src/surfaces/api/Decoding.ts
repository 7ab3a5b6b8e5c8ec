import * as Result from "effect/Result"
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, UnknownWord } from "../../domain/OperatorError.ts"
import { formOf } from "../../kernel/JsonForm.ts"
import { nameOf, storable } from "../operator/Storable.ts"
import type { Reader } from "./ApiRoutes.ts"

/*
 * Bodies and queries are decoded here, before the declaration decodes them. Its own errors would quote what the client
 * sent.
 */

const options = { errors: "first", onExcessProperty: "error", reportInput: true } as const

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

const expectedBy = SchemaAST.resolveAt<string>("expected")

/**
 * What the last check of a type expects, or else its JSON form; for a union, that of its first type. For an array only
 * the form is named.
 */
const wantedOf = (ast: SchemaAST.AST, given: unknown): string => {
  const first = ast._tag === "Union" ? ast.types[0] ?? ast : ast
  return (Array.isArray(given) ? undefined : expectedBy(first)) ?? formOf(first)
}

/** The first fault. It names the member or the parameter. It quotes no value, except a word that is not in its set. */
const faultOf = (
  issue: SchemaIssue.Issue,
  noun: "member" | "parameter",
  path: ReadonlyArray<PropertyKey> = []
): OperatorError => {
  const wrong = (fault: string) =>
    new BadRequest({ detail: path.length === 0 ? `The body ${fault}.` : `The ${noun} ${nameOf(path)} ${fault}.` })
  switch (issue._tag) {
    case "Pointer":
      return faultOf(issue.issue, noun, [...path, ...issue.path])
    case "Composite":
      return faultOf(issue.issues[0], noun, path)
    case "Encoding":
      return faultOf(issue.issue, noun, path)
    case "Filter": {
      const expected = issue.filter.annotations?.expected
      return wrong(expected === undefined ? "is not allowed" : `must be ${expected}`)
    }
    case "AnyOf":
    case "InvalidType": {
      const [only, ...others] = issue._tag === "AnyOf" ? issue.issues : []
      // Of a type that may be null too, the fault is that of the type.
      if (only !== undefined && others.length === 0) return faultOf(only, noun, path)
      const words = wordsOf(issue.ast)
      if (words.length > 0 && typeof issue.input === "string") {
        return new UnknownWord({ name: nameOf(path), word: issue.input.slice(0, 64), known: words })
      }
      // A parameter is a text, or several texts if it was given more than once.
      if (noun === "parameter") return wrong("was given twice")
      const form = words.length > 0 ? `one of ${words.join(", ")}` : wantedOf(issue.ast, issue.input)
      return wrong(`must be ${form}`)
    }
    case "MissingKey":
      return wrong("is missing")
    case "UnexpectedKey":
      return wrong("is unknown")
    default:
      return wrong("is not allowed")
  }
}

/** Checks a body against the schema of an endpoint. */
export const checkBody = (schema: Reader, value: unknown): Result.Result<unknown, OperatorError> =>
  Result.flatMap(
    storable(value, "member"),
    (fit) =>
      Result.mapError(SchemaParser.decodeUnknownResult(schema, options)(fit), (issue) => faultOf(issue, "member"))
  )

/** No route has so many parameters. */
const mostParameters = 64

/**
 * Checks a query against the schema of an endpoint. Blanks around a value are no part of it, and a parameter that is blank counts
 * as absent. Answers the query without both.
 */
export const checkQuery = (
  schema: Reader | undefined,
  query: string
): Result.Result<URLSearchParams, OperatorError> => {
  const given = new URLSearchParams(query)
  if (given.size > mostParameters) {
    return Result.fail(new BadRequest({ detail: `A query takes ${mostParameters} parameters at most.` }))
  }
  const values = new Map<string, string | ReadonlyArray<string>>()
  const kept = new URLSearchParams()
  for (const [name, text] of given) {
    const value = text.trim()
    if (value === "") continue
    const before = values.get(name)
    values.set(name, before === undefined ? value : [before, value].flat())
    kept.append(name, value)
  }
  const [first] = kept.keys()
  return Result.flatMap(storable(Object.fromEntries(values), "parameter"), (fit) => {
    if (schema !== undefined) {
      return Result.mapBoth(SchemaParser.decodeUnknownResult(schema, options)(fit), {
        onFailure: (issue) => faultOf(issue, "parameter"),
        onSuccess: () => kept
      })
    }
    // No schema says this: one without members takes every parameter.
    return first === undefined
      ? Result.succeed(kept)
      : Result.fail(new BadRequest({ detail: `The parameter ${nameOf([first])} is unknown.` }))
  })
}
