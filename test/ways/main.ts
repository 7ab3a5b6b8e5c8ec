import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { endWith } from "../interop/Closing.ts"
import { runCommand } from "../interop/Command.ts"
import { install } from "../interop/Packages.ts"
import { cloneInto, environment } from "./Clone.ts"
import { commandsBelow } from "./Page.ts"
import type { Gone, Way } from "./Way.ts"
import { ways } from "./Ways.ts"

/*
 * `npm run ways` goes the ways of a newcomer through the documents: it clones the last commit, runs the commands of the
 * pages, and counts steps and seconds. Each way has a network of its own, in which nothing else listens at the ports of
 * the documents. See docs/contribute/ways.md.
 */

const usage = `Usage: npm run ways -- [options]

  --only WAY  go only the ways whose names contain this; may be repeated
  --json      print each way with its steps as JSON
  --help

The ways: ${ways.map(({ name }) => name).join(", ")}.
`

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const spaces = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]

/** Makes the loopback of the new network usable, and runs a program there. */
const script = "ip link set lo up && exec \"$0\" \"$@\""

/** Goes a way in a network, processes and mounts of its own. */
const gone = async ({ name }: Way, clone: string, scratch: string): Promise<Gone> => {
  mkdirSync(scratch)
  const program = [process.execPath, join(import.meta.dirname, "apart.ts"), name, clone, scratch]
  const env = Object.fromEntries(Object.entries(process.env).map(([key, value]) => [key, value ?? ""]))
  const said = await runCommand("unshare", [...spaces, "sh", "-euc", script, ...program], { env, timeoutMs: 900_000 })
  const [line = ""] = said.split("\n").filter((one) => one.startsWith("{\"way\""))
  return JSON.parse(line)
}

const columns: ReadonlyArray<readonly [heading: string, cell: (one: Gone, way: Way | undefined) => string]> = [
  ["way", ({ way }) => way],
  ["before", (_, way) => way?.before ?? ""],
  ["now", ({ steps }) => `${steps.length} steps`],
  ["seconds", ({ seconds }) => seconds.toFixed(1)],
  ["last line", ({ last }) => last]
]

/** Returns the table of the ways, in Markdown. */
const tableOf = (all: ReadonlyArray<Gone>): string => {
  const rows = [
    columns.map(([heading]) => heading),
    ...all.map((one) => columns.map(([, cell]) => cell(one, ways.find(({ name }) => name === one.way))))
  ]
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  const [head = "", ...rest] = rows.map((row) =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`
  )
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rest].join("\n")
}

const go = async (chosen: ReadonlyArray<Way>, directory: string): Promise<ReadonlyArray<Gone>> => {
  const clone = join(directory, "clone")
  await cloneInto(clone)
  const begun = performance.now()
  const [line = ""] = commandsBelow("docs/start/ten-minutes.md", "Start it")
  await runCommand("sh", ["-c", line], { cwd: clone, env: environment(clone, directory), timeoutMs: 600_000 })
  const installed = (performance.now() - begun) / 1000
  const all: Array<Gone> = []
  for (const [number, way] of chosen.entries()) {
    const one = await gone(way, clone, join(directory, `${number}`))
    all.push({ ...one, seconds: one.seconds + (way.beginsWithClone === true ? installed : 0) })
  }
  return all
}

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const { values: { help, json, only } } = parseArgs({
    args: [...words],
    options: {
      only: { type: "string", multiple: true, default: [] },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  })
  if (help) {
    process.stdout.write(usage)
    return true
  }
  const chosen = ways.filter(({ name }) => only.length === 0 || only.some((part) => name.includes(part)))
  await install(["git", "ip", ...chosen.flatMap(({ commands }) => commands)], say)
  const directory = mkdtempSync(join(tmpdir(), "acme-ways-"))
  try {
    const all = await go(chosen, directory)
    const failed = all.filter(({ error }) => error !== undefined)
    if (json) say(JSON.stringify(all, undefined, 2))
    else {
      say(`${tableOf(all)}\n`)
      for (const { error, way } of failed) say(`FAILED ${way}: ${error}\n`)
      say(`${all.length - failed.length} passed, ${failed.length} failed`)
    }
    return failed.length === 0 && all.length > 0
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

await endWith(main(process.argv.slice(2)))
