import * as Schema from "effect/Schema"
import type { OperatorCode } from "../../domain/OperatorProblem.ts"
import { operatorCodes, usualCodes } from "../../domain/OperatorProblem.ts"

/*
 * The errors of the API, in the form of the document: `{"error": "<code>", "message": "<sentence>"}`
 * (docs/contribute/decisions/admin.md, "Errors").
 */

const statusOf = (code: OperatorCode): number => operatorCodes.find((row) => row.code === code)?.status ?? 500

const ofStatus = (status: number, codes: ReadonlyArray<OperatorCode>) =>
  Schema.Struct({
    error: Schema.Literals(codes),
    message: Schema.String.annotate({ description: "A sentence for people. It may change." })
  }).annotate({ httpApiStatus: status, description: codes.join(", ") })

/**
 * Returns the schemas of the errors with these codes, one schema for each status. An endpoint lists the schemas of the
 * errors that it may send.
 */
export const refusals = (...codes: ReadonlyArray<OperatorCode>) => {
  const statuses = [...new Set(codes.map(statusOf))]
  return statuses.map((status) => ofStatus(status, codes.filter((code) => statusOf(code) === status)))
}

/** The schemas of the usual codes. */
export const everywhere = refusals(...usualCodes)
