import { spawn } from "node:child_process"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf } from "../support/Documents.ts"
import { client, gateComesBack } from "../support/Installed.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"
import { watch } from "../support/Watchdog.ts"

/*
 * Runs every command of docs/operate/operators.md and then of docs/reference/api.md, in their order, with one service.
 * Only the port differs from the documents.
 */

const commandsOf = (document: string): ReadonlyArray<string> =>
  bodiesOf(document, "sh").flatMap((body) => body.split("\n")).filter((line) => line !== "")

const [signIn = ""] = bodiesOf("docs/reference/api.md", "json")
const { password } = JSON.parse(signIn) as { readonly password: string }

describe("the documents for operators", () => {
  let server: Server
  let port = 0

  beforeAll(async () => {
    await builtServer()
    port = await freePort()
    const admin = `[admin]\nenabled = true\nbind_address = "127.0.0.1:${port}"\nbase_url = "http://localhost:${port}"\n`
    server = await startServer({ config: admin + minimalConfig })
    writeFileSync(join(server.directory, "password.txt"), `${password}\n`, { mode: 0o600 })
    writeFileSync(join(server.directory, "sign-in.json"), signIn)
  })
  afterAll(() => server.dispose())

  const byShell = (command: string) =>
    new Promise<{ readonly code: number | null; readonly said: string }>((done, fail) => {
      const child = spawn("sh", ["-c", command.replaceAll("localhost:3001", `localhost:${port}`)], {
        cwd: server.directory,
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
        env: { PATH: process.env["PATH"], HOME: server.directory }
      })
      watch(child, "group")
      let said = ""
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => said += chunk.toString())
      child.once("error", fail)
      child.once("close", (code) => done({ code, said }))
    })

  /**
   * Runs a documented command. A command of acme-svc needs no shell: if it redirects its output to a file, this
   * function writes the file itself. All other commands run in a shell.
   */
  const run = async (command: string) => {
    const [, words, file] = /^acme-svc (.*?)(?: > (\S+))?$/.exec(command) ?? []
    if (words === undefined) return byShell(command)
    const { code, stderr, stdout } = await commandLine(words.split(" "), { config: null, directory: server.directory })
    if (file !== undefined) writeFileSync(join(server.directory, file), stdout)
    return { code, said: `${stdout}${stderr}` }
  }

  it.each(commandsOf("docs/operate/operators.md"))(
    "have in docs/operate/operators.md the working command %s",
    async (command) => {
      const { code, said } = await run(command)
      assert.strictEqual(code, 0, said)
    }
  )

  it.each(commandsOf("docs/reference/api.md"))(
    "have in docs/reference/api.md the working command %s",
    async (command) => {
      if (!client.curl) return gateComesBack()
      const { code, said } = await run(command)
      assert.strictEqual(code, 0, said)
      if (!command.startsWith("curl ") || /--(?:output|remote-name|request DELETE)\b/.test(command)) return
      const answer: unknown = JSON.parse(said)
      assert.isTrue(typeof answer === "object" && answer !== null && ("items" in answer || "hmacKey" in answer), said)
    }
  )

  it("create the files that they name", () => {
    if (!client.curl) return gateComesBack()
    const at = (file: string) => readFileSync(join(server.directory, file), "utf8")
    const [csv = ""] = readdirSync(server.directory).filter((file) => /^acme-svc-eab-\w+\.csv$/.test(file))
    assert.match(at(csv), /^kid,label,profile,status,createdAt,accounts\r\n.*,printers,/)
    const { items } = JSON.parse(at("trail.json")) as { readonly items: ReadonlyArray<{ readonly event: string }> }
    const events = items.map(({ event }) => event)
    for (const event of ["eab_created", "token_created", "operator_role_changed", "operator_disabled"]) {
      assert.include(events, event)
    }
  })

  it("show the section [admin] with enabled = true", () => {
    for (const body of bodiesOf("docs/operate/operators.md", "toml")) assert.match(body, /^\[admin\]\nenabled = true\n/)
  })
})
