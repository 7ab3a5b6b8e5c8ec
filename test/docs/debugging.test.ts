import SqliteDatabase from "better-sqlite3"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { builtServer, freshPostgresUrl } from "../support/Databases.ts"
import type { Line } from "../support/DocumentLines.ts"
import { repository, text } from "../support/Documents.ts"
import { patienceMs } from "../support/Patience.ts"
import type { Serving } from "../support/Place.ts"
import { hasRunLinesOf, Place, settled } from "../support/Place.ts"
import { freePort } from "../support/Ports.ts"

describe("docs/operate/debugging.md", () => {
  let place: Place
  let serving: Serving
  let inspectorPort: number
  beforeAll(async () => {
    await builtServer()
    inspectorPort = await freePort()
    place = await Place.make({
      ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: "true",
      NODE_OPTIONS: `--inspect-port=${inspectorPort}`
    })
    await place.succeed("init")
    serving = await place.serve("serveKept", settled)
  })
  afterAll(() => serving.stop())

  /**
   * Returns the lines that a command finds once the log has them. A record is written after the answer, and passes
   * through tee.
   */
  const seen = (line: Line, record: RegExp): Promise<string> =>
    vi.waitFor(async () => {
      const found = await place.succeed(line)
      assert.match(found, record)
      return found
    }, { timeout: patienceMs, interval: 100 })

  it("has commands that explain a word, and find words", async () => {
    assert.match(await place.succeed("explainEvent"), /^do +Remove the cause/m)
    assert.match(await place.succeed("explainSearch"), /^db_standby_left +log event /m)
  })

  it("has commands that find the job of an order, and the request that made the job", async () => {
    await place.issueInItsPlace(`http://localhost:${place.port}/profile/default/directory`, "cert.pem")
    const [, order = ""] = /^([0-9a-f-]{36})  default  default  valid /m.exec(
      await place.run("acme-svc order list").then(
        ({ stdout }) => stdout
      )
    ) ?? []
    place.stand("ORDER_ID", order)
    const [, job = ""] = /^([0-9a-f-]{36})  signer_issue /m.exec(await place.succeed("jobsOfOrder")) ?? []
    place.stand("JOB_ID", job)
    assert.match(await place.succeed("jobsShow"), /^kind +signer_issue$/m)
    const ofJob = await seen("grepJob", /order_finalized/)
    const [, request = ""] = / job_enqueued .* request_id=(\S+)/.exec(ofJob) ?? []
    place.stand("REQUEST_ID", request)
    const ofRequest = await seen("grepRequest", / request_completed .* uri=\S+\/finalize/)
    assert.include(ofRequest, `job_id=${job}`)
  })

  it("has a command that finds a request by a header of the answer", async () => {
    const answer = await fetch(`http://localhost:${place.port}/profile/default/directory`)
    const id = answer.headers.get("x-request-id") ?? "none"
    place.stand("REQUEST_ID", id)
    await seen("grepRequest", / request_completed .* uri=\S+\/directory/)
  })

  it("has commands that profile the process that worker list names", async () => {
    const [, pid = ""] = /^[^:\s]+:(\d+):/m.exec(await place.succeed("workerList")) ?? []
    place.stand("PID", pid)
    place.stand("9229", `${inspectorPort}`)
    place.stand(" 10 server", " 1 server")
    place.stand("docs/recipes", join(repository, "docs/recipes"))
    await place.succeed("openInspector")
    assert.match(await place.succeed("cpuProfile"), /^ *\d+\.\d %  \S/m)
    const profile: unknown = JSON.parse(readFileSync(place.at("server.cpuprofile"), "utf8"))
    assert.containsAllKeys(profile, ["nodes", "samples", "timeDeltas"])
  })

  it("has a command that prints the steps of an issuance with their durations", async () => {
    const traced = await Place.make()
    traced.stand("4318", `${await freePort()}`)
    traced.stand("docs/recipes", join(repository, "docs/recipes"))
    const collecting = await traced.serve("collectTraces", "Ready for spans.")
    await traced.succeed("init")
    const served = await traced.serve("serveTraced", settled)
    await traced.issueInItsPlace(`http://localhost:${traced.port}/profile/default/directory`, "cert.pem")
    await served.stop()
    // A second program prints the output. The same signal ends both programs.
    await vi.waitFor(() => {
      const trees = collecting.said().split(/\n(?= *[\d.]+ ms {2}\S)/)
      const treeOf = (name: string) => trees.find((tree) => tree.includes(` ms  ${name}  `)) ?? ""
      assert.match(treeOf("POST /order/{id}/finalize"), / request_id=.*\n.* ms {4}authenticate\b/)
      assert.match(treeOf("signer_issue"), / job_id=\S+.*\n[^]* ms {4}transaction\b[^]* ms {6}order_issue\b/)
      assert.match(treeOf("challenge_validate"), / ms {4}HTTP GET .*status_code=200/)
    }, { timeout: patienceMs, interval: 50 })
    await collecting.stop()
  })

  it("has a command that shows which processes have opened the database and which one writes", async () => {
    assert.match(await place.succeed("sqliteLocks"), / READ .* 128 128$/m)
    // The service sometimes writes, for example its presence.
    await vi.waitFor(async () => assert.notMatch(await place.succeed("sqliteLocks"), / WRITE .* 120 120$/m), {
      timeout: patienceMs,
      interval: 50
    })
    const database = new SqliteDatabase(place.at("sqlite.db"))
    database.exec("BEGIN IMMEDIATE")
    const held = await place.succeed("sqliteLocks")
    database.exec("ROLLBACK")
    database.close()
    assert.match(held, new RegExp(` WRITE ${process.pid} .* 120 120$`, "m"))
  })

  it("has a command that shows which session waits for which other one on PostgreSQL", async () => {
    const url = new URL(await freshPostgresUrl())
    const open = async (name: string) => {
      url.searchParams.set("application_name", name)
      const client = new Client({ connectionString: url.href })
      await client.connect()
      return client
    }
    const [holds, waits, looks] = await Promise.all([open("holder"), open("waiter"), open("looker")])
    await holds.query("CREATE TABLE things (id INT)")
    await holds.query("BEGIN; LOCK TABLE things")
    const waited = waits.query("SELECT id FROM things")
    await vi.waitFor(async () => {
      const { rows } = await looks.query(text("docs/recipes/postgres-locks.sql"))
      assert.lengthOf(rows, 1)
      assert.include(rows[0], {
        statement: "SELECT id FROM things",
        holder: "holder",
        holder_state: "idle in transaction"
      })
    }, { timeout: patienceMs, interval: 50 })
    await holds.query("ROLLBACK")
    await waited
    assert.lengthOf((await looks.query(text("docs/recipes/postgres-locks.sql"))).rows, 0)
    await Promise.all([holds, waits, looks].map((client) => client.end()))
  })
})

hasRunLinesOf("debugging")
