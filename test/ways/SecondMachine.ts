import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parse, stringify } from "smol-toml"
import { addresses, doIn, layWire } from "../interop/guides/Machine.ts"
import { startNameServer } from "../interop/guides/Site.ts"
import { cleared, onTerminalIn, started, typedIn } from "./Clone.ts"
import { blockOf, commandBelow, onlyOf, shownCommands } from "./Page.ts"
import type { Way } from "./Way.ts"
import { expects } from "./Way.ts"

const page = "docs/start/second-machine.md"

type Table = Record<string, unknown>
const isTable = (value: unknown): value is Table => typeof value === "object" && value !== null && !Array.isArray(value)

/** Sets the keys of one configuration in another. */
const merged = (under: Table, over: Table): Table => {
  const entries = Object.entries(over).map(([key, value]) => {
    const before = under[key]
    return [key, isTable(before) && isTable(value) ? merged(before, value) : value] as const
  })
  return { ...under, ...Object.fromEntries(entries) }
}

/** Edits the configuration as the page says: deletes the lines of the first ten minutes, and sets its keys. */
const opened = (before: string): string => {
  const config = parse(before)
  const { challenge } = config
  if (!isTable(challenge)) throw new Error("the first configuration has no section [challenge]")
  const { allow_loopback: _, http_01: __, ...rest } = challenge
  return stringify(merged({ ...config, challenge: rest }, parse(blockOf(page, "toml", "base_url"))))
}

/** Returns the indented lines of an output that follow a line, up to the next line that is not indented. */
const pastedAfter = (output: string, before: string): string => {
  const [, below = ""] = output.split(before)
  const lines = below.split("\n").filter((line) => line !== "")
  const first = lines.findIndex((line) => line.startsWith("  ") && !/^ {2}[A-Z]/.test(line))
  const after = lines.slice(first)
  const end = after.findIndex((line) => !line.startsWith("  "))
  return after.slice(0, end === -1 ? undefined : end).map((line) => line.trim()).join("\n")
}

/** From a service that answers only its own machine to a certificate on another machine. */
export const secondMachine: Way = {
  name: "to a certificate on a second machine",
  before: "7 steps",
  page,
  commands: ["ip", "lego", "named", "curl", "openssl", "update-ca-certificates"],
  go: async (steps, { clone, scratch }) => {
    cleared(clone)
    await typedIn(clone, scratch, "acme-svc init")
    await layWire()
    const named = await startNameServer(join(scratch, "named"))
    const config = join(clone, "config.toml")
    writeFileSync(config, opened(readFileSync(config, "utf8")))
    steps.done("config.toml is edited")
    // The resolver of the machine knows the other machine.
    const variables = { ACME_SVC_DNS__RESOLVER: addresses.nameServer }
    const serving = onTerminalIn(clone, scratch, steps.typed("npm start"), variables)
    try {
      await serving.shown(started)
      const printed = await typedIn(
        clone,
        scratch,
        steps.typed(commandBelow(page, "2. Print what to paste", "acme-svc guide"))
      )
      const trust = steps.typed(pastedAfter(printed, "1. Trust the CA"))
      const ask = steps.typed(pastedAfter(printed, "2. Ask for a certificate"))
      expects(
        ask === onlyOf(shownCommands(page), page, "lego "),
        `the guide prints ${ask}, and the page has another line`
      )
      const machine = await doIn({ directory: mkdtempSync("/run/machines-") }, [
        { kind: "shell", body: trust },
        { kind: "shell", body: ask },
        { kind: "shell", body: "openssl verify .lego/certificates/host.example.org.crt" }
      ])
      steps.said(machine.said)
      expects(machine.said.includes("host.example.org.crt: OK"), machine.said)
    } finally {
      await serving.interrupt()
      await named.stop()
    }
  }
}
