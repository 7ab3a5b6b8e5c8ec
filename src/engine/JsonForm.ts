import type * as SchemaAST from "effect/SchemaAST"

/* Describes JSON that does not fit a schema: the form that is required, and the place of a member. */

/** The JSON form that a schema requires, for a sentence: `a text`, `an array`. Of a union it is that of the first type. */
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

/** The place of a member as people write it: `items[1].value`. */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((step, at) => typeof step === "number" ? `[${step}]` : at === 0 ? String(step) : `.${String(step)}`).join("")
