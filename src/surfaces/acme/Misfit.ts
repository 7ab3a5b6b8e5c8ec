import type { ParseResult, SchemaAST } from "effect"

/** The JSON form that a schema requires. */
const wanted = (ast: SchemaAST.AST): string => {
  switch (ast._tag) {
    case "StringKeyword":
      return "a text"
    case "NumberKeyword":
      return "a number"
    case "BooleanKeyword":
      return "true or false"
    case "TupleType":
      return "an array"
    case "Literal":
      return JSON.stringify(ast.literal)
    case "Refinement":
    case "Transformation":
      return wanted(ast.from)
    case "Union":
      return ast.types[0] === undefined ? "something else" : wanted(ast.types[0])
    default:
      return "an object"
  }
}

const written = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((step, at) => typeof step === "number" ? `[${step}]` : at === 0 ? String(step) : `.${String(step)}`).join("")

/**
 * Describes the fault of the first member of a payload that does not fit its schema. It names the member and the
 * required form, and never quotes the request.
 */
export const misfit = (
  issue: ParseResult.ParseIssue,
  path: ReadonlyArray<PropertyKey> = []
): string => {
  const told = (fault: string) => path.length === 0 ? `The payload ${fault}.` : `The member ${written(path)} ${fault}.`
  switch (issue._tag) {
    case "Pointer":
      return misfit(issue.issue, [...path, ...[issue.path].flat()])
    case "Composite": {
      const [first] = [issue.issues].flat()
      return first === undefined ? told("has another form than expected") : misfit(first, path)
    }
    case "Refinement":
    case "Transformation":
      return misfit(issue.issue, path)
    case "Missing":
      return told("is missing")
    case "Type":
      return told(issue.message === undefined ? `must be ${wanted(issue.ast)}` : `is ${issue.message}`)
    default:
      return told("is not allowed")
  }
}
