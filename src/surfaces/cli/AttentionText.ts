import { escaped } from "./Escaped.ts"
import { Rendered } from "./Rendered.ts"
import { timeShown } from "./Text.ts"

/** What needs attention, in the form of the API. */
interface Shown {
  readonly items: ReadonlyArray<{
    readonly severity: "alarm" | "warning"
    readonly title: string
    readonly effect: string
    readonly since?: string
    readonly error?: string
    readonly command: string
    readonly runbook: string
  }>
  readonly unread: ReadonlyArray<string>
  readonly asOf: string
}

/** Renders what needs attention: a paragraph for each concern, or one sentence if there is none. */
export const renderAttention = ({ items, unread }: Shown): Rendered =>
  new Rendered((view) => {
    const paragraphs = items.map(({ command, effect, error, runbook, severity, since, title }) =>
      [
        `${view.paint(severity === "alarm" ? "red" : "yellow", severity.toUpperCase())}  ${
          view.paint("bold", escaped(title))
        }`,
        `  ${escaped(effect)}`,
        ...since === undefined ? [] : [`  since    ${timeShown(view, since)}`],
        ...error === undefined ? [] : [`  error    ${escaped(error)}`],
        `  command  ${view.paint("cyan", command)}`,
        `  runbook  docs/operate/runbooks/${runbook}.md`
      ].join("\n")
    )
    const missing = unread.length === 0
      ? []
      : [view.paint("yellow", `Not read in time: ${unread.join(", ")}. There may be more.`)]
    const well = items.length === 0 && unread.length === 0 ? [view.paint("green", "All is well.")] : []
    return [...paragraphs, ...missing, ...well].join("\n\n")
  })
