import type * as ParseResult from "effect/ParseResult"
import { formOf, pathText } from "../../kernel/JsonForm.ts"

/**
 * Describes the fault of the first member of a payload that does not fit its schema. It names the member and the
 * required form, and never quotes the request.
 */
export const misfit = (
  issue: ParseResult.ParseIssue,
  path: ReadonlyArray<PropertyKey> = []
): string => {
  const told = (fault: string) => path.length === 0 ? `The payload ${fault}.` : `The member ${pathText(path)} ${fault}.`
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
      return told(issue.message === undefined ? `must be ${formOf(issue.ast)}` : `is ${issue.message}`)
    default:
      return told("is not allowed")
  }
}
