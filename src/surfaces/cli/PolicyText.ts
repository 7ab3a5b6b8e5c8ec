import type { PolicyExplanation } from "../../operations/operator/Explain.ts"
import type { PolicyView } from "../../services/policy/PolicyView.ts"
import { renderDetail } from "./Detail.ts"
import { escaped } from "./Escaped.ts"
import type { Rendered } from "./Rendered.ts"
import { stacked } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

/** Renders the policy of one profile for `filter show`. */
export const renderPolicy = (view: PolicyView): Rendered =>
  stacked([
    renderDetail({ profile: view.profile, active: view.active, default: view.default }),
    renderTable(
      ["check", "type", "stages"],
      view.checks.map(({ name, stages, type }) => [name, type, stages.join(", ")]),
      view.checks.length
    ),
    renderTable(
      ["rule", "when", "then", "mode", "stages"],
      view.rules.map(({ mode, name, stages, then, when }) => [name, when, then, mode, stages.join(", ")]),
      view.rules.length
    ),
    ...view.warnings.map((warning) => `Warning: ${warning}.`)
  ], "\n\n")

type Stage = PolicyExplanation["stages"][number]

const askedLine = ({ check, error, reason, type, verdict }: Stage["asked"][number]): string =>
  `  ${check} (${type}): ${[verdict, reason ?? error].filter((part) => part !== undefined).map(escaped).join(", ")}`

const decisions = { allow: "allowed", deny: "refused" }

/**
 * Returns a line about the result of a stage: either the rule that decided and the client's answer, or why the stage
 * did not run.
 */
const outcomeLine = ({ at, because, detail, outcome, rule, status, type }: Stage): string => {
  if (because !== undefined) return `${at}: ${outcome === "unasked" ? "not asked" : outcome}, since ${because}`
  const by = at === "scope"
    ? "the credential"
    : at === "account"
    ? "the state of the account"
    : rule === undefined
    ? "filter.default"
    : `rule ${rule}`
  const answer = status === undefined ? "" : `, ${status} ${type}`
  return `${at}: ${outcome} by ${by}${answer}${detail === undefined ? "" : `: ${escaped(detail)}`}`
}

const stageLines = (stage: Stage) => [
  outcomeLine(stage),
  ...stage.asked.map(askedLine),
  ...stage.skipped.map(({ because, check, type }) => `  ${check} (${type}): not asked, since ${because}`),
  ...stage.warned.map(({ rule, then }) => `  rule ${rule} only warns, and would have ${decisions[then]}`)
]

const requestLine = (
  { accountId, clientIp, commonNames, identifiers, kind, method, path }: PolicyExplanation["request"]
) =>
  [
    `Request: ${method} ${path} from ${clientIp ?? "an unknown address"}`,
    ...accountId === null ? [] : [`account ${accountId}`],
    ...identifiers.length === 0 ? [] : [`names ${identifiers.join(", ")}`, `kind ${kind}`],
    ...commonNames.length === 0 ? [] : [`common names ${commonNames.map(escaped).join(", ")}`]
  ].join("; ")

/**
 * Renders `filter explain`: every stage, the checks that ran, the checks that did not run, and the scripts and look-ups
 * that ran.
 */
export const renderExplanation = ({ outcome, profile, ran, request, stages }: PolicyExplanation): string => {
  const once = new Set(ran.map(({ check, type }) => `${check} (${type})`))
  return [
    `Profile ${profile}: ${outcome}.`,
    `${requestLine(request)}.`,
    ...stages.flatMap(stageLines),
    once.size === 0
      ? "No script was run and nothing was looked up."
      : `These really ran: ${[...once].join(", ")}.`
  ].join("\n")
}
