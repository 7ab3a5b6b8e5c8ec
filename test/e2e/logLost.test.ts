import { spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, beforeAll, describe, it, vi } from "vitest"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { freePort } from "../support/Ports.ts"
import { runtime } from "../support/Server.ts"

/* A log that cannot be written cannot report its own failure, so the readiness and the metrics report it. */

const program = resolve(import.meta.dirname, "../../dist/main.js")

describe("a log that nobody reads", () => {
  beforeAll(builtServer)

  it("does not keep the process from ending", async () => {
    const directory = freshDirectory()
    const [acme, metrics] = [await freePort(), await freePort()]
    // At this level every query of the database has a record, so that a few requests fill the pipe.
    writeFileSync(
      join(directory, "config.toml"),
      `[server]\nbind_address = "127.0.0.1:${acme}"\nbase_url = "http://127.0.0.1:${acme}"\ntls.enabled = false
[metrics]\nenabled = true\nbind_address = "127.0.0.1:${metrics}"\n[logging]\nfilter = "debug"\n[profiles.default]\n`
    )
    // The parent never reads from the pipe.
    const child = spawn(runtime, [program, "serve"], { cwd: directory, stdio: ["ignore", "pipe", "ignore"] })
    const ended = once(child, "exit")
    try {
      await vi.waitFor(() => fetch(`http://127.0.0.1:${acme}/ready`), { timeout: 30_000, interval: 100 })
      for (let count = 0; count < 3000; count++) {
        await (await fetch(`http://127.0.0.1:${acme}/profile/default/directory`)).text()
      }
      child.kill("SIGTERM")
      assert.deepStrictEqual(await ended, [0, null])
    } finally {
      child.kill("SIGKILL")
    }
  })
})

describe("a log on a full device", () => {
  beforeAll(builtServer)

  it("is reported by readiness and metrics, while the process serves every client", async () => {
    const directory = freshDirectory()
    const [acme, metrics] = [await freePort(), await freePort()]
    writeFileSync(
      join(directory, "config.toml"),
      `[server]\nbind_address = "127.0.0.1:${acme}"\nbase_url = "http://127.0.0.1:${acme}"\ntls.enabled = false
[metrics]\nenabled = true\nbind_address = "127.0.0.1:${metrics}"\n[profiles.default]\n`
    )
    const child = spawn("bash", ["-c", `exec "${runtime}" "${program}" serve > /dev/full`], {
      cwd: directory,
      stdio: "ignore"
    })
    const ended = once(child, "close")
    try {
      await vi.waitFor(async () => {
        const answer = await fetch(`http://127.0.0.1:${acme}/ready`)
        assert.deepInclude(await answer.json(), { ready: true, log: "ENOSPC" })
        assert.strictEqual(answer.status, 200)
      }, { timeout: 30_000, interval: 100 })
      assert.strictEqual((await fetch(`http://127.0.0.1:${acme}/profile/default/directory`)).status, 200)
      const scraped = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
      const [, lost] = /^acme_svc_log_writes_failed_total\{[^}]*\} (\d+)$/m.exec(scraped) ?? []
      assert.isAtLeast(Number(lost), 1)
    } finally {
      child.kill("SIGTERM")
      await ended
    }
  })
})
