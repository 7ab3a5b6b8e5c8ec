import { Effect, Layer } from "effect"
import { chmodSync, existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import { authenticateToken } from "../../src/operations/operator/identity/Bearer.ts"
import { signIn } from "../../src/operations/operator/identity/SignIn.ts"
import { Notifier } from "../../src/services/notify/Notifier.ts"
import { Passwords } from "../../src/services/operators/Passwords.ts"
import { openDriver, sql } from "../support/Graph.ts"
import { config, enrolled, here, password, startsAt, typed } from "../support/Operators.ts"
import type { Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* Tests the commands about operators, which run in this process. */

const { test } = useTests({ startsAt })
const done = (out: string) => ({ code: 0, out: `${out}\n`, err: "" })
const refused = (code: number, err: string) => ({ code, out: "", err: `${err}\n` })

const ready = Effect.gen(function*() {
  const place = freshPlace()
  assert.strictEqual((yield* place.run(["migrate"])).code, 0)
  return place
})

/** Writes a file that only its owner may read. */
const fileOf = ({ directory }: Place, text: string, mode = 0o600): string => {
  const path = join(directory, "password.txt")
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

/** Runs a program directly on the database of a place, not through a command. */
const served = <A, E, R>({ directory }: Place, program: Effect.Effect<A, E, R | Database | Notifier | Passwords>) =>
  Effect.scoped(
    Effect.flatMap(openDriver(`sqlite://${directory}/acme.db`), (driver) =>
      program.pipe(
        Effect.provide(Layer.merge(Passwords.layer(), Notifier.layerNone)),
        Effect.provideService(Database, driver)
      ))
  )

const entering = (username: string, given = password) =>
  signIn(config.admin, { username, password: typed(given) }, here)

describe("acme-svc admin", () => {
  test("prints a link that sets the password of an operator, unless the link could not work", () =>
    Effect.gen(function*() {
      const place = yield* ready
      yield* place.run(["admin", "user", "create", "olga", "--password-file", fileOf(place, password)])
      const env = { ACME_SVC_ADMIN__ENABLED: "true" }
      const link = (words: ReadonlyArray<string>, more: Readonly<Record<string, string>> = env) =>
        place.run(["admin", "user", "link", ...words], { env: more })
      const made = yield* link(["Olga"])
      assert.match(made.out, /^http:\/\/localhost:3001\/ui\/link#[\w-]{43}\n$/)
      assert.deepInclude(made, {
        code: 0,
        err: "Open the link in a browser on this machine. It is good once, for 15 minutes.\n"
      })
      const { expiresAt, url, username } = JSON.parse((yield* link(["olga", "--json"])).out) as Record<string, string>
      assert.deepStrictEqual([username, expiresAt], ["olga", "2027-01-15T08:15:15Z"])
      assert.notStrictEqual(`${url}\n`, made.out)
      assert.deepStrictEqual(yield* link(["nobody"]), refused(3, "There is no operator nobody."))
      assert.deepStrictEqual(
        yield* link(["olga"], {}),
        refused(
          3,
          "admin.enabled is off, so that nothing serves the panel. Use `acme-svc admin user passwd olga`."
        )
      )
      const elsewhere = { ...env, ACME_SVC_ADMIN__BASE_URL: "https://panel.example.org" }
      assert.deepStrictEqual(
        yield* link(["olga"], elsewhere),
        refused(
          3,
          "A link is good on the machine of the service alone, and admin.base_url is https://panel.example.org. Use `acme-svc admin user passwd olga`."
        )
      )
      yield* place.run(["admin", "user", "create", "otto", "--role", "admin", "--password-file", "password.txt"])
      yield* place.run(["admin", "user", "disable", "otto"])
      assert.deepStrictEqual(
        yield* link(["otto"]),
        refused(3, "The operator otto is disabled; enable the operator first.")
      )
    }))

  test("makes the first operator with the first configuration, if the panel is on and nobody is there", () =>
    Effect.gen(function*() {
      const operatorsOf = (place: Place) =>
        Effect.map(
          place.run(["admin", "user", "list", "--json"]),
          ({ out }) =>
            (JSON.parse(out) as { readonly items: ReadonlyArray<{ readonly username: string; readonly role: string }> })
              .items.map(({ role, username }) => [username, role])
        )
      const fresh = freshPlace(null)
      assert.match(
        (yield* fresh.run(["init"])).out,
        /^created operator {6}admin, whose password a link of serve sets$/m
      )
      assert.deepStrictEqual(yield* operatorsOf(fresh), [["admin", "admin"]])
      assert.strictEqual((yield* fresh.run(["init"])).out, "Nothing to do: everything exists.\n")

      // The first run has written the configuration, but could not make the database.
      const failed = freshPlace(null)
      const noFolder = { env: { ACME_SVC_DATABASE__URL: `sqlite://${failed.directory}/none/acme.db` } }
      assert.include([1, 3], (yield* failed.run(["init"], noFolder)).code)
      assert.isTrue(existsSync(join(failed.directory, "config.toml")))
      assert.match((yield* failed.run(["init"])).out, /^created operator/m)
      assert.deepStrictEqual(yield* operatorsOf(failed), [["admin", "admin"]])

      const off = freshPlace(null)
      assert.notInclude((yield* off.run(["init"], { env: { ACME_SVC_ADMIN__ENABLED: "false" } })).out, "operator")
      assert.deepStrictEqual(yield* operatorsOf(off), [])

      const configured = freshPlace()
      assert.notInclude((yield* configured.run(["init"], { env: { ACME_SVC_ADMIN__ENABLED: "true" } })).out, "operator")

      const inhabited = yield* ready
      yield* inhabited.run(["admin", "user", "create", "olga", "--password-file", fileOf(inhabited, password)])
      rmSync(join(inhabited.directory, "config.toml"))
      const again = yield* inhabited.run(["init"])
      assert.match(again.out, /^created configuration config\.toml$/m)
      assert.deepStrictEqual(yield* operatorsOf(inhabited), [["olga", "admin"]])
    }))

  test("creates an operator with a password that is in a file or is typed twice", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const create = (name: string, ...more: ReadonlyArray<string>) => ["admin", "user", "create", name, ...more]
      const file = fileOf(place, `${password}\n`)
      assert.deepStrictEqual(
        yield* place.run(create("Root", "--password-file", file)),
        done("Operator root was created with the role admin.")
      )
      assert.deepStrictEqual(
        yield* place.run(create("olga", "--contact", "olga@example.org"), { hidden: [password, password] }),
        {
          code: 0,
          out: "Operator olga was created with the role viewer.\n",
          err: "New password: The same password again: "
        }
      )
      const differing = yield* place.run(create("otto"), { hidden: [password, `${password}!`] })
      assert.deepInclude(differing, { code: 3, out: "" })
      assert.match(differing.err, /The two passwords differ; nothing was changed\.\n$/)
      assert.deepStrictEqual(
        yield* place.run(create("olga", "--password-file", file)),
        refused(3, "The name olga is in use.")
      )
      assert.deepStrictEqual(
        yield* place.run(create("otto", "--role", "king", "--password-file", file)),
        refused(3, "--role takes one of viewer, operator, admin, not \"king\".")
      )
      assert.deepStrictEqual(
        yield* place.run(create("otto", "--password-file", fileOf(place, "otto"))),
        refused(3, "The password has fewer than 12 characters.")
      )
      const absent = yield* place.run(create("otto", "--password-file", "/nowhere"))
      assert.deepStrictEqual(absent, refused(3, "--password-file: /nowhere cannot be used: no such file or directory."))
      const open = fileOf(place, `${password}\r\n`, 0o644)
      assert.deepStrictEqual(yield* place.run(create("otto", "--password-file", open)), {
        code: 0,
        out: "Operator otto was created with the role viewer.\n",
        err: `Warning: others may read ${open}.\n`
      })
      for (const name of ["root", "olga", "otto"]) {
        assert.strictEqual((yield* served(place, entering(name)))._tag, "Active")
      }
      const rows = yield* served(place, sql("SELECT actor_kind, actor_id FROM audit_log"))
      assert.deepStrictEqual(rows, Array.from({ length: 3 }, () => ({ actor_kind: "cli", actor_id: "tester" })))
    }))

  test("lists, shows and changes operators, and keeps at least one admin", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const file = fileOf(place, password)
      for (const name of ["root", "olga"]) yield* place.run(["admin", "user", "create", name, "--password-file", file])
      const user = (...words: ReadonlyArray<string>) => place.run(["admin", "user", ...words])
      const list = yield* user("list")
      assert.match(list.out, /^NAME {2}ROLE {4}STATUS {2}SECOND FACTOR {2}LAST SIGN-IN {2}CONTACT\nolga {2}viewer/)
      assert.match(list.out, /2 of 2 row\(s\)\.\n$/)
      const page = JSON.parse((yield* user("list", "--role", "admin", "--json")).out)
      assert.deepInclude(page, { total: 1, limit: 50, offset: 0 })
      assert.deepInclude(page.items[0], { username: "root", role: "admin", totpEnabled: false })
      assert.deepStrictEqual(
        yield* user("list", "--status", "gone"),
        refused(3, "--status takes one of active, disabled, not \"gone\".")
      )
      assert.deepStrictEqual(yield* user("role", "olga", "operator"), done("The role is operator."))
      assert.deepStrictEqual(
        yield* user("role", "olga", "king"),
        refused(3, "<role> takes one of viewer, operator, admin, not \"king\".")
      )
      assert.deepStrictEqual(
        yield* user("contact", "olga", "--contact", "olga@example.org"),
        done("The contact is olga@example.org.")
      )
      const shown = JSON.parse((yield* user("show", "olga", "--json")).out)
      assert.deepInclude(shown, { username: "olga", role: "operator", contact: "olga@example.org", activeSessions: 0 })
      assert.match((yield* user("show", "olga")).out, /role +operator\n/)
      assert.deepStrictEqual(yield* user("contact", "olga"), done("The contact was cleared."))
      const last = refused(3, "root is the last active admin; create another one first.")
      assert.deepStrictEqual(yield* user("disable", "root"), last)
      assert.deepStrictEqual(yield* user("role", "root", "viewer"), last)
      assert.deepStrictEqual(yield* user("delete", "root", "--yes"), last)
      assert.deepStrictEqual(yield* user("show", "nobody"), refused(3, "There is no operator nobody."))
      assert.strictEqual((yield* user("disable", "olga")).code, 0)
      assert.strictEqual((yield* served(place, Effect.flip(entering("olga"))))._tag, "InvalidCredentials")
      assert.deepStrictEqual(
        yield* user("enable", "olga"),
        done("The operator is active. Tokens that have not ended are taken again.")
      )
      assert.deepStrictEqual(
        yield* user("passwd", "olga", "--password-file", fileOf(place, "Gdańsk shipyard, 9 cranes")),
        done("The password was changed, and 0 session(s) ended.")
      )
      assert.strictEqual((yield* served(place, entering("olga", "Gdańsk shipyard, 9 cranes")))._tag, "Active")
      assert.deepInclude(yield* user("delete", "olga"), { code: 2, out: "" })
      const declined = yield* place.run(["admin", "user", "delete", "olga"], { typed: "no" })
      assert.strictEqual(declined.code, 3)
      assert.include(declined.err, "Delete operator olga with all sessions and tokens?")
      assert.deepStrictEqual(yield* user("delete", "olga", "--yes"), done("Operator olga was deleted."))
    }))

  test("reports a second factor, makes new recovery codes and removes the factor", () =>
    Effect.gen(function*() {
      const place = yield* ready
      yield* place.run(["admin", "user", "create", "root", "--password-file", fileOf(place, password)])
      const totp = (...words: ReadonlyArray<string>) => place.run(["admin", "user", "totp", ...words])
      const none = refused(3, "The operator has no second factor.")
      assert.deepStrictEqual(yield* totp("recovery-codes", "root"), none)
      assert.deepStrictEqual(yield* totp("reset", "root", "--yes"), done("root has no second factor."))
      yield* served(
        place,
        Effect.flatMap(entering("root"), (one) => one._tag === "Active" ? enrolled(one.identity) : Effect.void)
      )
      assert.deepStrictEqual(JSON.parse((yield* totp("status", "root", "--json")).out), {
        totpEnabled: true,
        enrolmentPending: false,
        recoveryCodesRemaining: 10
      })
      const codes = yield* totp("recovery-codes", "root")
      assert.strictEqual(codes.code, 0)
      assert.match(codes.out, /^(?:[A-Z2-7]{5}-[A-Z2-7]{5}\n){10}$/)
      assert.strictEqual(codes.err, "The codes are shown only now; earlier codes are void.\n")
      assert.deepStrictEqual(
        (yield* place.run(["admin", "user", "totp", "recovery-codes", "root"], { lost: "ENOSPC" })).err,
        "The output could not be written (ENOSPC), so nobody has the new codes, and earlier codes are void. Repeat the command when it can be written.\n"
      )
      assert.strictEqual((yield* totp("reset", "root")).code, 2)
      assert.deepStrictEqual(
        yield* totp("reset", "root", "--yes"),
        done("The second factor was removed, and the sessions have ended.")
      )
    }))

  test("makes tokens, shows each once, and revokes them", () =>
    Effect.gen(function*() {
      const place = yield* ready
      yield* place.run(["admin", "user", "create", "root", "--password-file", fileOf(place, password)])
      const token = (...words: ReadonlyArray<string>) => place.run(["admin", "token", ...words])
      const minted = yield* token(
        ..."create root --name backup --role operator --expires-in 30 --allow 192.0.2.0/24 --allow ::1".split(" ")
      )
      assert.strictEqual(minted.code, 0)
      assert.match(minted.out, /^acme_svc_\S+\n$/)
      const [, id = ""] = /its id is (\S+)\.\n$/.exec(minted.err) ?? []
      const identity = yield* served(place, authenticateToken(typed(minted.out.trim()), here))
      assert.deepInclude(identity, { role: "operator", name: "backup", id })
      assert.strictEqual((yield* token("create", "root", "--name", "two")).code, 2)
      yield* place.run(["admin", "user", "create", "vera", "--password-file", fileOf(place, password)])
      assert.deepStrictEqual(
        yield* token("create", "vera", "--name", "two", "--role", "admin", "--expires-in", "1"),
        refused(3, "--role must not exceed the role of vera, which is viewer.")
      )
      assert.strictEqual((yield* token("create", "root", "--name", "two", "--expires-in", "367")).code, 2)
      assert.deepStrictEqual(
        yield* token("create", "root", "--name", "backup", "--expires-in", "1"),
        refused(3, "The name backup is in use.")
      )
      const page = JSON.parse((yield* token("list", "--user", "root", "--json")).out)
      assert.deepInclude(page.items[0], { id, name: "backup", user: "root", allowedAddresses: ["192.0.2.0/24", "::1"] })
      const list = yield* token("list")
      assert.include(list.out, "backup")
      assert.notInclude(JSON.stringify([page, list]), minted.out.trim())
      assert.deepStrictEqual(yield* token("revoke", "nothing"), refused(3, "There is no token nothing."))
      assert.strictEqual((yield* token("revoke", id)).code, 2)
      assert.deepStrictEqual(yield* token("revoke", id, "--yes"), done("Token backup of root is revoked."))
      const used = yield* served(place, Effect.flip(authenticateToken(typed(minted.out.trim()), here)))
      assert.strictEqual(used._tag, "SessionInvalid")
    }))

  test("lists sessions, and ends one session, all sessions of an operator, or all sessions", () =>
    Effect.gen(function*() {
      const place = yield* ready
      yield* place.run(["admin", "user", "create", "root", "--password-file", fileOf(place, password)])
      yield* served(place, Effect.replicateEffect(entering("root"), 3))
      const session = (...words: ReadonlyArray<string>) => place.run(["admin", "session", ...words])
      const page = JSON.parse((yield* session("list", "--json")).out)
      assert.strictEqual(page.total, 3)
      assert.deepInclude(page.items[0], { username: "root", state: "active", createdIp: "192.0.2.1" })
      assert.match((yield* session("list", "--user", "root")).out, /3 of 3 row\(s\)/)
      const usage = refused(2, "Give --user NAME, --user NAME with --session ID, or --all; exactly one of these.")
      for (const words of [[], ["--all", "--user", "root"], ["--session", "x"], ["--all", "--session", "x"]]) {
        assert.deepStrictEqual(yield* session("revoke", ...words), usage)
      }
      const { id } = page.items[0]
      assert.deepStrictEqual(yield* session("revoke", "--user", "root", "--session", id), done("1 session(s) ended."))
      assert.deepStrictEqual(
        yield* session("revoke", "--user", "root", "--session", id),
        refused(3, `There is no session ${id}.`)
      )
      assert.deepStrictEqual(yield* session("revoke", "--user", "root"), done("2 session(s) ended."))
      yield* served(place, entering("root"))
      assert.strictEqual((yield* session("revoke", "--all")).code, 2)
      assert.deepStrictEqual(yield* session("revoke", "--all", "--yes"), done("1 session(s) ended."))
    }))
})
