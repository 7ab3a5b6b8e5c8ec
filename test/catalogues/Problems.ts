import * as Jose from "../../src/crypto/jose/JoseRefused.ts"
import type { AcmeError } from "../../src/domain/AcmeError.ts"
import * as Acme from "../../src/domain/AcmeError.ts"
import { limitedThings } from "../../src/domain/Limit.ts"
import { problemOf, problemType, retryAfter } from "../../src/domain/Problem.ts"
import { recordsOf } from "../../src/domain/ProblemRecords.ts"
import { codeMeanings } from "../../src/domain/words/meanings/CodeMeanings.ts"
import { problemMeanings } from "../../src/domain/words/meanings/ProblemMeanings.ts"
import * as Http from "../../src/engine/http/HttpRefused.ts"
import { recordText, renderCauses, renderOperatorRecords } from "./Causes.ts"
import { tableOf } from "./Markdown.ts"
import { renderMeanings } from "./Meanings.ts"

/** Stands for a sentence that is written where the failure is made. */
const ownWords = "…"

const identifier = { type: "dns", value: "www.example.org" }

/** Example members of failures. */
const example = {
  detail: ownWords,
  allow: "GET, HEAD",
  terms: "https://acme.example.org/terms",
  identifier,
  parts: [
    new Acme.UnsupportedIdentifier({ identifier }),
    new Acme.RejectedIdentifier({ identifier, detail: ownWords })
  ],
  retryAfter: 60,
  again: 1_767_225_600,
  since: 1_767_225_600,
  limit: "accounts_per_network",
  most: 10,
  name: identifier.value,
  port: 80,
  answers: 2,
  accountId: "",
  code: 7,
  algorithms: ["ES256", "RS256"],
  profile: "tlsserver",
  kind: "mutual",
  offered: [] as ReadonlyArray<string>,
  index: 0,
  status: "pending"
}

/** Further examples of the failures that have several sentences. */
const others: { readonly [tag: string]: ReadonlyArray<object> } = {
  RateLimited: Object.keys(limitedThings).slice(1).map((limit) => ({ limit })),
  TxtMismatched: [{ answers: 0 }],
  InvalidProfile: [{ offered: ["default"] }, { offered: ["default", "mutual"] }]
}

type FailureClass = new(given: object) => AcmeError

/** The classes of all failures by their tags, in the order of their declaration. */
const classes = Object.entries({ ...Acme, ...Http, ...Jose } as { readonly [name: string]: unknown }).filter(
  (entry): entry is [string, FailureClass] => typeof entry[1] === "function" && entry[1].prototype instanceof Error
).toSorted(([one], [other]) => one < other ? -1 : 1)

/**
 * Returns the log records of a failure, or only the events if the failure has several causes, for which there is a
 * separate table.
 */
const recordsText = ({ _tag }: AcmeError): string => {
  const records = recordsOf(_tag)
  const hasCauses = records.some(({ cause }) => cause !== undefined)
  return [...new Set(records.map((record) => hasCauses ? record.event : recordText(record)))].join(", ")
}

/**
 * Returns the Retry-After of a failure. A time that the failure carries differs between the two examples, and a fixed
 * time is the same in both.
 */
const retryOf = (one: AcmeError, other: AcmeError): string => {
  const seconds = retryAfter(one)
  if (seconds === undefined) return ""
  return seconds === retryAfter(other) ? `${seconds} s` : "differs"
}

const rowsOf = ([tag, Failure]: [string, FailureClass]): ReadonlyArray<ReadonlyArray<string>> => {
  const failures = [example, ...(others[tag] ?? []).map((more) => ({ ...example, ...more }))].map((given) =>
    new Failure(given)
  )
  return failures.map((failure) => {
    const { detail, status, type: _, ...more } = problemOf(failure)
    return [
      tag,
      problemType(failure) === "none" ? "" : problemType(failure),
      String(status),
      retryOf(failure, new Failure({ ...example, retryAfter: 61 })),
      Object.keys(more).join(", "),
      detail,
      recordsText(failure)
    ]
  })
}

/**
 * Returns the catalogue of `docs/reference/errors.md`: every problem document that a client can get as an answer or
 * find in an order or a challenge, the causes, and what each type and each code means.
 */
export const renderProblems = (): string =>
  [
    tableOf(
      ["Failure", "Type", "Status", "Retry-After", "Further members", "Sentence", "Record"],
      classes.flatMap(rowsOf)
    ),
    "## Causes",
    "Some failures have several causes. The record in the last column says which cause it was. If a cause has a text after a\ncolon, operators read this text on the page of the order.",
    renderCauses(classes.map(([, Failure]) => new Failure(example))),
    "## Refusals of operators",
    "The log records these refusals of the API, of the panel and of sign-ins. If an answer does not say the cause, only the\nlog does.",
    renderOperatorRecords(),
    "## Types of problems",
    "`acme-svc explain TYPE` prints the row of a type, with its status and the log events that say more.",
    renderMeanings("Type", problemMeanings),
    "## Codes of the API",
    "`acme-svc explain CODE` prints the row of a code.",
    renderMeanings("Code", codeMeanings)
  ].join("\n\n")
