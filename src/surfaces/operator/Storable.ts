import * as Result from "effect/Result"
import type { OperatorError } from "../../domain/OperatorError.ts"
import { BadRequest } from "../../domain/OperatorError.ts"
import { pathText } from "../../engine/JsonForm.ts"
import { isStorable } from "./gate/OperatorBody.ts"

/** Returns the name of a member, for a sentence. */
export const nameOf = (path: ReadonlyArray<PropertyKey>): string => pathText(path).slice(0, 128)

/** Returns the path to a text that not every database can store, if the value contains such a text. */
const unstorable = (value: unknown, path: ReadonlyArray<PropertyKey>): ReadonlyArray<PropertyKey> | undefined => {
  if (typeof value === "string") return isStorable(value) ? undefined : path
  if (typeof value !== "object" || value === null) return undefined
  for (const [name, member] of Object.entries(value)) {
    const found = unstorable(name, path) ?? unstorable(member, [...path, Array.isArray(value) ? Number(name) : name])
    if (found !== undefined) return found
  }
  return undefined
}

/** Refuses a body or a query with a text that not every database can store. */
export const storable = (value: unknown, noun: "member" | "parameter"): Result.Result<unknown, OperatorError> => {
  const path = unstorable(value, [])
  if (path === undefined) return Result.succeed(value)
  const whole = noun === "member" ? "The body" : "The query"
  const what = path.length === 0 ? whole : `The ${noun} ${nameOf(path)}`
  return Result.fail(new BadRequest({ detail: `${what} contains a character that cannot be stored.` }))
}
