import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { repository } from "../support/Documents.ts"
import { alertRules, familiesIn } from "./AlertRules.ts"
import { crossings } from "./Crossings.ts"
import { Recording } from "./Recording.ts"

/* Tests the alerts, their pages and the recordings. promtool tests whether the alerts fire (`npm run alerts`). */

interface Recorded {
  readonly tests: ReadonlyArray<{
    readonly input_series: ReadonlyArray<{ readonly series: string; readonly values: string }>
    readonly alert_rule_test: ReadonlyArray<{
      readonly eval_time: string
      readonly alertname: string
      readonly exp_alerts: ReadonlyArray<{
        readonly exp_labels: Readonly<Record<string, string>>
        readonly exp_annotations: Readonly<Record<string, string>>
      }>
    }>
  }>
}

/** The incidents that must have an alert, a page and a recording. */
const incidents = [
  "disk-full",
  "database-away",
  "no-worker",
  "upstream-away",
  "script-hangs",
  "job-cannot-be-ended",
  "client-loops",
  "revoke-by-serial",
  "second-factor-lost",
  "restore",
  "ca-ends",
  "ca-compromised",
  "process-gone"
]

const folder = "docs/operate/runbooks"
const text = (file: string): string => readFileSync(join(repository, file), "utf8")
const pages = readdirSync(join(repository, folder)).filter((name) => name !== "README.md")
const pageOf = (incident: string): string => `${folder}/${incident}.md`
const recordings = new URL("recorded/", import.meta.url)
const recordingOf = (incident: string): Recorded["tests"][number] => {
  const { tests: [test, ...others] } = parse(readFileSync(new URL(`${incident}.yml`, recordings), "utf8")) as Recorded
  assert.lengthOf(others, 0)
  return test ?? assert.fail(`${incident} has no test`)
}

describe("the alerts", () => {
  it.each(alertRules)(
    "contain $alert, which links to a page that names the alert",
    ({ alert, annotations, expr, labels }) => {
      assert.match(annotations.summary, /^(?:[A-Z]|\{\{).+\.$/)
      assert.isTrue(existsSync(join(repository, annotations.runbook)), annotations.runbook)
      const [named = ""] = /^\*\*Alert:\*\* .*$/m.exec(text(annotations.runbook)) ?? []
      assert.include(named, `\`${alert}\``)
      assert.include(["info", "warning", "critical"], labels["severity"])
      // For a label that the expression drops, Prometheus writes nothing.
      for (const [, label = ""] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
        const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(", ") ??
          (expr.startsWith("up{") ? ["instance", "job"] : [])
        assert.include(kept, label, expr)
      }
    }
  )

  it("have unique names", () => {
    assert.strictEqual(new Set(alertRules.map(({ alert }) => alert)).size, alertRules.length)
  })

  it.each(pages)(`link to ${folder}/%s exactly if that page names them`, (page) => {
    const [named = ""] = /^\*\*Alert:\*\* .*$/m.exec(text(`${folder}/${page}`)) ?? []
    const named_by = alertRules.filter(({ annotations }) => annotations.runbook === `${folder}/${page}`)
    assert.sameMembers([...named.matchAll(/`(\w+)`/g)].map(([, alert]) => alert), named_by.map(({ alert }) => alert))
    assert.isNotEmpty(named_by)
    const [row = ""] = text(`${folder}/README.md`).split("\n").filter((line) => line.includes(`](${page})`))
    for (const { alert } of named_by) assert.include(row, `\`${alert}\``)
    const headings = [...text(`${folder}/${page}`).matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)
    assert.deepStrictEqual(headings, ["What you see", "What it means", "Look", "End it", "It is over when"])
  })
})

describe("the recordings", () => {
  it("exist for every incident", () => {
    assert.sameMembers(readdirSync(recordings), incidents.map((incident) => `${incident}.yml`))
  })

  it.each(incidents)("trigger for %s an alert only during the incident", (incident) => {
    const expected = recordingOf(incident).alert_rule_test
    const fired = expected.flatMap(({ exp_alerts }) => exp_alerts)
    assert.include(fired.map(({ exp_annotations }) => exp_annotations["runbook"]), pageOf(incident))
    const moments = [...new Set(expected.map(({ eval_time }) => eval_time))]
    assert.isAtLeast(moments.length, 3)
    for (const moment of moments) {
      const of = expected.filter(({ eval_time }) => eval_time === moment)
      // An alert that is not listed here could fire without being noticed.
      assert.sameMembers(of.map(({ alertname }) => alertname), alertRules.map(({ alert }) => alert), moment)
      const isEdge = moment === moments[0] || moment === moments.at(-1)
      const firing = of.filter(({ exp_alerts }) => exp_alerts.length > 0)
      assert.strictEqual(firing.length > 0, !isEdge, moment)
    }
  })

  it.each(incidents)("have for %s only the series that the rules use", (incident) => {
    const asked = new Set(alertRules.flatMap(({ expr }) => familiesIn(expr)))
    for (const { series } of recordingOf(incident).input_series) {
      const [name = ""] = series.split("{")
      assert.isTrue(name === "up" || asked.has(name), series)
      assert.notMatch(series, /[0-9a-f]{32}|127\.0\.0\.1|\/tmp/)
    }
  })

  it("trigger every alert except those that invented series trigger", () => {
    const recorded = incidents.flatMap((incident) => recordingOf(incident).alert_rule_test).filter(({ exp_alerts }) =>
      exp_alerts.length > 0
    )
    const fired = [...new Set(recorded.map(({ alertname }) => alertname)), ...Object.keys(crossings)]
    assert.sameMembers(fired, alertRules.map(({ alert }) => alert))
  })

  it("use the notation of promtool, with the beginning and the end of each series", () => {
    const recording = new Recording()
    const samples: ReadonlyArray<ReadonlyArray<number | undefined>> = [
      [undefined, 1],
      [undefined, 1],
      [4, 1],
      [4, 3],
      [4, 5],
      [5, 7],
      [undefined, 0],
      [undefined, 4],
      [undefined, 1],
      [7, undefined]
    ]
    for (const [one, other] of samples) {
      const found = Object.entries({ "one{}": one, "other{}": other })
      recording.add(new Map(found.flatMap(([name, value]) => value === undefined ? [] : [[name, value] as const])))
    }
    recording.expect("ends", {})
    const { tests: [test] } = parse(recording.text("x", "rules.yml")) as Recorded
    assert.deepStrictEqual(test?.input_series, [
      { series: "one{}", values: "_x2 4+0x2 5 stale _x2 7" },
      { series: "other{}", values: "1+0x2 3+2x2 0 4 1 stale" }
    ])
    assert.throws(() => recording.expect("fires", { NoSuchAlert: [{}] }), /NoSuchAlert/)
  })
})
