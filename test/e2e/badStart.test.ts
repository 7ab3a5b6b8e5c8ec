import { execFileSync } from "node:child_process"
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory, freshPostgresUrl } from "../support/Databases.ts"
import { makeCa } from "../support/Openssl.ts"
import { freePort } from "../support/Ports.ts"
import type { ProcessOptions } from "../support/Server.ts"
import { minimalConfig } from "../support/Server.ts"

/** The configuration is wrong, so that another try will not help. */
const invalid = 3
/** The host prevented the startup. */
const failed = 1
/** The command line is wrong. */
const usage = 2

interface Case {
  readonly name: string
  readonly code: number
  /** Texts that the message on stderr must contain. */
  readonly says: ReadonlyArray<RegExp>
  /** Prepares the working directory, and returns the options that differ from those of a successful startup. */
  readonly with?: (directory: string) => Promise<ProcessOptions> | ProcessOptions
}

const config = (...lines: ReadonlyArray<string>) => (): ProcessOptions => ({
  config: [minimalConfig, ...lines].join("\n")
})

const env = (variables: Readonly<Record<string, string>>) => (): ProcessOptions => ({ env: variables })

/** Makes a correct key and certificate of a CA, and then spoils them. */
const caPair = (spoil: (cert: string, key: string) => void) => (directory: string): ProcessOptions => {
  const [cert, key] = [join(directory, "ca.pem"), join(directory, "ca.key")]
  makeCa(cert, key, "Supplied CA")
  spoil(cert, key)
  return {}
}

const openssl = (...words: ReadonlyArray<string>) => execFileSync("openssl", words, { stdio: "pipe" })

const configuration: ReadonlyArray<Case> = [
  { name: "no file and no profile", code: invalid, says: [/profile/i, /enabled/], with: () => ({ config: null }) },
  {
    name: "only a profile that is turned off",
    code: invalid,
    says: [/profile/i],
    with: () => ({ config: "[profiles.default]\nenabled = false\n" })
  },
  {
    name: "malformed TOML",
    code: invalid,
    says: [/config\.toml/, /line 3|3:\d+/i],
    with: () => ({ config: "[profiles.default]\nenabled = true\n[server\n" })
  },
  {
    name: "a string for a number",
    code: invalid,
    says: [/order\.max_identifiers/],
    with: config("[order]", "max_identifiers = \"many\"")
  },
  {
    name: "a number for a string",
    code: invalid,
    says: [/server\.bind_address/],
    with: () => ({
      config: `${minimalConfig}\n[server]\nbind_address = 3000\n`,
      env: { ACME_SVC_SERVER__BIND_ADDRESS: undefined }
    })
  },
  {
    name: "a table for a list",
    code: invalid,
    says: [/challenge\.enabled/],
    with: config("[challenge.enabled]", "first = \"http-01\"")
  },
  {
    name: "a fraction for a whole number",
    code: invalid,
    says: [/nonce\.ttl_seconds/],
    with: config("[nonce]", "ttl_seconds = 1.5")
  },
  {
    name: "a number outside its range",
    code: invalid,
    says: [/challenge\.http_01\.port/, /65536|65535/],
    with: config("[challenge.http_01]", "port = 65536")
  },
  {
    name: "a word for a number in the environment",
    code: invalid,
    says: [/server\.max_concurrent_requests|ACME_SVC_SERVER__MAX_CONCURRENT_REQUESTS/],
    with: env({ ACME_SVC_SERVER__MAX_CONCURRENT_REQUESTS: "plenty" })
  },
  {
    name: "a word for a boolean in the environment",
    code: invalid,
    says: [/server\.tls\.enabled|ACME_SVC_SERVER__TLS__ENABLED/],
    with: env({ ACME_SVC_SERVER__TLS__ENABLED: "yes" })
  },
  {
    name: "an unknown key, with the nearest known one",
    code: invalid,
    says: [/order\.max_identifer\b/, /max_identifiers/],
    with: config("[order]", "max_identifer = 3")
  },
  {
    name: "an unknown variable",
    code: invalid,
    says: [/BIND_ADRESS|bind_adress/, /bind_address/],
    with: env({ ACME_SVC_SERVER__BIND_ADRESS: "127.0.0.1:0" })
  },
  {
    name: "a custom page that does not compile, with its file and line",
    code: invalid,
    says: [/own\/jobs\.html:2: /, /own\/orders\.html:1: /],
    with: async (directory) => {
      mkdirSync(join(directory, "own"))
      writeFileSync(join(directory, "own", "jobs.html"), "<h1>Jobs</h1>\n{% if rows %}")
      writeFileSync(join(directory, "own", "orders.html"), "{% endfor %}")
      const [port, lines] = [await freePort(), [minimalConfig, "[admin]", "enabled = true", "template_dir = \"own\""]]
      return { config: [...lines, `bind_address = "127.0.0.1:${port}"`].join("\n") }
    }
  },
  {
    name: "a folder of custom pages that does not exist, with its key",
    code: invalid,
    says: [/admin\.template_dir: \S*own is no folder/],
    with: async () => {
      const [port, lines] = [await freePort(), [minimalConfig, "[admin]", "enabled = true", "template_dir = \"own\""]]
      return { config: [...lines, `bind_address = "127.0.0.1:${port}"`].join("\n") }
    }
  },
  {
    name: "every fault at once",
    code: invalid,
    says: [/challenge\.timeout_ms/, /nonce\.ttl_seconds/, /order\.validity_seconds/, /signer\.local_ca\.key_type/],
    with: config(
      "[challenge]",
      "timeout_ms = 0",
      "[nonce]",
      "ttl_seconds = \"soon\"",
      "[order]",
      "validity_seconds = -1",
      "[signer.local_ca]",
      "key_type = \"dsa\""
    )
  },
  {
    name: "a validation that may take longer than its request",
    code: invalid,
    says: [/challenge\.timeout_ms/, /server\.request_timeout_ms/],
    with: config("[challenge]", "timeout_ms = 60000")
  },
  {
    name: "no challenge type",
    code: invalid,
    says: [/challenge\.enabled/],
    with: config("[challenge]", "enabled = []")
  },
  {
    name: "an unknown database scheme",
    code: invalid,
    says: [/database\.url/],
    with: env({ ACME_SVC_DATABASE__URL: "mysql://localhost/acme" })
  }
]

const authority: ReadonlyArray<Case> = [
  {
    name: "a CA key that is not PEM",
    code: invalid,
    says: [/ca\.key/],
    with: caPair((_cert, key) => writeFileSync(key, "no key at all\n"))
  },
  {
    name: "a truncated CA key",
    code: invalid,
    says: [/ca\.key/],
    with: caPair((_cert, key) => writeFileSync(key, "-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n"))
  },
  {
    name: "an encrypted CA key",
    code: invalid,
    says: [/ca\.key/, /encrypted/i],
    with: caPair((_cert, key) => {
      openssl("pkcs8", "-topk8", "-in", key, "-out", `${key}.sealed`, "-passout", "pass:secret")
      renameSync(`${key}.sealed`, key)
    })
  },
  {
    name: "a CA key of an unsupported type",
    code: invalid,
    says: [/ca\.key|ca\.pem/],
    with: caPair((_cert, key) => openssl("genpkey", "-algorithm", "ED25519", "-out", key))
  },
  {
    name: "a CA key that does not belong to its certificate",
    code: invalid,
    says: [/ca\.key/, /ca\.pem|certificate/i],
    with: caPair((cert, key) => makeCa(`${cert}.other`, key, "Another CA"))
  },
  {
    name: "a CA key without its certificate",
    code: invalid,
    says: [/ca\.key/, /ca\.pem/],
    with: (directory) => {
      makeCa(join(directory, "elsewhere.pem"), join(directory, "ca.key"), "Half")
      return {}
    }
  },
  {
    name: "a certificate that is not a CA",
    code: invalid,
    says: [/ca\.pem/],
    with: (directory) => {
      const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"]
      const subject = ["-config", "/dev/null", "-subj", "/CN=Leaf", "-addext", "basicConstraints=critical,CA:FALSE"]
      openssl("req", "-x509", ...key, join(directory, "ca.key"), ...subject, "-out", join(directory, "ca.pem"))
      return {}
    }
  },
  {
    name: "a directory in place of the CA key",
    code: invalid,
    says: [/ca\.key/],
    with: caPair((_cert, key) => {
      rmSync(key)
      mkdirSync(key)
    })
  },
  {
    // No user can open this file, not even root.
    name: "a CA key that cannot be opened",
    code: invalid,
    says: [/ca\.key/],
    with: caPair((_cert, key) => {
      rmSync(key)
      symlinkSync(key, key)
    })
  }
]

const host: ReadonlyArray<Case> = [
  {
    name: "a PostgreSQL server that does not answer",
    code: failed,
    says: [/database/i],
    with: async () => ({
      env: { ACME_SVC_DATABASE__URL: `postgres://acme:hunter2@127.0.0.1:${await freePort()}/acme` }
    })
  },
  {
    name: "a PostgreSQL database that does not exist",
    code: failed,
    says: [/no_such_database/],
    with: async () => {
      const url = new URL(await freshPostgresUrl())
      url.pathname = "/no_such_database"
      return { env: { ACME_SVC_DATABASE__URL: url.href } }
    }
  },
  {
    name: "a wrong PostgreSQL password",
    code: failed,
    says: [/database|password/i],
    with: async () => {
      const url = new URL(await freshPostgresUrl())
      url.password = "hunter2"
      return { env: { ACME_SVC_DATABASE__URL: url.href } }
    }
  },
  {
    name: "a file of the PostgreSQL server's CA that does not exist",
    code: failed,
    says: [/database\.url/, /nowhere\/root\.pem/],
    with: env({ ACME_SVC_DATABASE__URL: "postgres://acme:hunter2@127.0.0.1/acme?sslrootcert=nowhere/root.pem" })
  },
  {
    name: "a SQLite file in a directory that does not exist",
    code: failed,
    says: [/nowhere\/acme\.db/],
    with: env({ ACME_SVC_DATABASE__URL: "sqlite://nowhere/acme.db" })
  },
  {
    name: "a file that is not a SQLite database",
    code: failed,
    says: [/acme\.db/],
    with: (directory) => {
      writeFileSync(join(directory, "acme.db"), "this is no database, whatever its name says\n".repeat(200))
      return { env: { ACME_SVC_DATABASE__URL: "sqlite://acme.db" } }
    }
  },
  { name: "an unknown flag", code: usage, says: [/--config/], with: () => ({ flags: ["--config", "x.toml"] }) }
]

const check = async ({ code, says, with: arrange }: Case): Promise<void> => {
  const directory = freshDirectory()
  const options = await arrange?.(directory) ?? {}
  const port = await freePort()
  const finished = await commandLine(["serve"], {
    ...options,
    directory,
    env: {
      ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}`,
      ACME_SVC_SERVER__BASE_URL: `http://127.0.0.1:${port}`,
      ...options.env
    }
  })
  const said = `${finished.stderr}\n--- stdout\n${finished.stdout}`
  assert.strictEqual(finished.code, code, said)
  for (const pattern of says) assert.match(finished.stderr, pattern, said)
  assert.notMatch(finished.stderr, /^\s+at .*:\d+:\d+\)?$/m, "a stack trace is no message")
  assert.notInclude(said, "hunter2", "a password was shown")
  assert.isFalse(finished.records.some(({ fields }) => fields["event"] === "server_listening"))
}

describe("serve", () => {
  beforeAll(builtServer)

  describe("with a fault in the configuration", () => {
    it.each(configuration)("refuses to start because of $name, and names the cause", check)
  })

  describe("with a fault in the files of the CA", () => {
    it.each(authority)("refuses to start because of $name, and names the cause", check)
  })

  describe("with a fault of the host or the command line", () => {
    it.each(host)("refuses to start because of $name, and names the cause", check)

    it("refuses to start because of a port that is already in use, and names the port", async () => {
      const port = await freePort()
      const taken = createServer()
      await new Promise<void>((done) => taken.listen(port, "127.0.0.1", done))
      try {
        await check({
          name: "taken",
          code: failed,
          says: [new RegExp(`${port}`)],
          with: env({ ACME_SVC_SERVER__BIND_ADDRESS: `127.0.0.1:${port}` })
        })
      } finally {
        taken.close()
      }
    })
  })
})
