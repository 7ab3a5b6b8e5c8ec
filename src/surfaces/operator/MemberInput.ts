import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest, UnknownWord } from "../../domain/OperatorError.ts"
import { countable, readWhole } from "../../domain/WholeNumber.ts"
import type { Field, Fields, Form, InputOf, Written } from "./Field.ts"
import { nameOf, storable } from "./Storable.ts"

/*
 * Reads the members of an act from JSON, from a query or from a form. Each value is converted to the form that its
 * field checks, so the same values are accepted and refused everywhere. A refusal names the member. The only value that
 * a refusal quotes is a word that is not in its set.
 */

/** The given values, by the names of their members. A member that was left out is absent. */
export type GivenMembers = { readonly [member: string]: Written }

const wrong = (detail: string): Result.Result<never, OperatorError> => Result.fail(new BadRequest({ detail }))

/**
 * Returns the value of a member after its field has checked it. `name` is the member's name in the words of the
 * surface.
 */
export const judged = <A>(field: Field<A>, name: string, written: Written): Result.Result<A, OperatorError> => {
  const value = field.read(written)
  if (value !== undefined) return Result.succeed(value)
  return field.words.length > 0 && typeof written === "string"
    ? Result.fail(new UnknownWord({ name, word: written.trim().slice(0, 64), known: field.words }))
    : wrong(`${name} ${field.fault?.(written) ?? `takes ${field.takes}`}.`)
}

/** Returns the input of an act. `noun` is the surface's word for a member. */
export const inputOf = <In extends Fields>(
  fields: In,
  given: GivenMembers,
  noun: "member" | "parameter" | "field"
): Result.Result<InputOf<In>, OperatorError> => {
  const input: { [member: string]: unknown } = {}
  for (const [member, field] of Object.entries(fields)) {
    const written = given[member]
    if (written === undefined && field.isNeeded) return wrong(`The ${noun} ${member} is missing.`)
    const value = written === undefined ? Result.succeed(field.absent) : judged(field, member, written)
    if (Result.isFailure(value)) return Result.fail(value.failure)
    input[member] = value.success
  }
  return Result.succeed(input as InputOf<In>)
}

const forms: { readonly [F in Form]: string } = {
  text: "a text",
  integer: "an integer",
  boolean: "true or false",
  texts: "an array",
  code: "a number or a name"
}

const isOf = (form: Form, value: unknown): value is Written => {
  switch (form) {
    case "text":
      return typeof value === "string"
    case "integer":
      return Number.isInteger(value)
    case "boolean":
      return typeof value === "boolean"
    case "texts":
      return Array.isArray(value) && value.every((one) => typeof one === "string")
    case "code":
      return typeof value === "string" || Number.isInteger(value)
  }
}

/** Converts a JSON value to the form of its member. */
const fromJson = (
  member: string,
  { form, words }: Field<unknown>,
  value: unknown
): Result.Result<Written, OperatorError> => {
  if (isOf(form, value)) return Result.succeed(typeof value === "number" ? countable(value) : value)
  const at = form === "texts" && Array.isArray(value) ? value.findIndex((one) => typeof one !== "string") : -1
  if (at >= 0) return wrong(`The member ${nameOf([member, at])} must be a text.`)
  return wrong(`The member ${member} must be ${words.length > 0 ? `one of ${words.join(", ")}` : forms[form]}.`)
}

const isObject = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Returns the members of a body. For an optional member, null counts as absent, unless the field says what null means.
 */
export const membersOfBody = (fields: Fields, body: unknown): Result.Result<GivenMembers, OperatorError> =>
  Result.gen(function*() {
    yield* storable(body, "member")
    if (!isObject(body)) return yield* wrong("The body must be an object.")
    const given: { [member: string]: Written } = {}
    for (const [member, value] of Object.entries(body)) {
      const field = Object.hasOwn(fields, member) ? fields[member] : undefined
      if (field === undefined) return yield* wrong(`The member ${nameOf([member])} is unknown.`)
      const isBlank = field.isBlankAbsent === true && typeof value === "string" && value.trim() === ""
      const meant = value === null || isBlank ? field.ofNull ?? null : value
      if (meant !== null || field.isNeeded) given[member] = yield* fromJson(member, field, meant)
    }
    return given
  })

/** Converts a text to the form of its member. */
const fromText = (
  member: string,
  { form }: Field<unknown>,
  text: string,
  noun: "parameter" | "field"
): Result.Result<Written, OperatorError> => {
  switch (form) {
    case "text":
    case "code":
      return Result.succeed(text)
    case "integer": {
      const value = readWhole(text)
      return value === undefined ? wrong(`The ${noun} ${member} must be an integer.`) : Result.succeed(value)
    }
    case "boolean": {
      const word = text.trim()
      return word === "true" || word === "false"
        ? Result.succeed(word === "true")
        : Result.fail(new UnknownWord({ name: member, word: word.slice(0, 64), known: ["true", "false"] }))
    }
    case "texts":
      return Result.succeed(text.split(/[\r\n]+/).map((line) => line.trim()).filter((line) => line !== ""))
  }
}

/** The highest number of members in a request. No act has so many. */
const mostMembers = 64

/**
 * Returns the members of a query or of a form. A blank value counts as absent, because a form sends every field.
 * `passed` lists names that belong to the page, not to the act.
 */
export const membersOfTexts = (
  fields: Fields,
  texts: URLSearchParams,
  noun: "parameter" | "field",
  passed: ReadonlyArray<string> = []
): Result.Result<GivenMembers, OperatorError> => {
  if (texts.size > mostMembers) {
    return wrong(`A ${noun === "field" ? "form" : "query"} takes ${mostMembers} ${noun}s at most.`)
  }
  const given: { [member: string]: Written } = {}
  for (const [member, text] of texts) {
    const field = Object.hasOwn(fields, member) ? fields[member] : undefined
    if (text.trim() === "" || passed.includes(member)) continue
    const fit = storable({ [member]: text }, "parameter")
    if (Result.isFailure(fit)) return Result.fail(fit.failure)
    if (field === undefined) return wrong(`The ${noun} ${nameOf([member])} is unknown.`)
    if (Object.hasOwn(given, member)) return wrong(`The ${noun} ${nameOf([member])} was given twice.`)
    const value = fromText(member, field, text, noun)
    if (Result.isFailure(value)) return Result.fail(value.failure)
    given[member] = value.success
  }
  return Result.succeed(given)
}
