import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import type { Line } from "../support/DocumentLines.ts"
import { bodiesOf, repository, text } from "../support/Documents.ts"
import { through } from "../support/Forwarder.ts"
import { postgresPrograms } from "../support/Installed.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { leafOf } from "../support/Openssl.ts"
import { patienceMs } from "../support/Patience.ts"
import { hasRunLinesOf, Place } from "../support/Place.ts"
import type { PostgresCluster, PostgresServer } from "../support/Postgres.ts"
import { startPostgres } from "../support/Postgres.ts"
import type { Server } from "../support/Server.ts"
import { minimalConfig, startServer } from "../support/Server.ts"

/*
 * The steps of docs/operate/databases.md, which need the programs of PostgreSQL that only `npm run postgres` provides.
 */

const document = "docs/operate/databases.md"
const password = "secret"
/** Returns the reason why a database could not be opened. */
const reasonOf = (error: unknown): string => error instanceof Error ? String(error.cause) : String(error)

const config = `${minimalConfig}[challenge]\nbypass = true\n`

describe("docs/operate/databases.md", () => {
  it("names the oldest version that the service accepts", () => {
    const [, oldest = ""] = /^const oldest = ([\d_]+)$/m.exec(text("src/engine/sql/PostgresServer.ts")) ?? []
    const least = Number(oldest.replace("_", "")) / 10_000
    assert.include(text(document), `The service needs PostgreSQL ${least} or newer.`)
  })
})

describe.runIf(postgresPrograms !== undefined)("the steps of docs/operate/databases.md", () => {
  let cluster: PostgresCluster
  let place: Place
  let standby: PostgresServer | undefined
  const servers: Array<Server> = []
  let data = ""

  /** Returns the URL with which a role uses the database `acme`. */
  const urlOf = (role: string): string => {
    const url = new URL(cluster.url("acme"))
    url.username = role
    url.password = password
    return url.href
  }

  const start = async (role: string, flag: string, startedBy: string, databaseUrl = urlOf(role)): Promise<Server> => {
    const server = await startServer({
      config,
      directory: place.directory,
      startedBy,
      databaseUrl,
      flags: ["--role", flag]
    })
    servers.push(server)
    return server
  }

  beforeAll(async () => {
    await builtServer()
    cluster = await startPostgres({ followed: true })
    const home = freshDirectory()
    // Another user runs the server.
    chmodSync(home, 0o755)
    data = join(home, "standby")
    const { password: superuser, port } = new URL(cluster.adminUrl)
    place = await Place.make({
      PATH: `${postgresPrograms}:${process.env["PATH"]}`,
      PGHOST: "127.0.0.1",
      PGPORT: port,
      PGUSER: "postgres",
      PGPASSWORD: superuser
    })
    place.stand("docs/recipes", join(repository, "docs/recipes"))
    place.stand("postgres://acme@db.example/acme", urlOf("acme"))
    place.stand("db.example", "127.0.0.1")
    place.stand("db1.example", "127.0.0.1")
    place.stand("/var/lib/postgresql/15/main", data)
    // psql asks for the new password twice. Without a terminal, psql reads standard input.
    place.stand(
      "psql --dbname=postgres --command=\"\\password",
      `printf '${password}\\n${password}\\n' | psql --dbname=postgres --command="\\password`
    )
  })
  afterAll(async () => {
    for (const server of servers.toReversed()) await server.dispose()
    await standby?.stop()
    await cluster?.stop()
  })

  /** Runs a line as a role that is not a superuser. */
  const succeedAs = async (line: Line): Promise<string> => {
    const { code, stderr, stdout } = await place.paste(line, `PGPASSWORD=${password}`)
    assert.strictEqual(code, 0, `${place.rewritten(line)}\n${stdout}\n${stderr}`)
    return stdout
  }

  it("make a database whose owner is not a superuser, and a role for each process", async () => {
    await place.succeed("makeDatabase")
    for (const line of ["passwordOfOwner", "passwordOfFront", "passwordOfAdmin", "passwordOfWorker"] as const) {
      await place.succeed(line)
    }
    writeFileSync(place.at("config.toml"), config)
    assert.match(await succeedAs("migrateTarget"), /^[1-9]\d* migration\(s\) applied\.$/m)
    await succeedAs("grantRoles")
    const roles = await sqlAt(
      cluster.adminUrl,
      "SELECT rolname, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication AS may FROM pg_roles WHERE rolname LIKE 'acme%' ORDER BY rolname"
    )
    assert.deepStrictEqual(roles, [
      { rolname: "acme", may: false },
      { rolname: "acme_admin", may: false },
      { rolname: "acme_front", may: false },
      { rolname: "acme_worker", may: false }
    ])
    // Any other role of the server must be refused.
    await sqlAt(cluster.adminUrl, "CREATE ROLE stranger LOGIN PASSWORD 'secret'")
    const refused = await sqlAt(urlOf("stranger"), "SELECT 1").then(() => "entered", reasonOf)
    assert.match(refused, /permission denied for database/)
  })

  it("let processes with these roles issue certificates, and check their URLs", async () => {
    const worker = await start("acme_worker", "worker", "job_runner_started")
    const front = await start("acme_front", "acme", "server_listening")
    const session = await AcmeSession.open(front.directoryUrl)
    await session.register()
    assert.isNotEmpty(leafOf((await session.issue(["one.example"], new Map())).chain).serialNumber)
    session.close()
    const { stdout } = await place.paste("onlineCheck", `ACME_SVC_DATABASE__URL=${urlOf("acme_worker")}`)
    assert.match(stdout, /^database\.url +postgres:\S+ +ok +opened$/m)
    assert.notInclude(JSON.stringify([...worker.records(), ...front.records()]), "db_rights_missing")
  })

  it("check the server's certificate and its name, with every sslmode except disable", async () => {
    const folder = freshDirectory()
    const url = new URL(urlOf("acme"))
    url.hostname = "localhost"
    const opens = (query: string) =>
      sqlAt(`${url.href}?${query}`, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").then(
        ([row]) => row?.["ssl"],
        reasonOf
      )
    const certified = async (name: string): Promise<string> => {
      const [key, certificate] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)]
      const made = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        `/CN=${name}`
      ]
      const words = [
        "req",
        "-x509",
        ...made,
        "-addext",
        `subjectAltName=DNS:${name}`,
        "-keyout",
        key,
        "-out",
        certificate
      ]
      execFileSync("openssl", words, { stdio: "pipe" })
      await cluster.secure(certificate, key)
      return `sslrootcert=${certificate}`
    }
    const modes = ["verify-full", "verify-ca", "require", "prefer"]
    const ofAnother = await certified("db1.example")
    for (const mode of modes) {
      assert.match(String(await opens(`sslmode=${mode}`)), /self-signed certificate/, mode)
      assert.match(String(await opens(`sslmode=${mode}&${ofAnother}`)), /does not match certificate's altnames/, mode)
    }
    const ofThis = await certified("localhost")
    for (const mode of modes) assert.strictEqual(await opens(`sslmode=${mode}&${ofThis}`), true, mode)
    assert.strictEqual(await opens("sslmode=disable"), false)
  })

  it("make a standby that follows the primary", async () => {
    await place.succeed("makeReplicator")
    await place.succeed("passwordOfReplicator")
    mkdirSync(data)
    chmodSync(data, 0o700)
    await succeedAs("baseBackup")
    standby = await cluster.serve(data)
    await vi.waitFor(async () => {
      assert.match(await place.succeed("standbys"), /^ db2 +\| streaming +\| async$/m)
    }, { timeout: patienceMs, interval: 50 })
    await place.succeed("waitForStandby")
    await vi.waitFor(async () => {
      assert.match(await place.succeed("standbys"), /^ db2 +\| streaming +\| sync$/m)
    }, { timeout: patienceMs, interval: 50 })
  })

  it("move the service to the standby without a restart", async () => {
    const port = standby?.port ?? 0
    const [, written = ""] = bodiesOf(document, "toml")
    const [, ofBoth = ""] = /^url = "(.*)"$/m.exec(written) ?? []
    const both = (role: string) =>
      ofBoth.replace("acme_front@", `${role}:${password}@`).replace("db1.example:5432", `127.0.0.1:${cluster.port}`)
        .replace("db2.example:5432", `127.0.0.1:${port}`)
    for (const server of servers.splice(0)) await server.stop()
    await start("acme_worker", "worker", "job_runner_started", both("acme_worker"))
    const front = await start("acme_front", "acme", "server_listening", both("acme_front"))
    const session = await AcmeSession.open(front.directoryUrl)
    await session.register()
    const before = leafOf((await session.issue(["before.example"], new Map())).chain).serialNumber
    await cluster.halt()
    place.stand(
      "psql --dbname=postgres --command=\"SELECT pg_promote",
      `psql --port=${port} --dbname=postgres --command="SELECT pg_promote`
    )
    assert.match(await place.succeed("promote"), /^ t$/m)
    const at = through(cluster.adminUrl, { port })
    await sqlAt(at, "ALTER SYSTEM RESET synchronous_standby_names")
    await sqlAt(at, "SELECT pg_reload_conf()")
    // Requests may fail until the process has found the other server.
    const after = await vi.waitFor(async () => leafOf((await session.issue(["after.example"], new Map())).chain), {
      timeout: patienceMs,
      interval: 100
    })
    const kept = await sqlAt(
      through(urlOf("acme"), { port }),
      "SELECT cert_serial AS serial FROM orders WHERE cert_serial IS NOT NULL"
    )
    const serials = kept.map(({ serial }) => String(serial).toLowerCase())
    for (const serial of [before, after.serialNumber]) assert.include(serials, serial.toLowerCase())
    session.close()
  })
})

hasRunLinesOf("databases")
