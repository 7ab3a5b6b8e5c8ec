import type { PolicyExplanation } from "../../operations/Explain.ts"
import type { PolicyView } from "../../services/policy/View.ts"
import { renderDetail } from "./Detail.ts"
import { escaped } from "./Escaped.ts"
import type { Rendered } from "./Rendered.ts"
import { stacked } from "./Rendered.ts"
import { renderTable } from "./TextTable.ts"

/** `filter show`: one profile's policy. */
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

const askedLine = (
  { check, error, reason, type, verdict }: PolicyExplanation["stages"][number]["asked"][number]
): string =>
  `  ${check} (${type}): ${[verdict, reason ?? error].filter((part) => part !== undefined).map(escaped).join(", ")}`

const stageLines = ({ asked, detail, outcome, rule, stage, warned }: PolicyExplanation["stages"][number]) => [
  `${stage}: ${outcome} by ${rule === undefined ? "filter.default" : `rule ${rule}`}${
    detail === undefined ? "" : `: ${detail}`
  }`,
  ...asked.map(askedLine),
  ...warned === undefined ? [] : [`  would have matched: ${warned.join(", ")}`]
]

/** `filter explain`: every stage, the checks that it asked, and the scripts and look-ups that ran. */
export const renderExplanation = ({ outcome, profile, ran, stages }: PolicyExplanation): string =>
  [
    `Profile ${profile}: ${outcome}.`,
    ...stages.length === 0 ? ["No rule applies."] : stages.flatMap(stageLines),
    ran.length === 0
      ? "No script was run and nothing was looked up."
      : `These really ran: ${ran.map(({ check, type }) => `${check} (${type})`).join(", ")}.`
  ].join("\n")
