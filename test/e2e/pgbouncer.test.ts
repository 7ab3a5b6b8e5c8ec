import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession, problemType } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory, freshPostgresUrl } from "../support/Databases.ts"
import { gateHasPostgres, isInstalled } from "../support/Installed.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import type { PgBouncer } from "../support/PgBouncer.ts"
import { poolSize, startPgBouncer } from "../support/PgBouncer.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, runToEnd, startServer } from "../support/Server.ts"

/* The service behind a real PgBouncer in transaction mode, which `npm run postgres` installs. */

const config = `${minimalConfig}[challenge]\nbypass = true\n`
const [clients, names] = [8, 3]

it("runs in the gate if PgBouncer is not here", gateHasPostgres)

describe.runIf(isInstalled("pgbouncer"))("a service behind PgBouncer", () => {
  const directory = freshDirectory()
  const servers: Array<Server> = []
  let database = ""
  let proxy: PgBouncer
  let front: Server

  const start = async (role: "acme" | "worker", startedBy: string): Promise<Server> => {
    const server = await startServer({
      config,
      directory,
      startedBy,
      databaseUrl: proxy.url,
      env: { ACME_SVC_DATABASE__POOLING: "transaction", ACME_SVC_DATABASE__LISTEN_URL: database },
      flags: ["--role", role]
    })
    servers.push(server)
    return server
  }
  /** Issues certificates for several clients at once, each with its own account. */
  const issueAll = (round: string) =>
    Promise.all(Array.from({ length: clients }, async (_, client) => {
      const session = await AcmeSession.open(front.directoryUrl)
      await session.register()
      for (let at = 0; at < names; at++) await session.issue([`n${at}.c${client}.${round}.example`], new Map())
    }))

  beforeAll(async () => {
    await builtServer()
    database = await freshPostgresUrl()
    proxy = await startPgBouncer(database)
    const env = { ACME_SVC_DATABASE__URL: proxy.url, ACME_SVC_DATABASE__POOLING: "transaction" }
    const ended = await commandLine(["init"], { config, directory, env })
    assert.strictEqual(ended.code, 0, ended.stderr)
    await start("worker", "job_runner_started")
    front = await start("acme", "server_listening")
  })
  afterAll(async () => {
    for (const server of servers) await server.dispose()
    await proxy?.kill9()
  })

  it("issues certificates over the few connections of the proxy", async () => {
    await issueAll("first")
    const [row] = await sqlAt(database, "SELECT count(*) AS issued FROM orders WHERE status = 'valid'")
    assert.strictEqual(Number(row?.["issued"]), clients * names)
    const open = await sqlAt(
      database,
      `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
         AND backend_type = 'client backend' AND query NOT LIKE 'LISTEN%'`
    )
    assert.isAtMost(open.length, poolSize)
  })

  it("goes on when the proxy was killed and is back", async () => {
    await proxy.kill9()
    const session = await AcmeSession.open(front.directoryUrl)
    const refused = await session.post(session.directory.newAccount, { termsOfServiceAgreed: true }, {
      identify: "jwk"
    })
    assert.strictEqual(problemType(refused), "serverInternal")
    await proxy.start()
    await issueAll("second")
  })

  const ignored = "ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout\n"

  it.each([["as shipped", ""], ["with the parameters ignored", ignored]])(
    "does not serve without `pooling`, and says what to set, %s",
    async (_, more) => {
      const wrong = await startPgBouncer(database, more)
      try {
        const ended = await runToEnd(["serve"], { config, env: { ACME_SVC_DATABASE__URL: wrong.url } })
        assert.strictEqual(ended.code, 1)
        assert.match(`${ended.stdout}${ended.stderr}`, /set database\.pooling to \\*"transaction/)
      } finally {
        await wrong.kill9()
      }
    }
  )

  it("serves without `pooling` if the proxy keeps sessions", async () => {
    const keeping = await startPgBouncer(database, `${ignored}pool_mode = session\ndefault_pool_size = 20\n`)
    try {
      await (await startServer({ config, databaseUrl: keeping.url })).dispose()
    } finally {
      await keeping.kill9()
    }
  })
})
