import { it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"
import { useTests } from "../support/UseTests.ts"

/*
 * Commands about records still work if the configuration file is refused, because a service may still run with the
 * previous configuration.
 */

const { test } = useTests({ startsAt: 1_800_000_000 })

const nobody = "01234567-89ab-7def-8123-456789abcdef"
/** These tests remove the variable with which a place sets the database. */
const unset = { env: { ACME_SVC_DATABASE__URL: undefined } }

const database = ({ directory }: { readonly directory: string }) => `[database]\nurl = "sqlite://${directory}/own.db"\n`

/** Makes a place whose database has one credential and is named only in the file. */
const ready = Effect.gen(function*() {
  const place = freshPlace((directory) => `${database({ directory })}${minimalConfig}`)
  assert.strictEqual((yield* place.run(["migrate"], unset)).code, 0)
  const made = yield* place.run(["eab", "create", "--label", "x"], unset)
  assert.strictEqual(made.code, 0, made.err)
  return place
})

const rewrite = ({ directory }: Place, text: string) => writeFileSync(join(directory, "config.toml"), text)

const ways: ReadonlyArray<
  { readonly name: string; readonly file: (section: string) => string; readonly rest: string }
> = [
  {
    name: "a value is wrong",
    file: (section) => `${section}${minimalConfig}[server]\nbase_url = "nonsense"\n`,
    rest: "Keys with a fault count as their defaults."
  },
  {
    name: "a key is unknown",
    file: (section) => `${section}${minimalConfig}[servers]\nspeed = 1\n`,
    rest: "Keys with a fault count as their defaults."
  },
  {
    name: "keys conflict",
    file: (section) => `${section}${minimalConfig}[server]\nrequest_timeout_ms = 100\n`,
    rest: "Keys with a fault count as their defaults."
  },
  {
    name: "there is no profile",
    file: (section) => section,
    rest: "Keys with a fault count as their defaults."
  },
  {
    name: "the text before the section is not TOML",
    file: (section) => `[server]\nbase_url = "http\n${section}${minimalConfig}`,
    rest: "Only the section database and the variables were read"
  },
  {
    name: "the text after the section is not TOML",
    file: (section) => `${section}${minimalConfig}[server\n`,
    rest: "Only the section database and the variables were read"
  }
]

describe("a command with a refused configuration", () => {
  describe.each(ways)("if $name", ({ file, rest }) => {
    test("works on records, and reports the refused configuration", () =>
      Effect.gen(function*() {
        const place = yield* ready
        rewrite(place, file(database(place)))
        const run = (...words: ReadonlyArray<string>) => place.run(words, unset)
        assert.strictEqual((yield* run("config", "check")).code, 3)
        const commands = [
          ["jobs", "list"],
          ["jobs", "queue"],
          ["notify", "list"],
          ["worker", "list"],
          ["order", "list"],
          ["account", "list"],
          ["audit", "list"],
          ["admin", "user", "list"],
          ["admin", "session", "list"],
          ["upstream", "order", "list"],
          ["migrate", "--check"]
        ]
        for (const words of commands) {
          const { code, err } = yield* run(...words)
          assert.strictEqual(code, 0, err)
          const [said = "", ...more] = err.split("\n")
          assert.isTrue(
            said.startsWith(`Warning: ${place.directory}/config.toml is refused, and \`acme-svc config check\``)
          )
          assert.include(said, rest)
          assert.notInclude(more.join("\n"), "Warning", words.join(" "))
        }
        const { out } = yield* run("eab", "list", "--json")
        assert.strictEqual((JSON.parse(out) as { readonly total: number }).total, 1, "it is the database of the file")
        for (const words of [["order", "revoke", nobody], ["jobs", "run-now", nobody], ["jobs", "show", nobody]]) {
          const { code, err } = yield* run(...words)
          assert.deepStrictEqual([code, err.includes("There is no")], [3, true], err)
        }
        assert.strictEqual((yield* run("eab", "create", "--label", "y")).code, 0)
        assert.isFalse(existsSync(join(place.directory, "sqlite.db")), "never the default")
      }))
  })

  test("reports it with --json in the one object on standard error, but to a person at once", () =>
    Effect.gen(function*() {
      const place = yield* ready
      rewrite(place, `${database(place)}${minimalConfig}[servers]\nspeed = 1\n`)
      const warning = /^Warning: .*config\.toml is refused/
      const failed = yield* place.run(["jobs", "show", nobody, "--json"], unset)
      const { remarks: [ofFailure, ...others], ...failure } = JSON.parse(failed.err)
      assert.deepStrictEqual(failure, { error: "refused", message: `There is no job ${nobody}.` })
      assert.match(ofFailure, warning)
      assert.isEmpty(others)
      const listed = yield* place.run(["eab", "list", "--json"], unset)
      const { remarks: [ofSuccess], ...rest } = JSON.parse(listed.err)
      assert.match(ofSuccess, warning)
      assert.deepStrictEqual([listed.code, rest], [0, {}])
      const shown = yield* place.run(["eab", "list", "--json"], { ...unset, columns: 80 })
      assert.match(shown.err, warning)
    }))

  describe.each([
    { name: "no database.url is set", file: () => "[server]\nspeed = 1\n" },
    { name: "a file that is not TOML has no section database", file: () => `x = =\n${minimalConfig}` },
    { name: "database.url is wrong", file: () => "[database]\nurl = \"nonsense\"\n" },
    {
      name: "another key of the database is wrong",
      file: (section: string) => `${section}pool_max = 0\n${minimalConfig}`
    },
    {
      name: "another key of the database is unknown",
      file: (section: string) => `${section}pool = 0\n${minimalConfig}`
    },
    {
      name: "the section database is not TOML",
      file: (section: string) => `${section}pool_max = = 1\n${minimalConfig}`
    },
    { name: "the section database occurs twice", file: (section: string) => `${section}${section}x = =\n` },
    {
      name: "the section database may be inside a multi-line string",
      file: (section: string) => `x = """\n${section}"""\ny = =\n`
    },
    {
      name: "a variable for the section database has a misspelt name",
      file: (section: string) => `${section}${minimalConfig}`,
      env: { ACME_SVC_DATABASE__ULR: "sqlite://other.db" }
    }
  ])("if $name", ({ env = {}, file }) => {
    test("is refused, and opens no database", () =>
      Effect.gen(function*() {
        const place = yield* ready
        rewrite(place, file(database(place)))
        const { code, err } = yield* place.run(["jobs", "list"], { env: { ...unset.env, ...env } })
        assert.strictEqual(code, 3, err)
        assert.include(err, "The configuration is refused, ")
        assert.include(err, "Nor can the section database alone be used, which this command needs.")
        assert.notInclude(err, "Warning")
        assert.isFalse(existsSync(join(place.directory, "sqlite.db")))
      }))
  })

  test("works without a file if a variable names the database", () =>
    Effect.gen(function*() {
      const place = freshPlace(null)
      const { code, err, out } = yield* place.run(["migrate"])
      assert.deepStrictEqual([code, /^\d+ migration\(s\) applied/.test(out)], [0, true], err)
      assert.match(err, /^Warning: The configuration is refused, and /)
    }))

  test("is refused if it needs more of the configuration than the section database", () =>
    Effect.gen(function*() {
      const place = yield* ready
      rewrite(place, `${database(place)}${minimalConfig}[server]\nbase_url = "nonsense"\n`)
      const commands = [
        ["profile", "list"],
        ["config", "show"],
        ["filter", "show"],
        ["crl", "list"],
        ["nonce", "count"],
        ["nonce", "cleanup", "--yes"],
        ["notify", "test"],
        ["order", "export"],
        ["eab", "create", "--label", "y", "--profile", "default"],
        ["admin", "user", "create", "olga"],
        ["admin", "user", "passwd", "olga"],
        ["init"],
        ["serve"]
      ]
      for (const words of commands) {
        const { code, err } = yield* place.run(words, unset)
        assert.strictEqual(code, 3, words.join(" "))
        assert.match(err, /^The configuration is refused, 1 fault:\n  server\.base_url: /, words.join(" "))
      }
    }))
})

/** Starts a server that says that it is healthy, and returns the port. */
const healthy = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((_, response) => void response.end(`{"healthy":true}`))
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  ),
  (server) => (server.address() as AddressInfo).port
)

describe("health", () => {
  it.live("needs only the section of the listener, so that a refused file does not cause a restart of the service", () =>
    Effect.gen(function*() {
      const server = `[server]\nbind_address = "127.0.0.1:${yield* healthy}"\n`
      for (const file of [`${server}${minimalConfig}[order]\nspeed = 1\n`, `x = =\n${server}[profiles`]) {
        const { code, err } = yield* freshPlace(() => file).run(["health"])
        assert.deepStrictEqual([code, err.startsWith("Warning: ")], [0, true], err)
      }
      for (const file of [`${server}speed = 1\n${minimalConfig}`, `${server}speed = = 1\n`, `${server}x = """\n`]) {
        const { code, err } = yield* freshPlace(() => file).run(["health"])
        assert.deepStrictEqual([code, err.startsWith("The configuration is refused, ")], [3, true], err)
      }
    }))
})
