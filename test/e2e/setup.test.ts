import { Effect } from "effect"
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, beforeEach, describe, it } from "vitest"
import { setupQuestions } from "../../src/app/SetupQuestions.ts"
import { generateTlsPair } from "../../src/crypto/x509/TlsPair.ts"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { sqlAt } from "../support/OpenDatabase.ts"
import { makeCa, verifyChain } from "../support/Openssl.ts"
import { useOwnPostgres } from "../support/OwnPostgres.ts"
import { freePort } from "../support/Ports.ts"
import { startServer } from "../support/Server.ts"
import { atTerminal, keys } from "../support/Terminal.ts"

/* `setup`, at a terminal and with a file of answers. The roles of PostgreSQL belong to a server of this file's own. */

const { cluster, password, urlOf } = useOwnPostgres()
let directory = ""

const operatorPassword = "seven grey herons at dusk"

beforeAll(builtServer)
beforeEach(() => {
  directory = freshDirectory()
})

const at = (name: string) => join(directory, name)
const configText = () => readFileSync(at("config.toml"), "utf8")

const put = (name: string, text: string): string => {
  writeFileSync(at(name), text, { mode: 0o600 })
  return at(name)
}

type Answers = Readonly<Record<string, string | boolean | ReadonlyArray<string>>>

const toml = (answers: Answers): string =>
  Object.entries(answers).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`).join("")

/** Runs `setup` with these answers in a file. */
const setup = (
  answers: Answers | string,
  words: ReadonlyArray<string> = ["--yes"],
  env: Record<string, string> = {}
) => {
  put("answers", typeof answers === "string" ? answers : toml(answers))
  return commandLine(["setup", "--answers", "answers", ...words], { config: null, directory, env })
}

/** Serves what `setup` wrote, with the ports of this test, and gets a certificate as a client does. */
const issues = async (port: number, { isTls = false, caFile = "ca.pem" } = {}): Promise<void> => {
  const httpPort = await freePort()
  const responder = await startHttp01Responder({ port: httpPort })
  const server = await startServer({
    config: null,
    directory,
    port,
    env: {
      ACME_SVC_SERVER__BIND_ADDRESS: undefined,
      ACME_SVC_SERVER__BASE_URL: undefined,
      ACME_SVC_SERVER__TLS__ENABLED: undefined,
      ACME_SVC_CHALLENGE__ALLOW_LOOPBACK: undefined,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${await freePort()}`
    }
  })
  try {
    const session = await AcmeSession.open(`http${isTls ? "s" : ""}://localhost:${port}/profile/default/directory`)
    await session.register()
    const { chain } = await session.issue(["demo.localhost"], responder.tokens)
    await verifyChain(chain, at(caFile), "demo.localhost")
    session.close()
  } finally {
    await server.dispose()
    await responder.stop()
  }
}

const localUrl = async () => {
  const port = await freePort()
  return { port, url: `http://localhost:${port}` }
}

describe("setup --answers", () => {
  it("writes a configuration that only its owner can read, does what init does, and says what comes next", async () => {
    const { port, url } = await localUrl()
    put("operator.password", `${operatorPassword}\n`)
    const done = await setup({ url, operator: "ann", operator_password_file: "operator.password" })
    assert.strictEqual(done.code, 0, done.stderr)
    const lines = [
      /^created configuration config\.toml$/m,
      /\/config\.toml can be served, with 1 profile\(s\)\.$/m,
      /^created schema +\d+ migration\(s\)$/m,
      /^created CA +ca\.pem, ca\.key$/m,
      /^created operator +ann$/m,
      /^ {2}1\. acme-svc serve$/m,
      /^ {2}2\. acme-svc health$/m,
      /^ {2}3\. Open http:\/\/localhost:3001 on this machine$/m
    ]
    for (const line of lines) assert.match(done.stdout, line)
    assert.include(done.stdout, configText(), "the file is shown before it is written")
    assert.notInclude(done.stdout + done.stderr + configText(), operatorPassword)
    assert.strictEqual(statSync(at("config.toml")).mode & 0o777, 0o600)
    const listed = await commandLine(["admin", "user", "list", "--json"], { config: null, directory })
    const [operator] = (JSON.parse(listed.stdout) as { items: ReadonlyArray<{ username: string; role: string }> }).items
    assert.deepInclude(operator, { username: "ann", role: "admin" })
    await issues(port)
  })

  it("changes no configuration that exists, unless another file is named", async () => {
    put("config.toml", "# mine\n")
    const refused = await setup({})
    assert.deepStrictEqual([refused.code, refused.stdout], [3, ""])
    assert.match(refused.stderr, /config\.toml exists, and setup never changes a configuration\./)
    const other = await setup({ panel: false }, ["--yes", "--out", "other.toml"])
    assert.strictEqual(other.code, 0, other.stderr)
    assert.include(other.stdout, "1. ACME_SVC_CONFIG=other.toml acme-svc serve")
    assert.strictEqual(configText(), "# mine\n")
    const again = await setup({ panel: false }, ["--yes", "--out", "other.toml"])
    assert.deepStrictEqual([again.code, again.stdout], [3, ""])
    assert.match(again.stderr, /other\.toml exists already\. Name a new file with --out\.$/m)
  })

  it("removes the configuration again if the rest fails, so that it can be repeated", async () => {
    put("operator.password", `${operatorPassword}\n`)
    put("sqlite.db", "This is no database. ".repeat(1000))
    const answers = { operator: "ann", operator_password_file: "operator.password" }
    const failed = await setup(answers)
    assert.strictEqual(failed.code, 1, failed.stdout)
    assert.match(failed.stderr, /\nconfig\.toml was removed again, so setup can be repeated\.$/m)
    assert.isFalse(existsSync(at("config.toml")))
    rmSync(at("sqlite.db"))
    const done = await setup(answers)
    assert.strictEqual(done.code, 0, done.stderr)
    assert.match(done.stdout, /^created operator +ann$/m)
  })

  it("fills a file that is empty, and keeps its mode", async () => {
    put("new.toml", "")
    chmodSync(at("new.toml"), 0o640)
    const done = await setup({ panel: false }, ["--yes", "--out", "new.toml", "--systemd"])
    assert.strictEqual(done.code, 0, done.stderr)
    assert.strictEqual(statSync(at("new.toml")).mode & 0o777, 0o640)
    assert.match(done.stdout, /^ {2}1\. systemctl enable --now acme-svc$/m)
  })

  it("writes nothing without a terminal and --yes, but shows the file", async () => {
    const { code, stderr, stdout } = await setup({}, [])
    assert.strictEqual(code, 2)
    assert.include(stdout, "[profiles.default]")
    assert.strictEqual(stderr, "There is no terminal to ask for confirmation: pass --yes to go ahead.\n")
    assert.deepStrictEqual(readdirSync(directory), ["answers"])
    const asked = await commandLine(["setup"], { config: null, directory })
    assert.strictEqual(asked.code, 2)
    assert.match(asked.stderr, /^There is no terminal to ask questions: name a file with the answers by --answers\.$/m)
  })

  it("serves TLS with a pair of the operator, and with one that it makes", async () => {
    const port = await freePort()
    const pair = await Effect.runPromise(
      generateTlsPair({ host: "localhost", now: Date.now() / 1000, serial: Buffer.from("42", "hex") })
    )
    put("own.pem", pair.certificatePem)
    put("own.key", pair.privateKeyPem)
    const url = `https://localhost:${port}`
    const own = await setup({ url, tls: "own", tls_cert_path: "own.pem", tls_key_path: "own.key", panel: false })
    assert.strictEqual(own.code, 0, own.stderr)
    assert.include(configText(), `cert_path = "${at("own.pem")}"`)
    await issues(port, { isTls: true })
    directory = freshDirectory()
    const generated = await setup({ url, panel: false })
    assert.strictEqual(generated.code, 0, generated.stderr)
    assert.match(generated.stdout, /^created TLS pair +server\.pem, server\.key$/m)
    await issues(port, { isTls: true })
  })

  it("trusts the proxy that it is behind, and lets only the networks in that are named", async () => {
    const done = await setup({
      url: "https://acme.example.org",
      tls: "proxy",
      proxies: ["192.0.2.1"],
      access: "networks",
      networks: ["10.0.0.0/8", "2001:db8::/32"],
      panel: false
    })
    assert.strictEqual(done.code, 0, done.stderr)
    assert.include(configText(), "bind_address = \"127.0.0.1:3000\"")
    const verdict = async (ip: string, path: string) =>
      (await commandLine(
        ["filter", "explain", "--client-ip", ip, "--method", "GET", "--path", path],
        { config: null, directory }
      )).code
    assert.deepStrictEqual(
      [
        await verdict("10.1.2.3", "/directory"),
        await verdict("203.0.113.9", "/directory"),
        await verdict("203.0.113.9", "/crl")
      ],
      [0, 3, 0]
    )
    const shown = await commandLine(["config", "show", "--json"], { config: null, directory })
    assert.include(shown.stdout, "192.0.2.1")
  })

  it("requires a credential if the answers say so, and says how to make one without a panel", async () => {
    const { port, url } = await localUrl()
    const done = await setup({ url, access: "credentials", panel: false })
    assert.strictEqual(done.code, 0, done.stderr)
    assert.match(done.stdout, /^ {2}3\. acme-svc eab create --label "my first client"$/m)
    const made = await commandLine(["eab", "create", "--label", "my first client", "--json"], {
      config: null,
      directory
    })
    assert.strictEqual(made.code, 0, made.stderr)
    const failure = await issues(port).then(() => "issued", String)
    assert.match(failure, /externalAccountRequired/)
  })

  it("signs with a CA that is imported", async () => {
    const { port, url } = await localUrl()
    makeCa(at("corp.pem"), at("corp.key"), "Corp CA")
    const done = await setup({ url, ca: "import", ca_cert_path: "corp.pem", ca_key_path: "corp.key", panel: false })
    assert.strictEqual(done.code, 0, done.stderr)
    assert.notInclude(done.stdout, "created CA")
    await issues(port, { caFile: "corp.pem" })
  })

  /** Makes a root in another folder, which answers `issuing.csr` with `issuing.pem`. */
  const signAtRoot = async () => {
    put("passphrase", "a long passphrase\n")
    const passphrase = ["--passphrase-file", "passphrase"]
    const root = await commandLine(
      ["ca", "init", "--root", "root", "--root-only", "--root-name", "Corp Root", ...passphrase],
      { config: null, directory }
    )
    assert.strictEqual(root.code, 0, root.stderr)
    const signed = await commandLine(
      ["ca", "sign", "issuing.csr", "--root", "root", "--permit", "localhost", "--yes", ...passphrase],
      { config: null, directory }
    )
    assert.strictEqual(signed.code, 0, signed.stderr)
    put("issuing.pem", signed.stdout)
  }

  it("makes the request for a CA below a root that is elsewhere, and issues when the root has answered", async () => {
    const { port, url } = await localUrl()
    const done = await setup({ url, ca: "corporate", panel: false })
    assert.strictEqual(done.code, 0, done.stderr)
    assert.match(done.stdout, /^created request +issuing\.csr$/m)
    assert.match(done.stdout, /^ {2}1\. Let your root sign issuing\.csr, then: acme-svc ca import - < issuing\.pem$/m)
    assert.isFalse(existsSync(at("ca.pem")))
    await signAtRoot()
    const imported = await commandLine(["ca", "import", "issuing.pem"], { config: null, directory })
    assert.strictEqual(imported.code, 0, imported.stderr)
    await issues(port, { caFile: "root/root.pem" })
  })

  it("uses a PostgreSQL database that exists", async () => {
    const { port, url } = await localUrl()
    await sqlAt(cluster().adminUrl, "CREATE ROLE ready LOGIN PASSWORD 'correct one'")
    await sqlAt(cluster().adminUrl, "CREATE DATABASE ready OWNER ready")
    put("database.password", "correct one\n")
    const answers = {
      url,
      database: "postgres",
      database_url: urlOf("ready", "ready"),
      database_password_file: "database.password",
      panel: false
    }
    const done = await setup(answers)
    assert.strictEqual(done.code, 0, done.stderr)
    assert.notInclude(done.stdout + done.stderr, "correct")
    assert.include(done.stdout, "ready:***@")
    await issues(port)
    assert.deepStrictEqual(
      await sqlAt(cluster().url("ready"), "SELECT count(*)::integer AS orders FROM orders WHERE status = 'valid'"),
      [{ orders: 1 }]
    )
  })

  it("makes a PostgreSQL database, with the rights of each process", async () => {
    const { port, url } = await localUrl()
    put("admin.password", `${password()}\n`)
    const answers = {
      url,
      database: "new-postgres",
      database_admin_url: urlOf("postgres"),
      database_admin_password_file: "admin.password",
      database_name: "made",
      panel: false
    }
    const done = await setup(answers)
    assert.strictEqual(done.code, 0, done.stderr)
    assert.match(done.stdout, /^created roles +made, made_front, made_admin, made_worker$/m)
    assert.match(done.stdout, /^created rights +made_front, made_admin, made_worker$/m)
    const [, secret = ""] = /^url = "postgres:\/\/made:([^@]+)@/m.exec(configText()) ?? []
    assert.isNotEmpty(secret)
    assert.notInclude(done.stdout + done.stderr, secret)
    assert.notInclude(done.stdout + done.stderr + configText(), password())
    await issues(port)
    directory = freshDirectory()
    put("admin.password", `${password()}\n`)
    const again = await setup(answers)
    assert.strictEqual(again.code, 2)
    assert.match(
      again.stderr,
      /^database_name cannot be used: The role made exists, and its password is not known here\./
    )
    assert.isFalse(existsSync(at("config.toml")))
  })

  /** Runs `setup` for a new database, of which a step fails after the database was made. Returns the steps it names. */
  const failingSetup = async (answers: Answers): Promise<ReadonlyArray<string>> => {
    put("admin.password", `${password()}\n`)
    const failed = await setup({
      ...answers,
      database: "new-postgres",
      database_admin_url: urlOf("postgres"),
      database_admin_password_file: "admin.password"
    })
    assert.notStrictEqual(failed.code, 0, failed.stderr)
    const line = /^config\.toml and the database are kept\. When the fault is corrected, go on with: (.*)$/m
    return line.exec(failed.stderr)?.[1]?.split("; ") ?? [failed.stderr]
  }

  const follow = async (step: string, ...more: ReadonlyArray<string>) => {
    const words = [...step.split(" ").slice(1), ...more]
    const done = await commandLine(words, { config: null, directory, env: { PGPASSWORD: password() } })
    assert.strictEqual(done.code, 0, done.stderr)
  }

  it("keeps a new PostgreSQL database if a later step fails, and says how to go on", async () => {
    const { port, url } = await localUrl()
    put("operator.password", operatorPassword)
    symlinkSync("nowhere/ca.pem", at("ca.pem"))
    const operator = { operator: "ann", operator_password_file: "operator.password" }
    const [init = "", create = "", ...others] = await failingSetup({ url, database_name: "kept", ...operator })
    assert.deepStrictEqual([init, create, others], [
      `acme-svc init --database ${urlOf("postgres")}`,
      "acme-svc admin user create ann --role admin",
      []
    ])
    rmSync(at("ca.pem"))
    await follow(init)
    await follow(create, "--password-file", "operator.password")
    await issues(port)
  })

  it("says so too if the CA is below a root that is elsewhere", async () => {
    const { port, url } = await localUrl()
    put("issuing.csr", "")
    const answers = { url, database_name: "kept_too", ca: "corporate", panel: false }
    const [csr = "", importing = "", init = "", ...others] = await failingSetup(answers)
    assert.deepStrictEqual([csr, importing, init, others], [
      "acme-svc ca csr --out issuing.csr",
      "acme-svc ca import - < issuing.pem",
      `acme-svc init --database ${urlOf("postgres")}`,
      []
    ])
    rmSync(at("issuing.csr"))
    await follow(csr)
    await signAtRoot()
    await follow(importing.replace("- < ", ""))
    await follow(init)
    await issues(port, { caFile: "root/root.pem" })
  })
})

const https = "https://acme.example.org"

/** Answers that are refused, each with the sentence that names the answer. */
const refused: ReadonlyArray<readonly [what: string, answers: Answers | string, sentence: RegExp]> = [
  ["no TOML", "url = \n", /^--answers is not well-formed TOML at line 1, column \d+/],
  ["an unknown name", { urll: "x" }, /^--answers answers "urll", which is not asked; the nearest is url\.$/],
  [
    "a secret in the file",
    { operator_password: "x" },
    /"operator_password", which is not asked; the nearest is operator_password_file\.$/
  ],
  ["another type", "url = 1\n", /^url must be a text in quotes\.$/],
  ["a list with numbers", "access = \"networks\"\nnetworks = [1]\n", /^networks must be an array of texts\.$/],
  ["a URL with a slash", { url: `${https}/` }, /^url must not end in a slash\.$/],
  ["an unknown word", { tls: "yes" }, /^tls must be one of own, generated, proxy, none\.$/],
  [
    "https without TLS",
    { url: https, tls: "none" },
    /^tls must not be none, because url begins with https: name a pair, generate one, or put a proxy in front\.$/
  ],
  ["http with TLS", { tls: "generated" }, /^tls must not be generated, because url begins with http: /],
  [
    "a pair without its files",
    { url: https, tls: "own" },
    /^tls_cert_path is not answered, and tls = "own" needs it\.$/
  ],
  [
    "a certificate that is not there",
    { url: https, tls: "own", tls_cert_path: "none.pem" },
    /^tls_cert_path cannot be used: \S+none\.pem: no such file or directory\.$/
  ],
  [
    "a key that is no key",
    { url: https, tls: "own", tls_cert_path: "answers", tls_key_path: "answers" },
    /^tls_key_path cannot be used: .* holds no certificate in PEM\.$/
  ],
  [
    "a proxy by name",
    { url: https, tls: "proxy", proxies: ["proxy.example"] },
    /^proxies must be an IP address or a CIDR block/
  ],
  ["no port", { listen: "localhost" }, /^listen must be host:port, /],
  ["an unknown database", { database: "mysql" }, /^database must be one of sqlite, postgres, new-postgres\.$/],
  [
    "a database without a URL",
    { database: "postgres" },
    /^database_url is not answered, and database = "postgres" needs it\.$/
  ],
  [
    "a URL with a password",
    { database: "postgres", database_url: "postgres://a:hunter2@h/d" },
    /^database_url must not contain a password, /
  ],
  [
    "a server that is away",
    { database: "postgres", database_url: "postgres://a@127.0.0.1:1/d" },
    /^database_url cannot be used: .*ECONNREFUSED/
  ],
  [
    "a new database without an administrator",
    { database: "new-postgres" },
    /^database_admin_url is not answered, and database = "new-postgres" needs it\.$/
  ],
  ["an unknown CA", { ca: "old" }, /^ca must be one of new, import, corporate\.$/],
  ["a CA without its files", { ca: "import" }, /^ca_cert_path is not answered, and ca = "import" needs it\.$/],
  [
    "a CA that is none",
    { ca: "import", ca_cert_path: "answers", ca_key_path: "answers" },
    /^ca_key_path cannot be used: .*answers/
  ],
  [
    "a passphrase that is not there",
    { ca: "import", ca_cert_path: "answers", ca_passphrase_file: "none" },
    /^ca_passphrase_file cannot be used: \S+none: no such file/
  ],
  ["unknown clients", { access: "all" }, /^access must be one of open, networks, credentials\.$/],
  [
    "networks that are not named",
    { access: "networks" },
    /^networks is not answered, and access = "networks" needs it\.$/
  ],
  ["no network", { access: "networks", networks: [] }, /^networks must name at least one address\.$/],
  [
    "a network that is none",
    { access: "networks", networks: ["10.0.0.0/99"] },
    /^networks must be an IP address or a CIDR block/
  ],
  ["an unknown panel", { panel: "maybe" }, /^panel must be one of yes, no\.$/],
  [
    "an operator without a panel",
    { panel: false, operator: "ann" },
    /^operator is answered, but it belongs to panel = "yes", and panel is "no"\.$/
  ],
  [
    "files without their question",
    { database_name: "x" },
    /^database_name is answered, but it belongs to database = "new-postgres", and database is "sqlite"\.$/
  ],
  ["a name of an operator that is none", { operator: "Ann B" }, /^operator must have 1 to 64 of a-z, /],
  [
    "a password file that is not there",
    { operator_password_file: "none" },
    /^operator_password_file: \S+none cannot be used: no such file/
  ],
  [
    "a weak password",
    { operator_password_file: "weak" },
    /^operator_password_file cannot be used: it has fewer than 12 characters\.$/
  ]
]

describe("answers are refused with exit code 2, the name of the answer and nothing written", () => {
  it.each(refused)("for %s", async (_, answers, sentence) => {
    put("weak", "short\n")
    const { code, stderr, stdout } = await setup(answers)
    assert.deepStrictEqual([code, stdout], [2, ""], stderr)
    assert.match(stderr.trimEnd(), sentence)
    assert.notInclude(stderr, "hunter2")
    assert.sameMembers(readdirSync(directory), ["answers", "weak"])
  })

  it("for a wrong password of either user of PostgreSQL", async () => {
    put("wrong", "wrong\n")
    const existing = await setup({
      database: "postgres",
      database_url: urlOf("postgres"),
      database_password_file: "wrong"
    })
    assert.match(existing.stderr, /^database_password_file cannot be used: .*PostgreSQL does not let postgres in/)
    const made = await setup({
      database: "new-postgres",
      database_admin_url: urlOf("postgres"),
      database_admin_password_file: "wrong"
    })
    assert.match(made.stderr, /^database_admin_password_file cannot be used: .*PostgreSQL does not let postgres in/)
    const missing = await setup({ database: "new-postgres", database_admin_url: urlOf("postgres") })
    assert.match(
      missing.stderr,
      /^database_admin_password cannot be used: .*; database_admin_password_file is not answered\.$/m
    )
    assert.deepStrictEqual([existing.code, made.code, missing.code], [2, 2, 2])
  })

  it("and is tried for every question with a check", () => {
    const tried = new Set(refused.flatMap(([, , sentence]) => /^\^(\w+)/.exec(sentence.source)?.[1] ?? []))
    const names = setupQuestions.map(({ kind, name }) => kind === "newSecret" ? `${name}_file` : name)
    const elsewhere = ["database_password", "database_admin_password"]
    assert.deepStrictEqual(names.filter((name) => !tried.has(name) && !elsewhere.includes(name)), [])
  })
})

/** The answers to the questions of a path through the dialogue, by the name of the question. Others take Enter. */
type Path = Readonly<Record<string, string>>

/** Returns the questions that a path leads through. A new secret is asked twice. */
const promptsOf = (path: Path): ReadonlyArray<string> => {
  const answered: Record<string, string> = { database: "sqlite", ca: "new", access: "open", panel: "yes", ...path }
  return setupQuestions.filter(({ of }) => of === undefined || answered[of[0]] === of[1]).flatMap(({ kind, name }) =>
    kind === "newSecret" ? [name, `${name} again`] : [name]
  )
}

const prompt = (name: string): RegExp => new RegExp(`^${name}(?: \\[.*\\])?: `, "m")

/** Answers the questions of a path up to, but not including, this one, and waits for it. */
const upTo = async (terminal: ReturnType<typeof atTerminal>, path: Path, last?: string): Promise<void> => {
  for (const name of promptsOf(path)) {
    await terminal.sees(prompt(name))
    if (name === last) return
    terminal.type(`${path[name.replace(" again", "")] ?? ""}${keys.enter}`)
  }
  await terminal.sees(/^Write this to .*\? \[y\/N\] /m)
}

describe("setup at a terminal", () => {
  it("takes the usual answers on Enter, never shows a secret, and writes after a yes", async () => {
    const { port, url } = await localUrl()
    const terminal = atTerminal(["setup"], directory)
    const path = { url, operator_password: operatorPassword }
    await upTo(terminal, path)
    assert.isFalse(existsSync(at("config.toml")))
    terminal.type(`y${keys.enter}`)
    await terminal.sees(/^created operator +admin$/m)
    assert.strictEqual(await terminal.ended, 0, terminal.shown())
    assert.notInclude(terminal.shown(), operatorPassword)
    assert.include(terminal.shown(), "The CA that signs the certificates.\n")
    assert.strictEqual(statSync(at("config.toml")).mode & 0o777, 0o600)
    await issues(port)
  })

  it("asks again after an answer that cannot be used, and says what was wrong", async () => {
    const terminal = atTerminal(["setup"], directory)
    const wrong = async (name: string, answer: string, sentence: RegExp) => {
      await terminal.sees(prompt(name))
      terminal.type(`${answer}${keys.enter}`)
      await terminal.sees(sentence)
    }
    const right = async (name: string, answer = "") => {
      await terminal.sees(prompt(name))
      terminal.type(`${answer}${keys.enter}`)
    }
    await wrong("url", "acme.example", /^url must be an absolute http or https URL\.$/m)
    await right("url", https)
    await wrong("tls", "none", /^tls must not be none, because url begins with https: /m)
    await wrong("tls", "maybe", /^tls must be one of own, generated, proxy, none\.$/m)
    await right("tls", "own")
    await wrong("tls_cert_path", "", /^tls_cert_path cannot be used: \S+server\.pem: no such file/m)
    terminal.type(keys.interrupt)
    assert.strictEqual(await terminal.ended, 130)
    assert.deepStrictEqual(readdirSync(directory), [])
  })

  it("takes a password, its repetition and the next answer that are typed at once, and forgets what Ctrl-U erases", async () => {
    const { url } = await localUrl()
    const terminal = atTerminal(["setup"], directory)
    await upTo(terminal, { url }, "operator_password")
    const twice = `${operatorPassword}${keys.enter}`.repeat(2)
    terminal.type(`mistyped${keys.eraseAll}${twice}y${keys.enter}`)
    assert.strictEqual(await terminal.ended, 0, terminal.shown())
    await terminal.sees(/^created operator +admin$/m)
    assert.notInclude(terminal.shown(), operatorPassword)
  })

  it("takes answers that are typed ahead in their order, also those of hidden questions", async () => {
    const path: Path = { url: (await localUrl()).url, operator_password: operatorPassword }
    const terminal = atTerminal(["setup"], directory)
    await terminal.sees(prompt("url"))
    const answers = promptsOf(path).map((name) => path[name.replace(" again", "")] ?? "")
    terminal.type([...answers, "y", ""].join(keys.enter))
    assert.strictEqual(await terminal.ended, 0, terminal.shown())
    await terminal.sees(/^created operator +admin$/m)
  })

  it("asks a new password again if it was typed in two ways", async () => {
    const terminal = atTerminal(["setup"], directory)
    await upTo(terminal, { operator_password: operatorPassword }, "operator_password again")
    terminal.type(`another one entirely${keys.enter}`)
    await terminal.sees(/^operator_password was typed in two ways\.$/m)
    await terminal.sees(prompt("operator_password"))
    terminal.type(keys.interrupt)
    assert.strictEqual(await terminal.ended, 130)
  })

  it("makes a PostgreSQL database from typed answers", async () => {
    const { port, url } = await localUrl()
    const terminal = atTerminal(["setup"], directory)
    const path = {
      url,
      database: "new-postgres",
      database_admin_url: urlOf("postgres"),
      database_admin_password: password(),
      database_name: "typed",
      panel: "no"
    }
    await upTo(terminal, path)
    terminal.type(`yes${keys.enter}`)
    await terminal.sees(/^created database +typed$/m)
    assert.strictEqual(await terminal.ended, 0, terminal.shown())
    assert.notInclude(terminal.shown(), password())
    await issues(port)
  })

  it("writes nothing if the last answer is no, or if the input ends", async () => {
    const declined = atTerminal(["setup"], directory)
    await upTo(declined, {})
    declined.type(keys.enter)
    assert.strictEqual(await declined.ended, 3)
    assert.include(declined.shown(), "Nothing was changed.")
    const ended = atTerminal(["setup"], directory)
    await upTo(ended, {}, "database")
    ended.type(keys.endOfInput)
    assert.strictEqual(await ended.ended, 3)
    assert.include(ended.shown(), "The input ended before the last answer. Nothing was written.")
    assert.deepStrictEqual(readdirSync(directory), [])
  })

  it("takes lines that were pasted ahead of their questions", async () => {
    const terminal = atTerminal(["setup"], directory)
    await terminal.sees(prompt("url"))
    terminal.type(`${https}${keys.enter}proxy${keys.enter}192.0.2.1${keys.enter}`)
    await terminal.sees(prompt("listen"))
    terminal.type(keys.interrupt)
    assert.strictEqual(await terminal.ended, 130)
    assert.notInclude(terminal.shown(), "cannot be used")
  })

  /** Every question, in a path that leads to it. */
  const paths = (): ReadonlyArray<Path> => {
    makeCa(at("ca.pem"), at("ca.key"), "A CA")
    return [
      {},
      { url: https, tls: "proxy", access: "networks", panel: "no" },
      { url: https, tls: "own", tls_cert_path: "ca.pem", tls_key_path: "ca.key", ca: "import", panel: "no" },
      {
        database: "new-postgres",
        database_admin_url: urlOf("postgres"),
        database_admin_password: password(),
        database_name: "never",
        panel: "no"
      },
      { database: "postgres", database_url: urlOf("postgres"), database_password: password(), panel: "no" }
    ]
  }

  it.each([
    ["Ctrl-C", keys.interrupt, 130],
    ["the end of the input", keys.endOfInput, 3]
  ])("writes nothing after %s, at every question", async (_, key, code) => {
    const asked = new Set<string>()
    for (const path of paths()) {
      for (const name of [...promptsOf({ ...path, ...path["tls"] === undefined ? { tls: "none" } : {} }), undefined]) {
        const isLast = name === undefined
        if (name !== undefined && asked.has(name)) continue
        if (name !== undefined) asked.add(name)
        const terminal = atTerminal(["setup"], directory)
        await upTo(terminal, path, name)
        terminal.type(key)
        assert.strictEqual(await terminal.ended, code, `${isLast ? "the last question" : name}: ${terminal.shown()}`)
        assert.sameMembers(readdirSync(directory), ["ca.pem", "ca.key"])
      }
    }
    for (const { name } of setupQuestions) assert.include([...asked], name)
    assert.deepStrictEqual(
      await sqlAt(cluster().adminUrl, "SELECT rolname FROM pg_roles WHERE rolname LIKE 'never%'"),
      []
    )
  })
})
