import * as Effect from "effect/Effect"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as SchemaIssue from "effect/SchemaIssue"

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

const placesOf = (issue: SchemaIssue.Issue): string =>
  formatIssues(issue).issues.map(({ path = [] }) => path.map(String).join(".")).join(", ")

/**
 * Requests are decoded before they come to the declaration. So if the platform reports that something does not fit it,
 * that is an answer of ours. It is a defect: the client is told of an internal error, and the log names the place.
 */
export class Fitting extends HttpApiMiddleware.Service<Fitting>()("acme/surfaces/api/Fitting") {
  static readonly layer = HttpApiMiddleware.layerSchemaErrorTransform(
    this,
    ({ cause }) => Effect.die(new Error(`an answer does not fit its declaration at ${placesOf(cause.issue)}`))
  )
}
