import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { inspect } from "node:util"
import { endWith } from "../interop/Closing.ts"
import { install } from "../interop/Packages.ts"
import { inParallel } from "../support/InParallel.ts"
import { rulesFile } from "./AlertRules.ts"
import { crossingsText } from "./Crossings.ts"
import type { Incident } from "./Incident.ts"
import { keys } from "./Keys.ts"
import { machines } from "./Machines.ts"
import { Scene } from "./Scene.ts"
import { signings } from "./Signings.ts"

/*
 * `npm run alerts` runs promtool, which checks the alerts and whether they fire when they should. The data comes from
 * the recordings of incidents. Alerts that fire in no incident are tested with invented series. `--record` first plays
 * the incidents with the built service and writes their recordings again. With words after `--record`, only incidents
 * whose names contain one of the words are recorded. `npm run incidents` plays them without writing anything, and prints
 * for each incident its alerts, what the service asked attention for, and how long it lasted. See
 * docs/contribute/development.md, "The alerts".
 */

const incidents: ReadonlyArray<Incident> = [...machines, ...signings, ...keys]
const folder = resolve(import.meta.dirname, "recorded")
const rules = "../../../deploy/prometheus/alerts.yml"

/** How many incidents are played at a time, since they mostly wait. */
const width = 2

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** A line of the table of incidents. */
interface Played {
  readonly name: string
  readonly alerts: string
  readonly told: string
  readonly minutes: number
  readonly seconds: number
}

/** Plays an incident. Returns its name if it failed. */
const playing = (write: boolean, table: Array<Played>) => async (incident: Incident): Promise<string | undefined> => {
  const { name, play } = incident
  const begun = performance.now()
  const scene = await Scene.open(incident)
  try {
    await play(scene)
    if (write) writeFileSync(join(folder, `${name}.yml`), scene.recording.text(name, rules))
    const seconds = Math.round((performance.now() - begun) / 1000)
    const { alerts, minutes } = scene.recording.summary
    table.push({ name, alerts: alerts.join(" "), told: scene.told.join(" "), minutes, seconds })
    say(`${name}: ${write ? "recorded" : "played"} in ${seconds} s`)
    return undefined
  } catch (error) {
    say(`FAILED ${name}: ${inspect(error)}`)
    return name
  } finally {
    await scene.close()
  }
}

const columns: ReadonlyArray<readonly [heading: string, cell: (one: Played) => string]> = [
  ["incident", ({ name }) => name],
  ["alerts", ({ alerts }) => alerts],
  ["attention is asked for", ({ told }) => told],
  ["runbook", ({ name }) => `docs/operate/runbooks/${name}.md`],
  ["until all is well", ({ minutes }) => `${minutes} min`],
  ["played in", ({ seconds }) => `${seconds} s`]
]

/** Returns the incidents as a table. The time until all is well is by the clock of the service. */
const tableOf = (played: ReadonlyArray<Played>): string => {
  const rows = [columns.map(([heading]) => heading), ...played.map((one) => columns.map(([, cell]) => cell(one)))]
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ").trimEnd()).join("\n")
}

const promtool = (...words: ReadonlyArray<string>): boolean => {
  const { error, status, stderr, stdout } = spawnSync("promtool", words, { cwd: folder, encoding: "utf8" })
  if (error !== undefined) throw error
  if (status !== 0) say(`FAILED promtool ${words.join(" ")}\n${stdout}${stderr}`)
  return status === 0
}

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const [option, ...named] = words
  if (option !== undefined && option !== "--record" && option !== "--play") {
    throw new Error("npm run alerts [-- --record [WORD …]], or npm run incidents [-- WORD …]")
  }
  const failed: Array<string> = []
  if (option !== undefined) {
    mkdirSync(folder, { recursive: true })
    const chosen = incidents.filter(({ name }) => named.length === 0 || named.some((word) => name.includes(word)))
    const table: Array<Played> = []
    const results = await inParallel(chosen, width, playing(option === "--record", table))
    for (const name of results) if (name !== undefined) failed.push(name)
    say(`\n${tableOf(table)}\n`)
    if (option === "--play") {
      say(`${chosen.length - failed.length} passed, ${failed.length} failed`)
      return failed.length === 0
    }
  }
  try {
    await install(["promtool"], say)
  } catch (error) {
    // If Debian's packages cannot be installed, the recordings are checked on another machine.
    say(`not checked: ${String(error)}`)
    return failed.length === 0
  }
  let passed = 0
  const made = mkdtempSync(join(tmpdir(), "alerts-"))
  const crossed = join(made, "crossings.yml")
  writeFileSync(crossed, crossingsText(rulesFile.pathname))
  const checked = [["check", "rules", rulesFile.pathname], ["test", "rules", crossed]].concat(
    readdirSync(folder).filter((file) => file.endsWith(".yml")).map((file) => ["test", "rules", file])
  )
  for (const one of checked) {
    if (promtool(...one)) passed++
    else failed.push(one.join(" "))
  }
  rmSync(made, { recursive: true })
  const missing = incidents.filter(({ name }) => !existsSync(join(folder, `${name}.yml`)))
  for (const { name } of missing) say(`FAILED ${name}: it was never recorded`)
  say(`${passed} passed, ${failed.length + missing.length} failed`)
  return failed.length + missing.length === 0
}

await endWith(main(process.argv.slice(2)))
