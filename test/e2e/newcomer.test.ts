import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, databases, freshDirectory } from "../support/Databases.ts"
import { startHttp01Responder } from "../support/Http01Responder.ts"
import { verifyChain } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import { startServer } from "../support/Server.ts"

/**
 * Returns the contents and times of the files that must never be written again, which are all except the database and
 * the revocation list with its record.
 */
const keptFiles = (directory: string) =>
  readdirSync(directory).filter((name) => !/^(?:sqlite\.db|ca\.crl)/.test(name)).toSorted().map((name) => {
    const path = join(directory, name)
    return { name, text: readFileSync(path, "utf8"), modified: statSync(path).mtimeMs }
  })

const modeOf = (directory: string, name: string): string => (statSync(join(directory, name)).mode & 0o777).toString(8)

const cases = databases.flatMap((database) => [{ ...database, tls: false }, { ...database, tls: true }])

describe.each(cases)("npm start in an empty folder, $name, TLS $tls", ({ dialect, freshUrl, tls }) => {
  beforeAll(builtServer)

  it("prints a URL with which a client gets a certificate", async () => {
    const directory = freshDirectory()
    const [port, httpPort, adminPort] = [await freePort(), await freePort(), await freePort()]
    const baseUrl = `${tls ? "https" : "http"}://localhost:${port}`
    const env = {
      // The log is in the format for people, because only that has a welcome.
      ACME_SVC_LOGGING__JSON_FORMAT: undefined,
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: baseUrl,
      ACME_SVC_SERVER__TLS__ENABLED: `${tls}`,
      ACME_SVC_CHALLENGE__HTTP_01__PORT: `${httpPort}`,
      ACME_SVC_ADMIN__BIND_ADDRESS: `127.0.0.1:${adminPort}`,
      ACME_SVC_ADMIN__BASE_URL: `http://localhost:${adminPort}`,
      ...dialect === "sqlite" ? {} : { ACME_SVC_DATABASE__URL: await freshUrl() }
    }
    const options = { config: null, directory, env }

    const made = await commandLine(["init"], options)
    assert.strictEqual(made.code, 0, made.stderr)
    assert.strictEqual(made.stderr, "")
    assert.match(made.stdout, /^created configuration +config\.toml$/m)
    assert.match(made.stdout, /^created schema +\d+ migration\(s\)$/m)
    assert.match(made.stdout, /^created CA +ca\.pem, ca\.key$/m)
    assert.match(made.stdout, /^created operator +admin, /m)
    assert.strictEqual(/^created TLS pair +server\.pem, server\.key$/m.test(made.stdout), tls)
    const files = ["ca.key", "ca.pem", "config.toml", ...tls ? ["server.key", "server.pem"] : []]
    const kept = keptFiles(directory)
    assert.deepStrictEqual(kept.map(({ name }) => name), files)
    assert.strictEqual(modeOf(directory, "ca.key"), "600")
    assert.strictEqual(modeOf(directory, "config.toml"), "600")
    if (tls) assert.strictEqual(modeOf(directory, "server.key"), "600")
    if (dialect === "sqlite") assert.strictEqual(modeOf(directory, "sqlite.db"), "600")

    const again = await commandLine(["init"], options)
    assert.strictEqual(again.code, 0, again.stderr)
    assert.strictEqual(again.stdout, "Nothing to do: everything exists.\n")
    assert.deepStrictEqual(keptFiles(directory), kept)

    const responder = await startHttp01Responder({ port: httpPort })
    const server = await startServer({ ...options, port, tls })
    try {
      await server.waitForLine(/^ +\S+\/profile\/default\/$/)
      const welcome = server.stdout()
      const lego = /^ +.*lego --accept-tos.*$/m.exec(welcome)?.[0] ?? ""
      const directoryUrl = `${baseUrl}/profile/default/directory`
      const caFile = /^ +CA certificate +(\S+)$/m.exec(welcome)?.[1] ?? ""
      assert.strictEqual(/^ +Directory +(\S+)$/m.exec(welcome)?.[1], directoryUrl)
      assert.isTrue(isAbsolute(caFile), welcome)
      assert.strictEqual(/^ +Panel +(\S+)$/m.exec(welcome)?.[1], `http://localhost:${adminPort}/ui/`)
      assert.match(welcome, /^ {2}acme-svc admin user link admin$/m)
      assert.notInclude(welcome, "/ui/link#", "what is not a terminal may be kept as a log")
      const certbot = /^ +(.*certbot certonly .*)$/m.exec(welcome)?.[1] ?? ""
      const trust = (variable: string) => tls ? `${variable}='${join(directory, "server.pem")}' ` : ""
      assert.strictEqual(
        certbot,
        `${trust("REQUESTS_CA_BUNDLE")}certbot certonly --non-interactive --agree-tos ` +
          `--register-unsafely-without-email --standalone --http-01-port ${httpPort} --config-dir demo-certbot ` +
          `--work-dir demo-certbot/work --logs-dir demo-certbot/logs --server ${directoryUrl} -d demo.localhost`
      )
      assert.strictEqual(
        lego.trim(),
        `${trust("LEGO_CA_CERTIFICATES")}lego --accept-tos --email you@example.org --path demo-lego ` +
          `--server ${directoryUrl} --http --http.port :${httpPort} --domains demo.localhost run`
      )

      const session = await AcmeSession.open(directoryUrl)
      try {
        await session.register()
        const { chain } = await session.issue(["demo.localhost"], responder.tokens)
        await verifyChain(chain, caFile, "demo.localhost")
      } finally {
        session.close()
      }
      assert.strictEqual((await server.stop()).code, 0)
      assert.deepStrictEqual(keptFiles(directory), kept)
      assert.strictEqual(server.stderr(), "", "no warning of the runtime")
    } finally {
      await server.dispose()
      await responder.stop()
    }
  })
})

describe("init in a directory that has some of the files", () => {
  beforeAll(builtServer)

  it("adds the missing files and changes neither the configuration nor the CA", async () => {
    const directory = freshDirectory()
    assert.strictEqual((await commandLine(["init"], { config: null, directory })).code, 0)
    const own = "# mine\n[profiles.team]\nenabled = true\n[server.tls]\nenabled = true\n"
    writeFileSync(join(directory, "config.toml"), own)
    const before = keptFiles(directory)
    const finished = await commandLine(["init"], { config: null, directory })
    assert.strictEqual(finished.code, 0, finished.stderr)
    assert.match(finished.stdout, /^created TLS pair +server\.pem, server\.key\n$/)
    assert.deepStrictEqual(keptFiles(directory).filter(({ name }) => !name.startsWith("server.")), before)
  })

  it("does not repair a configuration", async () => {
    const directory = freshDirectory()
    const config = "[profiles.default]\nenabled = false\n"
    const finished = await commandLine(["init"], { config, directory })
    assert.strictEqual(finished.code, 3, finished.stdout)
    assert.match(finished.stderr, /profile/)
    assert.deepStrictEqual(readdirSync(directory), ["config.toml"])
    assert.strictEqual(readFileSync(join(directory, "config.toml"), "utf8"), config)
  })
})
