import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { makeAcmeKey } from "../support/AcmeSession.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { bindingOf } from "../support/Binding.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory, freshPostgresUrl } from "../support/Databases.ts"
import { repository } from "../support/Documents.ts"
import { leafOf, renewalIdOf } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import { psql } from "../support/Psql.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"

/* docs/recipes/postgres-roles.sql: a database role for each role of a process, with no more than it needs. */

const config = `${minimalConfig}[challenge]\nbypass = true\n[profiles.bound.eab]\nenabled = true\n` +
  "[admin]\nenabled = true\n[nonce]\nttl_seconds = 60\n"
const password = "Wrocław tramway, 4 stops"
const roles = ["acme_front", "acme_admin", "acme_worker"] as const

describe("a database role for each process", () => {
  const directory = freshDirectory()
  const servers: Array<Server> = []
  let owner: Client
  let url = ""
  let api = ""

  const urlOf = (role: string): string => {
    const own = new URL(url)
    own.username = role
    own.password = "secret"
    return own.href
  }
  const ends = async (...words: ReadonlyArray<string>): Promise<string> => {
    const ended = await commandLine(words, { config, directory, env: { ACME_SVC_DATABASE__URL: url } })
    assert.strictEqual(ended.code, 0, `${words.join(" ")}\n${ended.stdout}\n${ended.stderr}`)
    return ended.stdout
  }
  const start = async (role: (typeof roles)[number], flag: string, startedBy: string) => {
    const env = { ACME_SVC_ADMIN__BIND_ADDRESS: api, ACME_SVC_ADMIN__BASE_URL: `http://${api}` }
    const server = await startServer({
      config,
      directory,
      env,
      startedBy,
      databaseUrl: urlOf(role),
      flags: ["--role", flag, "--log-level", "debug"]
    })
    servers.push(server)
    return server
  }

  beforeAll(async () => {
    await builtServer()
    url = await freshPostgresUrl()
    api = `127.0.0.1:${await freePort()}`
    await ends("init")
    owner = new Client({ connectionString: url })
    await owner.connect()
    const recipe = readFileSync(join(repository, "docs/recipes/postgres-roles.sql"), "utf8")
    const by = new Client({ connectionString: url })
    await by.connect()
    assert.deepStrictEqual(await psql(by, recipe), { code: 0, error: undefined })
    for (const role of roles) await owner.query(`ALTER ROLE ${role} PASSWORD 'secret'`)
  })
  afterAll(async () => {
    for (const server of servers) await server.dispose()
    for (const role of roles) await owner.query(`DROP OWNED BY ${role}`)
    await owner.end()
  })

  it("allows each process its own work and not the work of the others", async () => {
    await start("acme_worker", "worker", "job_runner_started")
    const front = await start("acme_front", "acme", "server_listening")
    await start("acme_admin", "admin", "admin_listening")

    const session = await AcmeSession.open(front.directoryUrl)
    await session.register()
    const first = await session.issue(["one.example"], new Map())
    const replaces = renewalIdOf(first.chain)
    assert.strictEqual((await session.get(`${session.directory.renewalInfo ?? ""}/${replaces}`)).status, 200)
    const second = await session.issue(["one.example"], new Map(), { more: { replaces } })
    const revoke = (chain: string, reason: number) =>
      session.post(session.directory.revokeCert ?? "", {
        certificate: leafOf(chain).raw.toString("base64url"),
        reason
      })
    assert.strictEqual((await revoke(first.chain, 1)).status, 200)
    const key = await makeAcmeKey()
    assert.strictEqual((await session.rollOver(key)).status, 200)
    const { hmacKey, kid } = JSON.parse(await ends("eab", "create", "--label", "web", "--json")) as {
      readonly kid: string
      readonly hmacKey: string
    }
    const bound = await AcmeSession.open(front.profileUrl("bound"))
    const binding = bindingOf(
      { kid, secret: Buffer.from(hmacKey, "base64url") },
      bound.key.jwk,
      bound.directory.newAccount
    )
    await bound.register({ termsOfServiceAgreed: true, externalAccountBinding: binding })
    assert.strictEqual((await bound.deactivate()).status, 200)

    writeFileSync(join(directory, "password.txt"), `${password}\n`, { mode: 0o600 })
    await ends("admin", "user", "create", "ann", "--password-file", join(directory, "password.txt"))
    const asked = async (method: string, path: string, headers: Readonly<Record<string, string>>, body?: object) => {
      const answer = await fetch(`http://${api}/api/${path}`, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...body === undefined ? {} : { body: JSON.stringify(body) }
      })
      const text = await answer.text()
      assert.isBelow(answer.status, 300, `${method} ${path}: ${text}`)
      return { answer, json: text === "" ? {} : JSON.parse(text) as Readonly<Record<string, never>> }
    }
    const signedIn = await asked("POST", "session", {}, { username: "ann", password })
    const cookie = signedIn.answer.headers.getSetCookie().map((one) => one.split(";")[0]).join("; ")
    const csrf: string = signedIn.json["csrfToken"] ?? ""
    const held = { cookie, "x-csrf-token": csrf }
    for (
      const path of [
        "orders",
        "accounts",
        "eab",
        "audit",
        "jobs",
        "cas",
        "expiring",
        "operators",
        "tokens",
        "workers",
        "queue",
        "nonces",
        "trends",
        "search?q=one.example",
        "upstream-orders",
        "notify/deliveries"
      ]
    ) {
      await asked("GET", path, held)
    }
    await asked("POST", "eab", held, { label: "printers" })
    const id = second.order.url.slice(second.order.url.lastIndexOf("/") + 1)
    await asked("POST", `orders/${id}/revoke`, held, { reason: 4 })
    await asked("POST", "nonces/cleanup", held, {})

    const refused = servers.flatMap((server) =>
      server.records().filter((record) => /permission denied|db_rights_missing/.test(JSON.stringify(record)))
    )
    assert.deepStrictEqual(refused, [])

    const mayNot = async (role: string, statement: string) => {
      const client = new Client({ connectionString: urlOf(role) })
      await client.connect()
      const said = await client.query(statement).then(() => "done", String)
      await client.end()
      assert.match(said, /permission denied|must be owner/, `${role}: ${statement}`)
    }
    for (const role of roles) {
      await mayNot(role, "CREATE TABLE mine (id int)")
      await mayNot(role, "DROP TABLE orders")
      await mayNot(role, "UPDATE audit_log SET actor_id = 'nobody'")
    }
    for (const table of ["admin_users", "admin_sessions", "api_tokens", "admin_recovery_codes"]) {
      await mayNot("acme_front", `SELECT * FROM ${table}`)
    }
    await mayNot("acme_front", "DELETE FROM orders")
    await mayNot("acme_front", "INSERT INTO eab_keys SELECT * FROM eab_keys")
    await mayNot("acme_admin", "UPDATE crls SET crl_number = 1")
    await mayNot("acme_worker", "SELECT totp_secret FROM admin_users")
    await mayNot("acme_worker", "SELECT * FROM api_tokens")
    session.close()
    bound.close()

    await owner.query("REVOKE INSERT ON burnt_keys FROM acme_front")
    const lacking = await start("acme_front", "acme", "server_listening")
    const told = lacking.records().filter(({ fields }) => fields["event"] === "db_rights_missing")
    assert.deepStrictEqual(told.map(({ fields }) => [fields["roles"], fields["rights"]]), [
      ["acme", "INSERT on burnt_keys"]
    ])
  })
})
