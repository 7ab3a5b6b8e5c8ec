import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { appendFileSync, existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { enqueueJob } from "../../src/domain/words/JobKind.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { World } from "../support/Graph.ts"
import { callerAt, configOf, openDriver, orderOf, profileOf, sql, world } from "../support/Graph.ts"
import { makeHttpClient } from "../support/Http.ts"
import type { Ended, Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { onSystemClock, useTests } from "../support/UseTests.ts"

/* Command lines that run in this process on a simulated host, with the clock of the test. */

const startsAt = 1_800_000_000
const at = "2027-01-15T08:00:00Z"
const { test } = useTests({ startsAt })

const jsonOf = <A>({ code, err, out }: Ended): A => {
  assert.deepStrictEqual([code, err], [0, ""])
  return JSON.parse(out) as A
}

const refusalOf = ({ code, err, out }: Ended) => {
  assert.strictEqual(out, "")
  return { code, ...JSON.parse(err) as { readonly error: string; readonly message: string } }
}

const done = (out: string): Ended => ({ code: 0, out, err: "" })

/** Makes a place whose database is migrated. */
const ready = Effect.gen(function*() {
  const place = freshPlace()
  assert.strictEqual((yield* place.run(["migrate"])).code, 0)
  return place
})

/** Runs a program directly on the database of a place, not through a command. */
const served = <A, E>(
  { directory }: Place,
  program: Effect.Effect<A, E, Database | World>
) =>
  Effect.scoped(
    Effect.flatMap(openDriver(`sqlite://${directory}/acme.db`), (driver) =>
      program.pipe(Effect.provide(world()), Effect.provideService(Database, driver)))
  )

describe("a command line", () => {
  test("prints its version without a configuration", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(null)
      for (const flag of ["--version", "-V"]) assert.deepStrictEqual(yield* run([flag]), done("acme-svc 1.2.3\n"))
    }))

  test("is refused if it has an unknown word, and the error names the nearest word", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(null)
      assert.deepStrictEqual(yield* run(["migrat"]), {
        code: 2,
        out: "",
        err: "There is no command migrat; the nearest is migrate.\n"
      })
      assert.deepStrictEqual(refusalOf(yield* run(["eab", "creat", "--json"])), {
        code: 2,
        error: "usage",
        message: "There is no command eab creat; the nearest is create."
      })
      assert.deepStrictEqual(refusalOf(yield* run(["--color", "mauve", "migrate", "--json"])), {
        code: 2,
        error: "usage",
        message: "--color takes one of auto, always, never."
      })
      assert.deepStrictEqual(yield* run(["--color", "mauve", "migrate"]), {
        code: 2,
        out: "",
        err: "--color takes one of auto, always, never.\n"
      })
    }))

  test("is refused if there is no configuration, and creates none", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace(null)
      const { code, error, message } = refusalOf(yield* run(["profile", "list", "--json"]))
      assert.deepStrictEqual([code, error], [3, "refused"])
      assert.include(message, "profiles")
      assert.isFalse(existsSync(join(directory, "config.toml")))
    }))

  test("uses the configuration file and the environment variables of its host", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(() => "[profiles.printers]\nenabled = true\n")
      const listed = yield* run(["profile", "list", "--json"], {
        env: { ACME_SVC_SERVER__BASE_URL: "https://acme.example" }
      })
      assert.include(listed.out, "https://acme.example/profile/printers/directory")
    }))

  test("resolves relative paths in keys and flags against the working directory", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace(() =>
        `[database]\nurl = "sqlite://here.db"\n[profiles.default]\nsigner.local_ca.key_path = "own.key"\n`
      )
      const env = { ACME_SVC_DATABASE__URL: undefined }
      const made = yield* run(["init"], { env })
      assert.strictEqual(made.code, 0, made.err)
      assert.match(made.out, /^created CA +ca\.pem, own\.key$/m)
      for (const file of ["here.db", "ca.pem", "own.key"]) {
        assert.isTrue(existsSync(join(directory, file)), file)
      }
      writeFileSync(join(directory, "target"), "sqlite://there.db\n")
      assert.include(
        (yield* run(["transfer", "--to-file", "target"], { env })).err,
        "sqlite://there.db cannot be opened"
      )
    }))

  test("asks at a terminal for the secret of an upstream's credential, and does not show it", () =>
    Effect.gen(function*() {
      const { run } = freshPlace()
      const { code, err } = yield* run(["upstream", "register", "--eab-kid", "x"], { hidden: ["no key!"] })
      assert.deepStrictEqual([code, err], [3, "HMAC key: The HMAC key is neither base64url nor base64.\n"])
    }))

  test("ends with the exit code of the signal that stops it", () =>
    Effect.gen(function*() {
      const { run } = freshPlace()
      for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
        const ended = yield* run(["upstream", "register", "--eab-kid", "x", "--eab-hmac-key-file", "-"], {
          process: { stopSignal: Effect.succeed(signal) },
          typed: "never"
        })
        assert.deepStrictEqual(ended, { code, out: "", err: "" })
      }
      const served = yield* run(["serve", "--role", "king"], { process: { stopSignal: Effect.succeed("SIGINT") } })
      assert.strictEqual(served.code, 2)
    }))
})

describe("migrate", () => {
  test("creates the schema, which other commands need and do not create", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace()
      const database = join(directory, "acme.db")
      const listing = run(["eab", "list", "--json"])
      assert.include(refusalOf(yield* listing).message, "; `acme-svc migrate` makes the file")
      assert.isFalse(existsSync(database))
      const absent = yield* run(["migrate", "--check"])
      assert.deepStrictEqual([absent.code, existsSync(database)], [3, false])
      const url = "postgres://acme@127.0.0.1:1/acme?sslmode=verify-full&sslrootcert=/nowhere.pem"
      const other = refusalOf(yield* run(["eab", "list", "--json"], { env: { ACME_SVC_DATABASE__URL: url } }))
      assert.match(other.message, /ENOENT: no such file or directory, open '\/nowhere.pem'$/, "no file of a database")
      writeFileSync(database, "")
      assert.deepStrictEqual(refusalOf(yield* listing), {
        code: 1,
        error: "host_failed",
        message:
          "The schema of the database is behind; a process with the worker role applies what is missing when it starts, or run `acme-svc migrate`."
      })
      const behind = yield* run(["migrate", "--check"])
      assert.strictEqual(behind.code, 3)
      assert.match(behind.out, /^[1-9]\d* migration\(s\) pending\.\n$/)
      assert.match((yield* run(["migrate"])).out, /^[1-9]\d* migration\(s\) applied\.\n$/)
      assert.deepStrictEqual(yield* run(["migrate"]), done("0 migration(s) applied.\n"))
      assert.deepStrictEqual(jsonOf(yield* run(["migrate", "--check", "--json"])), { applied: [], pending: [] })
      assert.strictEqual((yield* run(["eab", "list"])).code, 0)
    }))

  test("writes its log to stderr if --log-level is given", () =>
    Effect.gen(function*() {
      const { run } = freshPlace()
      const { err, out } = yield* run(["migrate", "--log-level", "info"])
      assert.match(out, /^\d+ migration\(s\) applied\.\n$/)
      assert.include(err, "db_opened")
    }))
})

interface Credential {
  readonly kid: string
}

interface Listed<A> {
  readonly items: ReadonlyArray<A>
  readonly total: number
  readonly limit: number
  readonly offset: number
}

const created = (place: Place) =>
  Effect.map(
    place.run(["eab", "create", "--label", "printers", "--json"]),
    jsonOf<Credential & { readonly hmacKey: string }>
  )

describe("eab", () => {
  test("create --json prints the credential with its HMAC key, and list --json prints it without the key", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const { hmacKey, kid, ...rest } = yield* created(place)
      assert.deepStrictEqual(rest, { label: "printers", status: "active", createdAt: at, accounts: 0 })
      assert.match(hmacKey, /^[\w-]{43,}$/)
      const listed = jsonOf<Listed<Credential>>(yield* place.run(["eab", "list", "--json"]))
      assert.deepStrictEqual(listed, { items: [{ kid, ...rest }], total: 1, limit: 50, offset: 0 })
      const actors = yield* served(place, sql("SELECT actor_kind, actor_id FROM audit_log"))
      assert.deepStrictEqual(actors, [{ actor_kind: "cli", actor_id: "tester" }])
    }))

  test("create refuses a profile that does not exist", () =>
    Effect.gen(function*() {
      const place = yield* ready
      assert.deepStrictEqual(
        refusalOf(yield* place.run(["eab", "create", "--label", "x", "--profile", "none", "--json"])),
        { code: 3, error: "refused", message: "--profile takes the name of a profile that is served: default." }
      )
    }))

  test("create and set refuse kinds of certificates that no profile has", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const { kid } = yield* created(place)
      const refused = {
        code: 3,
        error: "refused",
        message: "--kinds takes kinds of certificates: default; there is no kind defualt."
      }
      for (const command of [["create", "--label", "x"], ["set", kid]]) {
        const kinds = ["--kinds", "default", "--kinds", "defualt", "--json"]
        assert.deepStrictEqual(refusalOf(yield* place.run(["eab", ...command, ...kinds])), refused)
      }
      const set = jsonOf<Credential & { readonly kinds: ReadonlyArray<string> }>(
        yield* place.run(["eab", "set", kid, "--kinds", "default", "--json"])
      )
      assert.deepStrictEqual(set.kinds, ["default"])
    }))

  test("create, import and set refuse an end that has passed", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const { kid } = yield* created(place)
      writeFileSync(join(place.directory, "key"), "A".repeat(43), { mode: 0o600 })
      const refused = {
        code: 3,
        error: "refused",
        message: "--expires-at takes a time in the future; 1999-01-01T00:00:00Z has passed."
      }
      for (
        const command of [
          ["create", "--label", "x"],
          ["import", "old", "--hmac-key-file", "key", "--label", "x"],
          ["set", kid]
        ]
      ) {
        const ended = yield* place.run(["eab", ...command, "--expires-at", "1999-01-01", "--json"])
        assert.deepStrictEqual(refusalOf(ended), refused)
      }
    }))

  for (
    const { around, code, flags = [], says, what } of [
      {
        what: "answered yes",
        around: { typed: "y" },
        code: 0,
        says: /^Delete credential .+ \(printers\) and .+\? \[y\/N\] $/
      },
      { what: "answered no", around: { typed: "n" }, code: 3, says: /\? \[y\/N\] Nothing was changed\.\n$/ },
      { what: "not answered", around: { typed: "" }, code: 3, says: /\? \[y\/N\] Nothing was changed\.\n$/ },
      {
        what: "with nobody to ask",
        around: {},
        code: 2,
        says: /^There is no terminal to ask for confirmation: pass --yes to go ahead\.\n$/
      },
      { what: "answered by --yes", around: {}, flags: ["--yes"], code: 0, says: /^$/ }
    ]
  ) {
    test(`delete ${what} ends with ${code}`, () =>
      Effect.gen(function*() {
        const place = yield* ready
        const { kid } = yield* created(place)
        const ended = yield* place.run(["eab", "delete", kid, ...flags], around)
        assert.strictEqual(ended.code, code)
        assert.match(ended.err, says)
        const { total } = jsonOf<Listed<Credential>>(yield* place.run(["eab", "list", "--json"]))
        assert.strictEqual(total, code === 0 ? 0 : 1)
      }))
  }
})

describe("a command about records that the service has written", () => {
  test("eab import names the flag of the file whose key is too short", () =>
    Effect.gen(function*() {
      const place = yield* ready
      writeFileSync(join(place.directory, "key"), "short", { mode: 0o600 })
      const ended = yield* place.run(["eab", "import", "old", "--hmac-key-file", "key", "--label", "web"])
      assert.deepStrictEqual([ended.code, ended.err], [
        3,
        "--hmac-key-file takes base64url or base64 of 16 to 256 octets.\n"
      ])
    }))

  test("filter explain judges an order by the scope of the account's credential", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const scope = ["--names", "*.shop.example", "--kinds", "default"]
      const made = yield* place.run(["eab", "create", "--label", "shop", ...scope, "--json"])
      const { kid } = jsonOf<{ readonly kid: string }>(made)
      const { accountId } = yield* served(
        place,
        Effect.gen(function*() {
          const caller = yield* callerAt(profileOf(configOf()))
          const bytes = kid.replaceAll("-", "")
          yield* sql(`UPDATE accounts SET eab_kid = X'${bytes}' WHERE id = X'${caller.accountId.replaceAll("-", "")}'`)
          return caller
        })
      )
      const asked = (name: string, ...words: ReadonlyArray<string>) =>
        place.run(["filter", "explain", "--account-id", accountId, "--identifier", name, ...words])
      const inside = yield* asked("www.shop.example")
      assert.strictEqual(inside.code, 0)
      assert.include(inside.out.split("\n"), "scope: allowed, since the credential permits this")
      const outside = yield* asked("www.bank.example")
      assert.strictEqual(outside.code, 3)
      assert.include(
        outside.out.split("\n"),
        "scope: refused by the credential, 403 rejectedIdentifier: the credential of this account does not permit www.bank.example"
      )
      assert.strictEqual((yield* place.run(["eab", "set", kid, "--clear", "names", "--clear", "kinds"])).code, 0)
      assert.include((yield* asked("www.bank.example")).out, "scope: allowed, since the credential restricts nothing")
      appendFileSync(join(place.directory, "config.toml"), "\n[profiles.other]\n")
      const elsewhere = yield* asked("www.shop.example", "--profile", "other")
      assert.strictEqual(elsewhere.code, 3)
      assert.include(elsewhere.err, `The account ${accountId} belongs to the profile default.`)
      const stranger = "01890a5d-ac96-774b-bcce-000000000000"
      const unknown = yield* place.run(["filter", "explain", "--profile", "other", "--account-id", stranger])
      assert.strictEqual(unknown.code, 3)
      assert.include(unknown.err, stranger)
    }))

  test("names the flag in a refusal, not the member of the API", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const says = (words: ReadonlyArray<string>) => Effect.map(place.run(words), ({ code, err }) => [code, err])
      const [code, event] = yield* says(["audit", "list", "--event", "party"])
      assert.strictEqual(code, 3)
      assert.match(String(event), /^--event takes one of .*, not "party"\.\n$/)
      const [, kind] = yield* says(["jobs", "list", "--kind", "party"])
      assert.match(String(kind), /^--kind takes one of .*, not "party"\.\n$/)
    }))

  test("prints orders and jobs as rows, or as JSON objects with --json", () =>
    Effect.gen(function*() {
      const place = yield* ready
      assert.strictEqual(jsonOf<Listed<unknown>>(yield* place.run(["order", "list", "--json"])).total, 0)
      yield* served(
        place,
        Effect.gen(function*() {
          const caller = yield* callerAt(profileOf(configOf()))
          yield* enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: "some-ca", payload: { issuer: "some-ca" } })
          yield* orderOf(caller, "www.example.org")
        })
      )
      const orders = jsonOf<Listed<{ readonly id: string; readonly createdAt: string }>>(
        yield* place.run(["order", "list", "--identifier-suffix", "example.org", "--json"])
      )
      assert.deepStrictEqual([orders.total, orders.items[0]?.createdAt], [1, at])
      const list = yield* place.run(["order", "list"])
      assert.include(list.out, "www.example.org")
      assert.include(list.out, at)
      yield* TestClock.adjust("3 hours")
      const wide = { columns: 120, env: { NO_COLOR: "1" } }
      const shown = yield* place.run(["order", "list"], wide)
      assert.match(shown.out, /  default  pending  3 h ago  +www\.example\.org$/m)
      assert.strictEqual((yield* place.run(["order", "list", "--utc"], wide)).out, list.out)
      assert.include((yield* place.run(["order", "list"], { columns: 120 })).out, "\u001b[33mpending\u001b[39m")
      assert.strictEqual((yield* place.run(["order", "list", "--color", "never"], { columns: 120 })).out, shown.out)
      const jobs = jsonOf<Listed<{ readonly kind: string; readonly dedupKey: string }>>(
        yield* place.run(["jobs", "list", "--json"])
      )
      assert.deepStrictEqual(jobs.items.map(({ dedupKey, kind }) => [kind, dedupKey]), [[
        "local_ca_crl_regenerate",
        "some-ca"
      ]])
      assert.include((yield* place.run(["jobs", "list", "--status", "ready"])).out, "some-ca")
      assert.deepStrictEqual(refusalOf(yield* place.run(["jobs", "list", "--kind", "none", "--json"])).code, 3)
      assert.strictEqual((yield* place.run(["jobs", "list", "--order-id", "none"])).code, 2)
      const kinds = [{ kind: "local_ca_crl_regenerate", ready: 1, running: 0, failed: 0 }]
      const queue = jsonOf<
        { readonly kinds: object; readonly items: object; readonly ready: number; readonly total: number }
      >(
        yield* place.run(["jobs", "queue", "--json"])
      )
      assert.containSubset(queue, {
        kinds,
        items: kinds,
        ready: 1,
        running: 0,
        failed: 0,
        total: 1,
        limit: 1,
        offset: 0
      })
      assert.match((yield* place.run(["jobs", "queue"])).out, /^local_ca_crl_regenerate  1 /m)
    }))

  test("prints deliveries as rows, or as JSON objects with --json", () =>
    Effect.gen(function*() {
      const place = yield* ready
      yield* served(
        place,
        Effect.gen(function*() {
          const fields = { at: 1, profile: "default", hook: "account_deactivated", delivery_id: "d" } as const
          const payload = {
            scope: "default",
            backend: "webhook",
            entry: "chat",
            event: "account_deactivated",
            fields
          } as const
          yield* enqueueJob({ kind: "notify_deliver", dedupKey: "d", payload })
          yield* enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: "some-ca", payload: { issuer: "some-ca" } })
        })
      )
      const { items, total } = jsonOf<Listed<object>>(yield* place.run(["notify", "list", "--json"]))
      assert.strictEqual(total, 1)
      assert.deepInclude({ ...items[0] }, {
        backend: "webhook",
        entry: "chat",
        event: "account_deactivated",
        status: "ready"
      })
      assert.match(
        (yield* place.run(["notify", "list"])).out,
        /  default +webhook chat +account_deactivated +ready +0\/\d+ /
      )
    }))
})

describe("serve", () => {
  test("starts, answers requests, reloads its configuration and stops", () =>
    onSystemClock(Effect.gen(function*() {
      const place = freshPlace((directory) =>
        `[server]
bind_address = "127.0.0.1:0"
base_url = "http://acme.example"
tls.enabled = false
[signer.local_ca]
cert_path = "${directory}/ca.pem"
key_path = "${directory}/ca.key"
crl_path = "${directory}/ca.crl"
[profiles.default]
enabled = true
`
      )
      const listening = yield* Deferred.make<string>()
      const reloaded = yield* Deferred.make<void>()
      const reload = yield* Deferred.make<void>()
      const stop = yield* Deferred.make<"SIGTERM">()
      let isAsked = false
      const heard = (text: string) => {
        for (const line of text.split("\n").filter((one) => one !== "")) {
          const { fields } = JSON.parse(line) as {
            readonly fields: { readonly event: string; readonly address: string }
          }
          if (fields.event === "server_listening") Deferred.doneUnsafe(listening, Effect.succeed(fields.address))
          if (fields.event === "server_config_reloaded") Deferred.doneUnsafe(reloaded, Effect.void)
        }
      }
      const serving = yield* Effect.forkChild(place.run(["serve"], {
        heard,
        process: {
          stopSignal: Deferred.await(stop),
          reloadSignal: Effect.suspend(() => {
            if (isAsked) return Effect.never
            isAsked = true
            return Deferred.await(reload)
          })
        }
      }))
      const address = yield* Effect.raceFirst(
        Deferred.await(listening),
        Effect.flatMap(Fiber.join(serving), (ended) => Effect.die(new Error(JSON.stringify(ended))))
      )
      const client = yield* Effect.acquireRelease(Effect.sync(makeHttpClient), ({ close }) => Effect.sync(close))
      const ask = (profile: string) =>
        Effect.promise(() => client.send(`http://${address}/profile/${profile}/directory`))
      const { json, status } = yield* ask("default")
      assert.strictEqual(status, 200)
      assert.include(json as object, { newOrder: "http://acme.example/profile/default/newOrder" })
      assert.isTrue(existsSync(join(place.directory, "ca.pem")))
      assert.strictEqual((yield* ask("later")).status, 404)
      appendFileSync(join(place.directory, "config.toml"), "[profiles.later]\nenabled = true\n")
      yield* Deferred.succeed(reload, undefined)
      yield* Deferred.await(reloaded)
      assert.strictEqual((yield* ask("later")).status, 200)
      const workers = jsonOf<Listed<{ readonly version: string }>>(yield* place.run(["worker", "list", "--json"]))
      assert.deepStrictEqual(workers.items.map(({ version }) => version), ["1.2.3"])
      yield* Deferred.succeed(stop, "SIGTERM")
      const { code, err, out } = yield* Fiber.join(serving)
      assert.deepStrictEqual([code, err], [0, ""])
      assert.include(out, "server_shutdown_completed")
      const gone = yield* Effect.exit(Effect.tryPromise(() => client.send(`http://${address}/health`)))
      assert.strictEqual(gone._tag, "Failure")
    })))

  test("refuses an unknown role, and a database that it cannot open", () =>
    onSystemClock(Effect.gen(function*() {
      const { run } = freshPlace()
      assert.strictEqual((yield* run(["serve", "--role", "king"])).code, 2)
      const ended = yield* run(["serve"], { env: { ACME_SVC_DATABASE__URL: "sqlite:///nowhere/at/all.db" } })
      assert.strictEqual(ended.code, 1)
      assert.include(ended.err, "database.url")
    })))
})
