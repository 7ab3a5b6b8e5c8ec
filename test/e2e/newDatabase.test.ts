import { execFileSync } from "node:child_process"
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, beforeAll, beforeEach, describe, it } from "vitest"
import { everyRole } from "../../src/domain/Role.ts"
import { needed } from "../../src/store/Rights.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { text } from "../support/Documents.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { makeCa } from "../support/Openssl.ts"
import { useOwnPostgres } from "../support/OwnPostgres.ts"
import { freePort } from "../support/Ports.ts"
import { startServer } from "../support/Server.ts"

/* `init --database`, on a server of its own, because roles belong to a whole server. */

const { cluster, password, urlOf: adminUrl } = useOwnPostgres()
let directory = ""
let passwordFile = ""

beforeAll(builtServer)
beforeEach(() => {
  directory = freshDirectory()
  passwordFile = join(directory, "admin.password")
  writeFileSync(passwordFile, `${password()}\n`, { mode: 0o600 })
})

const configAt = () => join(directory, "config.toml")
const urlIn = (path = configAt()): string => /^url = "(postgres.*)"$/m.exec(readFileSync(path, "utf8"))?.[1] ?? ""

/** Runs `init --database` in the folder, with the password in a file unless the environment has it. */
const init = (words: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, url = adminUrl()) => {
  const file = "PGPASSWORD" in env || words.some((word) => word.startsWith("--admin")) ? [] : [
    "--admin-password-file",
    passwordFile
  ]
  return commandLine(["init", "--database", url, ...file, ...words], {
    config: null,
    directory,
    env: { ...env }
  })
}

const rolesLike = (name: string) =>
  sqlAt(cluster().adminUrl, `SELECT rolname FROM pg_roles WHERE rolname LIKE '${name}%' ORDER BY 1`)
const databaseNamed = (name: string) =>
  sqlAt(cluster().adminUrl, `SELECT datname FROM pg_database WHERE datname = '${name}'`)

const leavesNothing = async (name: string) => {
  assert.deepStrictEqual(await rolesLike(name), [])
  assert.deepStrictEqual(await databaseNamed(name), [])
  assert.isFalse(existsSync(configAt()))
}

describe("init --database", () => {
  it("makes a database and its roles, writes the URL for its owner alone, and does nothing the second time", async () => {
    const made = await init([])
    assert.strictEqual(made.code, 0, made.stderr)
    assert.strictEqual(made.stderr, "")
    assert.match(made.stdout, /^created configuration config\.toml$/m)
    assert.match(made.stdout, /^created roles +acme, acme_front, acme_admin, acme_worker$/m)
    assert.match(made.stdout, /^created database +acme$/m)
    assert.match(made.stdout, /^created schema +\d+ migration\(s\)$/m)
    assert.match(made.stdout, /^created rights +acme_front, acme_admin, acme_worker$/m)
    assert.match(made.stdout, /^created operator +admin, whose password a link of serve sets$/m)
    assert.strictEqual(statSync(configAt()).mode & 0o777, 0o600)
    const url = new URL(urlIn())
    assert.deepStrictEqual([url.username, url.pathname], ["acme", "/acme"])
    assert.isAbove(url.password.length, 40)
    assert.notInclude(made.stdout + made.stderr, url.password)
    assert.notInclude(made.stdout + made.stderr, password())
    const before = readFileSync(configAt(), "utf8")
    const again = await init([])
    assert.deepStrictEqual([again.code, again.stdout, again.stderr], [0, "Nothing to do: everything exists.\n", ""])
    assert.strictEqual(readFileSync(configAt(), "utf8"), before)
  })

  it("makes the operator whom an earlier run could not make, while nobody has changed the configuration", async () => {
    assert.strictEqual((await init(["--database-name", "repeated"])).code, 0)
    await sqlAt(cluster().url("repeated"), "TRUNCATE admin_users CASCADE")
    assert.match((await init([])).stdout, /^created operator +admin, whose password a link of serve sets$/m)
    await sqlAt(cluster().url("repeated"), "TRUNCATE admin_users CASCADE")
    appendFileSync(configAt(), "# This is mine.\n")
    assert.notInclude((await init([])).stdout, "operator")
  })

  it("makes the operator if an earlier run without --database has only written the first configuration", async () => {
    assert.strictEqual((await commandLine(["init"], { config: null, directory })).code, 0)
    for (const file of ["sqlite.db", "sqlite.db-wal", "sqlite.db-shm"]) rmSync(join(directory, file), { force: true })
    const made = await init(["--database-name", "interrupted"])
    assert.match(made.stdout, /^created operator +admin, whose password a link of serve sets$/m)
    assert.include(urlIn(), "/interrupted")
  })

  it("gives the roles exactly the documented rights, and lets no other role of the server in", async () => {
    const attributes = await sqlAt(
      cluster().adminUrl,
      "SELECT rolname, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS may FROM pg_roles WHERE rolname LIKE 'acme%'"
    )
    assert.deepStrictEqual(attributes.map(({ may }) => may), [false, false, false, false])
    const users = { acme: "acme_front", admin: "acme_admin", worker: "acme_worker" }
    for (const role of everyRole) {
      const rows = await sqlAt(
        cluster().url("acme"),
        `SELECT privilege_type || ' on ' || table_name AS "right" FROM information_schema.role_table_grants
         WHERE grantee = '${users[role]}' AND table_schema = 'public'
         UNION SELECT privilege_type || ' on ' || table_name || '.' || column_name
         FROM information_schema.role_column_grants c WHERE grantee = '${users[role]}' AND table_schema = 'public'
           AND NOT EXISTS (SELECT FROM information_schema.role_table_grants t WHERE t.grantee = c.grantee
             AND t.table_name = c.table_name AND t.privilege_type = c.privilege_type)`
      )
      assert.sameMembers(rows.map(({ right }) => String(right)), [...needed(new Set([role]))], role)
    }
    const [schema] = await sqlAt(
      cluster().url("acme"),
      "SELECT pg_get_userbyid(nspowner) AS owner, has_schema_privilege('acme_front', 'public', 'CREATE') AS may FROM pg_namespace WHERE nspname = 'public'"
    )
    assert.deepStrictEqual(schema, { owner: "acme", may: false })
    await sqlAt(cluster().adminUrl, "CREATE ROLE stranger LOGIN PASSWORD 'secret'")
    const stranger = new URL(cluster().url("acme"))
    stranger.username = "stranger"
    stranger.password = "secret"
    const entered = await sqlAt(stranger.href, "SELECT 1").then(() => "entered", (error: Error) => String(error.cause))
    assert.match(entered, /permission denied for database/)
  })

  it("makes a database from which a service issues certificates", async () => {
    assert.strictEqual((await init(["--database-name", "issuing"])).code, 0)
    const httpPort = await freePort()
    const responder = await startHttp01Responder({ port: httpPort })
    const server = await startServer({
      config: null,
      directory,
      env: { ACME_SVC_DATABASE__URL: undefined, ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}` }
    })
    try {
      const session = await AcmeSession.open(server.directoryUrl)
      await session.register()
      assert.isNotEmpty((await session.issue(["demo.localhost"], responder.tokens)).chain)
      session.close()
    } finally {
      await server.dispose()
      await responder.stop()
    }
    assert.deepStrictEqual(
      await sqlAt(cluster().url("issuing"), "SELECT count(*)::integer AS orders FROM orders WHERE status = 'valid'"),
      [{ orders: 1 }]
    )
  })

  it("prints statements that do the same as the recipe, and needs no server for that", async () => {
    const printed = await commandLine(
      ["init", "--database", "postgres://admin@db.example/postgres", "--print"],
      { config: null, directory }
    )
    assert.strictEqual(printed.code, 0, printed.stderr)
    const statements = (script: string) =>
      script.split("\n").filter((line) => line !== "" && !/^(?:--|\\password)/.test(line)).join("\n").replaceAll(
        "\"",
        ""
      )
    assert.strictEqual(statements(printed.stdout), statements(text("docs/recipes/postgres-database.sql")))
    assert.include(printed.stdout, "\\password \"acme\"")
    assert.isFalse(existsSync(configAt()))
  })

  it("takes the administrator's password from PGPASSWORD too", async () => {
    const made = await init(["--database-name", "by_variable"], { PGPASSWORD: password() })
    assert.strictEqual(made.code, 0, made.stderr)
  })

  it("makes the role and the database that the configuration already names, with the password that is there", async () => {
    const url = new URL(cluster().url("chosen"))
    url.username = "chosen"
    url.password = "p%20w"
    const env = { ACME_SVC_DATABASE__URL: url.href, ACME_SVC_PROFILES__DEFAULT__ENABLED: "true" }
    const made = await init([], env)
    assert.strictEqual(made.code, 0, made.stderr)
    assert.notMatch(made.stdout, /configuration|operator/)
    assert.strictEqual((await init([], env)).stdout, "Nothing to do: everything exists.\n")
    assert.deepStrictEqual(await sqlAt(url.href, "SELECT current_user::text AS me"), [{ me: "chosen" }])
  })

  it("adds the URL to a configuration that has none, and then only its owner can read the file", async () => {
    const own = "# mine\n[profiles.team]\n\n[database]  # here\npool_max = 4\n"
    writeFileSync(configAt(), own, { mode: 0o644 })
    const made = await init(["--database-name", "added"])
    assert.strictEqual(made.code, 0, made.stderr)
    assert.include(made.stdout, `created database.url  ${configAt()}\n`)
    assert.strictEqual(readFileSync(configAt(), "utf8").replace(/^url = .*\n/m, ""), own)
    assert.strictEqual(new URL(urlIn()).username, "added")
    assert.strictEqual(statSync(configAt()).mode & 0o777, 0o600)
  })

  it("keeps the parameters of the URL, such as sslmode", async () => {
    const made = await init(["--database-name", "with_mode"], {}, `${adminUrl()}?sslmode=disable`)
    assert.strictEqual(made.code, 0, made.stderr)
    assert.match(urlIn(), /\/with_mode\?sslmode=disable$/)
  })

  it("works for an administrator who is not a superuser", async () => {
    await sqlAt(cluster().adminUrl, "CREATE ROLE maker LOGIN CREATEROLE CREATEDB PASSWORD 'secret'")
    const made = await init(["--database-name", "by_maker"], { PGPASSWORD: "secret" }, adminUrl("maker"))
    assert.strictEqual(made.code, 0, made.stderr)
    const members = await sqlAt(
      cluster().adminUrl,
      "SELECT set_option FROM pg_auth_members WHERE member = 'maker'::regrole AND roleid = 'by_maker'::regrole AND (set_option OR inherit_option)"
    )
    assert.deepStrictEqual(members, [], "the administrator cannot act as the owner afterwards")
  })
})

describe("init --database is refused, and leaves nothing behind,", () => {
  const refused = async (
    name: string,
    code: number,
    sentence: RegExp,
    env: Readonly<Record<string, string>> = {},
    url = adminUrl()
  ) => {
    const said = await init(["--database-name", name], env, url)
    assert.deepStrictEqual([said.code, said.stdout], [code, ""], said.stderr)
    assert.match(said.stderr, sentence)
    assert.notMatch(said.stderr, /^\s+at /m)
    return said
  }

  it("if the URL has a password", async () => {
    const url = new URL(cluster().adminUrl).href
    const { stderr } = await refused("none", 2, /^--database must not contain a password, /, {}, url)
    assert.notInclude(stderr, password())
  })

  it.each([
    ["sqlite://here.db", "--database must begin with postgres:// or postgresql://."],
    ["postgres://db.example/postgres", "--database must name the administrator: postgres://admin@host/postgres."],
    ["postgres://admin@db.example", "--database must name a database that is there: postgres://admin@host/postgres."]
  ])("if the URL is %s", async (url, sentence) => {
    const said = await init([], {}, url)
    assert.deepStrictEqual([said.code, said.stderr], [2, `${sentence}\n`])
  })

  it.each(["--print", "--database-name=x", "--admin-password-file=-"])("if %s is given alone", async (word) => {
    const said = await commandLine(["init", word], { config: null, directory })
    assert.deepStrictEqual([said.code, said.stderr], [2, `${word.split("=")[0]} requires --database.\n`])
    assert.isFalse(existsSync(configAt()))
  })

  it.each(["Acme", "1st", "pg_acme", "a-b", "a\"b"])("if the name is %s", async (name) => {
    await refused(name, 2, /^--database-name must have 1 to 50 lower-case letters, /)
  })

  it("if the password is wrong", async () => {
    const sentence =
      /^--database: postgres:\/\/postgres:\*\*\*@\S+ cannot be used: PostgreSQL does not let postgres in: .*password authentication failed/
    await refused("none", 3, sentence, { PGPASSWORD: "wrong" })
    await leavesNothing("none")
  })

  it("if the file with the password does not exist", async () => {
    const said = await init(["--admin-password-file", "absent"])
    assert.strictEqual(said.code, 3)
    assert.match(said.stderr, /^--admin-password-file: \S+absent cannot be used: no such file/)
  })

  it("if nothing listens at the host", async () => {
    const url = `postgres://postgres@127.0.0.1:${await freePort()}/postgres`
    await refused("none", 1, /cannot be used: .*ECONNREFUSED/, {}, url)
    await leavesNothing("none")
  })

  it("if the host does not exist", async () => {
    await refused("none", 1, /cannot be used: .*ENOTFOUND|EAI_AGAIN/, {}, "postgres://postgres@db.invalid/postgres")
  })

  it("if the database of the administrator does not exist", async () => {
    await refused(
      "none",
      3,
      /database "nowhere" does not exist; name a database that is there/,
      {},
      adminUrl("postgres", "nowhere")
    )
  })

  it("if the server does no TLS and the URL asks for it", async () => {
    await refused("none", 1, /does not support SSL/, {}, `${adminUrl()}?sslmode=verify-full`)
    await leavesNothing("none")
  })

  it("if the administrator may not create roles, or databases", async () => {
    await sqlAt(cluster().adminUrl, "CREATE ROLE weak LOGIN CREATEDB PASSWORD 'secret'")
    const env = { PGPASSWORD: "secret" }
    await refused(
      "none",
      3,
      /^--database: the role weak may not create roles: it needs CREATEROLE\.$/m,
      env,
      adminUrl("weak")
    )
    await sqlAt(cluster().adminUrl, "ALTER ROLE weak NOCREATEDB CREATEROLE")
    await refused(
      "none",
      3,
      /^--database: the role weak may not create databases: it needs CREATEDB\.$/m,
      env,
      adminUrl("weak")
    )
    await leavesNothing("none")
  })

  it("if the database is somebody else's", async () => {
    await sqlAt(cluster().adminUrl, "CREATE DATABASE taken")
    await refused("taken", 3, /^The database taken exists and belongs to postgres, so it is not the service's\./)
    assert.deepStrictEqual(await rolesLike("taken"), [])
    assert.isFalse(existsSync(configAt()))
  })

  it("if the role exists, with the same rights or with others", async () => {
    await sqlAt(cluster().adminUrl, "CREATE ROLE there LOGIN PASSWORD 'secret'")
    await refused("there", 3, /^The role there exists, and its password is not known here\./)
    await sqlAt(cluster().adminUrl, "ALTER ROLE there CREATEDB; GRANT pg_monitor TO there")
    await refused(
      "there",
      3,
      /^The role there exists with other rights than the service needs: it may create databases and is a member of pg_monitor\./
    )
    await sqlAt(cluster().adminUrl, "CREATE ROLE partly_admin SUPERUSER NOLOGIN")
    await refused("partly", 3, /^The role partly_admin exists .*: it may not log in and is a superuser\./)
    assert.deepStrictEqual(await databaseNamed("there"), [])
    assert.isFalse(existsSync(configAt()))
  })

  it("if the password of the configuration is not the role's, or the database has other tables", async () => {
    await sqlAt(cluster().adminUrl, "CREATE ROLE other LOGIN PASSWORD 'right'")
    const at = (pass: string) => {
      const url = new URL(cluster().url("other"))
      url.username = "other"
      url.password = pass
      return { ACME_SVC_DATABASE__URL: url.href }
    }
    const wrong = await init([], at("wrong"))
    assert.strictEqual(wrong.code, 3)
    assert.match(
      wrong.stderr,
      /^database\.url: postgres:\/\/other:\*\*\*@\S+ cannot be used: PostgreSQL does not let other in/
    )
    await sqlAt(cluster().adminUrl, "CREATE DATABASE other OWNER other")
    await sqlAt(cluster().url("other"), "CREATE TABLE wages (id integer)")
    const foreign = await init([], at("right"))
    assert.strictEqual(foreign.code, 3)
    assert.match(foreign.stderr, /^The database other has the table wages, which is not the service's\./)
  })

  it("if database.url is a SQLite file, another server or another database", async () => {
    const sentences = {
      [`sqlite://${directory}/x.db`]:
        /^database\.url is sqlite:\/\/\S+ in ACME_SVC_DATABASE__URL\. Remove it there first/,
      "postgres://acme:x@db.example/acme": /which is another server than that of --database\.$/m,
      [adminUrl("acme", "acme")]: /It must name the role, its password and the database, or be removed\.$/m
    }
    for (const [url, sentence] of Object.entries(sentences)) {
      const said = await init([], { ACME_SVC_DATABASE__URL: url })
      assert.strictEqual(said.code, 3)
      assert.match(said.stderr, sentence)
    }
    assert.strictEqual((await commandLine(["init"], { config: null, directory })).code, 0)
    await refused("none", 3, /sqlite\.db exists and would no longer be used\./)
  })

  it("and removes what it made if a later step fails", async () => {
    // A template that is in use cannot be copied.
    await sqlAt(
      cluster().adminUrl,
      "UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'"
    )
    const held = new URL(cluster().url("template0"))
    const { Client } = await import("pg")
    const client = new Client({ connectionString: held.href })
    await client.connect()
    try {
      const said = await refused(
        "undone",
        1,
        /source database "template0" is being accessed by other users.* Nothing was left behind\.$/m
      )
      assert.notInclude(said.stderr, password())
      await leavesNothing("undone")
    } finally {
      await client.end()
      await sqlAt(cluster().adminUrl, "UPDATE pg_database SET datallowconn = false WHERE datname = 'template0'")
    }
  })
})

describe("init --database over TLS", () => {
  let folder = ""
  const at = (name: string) => join(folder, name)

  /** Lets the server show a certificate for this name, which the root of this file has signed. */
  const serveAs = async (name: string): Promise<void> => {
    const [key, request, certificate] = [at(`${name}.key`), at(`${name}.csr`), at(`${name}.pem`)]
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", `/CN=${name}`]
    const named = ["-addext", `subjectAltName=DNS:${name}`]
    execFileSync("openssl", ["req", "-new", ...made, ...named, "-keyout", key, "-out", request], { stdio: "pipe" })
    const root = ["-CA", at("root.pem"), "-CAkey", at("root.key"), "-copy_extensions", "copy", "-days", "2"]
    execFileSync("openssl", ["x509", "-req", "-in", request, ...root, "-out", certificate], { stdio: "pipe" })
    await cluster().secure(certificate, key)
  }

  /** Returns the URL of the administrator, with every check of the server's certificate. */
  const checking = (root: string): string => {
    const url = new URL(adminUrl())
    url.hostname = "localhost"
    return `${url.href}?sslmode=verify-full&sslrootcert=${at(root)}`
  }

  beforeAll(() => {
    folder = freshDirectory()
    makeCa(at("root.pem"), at("root.key"), "Root of the database")
    makeCa(at("other.pem"), at("other.key"), "Another root")
  })

  it("makes a database whose URL keeps the checks, so that the service makes them too", async () => {
    await serveAs("localhost")
    const made = await init(["--database-name", "over_tls"], {}, checking("root.pem"))
    assert.strictEqual(made.code, 0, made.stderr)
    assert.isTrue(urlIn().endsWith(`/over_tls?sslmode=verify-full&sslrootcert=${at("root.pem")}`), urlIn())
    const [row] = await sqlAt(urlIn(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    assert.deepStrictEqual(row, { ssl: true })
  })

  it.each([
    [
      "another root",
      "localhost",
      "other.pem",
      /cannot be used: UNABLE_TO_VERIFY_LEAF_SIGNATURE unable to verify the first certificate; no CA that is trusted here has signed it: .* sslrootcert=/
    ],
    [
      "another name",
      "db1.example",
      "root.pem",
      /cannot be used: .*does not match certificate's altnames: .*db1\.example/
    ],
    ["no root at all", "localhost", "none.pem", /cannot be used: ENOENT: no such file or directory, .*none\.pem/]
  ])("leaves nothing behind if the certificate has %s", async (_, name, root, sentence) => {
    await serveAs(name)
    const said = await init(["--database-name", "unseen"], {}, checking(root))
    assert.match(said.stderr, sentence, `code ${said.code}: ${said.stderr}`)
    assert.deepStrictEqual([said.code, said.stdout], [1, ""])
    assert.notInclude(said.stderr, password())
    await leavesNothing("unseen")
  })
})

describe("a server that is too old", () => {
  it("is refused with both versions", async () => {
    // No such server can be installed here, so this one only tells its version, as version 12 would.
    const server = createServer((socket) => {
      const message = (type: string, body: Buffer) => {
        const length = Buffer.alloc(4)
        length.writeInt32BE(body.length + 4)
        return Buffer.concat([Buffer.from(type), length, body])
      }
      socket.on("error", () => {})
      socket.on("data", (chunk) => {
        const ready = message("Z", Buffer.from("I"))
        if (chunk.length < 8) return
        if (chunk.readInt32BE(4) === 196_608) {
          return void socket.write(Buffer.concat([message("R", Buffer.from([0, 0, 0, 0])), ready]))
        }
        const isState = chunk.includes("pg_is_in_recovery")
        const columns = isState ? ["isStandby", "isReadOnly", "version"] : ["limits"]
        const values = isState ? ["f", "f", "120022"] : ["{}"]
        const oids = isState ? [16, 16, 23] : [114]
        const int16 = (value: number) => Buffer.from([value >> 8, value & 255])
        const int32 = (value: number) => {
          const octets = Buffer.alloc(4)
          octets.writeInt32BE(value)
          return octets
        }
        const described = Buffer.concat([
          int16(columns.length),
          ...columns.flatMap((name, at) => [
            Buffer.from(`${name}\0`),
            int32(0),
            int16(0),
            int32(oids[at] ?? 0),
            int16(0),
            int32(-1),
            int16(0)
          ])
        ])
        const row = Buffer.concat([
          int16(values.length),
          ...values.flatMap((value) => [int32(value.length), Buffer.from(value)])
        ])
        socket.write(Buffer.concat([
          message("T", described),
          message("D", row),
          message("C", Buffer.from("SELECT 1\0")),
          ready
        ]))
      })
    })
    const port = await freePort()
    await new Promise<void>((done) => server.listen(port, "127.0.0.1", done))
    try {
      const said = await init([], {}, `postgres://postgres@127.0.0.1:${port}/postgres`)
      assert.strictEqual(said.code, 3, said.stderr)
      assert.match(said.stderr, /the server is PostgreSQL 12, and the service needs 13 or newer/)
      assert.isFalse(existsSync(configAt()))
    } finally {
      server.close()
    }
  })
})
