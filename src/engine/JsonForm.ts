import type * as SchemaAST from "effect/SchemaAST"

/* Describes why JSON does not fit a schema: the required form, and the place of the member. */

/**
 * Returns the JSON form that a schema requires, in words for a sentence: `a text`, `an array`. For a union, this is the
 * form of its first type.
 */
export const formOf = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "String":
      return "a text"
    case "Number":
      return "a number"
    case "Boolean":
      return "true or false"
    case "Arrays":
      return "an array"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Union":
      return ast.types[0] === undefined ? "something else" : formOf(ast.types[0])
    default:
      return "an object"
  }
}

/** Returns the place of a member in the usual notation: `items[1].value`. */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((step, at) => typeof step === "number" ? `[${step}]` : at === 0 ? String(step) : `.${String(step)}`).join("")
