import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import type { Forwarder } from "../support/Forwarder.ts"
import { startForwarder, through } from "../support/Forwarder.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { freePort } from "../support/Ports.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"
import type { TwoServers } from "../support/TwoServers.ts"
import { startTwoServers } from "../support/TwoServers.ts"

/* A service whose operators read from a standby: what they see, and what never comes from the standby. */

const config = `${minimalConfig}[challenge]\nbypass = true\n[admin]\nenabled = true\n[metrics]\nenabled = true\n`
const password = "Wrocław tramway, 4 stops"
const lagHeader = "x-acme-svc-read-lag-ms"

describe("a service with a standby for its operators", () => {
  const directory = freshDirectory()
  let servers: TwoServers
  let way: Forwarder
  let server: Server
  let acme: AcmeSession
  let api = ""
  let metrics = ""
  let env: Readonly<Record<string, string>> = {}
  let bearer: Readonly<Record<string, string>> = {}
  let tokenId = ""
  let cookie = ""

  const ends = async (...words: ReadonlyArray<string>): Promise<string> => {
    const ended = await commandLine(words, { config: null, directory, env: { ...env, USER: "olga" } })
    assert.strictEqual(ended.code, 0, `${words.join(" ")}\n${ended.stdout}\n${ended.stderr}`)
    return ended.stdout
  }

  const get = async (path: string, headers: Readonly<Record<string, string>> = bearer) => {
    const answer = await fetch(`http://${api}${path}`, { headers, redirect: "manual" })
    const lag = answer.headers.get(lagHeader)
    return { status: answer.status, text: await answer.text(), lag: lag === null ? undefined : Number(lag) }
  }

  /** Reads a list until it is answered by the standby, or by the primary. */
  const until = async (by: "standby" | "primary", path = "/api/accounts") => {
    for (;; await delay(50)) {
      const told = await get(path, { cookie })
      assert.strictEqual(told.status, 200, told.text)
      if ((told.lag === undefined) === (by === "primary")) return told
    }
  }

  const pause = async () => {
    await sqlAt(servers.at.follower, "SELECT pg_wal_replay_pause()")
    for (;; await delay(20)) {
      const [row] = await sqlAt(servers.at.follower, "SELECT pg_get_wal_replay_pause_state() AS state")
      if (row?.["state"] === "paused") return
    }
  }
  const resume = () => sqlAt(servers.at.follower, "SELECT pg_wal_replay_resume()")

  beforeAll(async () => {
    await builtServer()
    servers = await startTwoServers()
    way = await startForwarder(servers.follower.port)
    api = `127.0.0.1:${await freePort()}`
    metrics = `127.0.0.1:${await freePort()}`
    env = {
      ACME_SVC_DATABASE__URL: servers.at.primary,
      ACME_SVC_DATABASE__READ_URL: through(servers.at.follower, way),
      ACME_SVC_DATABASE__READ_MAX_LAG_SECONDS: "300",
      ACME_SVC_ADMIN__BIND_ADDRESS: api,
      ACME_SVC_METRICS__BIND_ADDRESS: metrics,
      ACME_SVC_ADMIN__BASE_URL: `http://${api}`
    }
    server = await startServer({ config, directory, databaseUrl: servers.at.primary, env })
    acme = await AcmeSession.open(server.directoryUrl, { patienceMs: 60_000 })
    await acme.register()
    writeFileSync(join(directory, "password.txt"), `${password}\n`, { mode: 0o600 })
    await ends("admin", "user", "create", "ann", "--password-file", "password.txt", "--role", "admin")
    const words = ["admin", "token", "create", "ann", "--name", "reads", "--role", "operator", "--expires-in", "2"]
    bearer = { authorization: `Bearer ${(await ends(...words)).trim()}` }
    const tokens = JSON.parse(await ends("admin", "token", "list", "--json")) as {
      readonly items: ReadonlyArray<{ readonly id: string }>
    }
    tokenId = tokens.items[0]?.id ?? ""
    const signedIn = await fetch(`http://${api}/api/session`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "ann", password })
    })
    cookie = signedIn.headers.getSetCookie().map((one) => one.split(";")[0]).join("; ")
  })

  afterAll(async () => {
    acme?.close()
    await server?.dispose()
    await way?.stop()
    await servers?.dispose()
  })

  it("shows the data of the standby with the lag, and decides by the data of the primary", async () => {
    const before = await until("standby")
    const { pathname } = new URL(acme.kid ?? "")
    assert.include(before.text, pathname.slice(pathname.lastIndexOf("/") + 1))
    await pause()
    const other = await acme.another()
    await other.register()
    const id = (other.kid ?? "").slice((other.kid ?? "").lastIndexOf("/") + 1)

    const list = await get("/api/accounts")
    assert.strictEqual(list.status, 200)
    assert.notInclude(list.text, id)
    assert.isAbove(list.lag ?? 0, 0)
    const page = await get("/ui/accounts", { cookie })
    assert.notInclude(page.text, id)
    assert.match(page.text, /Read from a standby, (?:less than a second|at most \d+ s) behind\./)
    // A record that the standby does not have yet comes from the primary, as does what the command line shows.
    const record = await get(`/api/accounts/${id}`)
    assert.deepStrictEqual([record.status, record.lag], [200, undefined])
    assert.include(await ends("account", "list", "--json"), id)

    const made = await fetch(`http://${api}/api/eab`, {
      method: "POST",
      headers: { ...bearer, "content-type": "application/json" },
      body: JSON.stringify({ label: "printers" })
    })
    assert.strictEqual(made.status, 201)
    const { kid } = await made.json() as { readonly kid: string }
    for (const [path, shown] of [["/api/eab", kid], ["/api/accounts", id]] as const) {
      const after = await get(path)
      assert.include(after.text, shown)
      assert.isUndefined(after.lag)
    }
    const own = await get("/ui/accounts", { cookie })
    assert.include(own.text, id)
    assert.notInclude(own.text, "Read from a standby")

    await ends("admin", "token", "revoke", tokenId, "--yes")
    assert.strictEqual((await get("/api/accounts")).status, 401)
    await other.issue(["paused.example"], new Map())
    await resume()
    const caughtUp = await until("standby")
    assert.include(caughtUp.text, id)
    other.close()
  })

  it("works while the standby is away, and uses the standby again when it is back", async () => {
    await until("standby")
    way.target = 1
    way.resetAll()
    const without = await until("primary")
    assert.strictEqual(without.status, 200)
    const left = await server.waitForEvent("db_standby_left")
    assert.strictEqual(left.fields["reason"], "away")
    const away = [await get("/health", {}), await get("/ready", {})]
    for (const { status, text } of away) {
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(JSON.parse(text).standby, { state: "away" })
    }
    way.target = servers.follower.port
    await until("standby")
    await server.waitForEvent("db_standby_used")
    const { standby } = JSON.parse((await get("/health", {})).text)
    assert.strictEqual(standby.state, "answers")
    assert.isNumber(standby.lagMs)
    assert.deepStrictEqual(server.records().filter(({ level }) => level === "error"), [])
  })

  it("counts its connections to the standby separately from those to the database", async () => {
    await until("standby")
    const text = await (await fetch(`http://${metrics}/metrics`)).text()
    const counted = /^acme_svc_database_standby_connections\{[^}]*state="(\w+)"\} (\d+)$/gm
    const connections = [...text.matchAll(counted)].map(([, state, count]) => [state, Number(count)] as const)
    assert.deepStrictEqual(connections.map(([state]) => state), ["idle", "busy"])
    assert.isAbove(connections.reduce((sum, [, count]) => sum + count, 0), 0)
  })

  it("never prints the password of the standby", async () => {
    const secret = new URL(servers.at.follower).password
    const shown = await ends("config", "show", "--json")
    assert.include(shown, "database.read_url")
    assert.notInclude(shown + JSON.stringify(server.records()), secret)
  })
})
