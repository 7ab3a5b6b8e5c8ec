import Sqlite from "better-sqlite3"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { appendFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { join, resolve } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { runtime } from "../support/Server.ts"

/* Tests how interrupted commands end. */

const program = resolve(import.meta.dirname, "../../dist/main.js")

/** Makes a directory with a migrated database that has `rows` credentials. */
const filled = async (rows: number) => {
  const directory = freshDirectory()
  const config = "[profiles.default]\n[database]\nurl = \"sqlite://acme.db\"\n"
  assert.strictEqual((await commandLine(["migrate"], { config, directory })).code, 0)
  const database = new Sqlite(join(directory, "acme.db"))
  database.exec(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
     INSERT INTO eab_keys (kid, secret, label, profile, status, created_at)
     SELECT randomblob(16), x'00', 'label ' || i, NULL, 'active', 1 FROM n`
  )
  database.close()
  writeFileSync(join(directory, "config.toml"), config)
  return directory
}

describe("a command", () => {
  beforeAll(builtServer)

  it.each([["eab list --limit 10000"], ["eab list --limit 10000 --json"]])(
    "ends without an error when its reader has read enough: %s",
    async (words) => {
      const directory = await filled(10_000)
      const child = spawn("bash", ["-c", `"${runtime}" "${program}" ${words} | head -c 10; exit "\${PIPESTATUS[0]}"`], {
        cwd: directory,
        stdio: ["ignore", "pipe", "pipe"]
      })
      let [out, err] = ["", ""]
      child.stdout.on("data", (chunk: Buffer) => out += chunk.toString())
      child.stderr.on("data", (chunk: Buffer) => err += chunk.toString())
      const [code] = await once(child, "close")
      assert.deepStrictEqual([code, err, out.length], [0, "", 10])
    }
  )

  const told = async (directory: string, words: string, to: string) => {
    const child = spawn("bash", ["-c", `"${runtime}" "${program}" ${words} ${to}; exit "\${PIPESTATUS[0]}"`], {
      cwd: directory,
      stdio: ["ignore", "ignore", "pipe"]
    })
    let err = ""
    child.stderr.on("data", (chunk: Buffer) => err += chunk.toString())
    const [code] = await once(child, "close")
    return [code, err]
  }

  it.each([["eab list"], ["--version"], ["--help"], ["profile list --json"], ["completions bash"]])(
    "fails if its output cannot be written, and says so: %s",
    async (words) => {
      const [code, err] = await told(await filled(1), words, "> /dev/full")
      assert.strictEqual(code, 1)
      assert.include(err, "The output could not be written (ENOSPC).")
    }
  )

  it.each([["> /dev/full", "ENOSPC"], ["| sleep 0", "EPIPE"]])(
    "revokes the credential or the token that it has made but cannot print: %s",
    async (to, why) => {
      const directory = await filled(0)
      const made = await told(directory, "eab create --label printers", to)
      const sentence =
        `The output could not be written (${why}), so the credential was revoked. Repeat the command when it can be written.\n`
      assert.deepStrictEqual(made, [1, sentence])
      const database = new Sqlite(join(directory, "acme.db"))
      const ofPrinters = "SELECT status FROM eab_keys WHERE label = 'printers'"
      assert.deepStrictEqual(database.prepare(ofPrinters).pluck().all(), ["revoked"])
      writeFileSync(join(directory, "pw"), "a password of many words\n", { mode: 0o600 })
      const run = (words: ReadonlyArray<string>) => commandLine(words, { config: null, directory })
      assert.strictEqual((await run(["admin", "user", "create", "olga", "--password-file", "pw"])).code, 0)
      const [code, err] = await told(directory, "admin token create olga --name backup --expires-in 90", to)
      assert.strictEqual(code, 1)
      assert.include(
        err,
        `The output could not be written (${why}), so the token was revoked. Repeat the command when it can be written.`
      )
      assert.deepStrictEqual(
        database.prepare("SELECT count(*) FROM api_tokens WHERE revoked_at IS NULL").pluck().all(),
        [0]
      )
      database.close()
    }
  )

  it.each([["> /dev/full", "ENOSPC"], ["| sleep 0", "EPIPE"]])(
    "says that nobody has the link that it has made but cannot print, and does not say to open it: %s",
    async (to, why) => {
      const directory = await filled(0)
      appendFileSync(join(directory, "config.toml"), "[admin]\nenabled = true\n")
      writeFileSync(join(directory, "pw"), "a password of many words\n", { mode: 0o600 })
      const words = ["admin", "user", "create", "olga", "--password-file", "pw"]
      assert.strictEqual((await commandLine(words, { config: null, directory })).code, 0)
      assert.deepStrictEqual(await told(directory, "admin user link olga", to), [
        1,
        `The output could not be written (${why}), so nobody has the link. Repeat the command when it can be written.\n`
      ])
    }
  )

  it.each([["SIGINT", 130], ["SIGTERM", 143]] as const)("ends after %s with %i", async (signal, expected) => {
    const silent = createServer().listen(0, "127.0.0.1")
    await once(silent, "listening")
    const { port } = silent.address() as AddressInfo
    const directory = freshDirectory()
    writeFileSync(
      join(directory, "config.toml"),
      `[profiles.default]\n[server]\nbind_address = "127.0.0.1:${port}"\nbase_url = "http://localhost"\ntls.enabled = false\n`
    )
    const child = spawn(runtime, [program, "health", "--timeout-ms", "600000"], { cwd: directory, stdio: "ignore" })
    const [socket] = await once(silent, "connection")
    child.kill(signal)
    const [code] = await once(child, "close")
    socket.destroy()
    silent.close()
    assert.strictEqual(code, expected)
  })
})
