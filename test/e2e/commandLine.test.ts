import { execFileSync, spawn, spawnSync } from "node:child_process"
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import { freePort } from "../support/Ports.ts"
import { runtime, runToEnd, startServer } from "../support/Server.ts"

const escape = "\u001b["
const program = resolve(import.meta.dirname, "../../dist/main.js")

describe("the command line", () => {
  beforeAll(builtServer)

  it("prints its version without a configuration", async () => {
    const { code, stderr, stdout } = await runToEnd(["--version"], { config: null })
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.match(stdout, /^acme-svc \d+\.\d+\.\d+\n$/)
  })

  it("prints its manual page in roff", async () => {
    const { code, stderr, stdout } = await runToEnd(["man"], { config: null })
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.match(stdout, /^\.TH ACME\\-SVC 1 "" "acme\\-svc \d/)
    for (const said of ["order list", "upstream rollover", "config.toml"]) assert.include(stdout, said)
    const requests = new Set(["TH", "SH", "SS", "TP", "B", "I", "PP", "RS", "RE", "nf", "fi"])
    for (const line of stdout.split("\n").filter((one) => /^[.']/.test(one))) {
      assert.isTrue(requests.has(/^\.([A-Z]+|nf|fi)\b/.exec(line)?.[1] ?? ""), line)
    }
  })

  it("has help with its commands, and with an example and the exit codes of a command", async () => {
    const { code, stdout } = await runToEnd(["--help"], { config: null })
    assert.strictEqual(code, 0)
    for (
      const command of ["serve", "init", "migrate", "transfer", "profile", "health", "filter", "eab", "completions"]
    ) {
      assert.match(stdout, new RegExp(`^  ${command} +[A-Z]`, "m"))
    }
    const { stdout: page } = await runToEnd(["filter", "explain", "-h"], { config: null })
    assert.match(page, /^Example:\n  acme-svc filter explain .*^Exit codes:\n  0 /ms)
    assert.notMatch(stdout, /--wizard|fatal/)
  })

  it.each([
    { flags: [], env: {}, coloured: false },
    { flags: ["--color", "never"], env: { NO_COLOR: undefined, FORCE_COLOR: "1" }, coloured: false },
    { flags: ["--color", "always"], env: { NO_COLOR: "1" }, coloured: true }
  ])("uses colours as $flags and $env request", async ({ coloured, env, flags }) => {
    const help = await commandLine(["--help", ...flags], { config: null, env })
    assert.strictEqual(help.stdout.includes(escape), coloured)
  })

  it.each([
    { words: ["bogus"], names: "bogus|serve" },
    { words: ["migrate", "--bogus"], names: "--bogus" },
    { words: ["transfer"], names: "--to" },
    { words: ["transfer", "--to", "mysql://db/acme"], names: "--to" },
    { words: ["health", "--timeout-ms", "soon"], names: "timeout-ms|soon" },
    { words: ["health", "--role", "king"], names: "acme.*worker" },
    { words: ["--color", "mauve", "health"], names: "--color" },
    { words: ["--log-level"], names: "--log-level" },
    { words: ["filter", "explain", "--client-ip", "localhost"], names: "--client-ip" },
    { words: ["filter", "explain", "--identifier", "a..b"], names: "--identifier" },
    { words: ["filter", "explain", "--account-id", "7"], names: "--account-id" },
    { words: ["completions", "tcsh"], names: "bash" }
  ])("refuses $words with exit 2 and names the fault", async ({ names, words }) => {
    const { code, stderr, stdout } = await commandLine(words)
    assert.strictEqual(code, 2, stderr)
    assert.match(stderr, new RegExp(names))
    assert.strictEqual(stdout, "")
  })

  it("reports errors as JSON on stderr if JSON is asked for", async () => {
    const { code, stderr, stdout } = await commandLine(["profile", "list", "--json"], { config: null })
    assert.deepStrictEqual([code, stdout], [3, ""])
    const said = JSON.parse(stderr) as { readonly error: string; readonly message: string }
    assert.strictEqual(said.error, "refused")
    assert.match(said.message, /profile/)
  })

  it("lists profiles as a table and as JSON", async () => {
    const config = [
      "[profiles.web]",
      "enabled = true",
      "[profiles.lab]",
      "enabled = true",
      "[profiles.lab.challenge]",
      "bypass = true",
      "[profiles.lab.eab]",
      "enabled = true",
      "[profiles.parked]",
      "enabled = false"
    ].join("\n")
    const { code, stderr, stdout } = await commandLine(["profile", "list"], { config })
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.match(stdout, /^web .*\/profile\/web\/directory .*local_ca .*http-01 +off +served$/m)
    assert.match(stdout, /^lab .*bypassed +required +served$/m)
    const listed = JSON.parse((await commandLine(["profile", "list", "--json"], { config })).stdout) as {
      readonly items: ReadonlyArray<Readonly<Record<string, unknown>>>
      readonly total: number
    }
    assert.strictEqual(listed.total, 3)
    assert.sameDeepMembers(listed.items.map(({ eabEnabled, name }) => [name, eabEnabled]), [
      ["web", false],
      ["lab", true],
      ["parked", false]
    ])
  })

  it("ends without an error when its output is not read", async () => {
    const child = spawn("bash", [
      "-c",
      `"${runtime}" "${program}" completions bash | true; exit "\${PIPESTATUS[0]}"`
    ], {
      cwd: freshDirectory(),
      stdio: ["ignore", "ignore", "pipe"]
    })
    let stderr = ""
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    const code = await new Promise((done) => child.once("close", done))
    assert.deepStrictEqual([code, stderr], [0, ""])
  })

  it("prints an error as JSON even if it comes before the command, such as in a directory that was removed", () => {
    const directory = freshDirectory()
    const script = `rmdir "$0"; exec "${runtime}" "${program}" order list --json`
    const { status, stderr } = spawnSync("sh", ["-c", script, directory], { cwd: directory, encoding: "utf8" })
    const { error, message } = JSON.parse(stderr) as { readonly error: string; readonly message: string }
    assert.deepStrictEqual([status, error], [1, "host_failed"])
    assert.include(message, "ENOENT")
  })

  it.each(["bash", "fish", "zsh"])("prints completions for %s that name the commands", async (shell) => {
    const { code, stdout } = await commandLine(["completions", shell], { config: null })
    assert.strictEqual(code, 0)
    for (const command of ["serve", "init", "migrate", "profile", "health", "eab"]) assert.include(stdout, command)
    if (shell === "bash") execFileSync("bash", ["-n"], { input: stdout })
  })

  it("names the file that init may not write, and ends with 1", async () => {
    const config = "[profiles.default]\nenabled = true\n[signer.local_ca]\nkey_path = \"no/such/folder/ca.key\"\n"
    const { code, stderr } = await commandLine(["init"], { config })
    assert.strictEqual(code, 1)
    assert.match(stderr, /signer\.local_ca: .*no\/such\/folder\/ca\.key cannot be written: no such file or directory\./)
  })

  it("finds the configuration that another init has written at the same time", async () => {
    const directory = freshDirectory()
    const all = await Promise.all([1, 2, 3].map(() => runToEnd(["init"], { config: null, directory })))
    for (const { stderr } of all) assert.notInclude(stderr, "no profile is enabled")
  })

  it("makes the first operator even if the files cannot be made at the first try", async () => {
    const directory = freshDirectory()
    const run = (...words: ReadonlyArray<string>) => commandLine(words, { config: null, directory })
    writeFileSync(join(directory, "ca.pem"), "left over")
    const failed = await run("init")
    assert.deepStrictEqual([failed.code, failed.stdout], [3, ""], failed.stderr)
    rmSync(join(directory, "ca.pem"))
    const done = await run("init")
    assert.strictEqual(done.code, 0, done.stderr)
    const listed = await run("admin", "user", "list", "--role", "admin", "--json")
    assert.strictEqual((JSON.parse(listed.stdout) as { readonly total: number }).total, 1)
  })

  it("removes the files of an init that cannot complete", async () => {
    const directory = freshDirectory()
    const config = "[profiles.default]\nenabled = true\n[signer.local_ca]\ncert_path = \"absent/ca.pem\"\n"
    assert.strictEqual((await commandLine(["init"], { config, directory })).code, 1)
    assert.notIncludeMembers(readdirSync(directory), ["ca.key", "ca.pem"])
    assert.isEmpty(readdirSync(directory).filter((name) => name.startsWith(".")))
  })

  it("makes files with secrets readable by their owner only", async () => {
    const directory = freshDirectory()
    const { code, stderr } = await commandLine(["init"], { config: null, directory })
    assert.strictEqual(code, 0, stderr)
    for (const name of ["ca.key", "sqlite.db"]) {
      assert.strictEqual((statSync(join(directory, name)).mode & 0o777).toString(8), "600", name)
    }
  })
})

describe.each(databases)("migrate and health, $name", ({ freshUrl }) => {
  beforeAll(builtServer)

  it("migrate updates the schema, and migrate --check only reports whether the schema is current", async () => {
    const env = { ACME_SVC_DATABASE__URL: await freshUrl() }
    const run = (...flags: ReadonlyArray<string>) => commandLine(["migrate", ...flags], { env })
    const behind = await run("--check", "--json")
    assert.strictEqual(behind.code, 3)
    const { pending } = JSON.parse(behind.stdout) as { readonly pending: ReadonlyArray<string> }
    assert.isNotEmpty(pending)
    assert.strictEqual((await run("--check")).code, 3, "checking applies nothing")
    const applied = await run("--json")
    assert.deepStrictEqual(JSON.parse(applied.stdout), { applied: pending, pending: [] })
    const current = await run("--check")
    assert.deepStrictEqual([current.code, current.stdout], [0, "0 migration(s) pending.\n"])
    assert.strictEqual((await run()).stdout, "0 migration(s) applied.\n")
  })

  it("commands that only read do not create a missing database file", async () => {
    const directory = freshDirectory()
    const run = (...words: ReadonlyArray<string>) => commandLine(words, { directory })
    assert.strictEqual((await run("migrate", "--check")).code, 3)
    for (const words of [["account", "list"], ["order", "list"], ["admin", "user", "list"], ["eab", "list"]]) {
      const { code, stderr } = await run(...words)
      assert.strictEqual(code, 1, words.join(" "))
      assert.match(
        stderr,
        /^database\.url: sqlite:.* cannot be opened: ENOENT: no such file .*; `acme-svc migrate` makes the file/
      )
    }
    assert.strictEqual((await run("health", "--role", "worker")).code, 1)
    assert.deepStrictEqual(readdirSync(directory).filter((name) => name !== "config.toml"), [])
  })

  it("health prints nothing and returns 0 while the service runs, and 1 before and after", async () => {
    const [databaseUrl, port, directory] = [await freshUrl(), await freePort(), freshDirectory()]
    const env = {
      ACME_SVC_DATABASE__URL: databaseUrl,
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: `http://127.0.0.1:${port}`
    }
    const health = async (...flags: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await commandLine(["health", ...flags], { env, directory })
      assert.deepStrictEqual([stderr, stdout], ["", ""])
      return code
    }
    const both = async () => [await health(), await health("--role", "worker")]
    assert.strictEqual(await health(), 1)
    const server = await startServer({ databaseUrl, port, directory })
    try {
      assert.deepStrictEqual(await both(), [0, 0])
    } finally {
      await server.dispose()
    }
    assert.deepStrictEqual(await both(), [1, 1])
  })

  it("an exception that no code catches ends the service with exit code 1 and a log record", async () => {
    const directory = freshDirectory()
    writeFileSync(
      join(directory, "fault.mjs"),
      `process.on("SIGUSR2", () => { throw new Error("a fault of its own") })\n`
    )
    const server = await startServer({
      databaseUrl: await freshUrl(),
      directory,
      env: { NODE_OPTIONS: `--import ${join(directory, "fault.mjs")}` }
    })
    server.signal("SIGUSR2")
    const { code } = await server.exited()
    assert.strictEqual(code, 1)
    assert.match(server.stderr(), /^acme-svc failed unexpectedly: a fault of its own$/m)
    assert.notMatch(server.stderr(), /^\s+at /m)
    const fatal = server.records().find(({ fields }) => fields["event"] === "server_fatal_error")
    assert.include(String(fatal?.fields["error"]), "a fault of its own")
  })
})
