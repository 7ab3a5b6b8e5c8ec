import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import type { Role } from "../../src/domain/Role.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { text } from "../support/Documents.ts"
import { patienceMs } from "../support/Patience.ts"
import { freePort } from "../support/Ports.ts"
import type { PostgresCluster } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"

/*
 * The formula of docs/operate/sizing.md, "Connections". PostgreSQL accepts exactly as many connections as the formula
 * says for the processes, and there are enough clients to fill the acme pools.
 */

const roles: ReadonlyArray<Role> = ["worker", "worker", "acme", "acme", "admin"]
const poolMax = 2
const reserved = 3
const placesMost = 16

/** Returns the sum for the processes, without commands and backups. */
const sum = (nodes: number, pool: number, workers: number): number =>
  nodes * pool + Math.min(workers, placesMost) + reserved

const config = `${minimalConfig}[challenge]\nbypass = true\n[admin]\nenabled = true\n`
const startedBy = { worker: "job_runner_started", acme: "server_listening", admin: "admin_listening" } as const

describe("docs/operate/sizing.md, \"Connections\"", () => {
  it("has the right sums", () => {
    const document = text("docs/operate/sizing.md")
    assert.include(
      document,
      `nodes × database.pool_max + listening workers (${placesMost} at most) + superuser_reserved_connections (${reserved}) + commands and backups (10)`
    )
    const rows = [...document.matchAll(/^\| (\d+) \(\d+ acme, (\d+) workers?\) +\| (\d+) +\| (.*?) = (\d+) +\|/gm)]
    assert.isAtLeast(rows.length, 3)
    for (const [row, nodes, workers, pool, parts = "", total] of rows) {
      assert.strictEqual(Number(total), sum(Number(nodes), Number(pool), Number(workers)) + 10, row)
      assert.strictEqual(parts.split(" + ").reduce((before, part) => before + Number(part), 0), Number(total), row)
    }
  })
})

describe("processes under load, with a PostgreSQL that accepts as many connections as the formula says", () => {
  let cluster: PostgresCluster
  let watcher: Client
  const servers: Array<Server> = []
  const workers = roles.filter((role) => role === "worker").length
  const most = sum(roles.length, poolMax, workers) - reserved

  beforeAll(async () => {
    await builtServer()
    cluster = await startPostgres({ connections: most + reserved })
    // The remaining places are for superusers.
    watcher = new Client({ connectionString: cluster.adminUrl })
    await watcher.connect()
    await watcher.query("CREATE ROLE acme LOGIN PASSWORD 'secret'")
    await watcher.query("CREATE DATABASE acme OWNER acme")
    const url = new URL(cluster.url("acme"))
    url.username = "acme"
    url.password = "secret"
    const directory = freshDirectory()
    for (const role of roles) {
      servers.push(
        await startServer({
          config,
          directory,
          databaseUrl: url.href,
          flags: ["--role", role],
          startedBy: startedBy[role],
          env: {
            ACME_SVC_DATABASE__POOL_MAX: `${poolMax}`,
            ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${await freePort()}`
          }
        })
      )
    }
  })
  afterAll(async () => {
    for (const server of servers.toReversed()) await server.dispose()
    await watcher?.end()
    await cluster?.stop()
  })

  /** Returns how many sessions the service has, and how many of them listen. */
  const sessions = async (): Promise<{ readonly all: number; readonly listening: number }> => {
    const { rows: [row] } = await watcher.query<{ readonly all: number; readonly listening: number }>(
      `SELECT count(*)::integer AS "all", (count(*) FILTER (WHERE query LIKE 'LISTEN %' OR query = 'SELECT 1'))::integer AS "listening"
       FROM pg_stat_activity WHERE usename = 'acme'`
    )
    return row ?? assert.fail("no row")
  }

  it("open no more sessions than the formula says", async () => {
    await vi.waitFor(async () => assert.strictEqual((await sessions()).listening, workers), {
      timeout: patienceMs,
      interval: 20
    })
    const fronts = servers.filter((_, at) => roles[at] === "acme")
    const state = { isOver: false }
    const load = Promise.all(Array.from({ length: 24 }, async (_, nth) => {
      const session = await AcmeSession.open(fronts[nth % fronts.length]?.directoryUrl ?? "")
      await session.register()
      for (let round = 0; round < 4; round++) await session.issue([`h${nth}-${round}.example`], new Map())
      session.close()
    })).finally(() => state.isOver = true)
    let peak = 0
    while (!state.isOver) peak = Math.max(peak, (await sessions()).all)
    await load
    assert.isAtMost(peak, most)
    // Every acme pool was full. A worker and the admin process may need only one connection of their pools.
    assert.isAtLeast(peak, most - workers - 1)
    assert.strictEqual((await sessions()).listening, workers)
  })
})
