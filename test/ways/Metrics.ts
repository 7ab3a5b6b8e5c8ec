import { readFileSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { alertRules } from "../alerts/AlertRules.ts"
import { runCommand, startForeground } from "../interop/Command.ts"
import { composeFaults, readCompose } from "../packages/Compose.ts"
import { cleared, onTerminalIn, started, typedIn } from "./Clone.ts"
import { blockOf, commandsBelow, onlyOf, shownCommands } from "./Page.ts"
import type { Way } from "./Way.ts"
import { expects } from "./Way.ts"

const page = "docs/operate/monitor.md"
const prometheusUrl = "http://127.0.0.1:9090"

/** An answer of the API of Prometheus. */
const asked = async (path: string): Promise<Record<string, unknown>> => {
  const answer = await fetch(`${prometheusUrl}${path}`)
  const body: Record<string, unknown> = JSON.parse(await answer.text())
  expects(answer.ok && body["status"] === "success", `${path}: ${JSON.stringify(body)}`)
  return body
}

/** Asks again until an answer is right, because Prometheus scrapes and judges by its own clock. */
const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
  for (let looks = 0; looks < 600; looks++) {
    if (await isSo()) return
    await delay(100)
  }
  throw new Error(`${what} is not so after a minute`)
}

interface Dashboard {
  readonly panels: ReadonlyArray<{ readonly targets: ReadonlyArray<{ readonly expr: string }> }>
}

const queriesOf = (file: string): ReadonlyArray<string> =>
  (JSON.parse(readFileSync(file, "utf8")) as Dashboard).panels.flatMap(({ targets }) => targets).map(({ expr }) =>
    expr.replaceAll("$profile", ".*").replaceAll("$__range", "5m").replaceAll("$__rate_interval", "1m")
  )

/**
 * From a service in a clone to its metrics in Grafana. The images of the compose file are not there, so the file is
 * checked by the schema of compose, and Debian's Prometheus runs with the files that the containers would have.
 */
export const metricsInGrafana: Way = {
  name: "metrics in Grafana",
  before: "5 steps, no words for the import",
  page,
  commands: ["prometheus", "promtool"],
  go: async (steps, { clone, scratch }) => {
    cleared(clone)
    await typedIn(clone, scratch, "acme-svc init")
    const config = join(clone, "config.toml")
    writeFileSync(config, `${readFileSync(config, "utf8")}\n${blockOf(page, "toml", "[metrics]")}`)
    steps.done("config.toml is edited")
    const begin = commandsBelow("docs/start/ten-minutes.md", "Start it").at(-1) ?? ""
    const serving = onTerminalIn(clone, scratch, steps.typed(begin))
    try {
      await serving.shown(started)
      const up = steps.typed(onlyOf(shownCommands(page), page, "docker compose "))
      const [, file = ""] = /--file (\S+)/.exec(up) ?? []
      const compose = readCompose(join(clone, file))
      const faults = composeFaults(compose)
      expects(faults === "", `${file}: ${faults}`)
      const mounted = new Map<string, string>()
      for (const volume of Object.values(compose.services).flatMap(({ volumes = [] }) => volumes)) {
        const [from = "", to = ""] = volume.split(":")
        if (from.startsWith(".")) mounted.set(to, resolve(clone, dirname(file), from))
      }
      const rules = mounted.get("/etc/prometheus") ?? ""
      await runCommand("promtool", ["check", "config", join(rules, "prometheus.yml")])
      const prometheus = await startForeground("prometheus", [
        `--config.file=${join(rules, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(scratch, "prometheus")}`,
        `--web.listen-address=${new URL(prometheusUrl).host}`
      ], { ready: /Server is ready to receive web requests/ })
      try {
        await until("the scrape of the service", async () => {
          const { data } = await asked(`/api/v1/query?query=${encodeURIComponent("up{job=\"acme-svc\"} == 1")}`)
          return JSON.stringify(data).includes("\"acme-svc\"")
        })
        const queries = queriesOf(mounted.get("/etc/grafana/dashboards/acme-svc.json") ?? "")
        for (const query of queries) await asked(`/api/v1/query?query=${encodeURIComponent(query)}`)
        await until("the judgement of every alert", async () => {
          const { data } = await asked("/api/v1/rules?type=alert")
          const { groups } = data as {
            readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<{ readonly health: string }> }>
          }
          const healths = groups.flatMap((group) => group.rules).map(({ health }) => health)
          expects(!healths.includes("err"), JSON.stringify(groups))
          return healths.length === alertRules.length && healths.every((health) => health === "ok")
        })
        steps.done("Grafana is opened")
        steps.said(`up, ${queries.length} queries of the dashboard and ${alertRules.length} alerts answered`)
      } finally {
        await prometheus.stop()
      }
    } finally {
      await serving.interrupt()
    }
  }
}
