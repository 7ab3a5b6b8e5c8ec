import { Effect } from "effect"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Database } from "../../src/engine/sql/Database.ts"
import { Database as Db } from "../../src/engine/sql/Database.ts"
import { chainRows } from "../../src/operations/work/AuditChaining.ts"
import { pushRows } from "../../src/operations/work/AuditPush.ts"
import type { AuditReceiver } from "../../src/services/audit/AuditReceiver.ts"
import { PushFailed } from "../../src/services/audit/AuditReceiver.ts"
import * as audit from "../../src/store/AuditRows.ts"
import * as nonces from "../../src/store/NonceRows.ts"
import type { World } from "../support/Graph.ts"
import { callerAt, configOf, openDriver, orderOf, profileOf, sql, world } from "../support/Graph.ts"
import type { Ended, Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { selfSigned } from "../support/Shown.ts"
import { useTests } from "../support/UseTests.ts"

/* Tests the commands about accounts, orders, nonces, the trail and the configuration, which run in this process. */

const startsAt = 1_800_000_000
const at = "2027-01-15T08:00:00Z"
const nobody = "01234567-89ab-7def-8123-456789abcdef"
const { test } = useTests({ startsAt })

const ready = Effect.gen(function*() {
  const place = freshPlace()
  assert.strictEqual((yield* place.run(["migrate"])).code, 0)
  return place
})

/** Runs a program directly on the database of a place, not through a command. */
const served = <A, E>({ directory }: Place, program: Effect.Effect<A, E, Database | World>) =>
  Effect.scoped(
    Effect.flatMap(openDriver(`sqlite://${directory}/acme.db`), (driver) =>
      program.pipe(Effect.provide(world()), Effect.provideService(Db, driver)))
  )

const jsonOf = <A>({ code, err, out }: Ended): A => {
  assert.deepStrictEqual([code, err], [0, ""])
  return JSON.parse(out) as A
}

interface Page {
  readonly items: ReadonlyArray<{ readonly [member: string]: unknown }>
  readonly total: number
}

/** Makes a place with an account that has an order, and reads the events of the trail there. */
const peopled = Effect.gen(function*() {
  const place = yield* ready
  const { accountId, orderId } = yield* served(
    place,
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(configOf()))
      const { id } = yield* orderOf(caller, "a.example")
      return { accountId: caller.accountId, orderId: id }
    })
  )
  const events = Effect.map(
    served(place, sql("SELECT event, actor_kind, actor_id FROM audit_log ORDER BY id")),
    (rows) => rows.map(({ actor_id, actor_kind, event }) => `${event} by ${actor_kind} ${actor_id}`)
  )
  return { ...place, place, accountId, orderId, events }
})

describe("account", () => {
  test("`audit receivers` says how far each receiver is, in JSON and for people", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const { run } = place
      const row = audit.insert({
        event: "crl_number_raised",
        actorKind: "cli",
        actorId: undefined,
        detail: { issuer: "a", before: 1, after: 2 }
      })
      yield* served(place, Effect.replicateEffect(row, 3))
      const none = jsonOf<{ readonly items: ReadonlyArray<unknown> }>(yield* run(["audit", "receivers", "--json"]))
      assert.deepStrictEqual(none.items, [])
      const away: AuditReceiver = {
        name: "http",
        confirms: true,
        timeoutMillis: 1000,
        reach: Effect.void,
        send: () => new PushFailed({ detail: "away" })
      }
      yield* served(place, pushRows(away))
      const { items: [found] } = jsonOf<{ readonly items: ReadonlyArray<object> }>(
        yield* run(["audit", "receivers", "--json"])
      )
      assert.deepInclude(found ?? {}, { name: "http", configured: false, pushedId: 0, failures: 1, error: "away" })
      assert.match((yield* run(["audit", "receivers"])).out, /^http +not configured +0 /m)
    }))

  test("`audit verify` says what is verified, and ends with 3 if a row is not what was chained", () =>
    Effect.gen(function*() {
      const place = yield* ready
      const { run } = place
      const row = audit.insert({
        event: "crl_number_raised",
        actorKind: "cli",
        actorId: undefined,
        detail: { issuer: "a", before: 1, after: 2 }
      })
      assert.match((yield* run(["audit", "verify"])).out, /^head +none$/m)
      yield* served(place, Effect.andThen(row, chainRows(1)))
      yield* served(place, Effect.andThen(Effect.replicateEffect(row, 3), chainRows(1)))
      yield* served(place, row)
      const whole = yield* run(["audit", "verify"])
      assert.deepStrictEqual([whole.code, whole.err], [0, ""])
      assert.match(whole.out, /^verified rows +3$/m)
      assert.match(whole.out, /^not covered +1 \(ids 1 to 1\)$/m)
      assert.match(whole.out, /^not yet chained +1 \(ids 5 to 5\)$/m)
      assert.match(whole.out, /^signatures +audit\.chain_key_path is not set, so heads are not signed\.$/m)
      const { head } = jsonOf<{ readonly head: { readonly name: string } }>(yield* run(["audit", "verify", "--json"]))
      assert.strictEqual((yield* run(["audit", "verify", "--head", head.name])).code, 0)
      const wrong = yield* run(["audit", "verify", "--head", `${head.name}0`])
      assert.deepStrictEqual([wrong.code, wrong.out], [2, ""])
      assert.include(wrong.err, "--head takes the name of a head: its number, a colon and its hash")
      const other = yield* run(["audit", "verify", "--head", `7:${"a".repeat(64)}`])
      assert.strictEqual(other.code, 3)
      assert.match(other.out, /^removed +head +7 /m)
      yield* served(place, sql("DELETE FROM audit_log WHERE id = 3"))
      const faulty = yield* run(["audit", "verify"])
      assert.deepStrictEqual([faulty.code, faulty.err], [3, "The audit trail is not what was chained: 1 fault(s).\n"])
      assert.match(
        faulty.out,
        /^removed +rows +2 +2027-01-15T08:00:00Z +1 \(ids 3 to 3\) +rows that were chained are gone/m
      )
      const json = yield* run(["audit", "verify", "--json"])
      assert.strictEqual(json.code, 3)
      assert.deepInclude(JSON.parse(json.out), { verified: 2, faultsFound: 1 })
    }))

  test("list and show print accounts as text, or as JSON objects with --json", () =>
    Effect.gen(function*() {
      const { accountId, run } = yield* peopled
      const { items, total } = jsonOf<Page>(yield* run(["account", "list", "--json", "--status", "valid"]))
      assert.deepStrictEqual([items.map(({ id }) => id), total], [[accountId], 1])
      assert.include((yield* run(["account", "list", "--profile", "other"])).out, "0 of 0 row(s).")
      const shown = jsonOf<Page["items"][number]>(yield* run(["account", "show", accountId, "--json"]))
      assert.deepInclude(shown, { orderCount: 1, liveCertificates: 0, keyType: "ecdsa-p256", createdAt: at })
      const { out } = yield* run(["account", "show", accountId])
      assert.match(out, /^id +[0-9a-f-]{36}$/m)
      assert.match(out, /^orders +1$/m)
    }))

  test("and other commands end with exit code 3 for unknown ids and values", () =>
    Effect.gen(function*() {
      const { run } = yield* peopled
      const refused = (...words: ReadonlyArray<string>) =>
        Effect.map(run(words, { typed: "y" }), ({ code, err, out }) => {
          assert.deepStrictEqual([code, out], [3, ""], words.join(" "))
          return err
        })
      assert.include(yield* refused("account", "list", "--status", "live"), "valid, blocked, deactivated, revoked")
      const unfit = yield* run(["account", "list", "--eab-kid", "x"])
      assert.deepStrictEqual([unfit.code, unfit.err.includes("--eab-kid takes an id")], [2, true])
      for (const verb of ["show", "update-contact", "deactivate", "delete"]) {
        assert.strictEqual(yield* refused("account", verb, nobody), `There is no account ${nobody}.\n`)
      }
      assert.strictEqual(yield* refused("order", "delete", nobody), `There is no order ${nobody}.\n`)
      assert.strictEqual(yield* refused("audit", "show", "99"), "There is no audit row 99.\n")
      assert.include(yield* refused("audit", "list", "--event", "x"), "certificate_issued")
      assert.include(yield* refused("audit", "list", "--outcome", "x"), "success, failure")
      assert.include(yield* refused("audit", "list", "--actor-kind", "x"), "acme, admin, cli, system")
      assert.include(yield* refused("config", "show", "--profile", "x"), "There is no profile x.")
    }))

  test("update-contact, deactivate and delete ask before they remove something, and the trail names the user", () =>
    Effect.gen(function*() {
      const { accountId, events, run } = yield* peopled
      const contact = ["--contact", "mailto:a@example.org", "--contact", " b@example.org "]
      assert.deepStrictEqual(yield* run(["account", "update-contact", accountId, ...contact]), {
        code: 0,
        out: `The contacts of account ${accountId} are mailto:a@example.org mailto:b@example.org.\n`,
        err: ""
      })
      const silent = yield* run(["account", "update-contact", accountId])
      assert.deepStrictEqual([silent.code, silent.out], [2, ""], "nobody can be asked whether they are cleared")
      const cleared = yield* run(["account", "update-contact", accountId], { typed: "y" })
      assert.include(
        cleared.err,
        `Clear the contacts of account ${accountId}, mailto:a@example.org mailto:b@example.org?`
      )
      assert.include(cleared.out, "has no contact")
      assert.include((yield* run(["account", "update-contact", accountId])).out, "has no contact", "nothing is asked")
      const bad = yield* run(["account", "update-contact", accountId, "--contact", "tel:1"])
      assert.deepStrictEqual([bad.code, bad.err.startsWith("--contact")], [2, true])
      assert.strictEqual((yield* run(["account", "deactivate", accountId])).code, 2, "nobody can be asked")
      const declined = yield* run(["account", "deactivate", accountId], { typed: "n" })
      assert.deepStrictEqual([declined.code, declined.err.includes("for good")], [3, true])
      assert.strictEqual((yield* run(["account", "deactivate", accountId], { typed: "y" })).code, 0)
      assert.include((yield* run(["account", "deactivate", accountId])).out, `Account ${accountId} is deactivated.`)
      const deleted = yield* run(["account", "delete", accountId], { typed: "yes" })
      assert.include(deleted.err, "and its 1 order(s)?")
      assert.strictEqual(deleted.out, "Deleted the account with 1 order(s) and 1 authorization(s).\n")
      assert.deepStrictEqual(yield* events, [
        "account_contact_updated by cli tester",
        "account_contact_updated by cli tester",
        "account_deactivated by cli tester",
        "account_deleted by cli tester"
      ])
    }))

  test("delete is refused without a question while a certificate is valid", () =>
    Effect.gen(function*() {
      const { accountId, orderId, place, run } = yield* peopled
      yield* served(place, sql("UPDATE orders SET status = 'valid', certificate = 'PEM', cert_not_after = NULL"))
      const rest = "1 certificate that can still be used; revoke it first"
      for (
        const [words, err] of [
          [
            ["account", "delete", accountId],
            `Account ${accountId} has ${rest}, or deactivate the account, whose certificates stay.`
          ],
          [["order", "delete", orderId], `Order ${orderId} has ${rest}.`]
        ] as const
      ) {
        assert.deepStrictEqual(yield* run(words, { typed: "y" }), { code: 3, out: "", err: `${err}\n` })
      }
    }))

  test("delete is refused if a certificate is issued while the command asks", () =>
    Effect.gen(function*() {
      const { accountId, directory, events, orderId, place } = yield* peopled
      const issue = served(place, sql("UPDATE orders SET status = 'valid', certificate = 'PEM', cert_not_after = NULL"))
      for (const words of [["order", "delete", orderId], ["account", "delete", accountId]]) {
        yield* served(place, sql("UPDATE orders SET status = 'processing', certificate = NULL"))
        const ended = yield* place.run(words, { whileAsked: Effect.orDie(issue), typed: "y" })
        assert.deepStrictEqual([ended.code, ended.out], [3, ""], words.join(" "))
        assert.include(ended.err, "can still be used")
      }
      assert.isEmpty(yield* events)
      assert.isTrue(existsSync(join(directory, "acme.db")))
    }))
})

describe("order", () => {
  test("purge asks before it deletes old orders, and --dry-run only counts them", () =>
    Effect.gen(function*() {
      const { events, orderId, place, run } = yield* peopled
      yield* served(
        place,
        sql(`UPDATE orders SET status = 'valid', certificate = 'PEM', cert_not_after = ${startsAt - 40 * 86_400}`)
      )
      const days = ["order", "purge", "--expired-for"]
      for (const bad of ["0", "-1", "x"]) assert.strictEqual((yield* run([...days, bad])).code, 2)
      const preview = jsonOf<object>(yield* run([...days, "30", "--dry-run", "--json"]))
      assert.deepStrictEqual(preview, {
        orders: 1,
        oldest: "2026-12-06T08:00:00Z",
        newest: "2026-12-06T08:00:00Z",
        profiles: [{ profile: "default", orders: 1, oldest: "2026-12-06T08:00:00Z", newest: "2026-12-06T08:00:00Z" }],
        left: 0,
        cutoff: "2026-12-16T08:00:00Z"
      })
      const declined = yield* run([...days, "30"], { typed: "n" })
      assert.deepStrictEqual([declined.code, declined.out], [3, ""])
      assert.include(declined.err, "Delete 1 order(s)?")
      assert.include((yield* run([...days, "30", "--profile", "other", "--yes"])).out, "Deleted 0 order(s)")
      const done = jsonOf<object>(yield* run([...days, "30", "--yes", "--json"]))
      assert.hasAllKeys(done, ["orders", "authorizations", "left", "cutoff"])
      assert.deepStrictEqual(yield* events, ["orders_purged by cli tester"])
      assert.strictEqual((yield* run(["order", "delete", orderId, "--yes"])).code, 3, "it is gone")
    }))

  test("delete says what it removes", () =>
    Effect.gen(function*() {
      const { orderId, run } = yield* peopled
      const { err, out } = yield* run(["order", "delete", orderId], { typed: "y" })
      assert.include(err, `Delete the pending order ${orderId} of profile default and its 1 authorization(s)?`)
      assert.strictEqual(out, "Deleted the order with 1 authorization(s).\n")
    }))

  test("export writes the orders that list shows, as CSV by default", () =>
    Effect.gen(function*() {
      const { orderId, run } = yield* peopled
      const csv = yield* run(["order", "export", "--identifier", "a.example"])
      const [head = "", row = "", ...rest] = csv.out.split("\r\n")
      assert.match(head, /^id,profile,accountId,status,identifiers,/)
      assert.include(row, `${orderId},default,`)
      assert.deepStrictEqual(rest, [""])
      const { items } = jsonOf<Page>(yield* run(["order", "export", "--format", "json"]))
      assert.deepStrictEqual(items.map(({ id }) => id), [orderId])
      assert.deepStrictEqual(
        jsonOf<Page>(yield* run(["order", "export", "--format", "json", "--status", "valid"])).items,
        []
      )
      const cut = yield* run(["order", "export"], { reads: () => false })
      assert.deepStrictEqual([cut.code, cut.err], [0, ""])
      assert.notInclude(cut.out, orderId, "nobody reads on after the head")
      assert.strictEqual((yield* run(["order", "export", "--format", "xml"])).code, 3)
      assert.strictEqual((yield* run(["order", "export", "--status", "odd"])).code, 3)
    }))
})

describe("the commands about nonces and the trail", () => {
  test("count and delete nonces", () =>
    Effect.gen(function*() {
      const { place, run } = yield* peopled
      yield* served(
        place,
        Effect.andThen(nonces.insert(["a", "b"], (startsAt - 400) * 1000), nonces.insert(["c"], startsAt * 1000))
      )
      assert.deepStrictEqual(jsonOf<object>(yield* run(["nonce", "count", "--json"])), { count: 3, ttlSeconds: 300 })
      const asked = yield* run(["nonce", "cleanup", "--ttl-seconds", "10"], { typed: "n" })
      assert.include(asked.err, "older than 10 second(s), which clients may still use?")
      assert.deepStrictEqual(jsonOf<object>(yield* run(["nonce", "cleanup", "--yes", "--json"])), { removed: 2 })
      assert.strictEqual((yield* run(["nonce", "cleanup", "--yes"])).out, "Deleted 0 nonce(s).\n")
      assert.strictEqual((yield* run(["nonce", "cleanup"])).code, 2)
      const { items } = jsonOf<Page>(yield* run(["audit", "list", "--json", "--event", "nonce_cleanup_completed"]))
      assert.deepStrictEqual(items.map(({ detail }) => detail), [{ removed: 2 }])
    }))

  test("list, show, export and prune the trail", () =>
    Effect.gen(function*() {
      const { place, run } = yield* peopled
      yield* served(
        place,
        audit.insert({ event: "eab_created", actorKind: "cli", actorId: "x", detail: { kid: "=1" } })
      )
      const [row] = jsonOf<Page>(yield* run(["audit", "list", "--json", "--since", "2027-01-15"])).items
      const shown = jsonOf<object>(yield* run(["audit", "show", String(row?.["id"]), "--json"]))
      assert.deepStrictEqual<unknown>(shown, row)
      const text = (yield* run(["audit", "show", String(row?.["id"])])).out
      assert.match(text, /^event +eab_created$/m)
      assert.match(text, /^detail kid +=1$/m)
      assert.match((yield* run(["audit", "list"])).out, /eab_created +success +cli x/)
      assert.match(
        (yield* run(["audit", "export"])).out,
        /^id,createdAt,event,.*\r\n\d+,2027-01-15T08:00:00Z,eab_created,/
      )
      assert.strictEqual((yield* run(["audit", "list", "--since", "2027-01-15", "--until", "2027-01-15"])).code, 2)
      assert.strictEqual((yield* run(["audit", "cleanup", "--older-than", "0"])).code, 2)
      yield* served(
        place,
        sql(
          "INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (1, 'eab_created', 'success', 'cli')"
        )
      )
      const asked = yield* run(["audit", "cleanup", "--older-than", "30"], { typed: "n" })
      assert.deepStrictEqual([asked.code, asked.err.includes("Delete 1 row(s)")], [3, true])
      assert.deepStrictEqual(
        jsonOf<object>(yield* run(["audit", "cleanup", "--older-than", "30", "--yes", "--json"])),
        {
          removed: 1
        }
      )
      assert.strictEqual((yield* run(["audit", "cleanup", "--older-than", "30"])).out, "Deleted 0 row(s).\n")
    }))
})

describe("config", () => {
  test("show prints each key with its value and its source, and hides secrets", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(() => "[order]\nmax_identifiers = 7\n[profiles.web]\n")
      const env = { ACME_SVC_PROXY__HTTP_URL: "http://u:hunter2@proxy.example:1" }
      const { items } = jsonOf<Page>(yield* run(["config", "show", "--json"], { env }))
      assert.deepInclude(items, { key: "order.max_identifiers", value: 7, source: "file" })
      assert.deepInclude(items, { key: "proxy.http_url", value: "***", source: "env", secret: true })
      const { out } = yield* run(["config", "show", "--profile", "web"], { env })
      assert.match(out, /^profiles\.web\.order\.max_identifiers +file +7$/m)
      assert.notInclude(out, "hunter2")
    }))

  test("check reports that a correct configuration can be served, and creates no file", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace()
      const { code, err, out } = yield* run(["config", "check"])
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(err.split("\n"), [
        "Advisory: tls_disabled, base_url http://localhost:3000",
        "Advisory: filter_disabled, profile default",
        ""
      ])
      assert.match(out, /config\.toml can be served, with 1 profile\(s\)\.\n$/)
      assert.deepStrictEqual(readdirSync(directory), ["config.toml"])
    }))

  test("check reports together all faults that would prevent a startup", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace((here) => `
        [keys]
        blocklist_paths = ["${here}/absent.txt"]
        [server.tls]
        enabled = true
        cert_path = "${here}/tls.pem"
        key_path = "${here}/tls.key"
        [profiles.a.signer.local_ca]
        cert_path = "${here}/ca.pem"
        key_path = "${here}/ca.key"
        crl_path = "${here}/ca.crl"
        [profiles.b.signer]
        backend = "custom"
        [profiles.b.signer.custom]
        script_path = "${here}/sign.sh"
        [profiles.c.signer]
        backend = "relay"
        [profiles.c.signer.relay]
        directory_url = "https://ca.example/directory"
        account_key_path = "${here}/relay.key"
      `)
      for (const name of ["tls.pem", "tls.key", "ca.pem", "sign.sh", "relay.key"]) {
        writeFileSync(join(directory, name), "nothing\n")
      }
      const before = readdirSync(directory)
      const { code, err, out } = yield* run(["config", "check"])
      assert.deepStrictEqual([code, out], [3, ""])
      for (const named of ["absent.txt", "tls.pem", "ca.pem exists", "sign.sh", "relay.key"]) assert.include(err, named)
      assert.lengthOf(err.trimEnd().split("\n"), 5)
      assert.deepStrictEqual(readdirSync(directory), before)
      chmodSync(join(directory, "sign.sh"), 0o755)
      assert.notInclude((yield* run(["config", "check"])).err, "sign.sh")
    }))

  test("check warns that a CA cannot issue if its record of the last revocation list is unreadable", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace((here) => `
        [profiles.default.signer.local_ca]
        cert_path = "${here}/ca.pem"
        key_path = "${here}/ca.key"
        crl_path = "${here}/ca.crl"
      `)
      assert.strictEqual((yield* run(["init"])).code, 0)
      writeFileSync(join(directory, "ca.crl.issued"), "no list")
      const { code, err } = yield* run(["config", "check"])
      assert.strictEqual(code, 0)
      assert.match(
        err,
        /^Advisory: Profile default: .*ca\.crl\.issued, the record .* cannot be used: .* issues no certificates/m
      )
      assert.strictEqual(readFileSync(join(directory, "ca.crl.issued"), "utf8"), "no list")
    }))

  test("check reports scripts that are missing and templates that are invalid", () =>
    Effect.gen(function*() {
      const { directory, run } = freshPlace((here) => `
        [profiles.default]
        enabled = true
        [ipam]
        backend = "custom"
        [ipam.custom]
        script_path = "${here}/names.sh"
        [notify]
        enabled = ["custom"]
        custom_enabled = ["page"]
        [notify.custom.page]
        script_path = "${here}/page.sh"
        [admin]
        enabled = true
        template_dir = "${here}/pages"
        [admin.filter.check.known]
        type = "custom"
        script_path = "${here}/known.sh"
      `)
      mkdirSync(join(directory, "pages"))
      writeFileSync(join(directory, "pages", "order.html"), "{{ order.id|no_such_filter }}")
      const { code, err } = yield* run(["config", "check"])
      assert.strictEqual(code, 3)
      for (
        const named of [
          "profiles.default.ipam.custom.script_path",
          "profiles.default.notify.custom.page.script_path",
          "admin.filter.check.known.script_path",
          "pages/order.html"
        ]
      ) assert.include(err, named)
      for (const name of ["names.sh", "page.sh", "known.sh"]) writeFileSync(join(directory, name), "", { mode: 0o755 })
      writeFileSync(join(directory, "pages", "order.html"), "{{ order.id }}")
      assert.strictEqual((yield* run(["config", "check"])).code, 0)
    }))

  test("check names the key of a trust anchor file without a valid certificate, if the file is used", () =>
    Effect.gen(function*() {
      const file = (more: string) =>
        freshPlace((here) =>
          `[profiles.default]
[ipam]
backend = "netbox"
[ipam.netbox]
url = "https://netbox.example"
token = "t"
ca_cert_path = "${here}/roots.pem"
${more}
[filter]
rules = ["own"]
check.owned.type = "ipam"
rule.own = { when = "owned", then = "allow" }
`
        )
      const { directory, run } = file("")
      const path = join(directory, "roots.pem")
      const pair = yield* selfSigned("netbox.example")
      const broken = pair.cert.replace(/\n[^-]/, "\nA")
      const cases: ReadonlyArray<readonly [string | Uint8Array | undefined, string]> = [
        [undefined, "cannot be read: no such file or directory"],
        ["", "holds no certificate in PEM"],
        [pair.key, "holds no certificate in PEM"],
        [broken, "holds a certificate that cannot be read"],
        [Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0xff), "cannot be read: not UTF-8 text"]
      ]
      for (const [content, fault] of cases) {
        if (content !== undefined) writeFileSync(path, content)
        const { code, err } = yield* run(["config", "check"])
        assert.deepStrictEqual([code, err.split("\n").filter((line) => line.includes("ipam"))], [
          3,
          [`Profile default: ipam.netbox.ca_cert_path: ${path} ${fault} (line 7 of config.toml).`]
        ])
      }
      writeFileSync(path, `a comment\n${pair.cert}${pair.cert}another\n`)
      assert.strictEqual((yield* run(["config", "check"])).code, 0)
      for (const unread of ["insecure_skip_verify = true", "url = \"http://netbox.example\""]) {
        const elsewhere = file(unread)
        const text = readFileSync(join(elsewhere.directory, "config.toml"), "utf8")
        if (unread.startsWith("url")) {
          writeFileSync(
            join(elsewhere.directory, "config.toml"),
            text.replace("url = \"https://netbox.example\"\n", "")
          )
        }
        assert.strictEqual((yield* elsewhere.run(["config", "check"])).code, 0, unread)
      }
    }))

  test("check warns about a base URL at which no operator could sign in, and names its line", () =>
    Effect.gen(function*() {
      const file = "[admin]\nenabled = true\nbase_url = \"http://localhost:3001\"\n[admin.tls]\nenabled = true\n"
      const { run } = freshPlace(() => `${file}[profiles.default]\nenabled = true\n`)
      const { code, err } = yield* run(["config", "check"])
      assert.strictEqual(code, 0)
      assert.include(
        err.split("\n"),
        "Advisory: admin.base_url: tls_base_url_mismatch, base_url http://localhost:3001 (line 3 of config.toml)"
      )
    }))
})
