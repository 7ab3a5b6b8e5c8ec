import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases } from "../support/Databases.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"

/* The commands about the queue. The running process has no worker role, so its jobs wait. */

interface JobObject {
  readonly id: string
  readonly kind: string
  readonly status: string
  readonly dedupKey: string
  readonly payload: Readonly<Record<string, unknown>>
}

interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
}

describe.each(databases)("jobs and worker commands on $name", ({ freshUrl }) => {
  const directory = mkdtempSync(join(tmpdir(), "acme-jobs-"))
  let env: Readonly<Record<string, string>>
  let server: Server
  let session: AcmeSession

  const run = (...words: ReadonlyArray<string>) => commandLine(words, { directory, env })
  const ends = async (code: number, ...words: ReadonlyArray<string>): Promise<string> => {
    const ended = await run(...words)
    assert.strictEqual(ended.code, code, `${words.join(" ")}: ${ended.stderr}`)
    return ended.stdout + ended.stderr
  }
  const json = async <A>(...words: ReadonlyArray<string>): Promise<A> =>
    JSON.parse((await run(...words, "--json")).stdout) as A

  /** Makes an order with a challenge that waits for a worker. */
  const waiting = async (name: string) => {
    const order = await session.newOrder([name])
    const { challenges: [challenge] } = await session.authorization(order.body.authorizations[0] ?? "")
    await session.trigger(challenge?.url ?? "")
    const orderId = order.url.slice(order.url.lastIndexOf("/") + 1)
    const { items: [job] } = await json<Page<JobObject>>("jobs", "list", "--order-id", orderId)
    return { order, orderId, job: job ?? assert.fail("no job") }
  }

  beforeAll(async () => {
    await builtServer()
    env = { ACME_SVC_DATABASE__URL: await freshUrl() }
    writeFileSync(join(directory, "config.toml"), minimalConfig)
    assert.strictEqual((await run("init")).code, 0)
    server = await startServer({ directory, env, flags: ["--role", "acme"] })
    session = await AcmeSession.open(server.directoryUrl)
    await session.register()
  })

  afterAll(async () => {
    await server?.dispose()
    rmSync(directory, { recursive: true, force: true })
  })

  it("print the waiting jobs by list and show", async () => {
    const { job } = await waiting("shown.example")
    assert.deepInclude(job, { kind: "challenge_validate", status: "ready" })
    const text = await ends(0, "jobs", "list", "--kind", "challenge_validate", "--status", "ready")
    assert.match(text, new RegExp(`^${job.id}  challenge_validate  ready`, "m"))
    assert.match(text, /^\d+ of \d+ row\(s\)\.$/m)
    const shown = await ends(0, "jobs", "show", job.id)
    assert.include(shown, job.dedupKey)
    assert.deepStrictEqual((await json<JobObject>("jobs", "show", job.id)).payload["profile"], "default")
    assert.match(await ends(0, "jobs", "queue"), /^challenge_validate +[1-9]/m)
  })

  it("cancel a job only with --yes if there is no terminal", async () => {
    const { job, order } = await waiting("cancelled.example")
    assert.include(await ends(2, "jobs", "cancel", job.id), "--yes")
    assert.strictEqual((await session.order(order.url)).status, "pending")
    assert.include(await ends(0, "jobs", "cancel", job.id, "--yes"), "Cancelled the challenge_validate job")
    assert.strictEqual((await session.order(order.url)).status, "invalid")
    assert.include(
      await ends(3, "jobs", "cancel", job.id, "--yes"),
      "is cancelled; only a job that is ready or failed can be cancelled"
    )
    assert.include(await ends(3, "jobs", "run-now", job.id), "is cancelled and cannot run now")
  })

  it("make a job due by run-now, so that a worker runs the job", async () => {
    const { job } = await waiting("pulled.example")
    assert.include(await ends(0, "jobs", "run-now", job.id), "is due now")
  })

  it("end with 3 for an unknown id, and with 2 for a text that is not an id", async () => {
    for (const command of [["show"], ["cancel", "--yes"], ["run-now"]]) {
      const [word = "", ...flags] = command
      assert.include(await ends(3, "jobs", word, "01234567-89ab-7def-8123-456789abcdef", ...flags), "There is no job")
    }
    assert.include(await ends(3, "jobs", "list", "--status", "lost"), "status takes one of")
    assert.include(await ends(2, "jobs", "list", "--order-id", "mine"), "--order-id takes an id")
  })

  it("name the processes by worker list, or say that there are none", async () => {
    const { items } = await json<Page<{ readonly roles: ReadonlyArray<string>; readonly stale: boolean }>>(
      "worker",
      "list"
    )
    assert.deepStrictEqual(items.map(({ roles, stale }) => [roles, stale]), [[["acme"], false]])
    await server.stop()
    const none = await ends(0, "worker", "list")
    assert.include(none, "0 of 0 row(s).")
    assert.include(none, "No process has served this database")
  })
})
