import type * as SchemaIssue from "effect/SchemaIssue"
import { formOf, pathText } from "../../engine/JsonForm.ts"

/**
 * Describes the fault of the first member of a payload that does not fit its schema. It names the member and the
 * required form, and never quotes the request.
 */
export const misfit = (
  issue: SchemaIssue.Issue,
  path: ReadonlyArray<PropertyKey> = []
): string => {
  const told = (fault: string) => path.length === 0 ? `The payload ${fault}.` : `The member ${pathText(path)} ${fault}.`
  switch (issue._tag) {
    case "Pointer":
      return misfit(issue.issue, [...path, ...issue.path])
    case "AnyOf":
    case "Composite": {
      const [first] = issue.issues
      return first === undefined ? told("has another form than expected") : misfit(first, path)
    }
    case "Encoding":
    case "Filter":
      return misfit(issue.issue, path)
    case "MissingKey":
      return told("is missing")
    case "InvalidType":
      return told(`must be ${formOf(issue.ast)}`)
    case "InvalidValue":
      return told(`is ${issue.annotations?.message ?? "not allowed"}`)
    default:
      return told("is not allowed")
  }
}
