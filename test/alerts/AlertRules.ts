import { readFileSync } from "node:fs"
import { parse } from "yaml"

/** The rules for Prometheus that come with the service. */
export const rulesFile = new URL("../../deploy/prometheus/alerts.yml", import.meta.url)

/** A rule of {@link rulesFile}. */
export interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<"summary" | "runbook", string>>
}

/** Every alert. */
export const alertRules: ReadonlyArray<AlertRule> = (parse(readFileSync(rulesFile, "utf8")) as {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<AlertRule> }>
})
  .groups.flatMap(({ rules }) => rules)

/** Returns the families of metrics that an expression uses. */
export const familiesIn = (expr: string): ReadonlyArray<string> => expr.match(/\bacme_svc_\w+/g) ?? []

/** Returns an annotation in the form that Prometheus writes for these labels. */
export const rendered = (template: string, labels: Readonly<Record<string, string>>): string =>
  template.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? "")
