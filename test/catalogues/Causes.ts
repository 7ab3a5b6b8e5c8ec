import type { AcmeError } from "../../src/domain/AcmeError.ts"
import { explainEnd } from "../../src/domain/Explanation.ts"
import { operatorProblemOf } from "../../src/domain/OperatorProblem.ts"
import { problemOf } from "../../src/domain/Problem.ts"
import type { CauseRecord } from "../../src/domain/ProblemRecords.ts"
import { operatorRecords, recordsOf } from "../../src/domain/ProblemRecords.ts"
import { events } from "../../src/domain/words/Log.ts"
import { tableOf } from "./Markdown.ts"

/**
 * Returns a log record in the form `nonce_rejected (debug; reason=expired)`, with the level if the default filter
 * leaves the record out.
 */
export const recordText = ({ by, event }: Pick<CauseRecord, "by" | "event">): string => {
  const { level } = events[event]
  const more = [...level === "debug" ? ["debug"] : [], ...by === undefined ? [] : [by]].join("; ")
  return more === "" ? event : `${event} (${more})`
}

/** Returns a cause in the words of the panel, if the panel has words for it. */
const causeText = (failure: AcmeError, cause: string): string => {
  const error = problemOf(failure)
  const known = { orderError: error, requestId: undefined }
  const of = failure._tag === "IssuanceAbandoned"
    ? explainEnd({ ...known, challengeFailures: [], cause })
    : explainEnd({ ...known, challengeFailures: [{ error, cause: { reason: cause, detail: "" } }], cause: undefined })
  return /^[a-z_\d]+$/.test(cause) ? `${cause}: ${of?.summary}` : cause
}

/** Returns the causes of the failures that have several causes. */
export const renderCauses = (failures: ReadonlyArray<AcmeError>): string =>
  tableOf(
    ["Failure", "Cause", "Record"],
    failures.flatMap((failure) =>
      recordsOf(failure._tag).flatMap((record) =>
        record.cause === undefined
          ? []
          : [[failure._tag, causeText(failure, record.cause), recordText(record)]]
      )
    )
  )

/** An example of an operator error of which only the tag is known. */
const example = { retryAfter: 60, detail: "…", panel: "https://acme.example.org/ui/", noun: "order", id: "…", count: 1 }

/** Returns the refusals of requests of operators that have a log record. */
export const renderOperatorRecords = (): string =>
  tableOf(
    ["Refusal", "Code", "Sentence", "Cause", "Record"],
    Object.entries(operatorRecords).flatMap(([tag, records]) => {
      const { code, message } = operatorProblemOf({ _tag: tag, ...example } as never)
      return records.map((record) => [tag, code, message, record.cause ?? "", recordText(record)])
    })
  )
