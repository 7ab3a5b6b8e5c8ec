import Sqlite from "better-sqlite3"
import { base64url } from "jose"
import { spawn } from "node:child_process"
import { statSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { pathToFileURL } from "node:url"
import { Client } from "pg"
import { assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { bothDatabases, builtServer, databases, freshDirectory, freshPostgresUrl } from "../support/Databases.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { leafOf, renewalIdOf } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import { startPostgres } from "../support/Postgres.ts"
import { runtime, runToEnd, startServer } from "../support/Server.ts"

/* `transfer` as operators run it, from one database to another, and then a service with the filled database. */

const config = "[profiles.default]\n[challenge]\nbypass = true\n"
const program = resolve(import.meta.dirname, "../../dist/main.js")

interface Copied {
  readonly tables: ReadonlyArray<{ readonly table: string; readonly rows: number; readonly sha256: string }>
  readonly total: number
}

/** Puts URLs with a password into a file. */
const hidden = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [before, url] = [words.indexOf("--to"), words[words.indexOf("--to") + 1] ?? ""]
  if (before < 0 || !url.startsWith("postgres") || new URL(url).password === "") return words
  const file = join(freshDirectory(), "target")
  writeFileSync(file, `${url}\n`, { mode: 0o600 })
  return [...words.slice(0, before), "--to-file", file, ...words.slice(before + 2)]
}

/** Makes a directory with a configuration. Each command names its database. */
const place = () => {
  const directory = freshDirectory()
  const command = (databaseUrl: string, ...words: ReadonlyArray<string>) =>
    commandLine(hidden(words), {
      config,
      directory,
      env: { ACME_SVC_DATABASE__URL: databaseUrl, USER: "olga", PGPASSWORD: undefined }
    })
  const ends = async (code: number, databaseUrl: string, ...words: ReadonlyArray<string>): Promise<string> => {
    const ended = await command(databaseUrl, ...words)
    assert.strictEqual(ended.code, code, `${words.join(" ")}\n${ended.stdout}\n${ended.stderr}`)
    return code === 0 ? ended.stdout : ended.stderr
  }
  const transfer = async (from: string, to: string): Promise<Copied> =>
    JSON.parse(await ends(0, from, "transfer", "--to", to, "--yes", "--json")) as Copied
  /** Returns what must be the same after the way back: all tables except the trail, which also records the transfer. */
  const lasting = ({ tables }: Copied) => tables.filter(({ table }) => table !== "audit_log")
  return { directory, command, ends, transfer, lasting }
}

const sqliteUrl = (): string => `sqlite://${join(freshDirectory(), "acme.db")}`

describe("transfer", () => {
  beforeAll(builtServer)

  it("moves a service from SQLite to PostgreSQL and back again", async () => {
    const { directory, ends, lasting, transfer } = place()
    const [small, large, again] = [sqliteUrl(), await freshPostgresUrl(), sqliteUrl()]
    const port = await freePort()
    const serve = (databaseUrl: string) => startServer({ config, directory, port, databaseUrl })
    const begun = await serve(small)
    const session = await AcmeSession.open(begun.directoryUrl)
    await session.register()
    const first = await session.issue(["one.example"], new Map())
    const second = await session.issue(["two.example"], new Map())
    await begun.stop()
    session.close()

    await ends(0, large, "migrate")
    const there = await transfer(small, large)
    assert.isAbove(there.tables.find(({ table }) => table === "orders")?.rows ?? 0, 1)

    const moved = await serve(large)
    const client = await AcmeSession.open(moved.directoryUrl, { key: session.key })
    client.kid = session.kid
    const { directory: { revokeCert = "" } } = client
    const revoked = await client.post(revokeCert, { certificate: base64url.encode(leafOf(first.chain).raw), reason: 4 })
    assert.strictEqual(revoked.status, 200, revoked.text)
    const renewed = await client.issue(["two.example"], new Map(), {
      more: { replaces: renewalIdOf(second.chain) }
    })
    assert.notStrictEqual(leafOf(renewed.chain).serialNumber, leafOf(second.chain).serialNumber)
    const list = await fetch(moved.directoryUrl.replace(/directory$/, "crl"))
    assert.strictEqual(list.status, 200)
    await moved.stop()
    client.close()

    await ends(0, again, "migrate")
    const back = await transfer(large, again)
    await ends(0, small, "migrate", "--check")
    const third = sqliteUrl()
    await ends(0, third, "migrate")
    assert.deepStrictEqual(lasting(await transfer(again, third)), lasting(back), "copied again it is the same")
    const trail = JSON.parse(await ends(0, again, "order", "list", "--json")) as { readonly total: number }
    assert.strictEqual(trail.total, 3)

    const returned = await serve(again)
    const last = await AcmeSession.open(returned.directoryUrl, { key: session.key })
    last.kid = session.kid
    assert.strictEqual(await last.download(renewed.certificateUrl), renewed.chain)
    last.close()
    await returned.dispose()
  })

  it("copies nothing without a confirmation", async () => {
    const { ends } = place()
    const [from, to] = [sqliteUrl(), await freshPostgresUrl()]
    await ends(0, from, "migrate")
    await ends(0, to, "migrate")
    assert.include(await ends(2, from, "transfer", "--to", to), "--yes")
    const said = await ends(0, from, "transfer", "--to", to, "--yes")
    assert.match(said, /^TABLE +ROWS +SHA256\nworkers +0 +[0-9a-f]{64}\n/)
    assert.match(said, /^0 row\(s\) copied\. /m)
    assert.include(await ends(3, from, "transfer", "--to", to, "--yes"), "there are rows in")
  })

  it("shows no password, and refuses a password in an argument", async () => {
    const { command, directory, ends } = place()
    const [from, to] = [sqliteUrl(), await freshPostgresUrl()]
    await ends(0, from, "migrate")
    await ends(0, to, "migrate")
    const { password } = new URL(to)
    const full = await command(from, "transfer", "--to", to, "--yes", "--log-level", "debug")
    assert.strictEqual(full.code, 0, full.stderr)
    const env = { ACME_SVC_DATABASE__URL: from }
    const several = "postgres://acme:secret@127.0.0.1:1,127.0.0.1:2/acme"
    const transfer = (url: string) => commandLine(["transfer", "--to", url, "--yes"], { config, directory, env })
    const seen = await transfer(to)
    for (const { code, stderr } of [seen, await transfer(several)]) {
      assert.strictEqual(code, 2)
      assert.match(stderr, /^--to must not contain a password, .*--to-file.*PGPASSWORD\.$/m)
    }
    for (const words of [[], ["--to", to, "--to-file", "x"], ["--to-file", "/nowhere/at/all"]]) {
      assert.strictEqual((await commandLine(["transfer", ...words, "--yes"], { config, directory, env })).code, 2)
    }
    const wrong = to.replace(password, "not-the-one")
    const refused = await command(from, "transfer", "--to", wrong, "--yes", "--json")
    assert.strictEqual(refused.code, 1)
    assert.include(refused.stderr, "--to-file: postgres://postgres:***@127.0.0.1")
    for (const { stderr, stdout } of [full, refused, seen]) {
      assert.notInclude(`${stderr}${stdout}`, password)
      assert.notInclude(`${stderr}${stdout}`, "not-the-one")
    }
  })

  it("reads the password from PGPASSWORD", async () => {
    const { directory, ends } = place()
    const [from, to] = [sqliteUrl(), new URL(await freshPostgresUrl())]
    await ends(0, from, "migrate")
    await ends(0, to.href, "migrate")
    const { password } = to
    to.password = ""
    const words = ["transfer", "--to", to.href, "--yes"]
    const env = { ACME_SVC_DATABASE__URL: from }
    // The driver reads the variables of its process.
    const done = await runToEnd(words, { config, directory, env: { ...env, PGPASSWORD: password } })
    assert.deepStrictEqual([done.code, done.stderr], [0, ""])
    assert.strictEqual((await runToEnd(words, { config, directory, env })).code, 1)
  })

  it("refuses a source or a target that cannot be used, with the reason", async () => {
    const { directory, ends } = place()
    const [from, absent, behind] = [sqliteUrl(), sqliteUrl(), await freshPostgresUrl()]
    assert.include(
      await ends(1, behind, "transfer", "--to", from, "--yes"),
      "acme-svc migrate",
      "a source that is behind"
    )
    await ends(0, from, "migrate")
    assert.include(await ends(2, from, "transfer", "--to", "mysql://db/acme", "--yes"), "--to must begin with")
    assert.match(
      await ends(1, from, "transfer", "--to", absent, "--yes"),
      /--to: sqlite:.* cannot be opened: ENOENT: .*; `acme-svc migrate`/
    )
    assert.match(
      await ends(3, from, "transfer", "--to", behind, "--yes"),
      /The schemas differ: the source is at \d{4}_\w+, the target at no migration\. Run `acme-svc migrate`/
    )
    assert.include(
      await ends(3, from, "transfer", "--to", from, "--yes"),
      "The target is the configured database itself."
    )
    const closed = `postgres://postgres@127.0.0.1:${await freePort()}/acme`
    assert.match(await ends(1, from, "transfer", "--to", closed, "--yes"), /--to: .* cannot be opened: .*ECONNREFUSED/)
    assert.throws(() => statSync(absent.slice("sqlite://".length)))
    const server = await startServer({ config, directory, databaseUrl: from })
    const target = sqliteUrl()
    await ends(0, target, "migrate")
    const served = await ends(3, from, "transfer", "--to", target, "--yes")
    assert.match(served, new RegExp(`^Stop every server first: \\S+:${server.pid()}:\\S+ runs, or was seen`))
    await server.dispose()
  })
})

describe.each(bothDatabases)(
  "transfer while a server runs whose clock is behind, from $name",
  ({ dialect, freshUrl }) => {
    beforeAll(builtServer)

    it.each(dialect === "postgres" ? ["acme", "admin"] : ["acme"])(
      "refuses while the server has the role %s",
      async (role) => {
        const { directory, ends } = place()
        const [from, to] = [await freshUrl(), await freshPostgresUrl()]
        await ends(0, from, "init")
        await ends(0, to, "migrate")
        const clock = join(freshDirectory(), "clock")
        writeFileSync(clock, "-40000")
        const shim = pathToFileURL(resolve(import.meta.dirname, "../support/ShiftedClock.ts")).href
        const api = `127.0.0.1:${await freePort()}`
        const server = await startServer({
          config: `${config}[admin]\nenabled = true\nbind_address = "${api}"\nbase_url = "http://${api}"\n`,
          directory,
          databaseUrl: from,
          flags: ["--role", role],
          env: { NODE_OPTIONS: `--import=${shim}`, ACME_TEST_CLOCK: clock },
          startedBy: role === "admin" ? "admin_listening" : "server_listening"
        })
        // On PostgreSQL, the row is changed to that of a process on another host, whose state this host cannot know.
        if (dialect === "postgres") await sqlAt(from, "UPDATE workers SET owner = 'elsewhere:1:a:'")
        const said = await ends(3, from, "transfer", "--to", to, "--yes")
        assert.match(said, dialect === "postgres" ? /elsewhere:1:a: runs, or was seen/ : /first: \S+ runs, or was seen/)
        if (dialect === "postgres" && role === "acme") {
          const locks =
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND objid = 473821902"
          while ((await sqlAt(from, locks)).length === 0) await delay(20)
        }
        await server.stop()
        await sqlAt(from, "DELETE FROM workers")
        await ends(0, from, "transfer", "--to", to, "--yes")
        await server.dispose()
      }
    )
  }
)

/** Waits until a session writes to the jobs of a PostgreSQL database. */
const writesAt = async (to: string): Promise<void> => {
  const client = new Client({ connectionString: to })
  await client.connect()
  const locks = "SELECT 1 FROM pg_locks WHERE relation = 'jobs'::regclass AND mode = 'RowExclusiveLock'"
  while ((await client.query(locks)).rowCount === 0) await delay(1)
  await client.end()
}

/** Writes so many jobs into a migrated source that a copy takes some time. Returns the number of jobs. */
const fillJobs = (from: string): number => {
  const jobs = 40_000
  const source = new Sqlite(from.slice("sqlite://".length))
  source.exec(
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
         SELECT randomblob(16), 'x', value, hex(randomblob(200)), 'done', 1, 1, 1, 1, 1
         FROM (WITH RECURSIVE counted (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM counted LIMIT ${jobs})
           SELECT value FROM counted)`
  )
  source.close()
  return jobs
}

describe.each(databases)("transfer that is killed, to $name", ({ dialect, freshUrl }) => {
  beforeAll(builtServer)

  /** Waits until the program has begun to write. */
  const writes = async (to: string): Promise<void> => {
    if (dialect === "sqlite") {
      const log = `${to.slice("sqlite://".length)}-wal`
      // The pages of an open transaction are written to the file once they no longer fit into memory.
      while ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) < 1_000_000) await delay(1)
      return
    }
    await writesAt(to)
  }

  it("leaves the target empty, and succeeds at the second try", async () => {
    const { directory, ends, transfer } = place()
    const [from, to] = [sqliteUrl(), await freshUrl()]
    await ends(0, from, "migrate")
    await ends(0, to, "migrate")
    const jobs = fillJobs(from)
    const child = spawn(runtime, [program, ...hidden(["transfer", "--to", to, "--yes"])], {
      cwd: directory,
      env: { PATH: process.env["PATH"], ACME_SVC_DATABASE__URL: from },
      stdio: "ignore"
    })
    const ended = new Promise((done) => child.once("close", (_, signal) => done(signal)))
    await writes(to)
    child.kill("SIGKILL")
    assert.strictEqual(await ended, "SIGKILL")
    const { total } = await transfer(from, to)
    assert.strictEqual(total, jobs)
  })
})

describe("transfer to a PostgreSQL server that crashes meanwhile", () => {
  beforeAll(builtServer)

  it("ends with 1, leaves the target empty, and succeeds at the second try", async () => {
    const { command, ends, transfer } = place()
    const cluster = await startPostgres()
    try {
      const [from, to] = [sqliteUrl(), await cluster.createDatabase()]
      await ends(0, from, "migrate")
      await ends(0, to, "migrate")
      const jobs = fillJobs(from)
      const copying = command(from, "transfer", "--to", to, "--yes")
      await writesAt(to)
      await cluster.halt()
      const { code, stderr } = await copying
      assert.strictEqual(code, 1, stderr)
      assert.match(stderr, /the PostgreSQL server is down, starting or stopping/)
      await cluster.resume()
      assert.lengthOf(await sqlAt(to, "SELECT 1 FROM jobs LIMIT 1"), 0)
      const { total } = await transfer(from, to)
      assert.strictEqual(total, jobs)
    } finally {
      await cluster.stop()
    }
  })
})
