import { Clock, Context, Deferred, Effect, Fiber, Layer, Result } from "effect"
import type { Duration } from "effect"
import { TestClock } from "effect/testing"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { NotSigned } from "../../../../src/crypto/x509/CaKey.ts"
import { listedSerials } from "../../../../src/crypto/x509/Crl.ts"
import { readRevocationList } from "../../../../src/crypto/x509/RevocationList.ts"
import { ListNotSigned, ListsOvertaken } from "../../../../src/domain/JobFailure.ts"
import { Retry } from "../../../../src/engine/queue/Outcome.ts"
import { Database, transaction } from "../../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../../src/engine/sql/Driver.ts"
import type { Record } from "../../../../src/engine/telemetry/EventLog.ts"
import type { Caller } from "../../../../src/operations/Caller.ts"
import * as admin from "../../../../src/operations/operator/CrlRecords.ts"
import { keepExported } from "../../../../src/operations/work/crl/CrlExport.ts"
import * as crl from "../../../../src/operations/work/crl/ListPublication.ts"
import { compare } from "../../../../src/operations/work/crl/RestoredRevocations.ts"
import { takeBack } from "../../../../src/operations/work/crl/ServedLists.ts"
import * as revocation from "../../../../src/operations/work/Revocation.ts"
import type { LocalCaSettings } from "../../../../src/services/signing/ConfiguredCas.ts"
import { PublishedCrls } from "../../../../src/services/signing/PublishedCrls.ts"
import { Signers } from "../../../../src/services/signing/Signer.ts"
import * as crls from "../../../../src/store/revocation/Crls.ts"
import * as revocations from "../../../../src/store/revocation/Revocations.ts"
import { openssl, opensslOnCrl, pem } from "../../../crypto/Pki.ts"
import { databases, freshDirectory } from "../../../support/Databases.ts"
import { breakWrites, mend } from "../../../support/Faults.ts"
import type { World } from "../../../support/Graph.ts"
import { callerAt, column, configOf, count, eventsOf, fieldsOf, profileOf, sql, world } from "../../../support/Graph.ts"
import { acmeKey, at, bodyOf, byAccount, headerOf, register, requestOf, surfaceOf } from "../../../support/Handle.ts"
import type { IssuedHere } from "../../../support/Issued.ts"
import { filesIn, issueTo, profilesIn, work } from "../../../support/Issued.ts"
import { daySeconds, madeAt } from "../../../support/LocalCa.ts"
import { onSystemClock, useStore } from "../../../support/UseTests.ts"
import type { Making } from "../../../support/UseTests.ts"
import { sleeps, watched as onWatchedClock } from "../../../support/Watched.ts"

/* Tests how revocation lists are signed, published and exported (docs/contribute/decisions/revocation-lists.md). */

const config = configOf()
const surface = surfaceOf(config)
const kind = "local_ca_crl_regenerate"
const validity = 7 * daySeconds

interface Setting {
  readonly settings?: (directory: string) => Partial<LocalCaSettings>
  /** The text of the old ledger, which is written before the service starts. */
  readonly ledger?: string
  /** Whether the test itself calls `crl.initialize` for the first time. */
  readonly unmet?: boolean
  /** Whether the test runs on the system's clock, because it waits for locks. */
  readonly live?: boolean
}

describe.each(databases)("revocation lists on $name", (backend) => {
  let directory = ""
  const { database, records, test } = useStore(backend, {
    startsAt: madeAt,
    layer: ({ name, records, script }: Making<Setting>) => {
      directory = freshDirectory()
      if (script?.ledger !== undefined) writeFileSync(filesIn(directory).ledger, script.ledger)
      return world({ records, seed: name, profiles: profilesIn(directory, script?.settings?.(directory)) })
    },
    first: (script) => script?.unmet === true ? Effect.void : crl.initialize,
    around: (whole, script) => script?.live === true ? onSystemClock(whole) : onWatchedClock(whole)
  })

  const seconds = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1000))
  const said = (event: Record["event"]) => fieldsOf(records, event)
  const happened = (event: Record["event"]) => said(event).length

  const issuerId = Effect.map(Signers, ({ crlIssuers: [only] }) => only?.id ?? assert.fail("no CA"))
  const stored = Effect.flatMap(
    Effect.flatMap(issuerId, crls.find),
    (list) => list === undefined ? Effect.die("there is no list") : Effect.succeed(list)
  )
  const number = Effect.map(stored, ({ crlNumber }) => crlNumber)
  const listed = Effect.map(stored, ({ der }) => [...Result.getOrThrow(listedSerials(der))])
  const regenerate = Effect.flatMap(issuerId, (issuer) => crl.regenerate({ issuer }))
  const jobs = Effect.map(
    sql(`SELECT status FROM jobs WHERE kind = '${kind}' ORDER BY created_at, id`),
    (rows) => rows.map(({ status }) => status)
  )
  const forget = Effect.andThen(sql(`DELETE FROM jobs WHERE kind = '${kind}'`), Effect.sync(() => records.splice(0)))

  const issue = (...names: ReadonlyArray<string>) =>
    Effect.flatMap(
      callerAt(profileOf(config)),
      (caller) =>
        Effect.forEach(names, (name) => Effect.map(issueTo(caller, [name]), (issued) => ({ ...issued, caller })))
    )

  const revoke = ({ caller, chain, orderId, serial }: IssuedHere & { readonly caller: Caller }) =>
    revocation.revoke(
      {
        orderId,
        accountId: caller.accountId,
        profile: "default",
        identifiers: [],
        certificate: chain,
        serial,
        certPubkey: undefined
      },
      "local_ca",
      4,
      { actorKind: "cli", detail: { authorized_by: "operator" } }
    )

  /** Inserts the row of a revocation, as another version or another process might. */
  const row = (serial: string, more: { readonly notAfter?: number; readonly reason?: number } = {}) =>
    Effect.gen(function*() {
      const [issuer, now] = [yield* issuerId, yield* seconds]
      yield* revocations.insert({ issuer, serial, now, reason: more.reason, notAfter: more.notAfter })
    })

  const rows = column("SELECT serial FROM revocations ORDER BY serial")

  const get = (path: string, method = "GET", profile = "default") =>
    Effect.flatMap(surface, (app) => app.handle(requestOf(method, `/profile/${profile}${path}`)))

  /**
   * Returns a driver that runs `before` and `after` around each statement whose text matches the pattern. These two
   * effects represent another process that uses the database at that time.
   */
  const watched = (
    pattern: RegExp,
    around: {
      readonly before?: Effect.Effect<unknown, unknown, Database>
      readonly after?: Effect.Effect<unknown, unknown, Database>
    }
  ): Driver => {
    const driver = database.driver()
    const own = (effect: Effect.Effect<unknown, unknown, Database> = Effect.void) =>
      Effect.orDie(Effect.provideService(effect, Database, driver))
    return {
      ...driver,
      single: (statement, params) =>
        pattern.test(statement.text)
          ? Effect.tap(Effect.andThen(own(around.before), driver.single(statement, params)), own(around.after))
          : driver.single(statement, params)
    }
  }

  /** Runs an effect only the first time. */
  const once = <A, E, R>(effect: Effect.Effect<A, E, R>) => {
    let done = false
    return Effect.suspend(() => {
      if (done) return Effect.void
      done = true
      return Effect.asVoid(effect)
    })
  }

  const storing = /^UPDATE crls SET crl_number = .* der = /s

  describe("the first list", () => {
    test("exists from the start, without entries, with number 1 and valid for seven days", () =>
      Effect.gen(function*() {
        const list = yield* stored
        assert.deepInclude(list, { crlNumber: 1, thisUpdate: madeAt, nextUpdate: madeAt + validity })
        assert.deepStrictEqual(yield* listed, [])
        const text = openssl(["crl", "-inform", "DER", "-noout", "-text"], list.der).toString()
        assert.include(text, "No Revoked Certificates.")
        const [, from = ""] = /Last Update: (.*)/.exec(text) ?? []
        assert.strictEqual(Date.parse(from) / 1000, madeAt - 3600, "good for whose clock is an hour behind")
        const [, until = ""] = /Next Update: (.*)/.exec(text) ?? []
        assert.strictEqual(Date.parse(until) / 1000, madeAt + validity)
        assert.deepStrictEqual(said("local_ca_crl_republished"), [{
          issuer: yield* issuerId,
          crl_number: "1",
          entries: 0
        }])
        assert.deepStrictEqual(yield* jobs, [])
      }))

    test("has no entry that is dated after the list, and later lists have the date of the revocation", () =>
      Effect.gen(function*() {
        yield* TestClock.adjust("10 seconds")
        yield* row("41")
        const dates = Effect.gen(function*() {
          yield* regenerate
          const { entries, thisUpdate } = yield* readRevocationList((yield* stored).der)
          return [thisUpdate - madeAt, ...entries.map(({ revokedAt }) => revokedAt - madeAt)]
        })
        assert.deepStrictEqual(yield* dates, [10 - 3600, 10 - 3600])
        yield* TestClock.adjust("3599 seconds")
        assert.deepStrictEqual(yield* dates, [9, 9])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* dates, [10, 10])
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(yield* dates, [3610, 10])
      }))

    test("is not signed again at the next startup", () =>
      Effect.gen(function*() {
        yield* Effect.replicateEffect(crl.initialize, 3)
        assert.strictEqual(yield* number, 1)
        assert.strictEqual(happened("local_ca_crl_republished"), 1)
        assert.deepStrictEqual(yield* jobs, [])
      }))

    test("is only one list, whichever of two workers signs first", () =>
      Effect.gen(function*() {
        const other = yield* database.another
        yield* Effect.all([crl.initialize, Effect.provideService(crl.initialize, Database, other)], {
          concurrency: "unbounded"
        })
        assert.strictEqual(yield* number, 1)
        assert.deepStrictEqual(yield* column("SELECT crl_number FROM crls"), ["1"])
        const lost = said("local_ca_crl_not_stored").length
        assert.strictEqual(happened("local_ca_crl_republished") + lost, lost === 0 ? 1 : 2)
      }), { unmet: true, live: true })

    test(
      "is not followed by a second list if another worker stores the list after this worker has looked for it",
      () =>
        Effect.gen(function*() {
          const context = yield* Effect.context<World>()
          const looking = watched(/^SELECT crl_number/, { after: once(Effect.provide(crl.initialize, context)) })
          yield* Effect.provideService(crl.initialize, Database, looking)
          assert.strictEqual(yield* number, 1)
          assert.strictEqual(happened("local_ca_crl_not_stored"), 1)
        }),
      { unmet: true }
    )

    test(
      "does not prevent the startup of the worker if the list cannot be signed, and the job tries again",
      () =>
        Effect.gen(function*() {
          const signers = yield* Signers
          const broken = {
            ...signers,
            crlIssuers: signers.crlIssuers.map((one) => ({
              ...one,
              sign: () => new NotSigned({ detail: "planted" })
            }))
          }
          yield* Effect.provideService(crl.initialize, Signers, broken)
          const issuer = yield* issuerId
          assert.deepStrictEqual(said("local_ca_crl_initialization_failed"), [{
            issuer,
            error: "the CA key did not sign"
          }])
          assert.deepStrictEqual(yield* jobs, ["ready"])
          assert.strictEqual((yield* get("/crl")).status, 503)
          assert.deepStrictEqual(
            yield* Effect.provideService(regenerate, Signers, broken),
            Retry(new ListNotSigned({ detail: "the CA key did not sign" }))
          )
          yield* work(kind)
          assert.strictEqual(yield* number, 1)
        }),
      { unmet: true }
    )

    test("is signed within minutes when the key signs again, however long it did not", () =>
      Effect.gen(function*() {
        const signers = yield* Signers
        const broken = {
          ...signers,
          crlIssuers: signers.crlIssuers.map((one) => ({ ...one, sign: () => new NotSigned({ detail: "planted" }) }))
        }
        const [one = assert.fail("nothing was issued")] = yield* issue("a.example")
        yield* forget
        yield* revoke(one)
        for (let turn = 0; turn < 20; turn++) {
          yield* Effect.provideService(work(kind), Signers, broken)
          yield* TestClock.adjust("5 minutes")
        }
        assert.deepStrictEqual(yield* jobs, ["ready"])
        assert.notInclude(yield* listed, one.serial)
        yield* work(kind)
        assert.include(yield* listed, one.serial)
        assert.deepStrictEqual(yield* jobs, ["done"])
      }))

    test("is answered with 503 and Retry-After until it exists", () =>
      Effect.gen(function*() {
        const answer = yield* get("/crl")
        assert.deepStrictEqual([answer.status, headerOf(answer, "retry-after")], [503, "5"])
        assert.strictEqual(bodyOf(answer).type, "urn:ietf:params:acme:error:serverInternal")
      }), { unmet: true })
  })

  test("are answered with 500 and logged if they cannot be read, until the sweep has signed them again", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* get("/crl")).status, 200)
      const octet = backend.dialect === "sqlite" ? "x'00'" : "'\\x00'"
      yield* sql(`UPDATE crls SET der = ${octet}, crl_number = crl_number + 1`)
      assert.strictEqual((yield* get("/crl")).status, 500)
      assert.deepInclude(said("db_row_unreadable")[0], { error: "der: is no revocation list" })
      yield* crl.sweep
      yield* work(kind)
      assert.strictEqual((yield* get("/crl")).status, 200)
    }))

  describe("a row that cannot be read", () => {
    const beyond = "9223372036854775807"

    test("prevents a new list if it is a revocation, so that no list lacks the revocation", () =>
      Effect.gen(function*() {
        const [one = assert.fail("nothing issued")] = yield* issue("a.example")
        yield* revoke(one)
        yield* sql(`UPDATE revocations SET revoked_at = ${beyond}`)
        assert.deepInclude(yield* Effect.flip(regenerate), { _tag: "StorageFailed", isUnreadable: true })
        yield* work(kind)
        assert.strictEqual(yield* number, 1)
        yield* sql(`UPDATE revocations SET revoked_at = ${madeAt}`)
        yield* regenerate
        assert.deepStrictEqual(yield* listed, [one.serial])
      }))

    test("prevents the list of its CA from being signed, but not the lists of other CAs", () =>
      Effect.gen(function*() {
        const signers = yield* Signers
        const [only = assert.fail("no CA")] = signers.crlIssuers
        yield* sql(`INSERT INTO crls SELECT 'aa', crl_number, der, this_update, ${beyond} FROM crls`)
        const both = { ...signers, crlIssuers: [{ ...only, id: "aa" }, only] }
        const due = sql(`UPDATE crls SET next_update = ${madeAt} WHERE issuer = '${only.id}'`)
        for (const looked of [crl.initialize, crl.sweep]) {
          yield* forget
          yield* due
          yield* Effect.provideService(looked, Signers, both)
          assert.deepStrictEqual(yield* column("SELECT dedup_key FROM jobs WHERE kind = 'local_ca_crl_regenerate'"), [
            only.id
          ])
          assert.isAbove(happened("db_row_unreadable") + happened("local_ca_crl_initialization_failed"), 0)
          yield* work(kind)
          yield* TestClock.adjust("1 minute")
        }
        assert.strictEqual(yield* number, 3)
      }))
  })

  describe("the old ledger", () => {
    const good = [
      { serial: "0A0B", revoked_at: 1_700_000_000, reason: 1 },
      { serial: "00ff", revoked_at: 1_600_000_000 },
      { serial: "abc", revoked_at: 0, reason: null },
      { serial: "8000000000000000000000000000000000000001", revoked_at: 1_650_000_000, reason: 8 },
      { serial: "01", revoked_at: 1_650_000_000, reason: -1 },
      { serial: "02", revoked_at: 253_402_300_799, reason: 4242 }
    ]
    const serials = ["01", "02", "0a0b", "0abc", "8000000000000000000000000000000000000001", "ff"]

    test(
      "is imported with the first list, and the number of that list is one higher than the number of rows",
      () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* rows, serials)
          assert.deepStrictEqual(yield* listed, serials)
          assert.strictEqual(yield* number, good.length + 1)
          assert.strictEqual(yield* count("SELECT count(*) FROM revocations WHERE not_after IS NOT NULL"), 0)
          assert.deepStrictEqual(
            yield* column("SELECT COALESCE(reason, -1) FROM revocations ORDER BY serial"),
            ["-1", "4242", "1", "-1", "8", "-1"]
          )
          assert.deepStrictEqual(said("local_ca_ledger_imported"), [{
            issuer: yield* issuerId,
            crl_number: String(good.length + 1),
            entries: good.length,
            rows_imported: good.length
          }])
          const text = openssl(["crl", "-inform", "DER", "-noout", "-text"], (yield* stored).der).toString()
          assert.strictEqual(text.match(/Reason Code/g)?.length, 1)
          assert.notInclude(text, "9999", "no date is later than the list")
          assert.deepStrictEqual(
            yield* column("SELECT revoked_at FROM revocations WHERE serial = '02'"),
            ["253402300799"]
          )
        }),
      { ledger: JSON.stringify(good) }
    )

    test(
      "may name serial numbers as serial_hex and contain a list number, and the first list has the next number",
      () =>
        Effect.gen(function*() {
          assert.deepStrictEqual(yield* rows, ["01", "0a0b"])
          assert.strictEqual(yield* number, 42)
        }),
      {
        ledger: JSON.stringify({
          crl_number: 41,
          revoked: [{ serial_hex: "0A0B", revoked_at: 1_700_000_000, reason: 1 }, { serial_hex: "01", revoked_at: 5 }]
        })
      }
    )

    test("is imported once and never read again", () =>
      Effect.gen(function*() {
        writeFileSync(filesIn(directory).ledger, JSON.stringify([{ serial: "77", revoked_at: 1 }]))
        yield* crl.initialize
        yield* regenerate
        assert.deepStrictEqual(yield* rows, ["01"])
        writeFileSync(filesIn(directory).ledger, "no ledger any more")
        yield* crl.initialize
        assert.strictEqual((yield* regenerate)._tag, "Done")
        assert.strictEqual((yield* get("/crl")).status, 200)
        assert.strictEqual(happened("local_ca_ledger_imported"), 1)
        assert.strictEqual(yield* number, 4)
      }), { ledger: `[{"serial":"01","revoked_at":5}]` })

    test(
      "is imported with one row for a serial number that the ledger names several times, with the earliest revocation",
      () =>
        Effect.gen(function*() {
          assert.strictEqual(yield* number, 2)
          assert.deepStrictEqual(yield* column("SELECT revoked_at FROM revocations"), ["3"])
        }),
      {
        ledger: JSON.stringify([
          { serial: "0f", revoked_at: 9 },
          { serial: "F", revoked_at: 3 },
          { serial: "000f", revoked_at: 7 }
        ])
      }
    )

    test("gives the first list the number 1 if the ledger is empty", () =>
      Effect.gen(function*() {
        assert.strictEqual(yield* number, 1)
        assert.deepStrictEqual(said("local_ca_ledger_imported").map(({ rows_imported }) => rows_imported), [0])
      }), { ledger: "[]" })

    test("prevents the first list as long as its rows cannot be stored", () =>
      Effect.gen(function*() {
        if (backend.dialect === "sqlite") {
          yield* sql("CREATE TRIGGER broken BEFORE INSERT ON revocations BEGIN SELECT RAISE(ABORT, 'planted'); END")
        } else {
          yield* sql(
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$"
          )
          yield* sql("CREATE TRIGGER broken BEFORE INSERT ON revocations FOR EACH ROW EXECUTE FUNCTION broken()")
        }
        const failure = yield* Effect.flip(crl.initialize)
        yield* sql(backend.dialect === "sqlite" ? "DROP TRIGGER broken" : "DROP FUNCTION broken CASCADE")
        assert.strictEqual(failure._tag, "StorageFailed")
        assert.strictEqual(yield* count("SELECT count(*) FROM crls"), 0)
        yield* crl.initialize
        assert.deepStrictEqual(yield* listed, ["01"])
        assert.strictEqual(yield* number, 3, "the second was recorded, and may be in a backup of the disk")
      }), { ledger: `[{"serial":"01","revoked_at":5}]`, unmet: true })

    const bad: ReadonlyArray<readonly [name: string, spoilt: unknown]> = [
      ["no serial", { revoked_at: 1 }],
      ["a serial that is not hexadecimal", { serial: "xyz", revoked_at: 1 }],
      ["an empty serial", { serial: "", revoked_at: 1 }],
      ["a serial that is too long for any certificate", { serial: "a".repeat(65), revoked_at: 1 }],
      ["a serial with colons", { serial: "0a:0b", revoked_at: 1 }],
      ["a time as text", { serial: "01", revoked_at: "2020-01-01T00:00:00Z" }],
      ["a negative time", { serial: "01", revoked_at: -1 }],
      ["a time in milliseconds", { serial: "01", revoked_at: 1_700_000_000_000 }],
      ["a time that is not a whole second", { serial: "01", revoked_at: 1.5 }],
      ["no time", { serial: "01" }],
      ["a reason as text", { serial: "01", revoked_at: 1, reason: "keyCompromise" }],
      ["null", null],
      ["a text", "01"],
      ["a list", []]
    ]
    for (const [name, spoilt] of bad) {
      test(
        `is not imported because of a bad entry (${name}), and the message names the entry`,
        () =>
          Effect.gen(function*() {
            assert.deepStrictEqual(yield* rows, [])
            assert.strictEqual(yield* count("SELECT count(*) FROM crls"), 0)
            const [failure] = said("local_ca_crl_initialization_failed")
            assert.include(String(failure?.["error"]), "entry 2 ")
            assert.deepStrictEqual(yield* jobs, ["ready"])
            assert.deepInclude(yield* regenerate, { _tag: "Reschedule", at: madeAt + 10 })
          }),
        { ledger: JSON.stringify([good[0], good[1], spoilt, good[3]]) }
      )
    }

    for (
      const [name, text] of [
        ["no array", "{}"],
        ["of two arrays", `{"crl_number":4,"a":[],"b":[]}`],
        ["no JSON", "[{"],
        ["not UTF-8", "\ud800"]
      ] as const
    ) {
      test(
        `makes revocations and GET /crl fail with 500 until the ledger is repaired if the ledger is ${name}`,
        () =>
          Effect.gen(function*() {
            if (name === "not UTF-8") writeFileSync(filesIn(directory).ledger, Buffer.from([0x5b, 0xff, 0x5d]))
            const [issued = assert.fail()] = yield* issue("a.example")
            const answer = yield* get("/crl")
            assert.strictEqual(answer.status, 500)
            assert.strictEqual(bodyOf(answer).type, "urn:ietf:params:acme:error:serverInternal")
            assert.notInclude(String(answer.body), directory)
            assert.strictEqual((yield* Effect.flip(revoke(issued)))._tag, "IssuerUnknown")
            assert.strictEqual(happened("local_ca_issuer_mismatch"), 1)
            assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 0)
            for (let again = 0; again < 7; again++) {
              yield* work(kind)
              yield* TestClock.adjust("10 seconds")
            }
            writeFileSync(filesIn(directory).ledger, `[{"serial":"01","revoked_at":5}]`)
            yield* work(kind)
            assert.deepStrictEqual(yield* listed, ["01"])
            assert.strictEqual((yield* get("/crl")).status, 200)
            yield* revoke(issued)
            yield* work(kind)
            assert.includeMembers(yield* listed, ["01", issued.serial])
            assert.strictEqual(yield* number, 3)
          }),
        { ledger: text }
      )
    }

    test(
      "is looked for beside crl_path, with the extension .json, wherever that path is",
      () =>
        Effect.gen(function*() {
          writeFileSync(join(directory, "lists.old.json"), `[{"serial":"01","revoked_at":5}]`)
          const signers = yield* Signers
          const moved = {
            ...signers,
            crlIssuers: signers.crlIssuers.map((one) => ({ ...one, path: join(directory, "lists.old.pem") }))
          }
          yield* Effect.provideService(crl.initialize, Signers, moved)
          assert.deepStrictEqual(yield* listed, ["01"])
        }),
      { unmet: true }
    )
  })

  describe("a revocation", () => {
    test("is listed by the job that it queues, in a list whose number is one higher", () =>
      Effect.gen(function*() {
        const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
        yield* revoke(one)
        assert.deepStrictEqual(yield* jobs, ["ready"])
        yield* revoke(two)
        assert.deepStrictEqual(yield* jobs, ["ready"], "the second joins the job of the first")
        yield* work(kind)
        assert.deepStrictEqual(yield* jobs, ["done"])
        assert.sameMembers([...(yield* listed)], [one.serial, two.serial])
        assert.strictEqual(yield* number, 2)
        const { body } = yield* get("/crl")
        assert.deepStrictEqual(Buffer.from(body ?? ""), Buffer.from((yield* stored).der))
      }))

    const list = Effect.gen(function*() {
      const expected = yield* rows
      assert.sameMembers([...(yield* listed)], [...expected])
      assert.deepStrictEqual([...new Set(yield* jobs)], ["done"])
      assert.isFalse((yield* jobs).includes("ready"))
    })

    for (
      const [name, moment] of [
        ["between the read and the store of a pass", "before"],
        ["between the store and the settlement", "after"]
      ] as const
    ) {
      test(`is listed by the next job if it is committed ${name}`, () =>
        Effect.gen(function*() {
          const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
          yield* revoke(one)
          const context = yield* Effect.context<World>()
          const meanwhile = once(Effect.provide(revoke(two), context))
          const seen: Array<ReadonlyArray<string>> = []
          const look = Effect.flatMap(Effect.provide(listed, context), (now) => Effect.sync(() => seen.push(now)))
          const driver = watched(storing, {
            before: moment === "before" ? meanwhile : Effect.void,
            after: Effect.andThen(look, moment === "after" ? meanwhile : Effect.void)
          })
          yield* Effect.provideService(work(kind), Database, driver)
          assert.deepStrictEqual(seen[0], [one.serial], "the first pass did not see it")
          assert.strictEqual((yield* jobs).length, 2)
          yield* list
          assert.strictEqual(yield* number, 3)
        }))
    }

    test("is listed by the next job if it is committed while a list is signed, even if the clock is set back by a day for that time", () =>
      Effect.gen(function*() {
        const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
        yield* revoke(one)
        const context = yield* Effect.context<World>()
        const back = TestClock.adjust("-1 days")
        const meanwhile = once(Effect.andThen(back, Effect.provide(revoke(two), context)))
        const forth = TestClock.adjust("1 day")
        yield* Effect.provideService(work(kind), Database, watched(storing, { before: meanwhile, after: once(forth) }))
        assert.strictEqual((yield* jobs).length, 2)
        yield* list
      }))

    if (backend.dialect === "postgres") {
      /** Waits until a statement of another connection waits for a lock, or until `over` is true. */
      const waits = (over: Effect.Effect<boolean, never, Database>) =>
        Effect.repeat(
          Effect.zipWith(
            count(
              "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ),
            over,
            (waiting, ended) => waiting > 0 || ended
          ),
          { until: Boolean }
        )
      const isDone = Effect.map(jobs, (statuses) => statuses.includes("done"))

      test("is awaited by a job that ends while the transaction of the revocation is open, and is listed by the next job", () =>
        Effect.gen(function*() {
          const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
          yield* revoke(one)
          const other = yield* database.another
          const [held, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const hold = Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(go))
          const context = yield* Effect.context<World>()
          const open = Effect.provideService(
            Effect.provide(transaction(Effect.andThen(revoke(two), hold)), context),
            Database,
            other
          )
          let revoking: Fiber.Fiber<void, unknown> | undefined
          const begin = Effect.gen(function*() {
            revoking = yield* Effect.forkDetach(open)
            yield* Deferred.await(held)
          })
          const working = yield* Effect.forkChild(
            Effect.provideService(work(kind), Database, watched(storing, { after: once(begin) }))
          )
          yield* Deferred.await(held)
          yield* waits(isDone)
          yield* Deferred.succeed(go, undefined)
          yield* Fiber.join(working)
          if (revoking !== undefined) yield* Fiber.join(revoking)
          yield* list
          assert.strictEqual((yield* rows).length, 2)
        }))

      test("waits for a job that is ending, and queues another job", () =>
        Effect.gen(function*() {
          const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
          yield* revoke(one)
          const other = yield* database.another
          const [held, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const driver = database.driver()
          const hold = once(Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(go)))
          const slow: Driver = {
            ...driver,
            transact: (body) => driver.transact((connection) => Effect.tap(body(connection), hold))
          }
          const working = yield* Effect.forkChild(Effect.provideService(work(kind), Database, slow))
          yield* Deferred.await(held)
          const revoking = yield* Effect.forkChild(Effect.provideService(revoke(two), Database, other))
          yield* waits(Effect.succeed(false))
          yield* Deferred.succeed(go, undefined)
          yield* Fiber.join(revoking)
          yield* Fiber.join(working)
          yield* work(kind)
          yield* list
          assert.strictEqual((yield* jobs).length, 2)
        }))
    }

    test("is listed by the CA that signed the certificate, even if this CA was replaced", () =>
      Effect.gen(function*() {
        const former = yield* issuerId
        const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
        const [before, after] = [directory, freshDirectory()]
        const [inBefore, inAfter] = [profilesIn(before), profilesIn(after)]
        // First no profile signs with the old CA, and then the profile `other` does.
        const replaced = world({ records, profiles: inAfter })
        const kept = world({ records, profiles: [...inAfter.slice(0, 1), ...inBefore.slice(1)] })
        yield* Effect.provide(
          Effect.gen(function*() {
            yield* crl.initialize
            const current = yield* issuerId
            assert.notStrictEqual(current, former)
            assert.strictEqual(happened("local_ca_orphaned_crl"), 0, "nothing of the former CA is revoked")
            yield* revoke(one)
            yield* revoke(two)
            assert.deepStrictEqual(yield* column("SELECT DISTINCT issuer FROM revocations"), [former])
            yield* crl.initialize
            assert.deepStrictEqual(said("local_ca_orphaned_crl"), [{ issuer: former }])
            const outcome = yield* crl.regenerate({ issuer: former })
            assert.deepInclude(outcome, { _tag: "Retry" })
          }),
          replaced
        )
        yield* Effect.provide(
          Effect.gen(function*() {
            yield* TestClock.adjust("10 minutes")
            yield* work(kind)
            const lists = yield* Effect.forEach([former, yield* issuerId], crls.find)
            assert.deepStrictEqual(
              lists.map((list) => [...Result.getOrThrow(listedSerials(list?.der ?? new Uint8Array()))].length),
              [2, 0]
            )
            const here = yield* get("/crl")
            const there = yield* get("/crl", "GET", "other")
            assert.isFalse(Buffer.from(here.body ?? "").equals(Buffer.from(there.body ?? "")))
            assert.strictEqual(Result.getOrThrow(listedSerials(Buffer.from(there.body ?? ""))).size, 2)
          }),
          kept
        )
      }))
  })

  describe("the number of a list", () => {
    test("is higher in a repeated pass if another process used the number during the first pass", () =>
      Effect.gen(function*() {
        const context = yield* Effect.context<World>()
        const another = once(Effect.provide(regenerate, context))
        const driver = watched(storing, { before: another })
        const outcome = yield* Effect.provideService(regenerate, Database, driver)
        assert.strictEqual(outcome._tag, "Done")
        // The number of a list that was recorded but not stored is not used again.
        assert.strictEqual(yield* number, 4)
        assert.deepStrictEqual(said("local_ca_crl_not_stored").map(({ crl_number }) => crl_number), ["2"])
        assert.deepStrictEqual(said("local_ca_crl_republished").map(({ crl_number }) => crl_number), ["1", "3", "4"])
      }))

    test("is left to the next attempt after five passes in which another process was faster", () =>
      Effect.gen(function*() {
        const context = yield* Effect.context<World>()
        const driver = watched(storing, { before: Effect.provide(regenerate, context) })
        const outcome = yield* Effect.provideService(regenerate, Database, driver)
        assert.deepStrictEqual(outcome, Retry(new ListsOvertaken()))
        assert.strictEqual(happened("local_ca_crl_not_stored"), 5)
        assert.strictEqual(happened("local_ca_crl_republished"), 6, "the first, and those of the other")
      }))

    test("only rises, even if two workers sign at once", () =>
      Effect.gen(function*() {
        const other = yield* database.another
        const outcomes = yield* Effect.all(
          Array.from({ length: 12 }, (_, index) =>
            Effect.andThen(
              row(`4${index.toString(16)}`),
              Effect.provideService(regenerate, Database, index % 2 === 0 ? other : database.driver())
            )),
          { concurrency: "unbounded" }
        )
        const numbers = said("local_ca_crl_republished").map(({ crl_number }) => Number(crl_number))
        assert.strictEqual(new Set(numbers).size, numbers.length, "no number twice")
        assert.strictEqual(Math.max(...numbers), yield* number)
        assert.strictEqual((yield* listed).length, 12, "and none left out")
        assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Done").length, numbers.length - 1)
        const exported = readFileSync(filesIn(directory).crl, "utf8")
        assert.strictEqual(exported, pem("X509 CRL", (yield* stored).der), "the file has the newest")
      }), { live: true })

    test("is not lowered by pruning or by a shorter list", () =>
      Effect.gen(function*() {
        yield* row("41")
        yield* regenerate
        yield* sql("DELETE FROM revocations")
        yield* regenerate
        assert.deepStrictEqual(yield* listed, [])
        assert.strictEqual(yield* number, 3)
      }))
  })

  test("are due after their number was raised, and the present list is still served and not considered stale", () =>
    Effect.gen(function*() {
      const { der, nextUpdate } = yield* stored
      const issuer = yield* issuerId
      const olga = { kind: "cli", id: "olga" } as const
      assert.deepStrictEqual(yield* admin.raise(olga, issuer, 41), { issuer, before: 1, after: 41 })
      const [shown] = yield* admin.list(["default", "other"])
      assert.deepInclude(shown ?? {}, { issuer, profiles: ["default", "other"], state: "due", unlisted: 0 })
      assert.deepStrictEqual(Buffer.from((yield* get("/crl")).body ?? ""), Buffer.from(der))
      assert.strictEqual(happened("local_ca_crl_stale"), 0)
      assert.deepStrictEqual(yield* jobs, ["ready"])
      yield* forget
      yield* crl.sweep
      assert.deepStrictEqual(yield* jobs, ["ready"], "the sweep would sign it too")
      yield* work(kind)
      assert.deepInclude(yield* stored, { crlNumber: 42, nextUpdate })
      for (const above of [42, 41, 0]) {
        assert.deepInclude(yield* Effect.flip(admin.raise(olga, issuer, above)), {
          _tag: "NumberNotAbove",
          current: 42
        })
      }
      assert.strictEqual((yield* Effect.flip(admin.raise(olga, "unknown", 50)))._tag, "NoSuch")
      const [audited] = yield* sql("SELECT event, actor_kind, actor_id, detail FROM audit_log")
      const { detail, ...who } = audited ?? {}
      assert.deepEqual(who, { event: "crl_number_raised", actor_kind: "cli", actor_id: "olga" })
      const told: unknown = typeof detail === "string" ? JSON.parse(detail) : detail
      assert.deepEqual(told, { issuer, before: 1, after: 41 })
      // An expired list counts as expired, whatever its number is.
      yield* TestClock.adjust("8 days")
      yield* admin.raise(olga, issuer, 50)
      assert.deepStrictEqual((yield* admin.list([])).map(({ state }) => state), ["expired"])
    }))

  test("contain a certificate without an order once, and the trail names the operator who revoked the certificate", () =>
    Effect.gen(function*() {
      const olga = { kind: "cli", id: "olga" } as const
      const issuer = yield* issuerId
      yield* admin.revokeUnknown(olga, issuer, "7a01", 4)
      yield* work(kind)
      assert.deepStrictEqual(yield* listed, ["7a01"])
      assert.strictEqual((yield* Effect.flip(admin.revokeUnknown(olga, issuer, "7a01", 1)))._tag, "AlreadyRevoked")
      assert.strictEqual((yield* Effect.flip(admin.revokeUnknown(olga, "unknown", "7a02", 4)))._tag, "NoSuch")
      assert.strictEqual(happened("certificate_revoked"), 1)
      const told = yield* sql("SELECT event, actor_id, cert_serial, reason FROM audit_log")
      assert.deepEqual(told, [{ event: "certificate_revoked", actor_id: "olga", cert_serial: "7a01", reason: "4" }])
    }))

  test("contain a certificate whose chain cannot be read, and the log names its order", () =>
    Effect.gen(function*() {
      const issuer = yield* issuerId
      const [issued = assert.fail()] = yield* issue("a.example")
      yield* sql("UPDATE orders SET certificate = 'spoilt', leaf = NULL")
      yield* admin.revokeUnknown({ kind: "cli", id: "olga" }, issuer, issued.serial, 4)
      yield* work(kind)
      assert.deepStrictEqual(yield* listed, [issued.serial])
      const list = yield* readRevocationList((yield* stored).der)
      yield* sql("DELETE FROM revocations")
      yield* sql("DELETE FROM crls")
      const { lacking } = yield* compare({ issuer, list })
      assert.deepStrictEqual(lacking.map(({ certificate, serial }) => [serial, certificate]), [
        [issued.serial, undefined]
      ])
      const row = `id ${issued.orderId}`
      assert.deepStrictEqual(said("db_row_unreadable").map((told) => [told.statement, told.row]), [
        ["order_record", row],
        ["certificates_of_serials", row]
      ])
    }))

  test("contain every row in the order of the serials, even if there are several pages of rows", () =>
    Effect.gen(function*() {
      const many = Array.from(
        { length: 4500 },
        (_, index) => `4${(index * 7919 % 4500).toString(16).padStart(31, "0")}`
      )
      yield* revocations.insertAll(yield* issuerId, many.map((serial) => [serial, madeAt, -1] as const))
      yield* regenerate
      assert.isTrue((yield* listed).join() === many.toSorted().join())
    }))

  describe("the daily sweep", () => {
    const sweepJobs = Effect.andThen(crl.sweep, jobs)

    test("signs nothing if nothing has changed", () =>
      Effect.gen(function*() {
        yield* row("41")
        yield* regenerate
        yield* forget
        assert.deepStrictEqual(yield* sweepJobs, [])
        assert.deepStrictEqual(eventsOf(records), [])
      }))

    test("signs again if less than half of the validity is left, and so does a startup", () =>
      Effect.gen(function*() {
        for (const begin of [crl.sweep, crl.initialize]) {
          yield* regenerate
          yield* forget
          yield* TestClock.adjust(`${validity / 2} seconds`)
          yield* begin
          assert.deepStrictEqual(yield* jobs, [])
          yield* TestClock.adjust("1 second")
          yield* begin
          assert.deepStrictEqual(yield* jobs, ["ready"])
          yield* work(kind)
          assert.strictEqual((yield* stored).nextUpdate, (yield* seconds) + validity)
        }
      }))

    test("signs again if the list is dated in the future, and so does a startup", () =>
      Effect.gen(function*() {
        for (const begin of [crl.sweep, crl.initialize]) {
          yield* TestClock.adjust("1 day")
          yield* regenerate
          yield* forget
          const now = yield* seconds
          // The clock was a day ahead.
          yield* TestClock.setTime((now - 86_400) * 1000)
          yield* begin
          assert.deepStrictEqual(yield* jobs, ["ready"])
          yield* work(kind)
          assert.strictEqual((yield* stored).nextUpdate, now - 86_400 + validity)
        }
      }))

    test("signs again if a row is not listed, and so does a startup", () =>
      Effect.gen(function*() {
        for (const [begin, serial] of [[crl.sweep, "41"], [crl.initialize, "42"]] as const) {
          yield* forget
          yield* row(serial)
          yield* begin
          assert.deepStrictEqual(yield* jobs, ["ready"])
          yield* work(kind)
          assert.include(yield* listed, serial)
        }
      }))

    test("signs again if the stored list cannot be read", () =>
      Effect.gen(function*() {
        yield* row("41")
        yield* sql(`UPDATE crls SET der = ${backend.dialect === "sqlite" ? "x'00'" : "'\\x00'"}`)
        assert.deepStrictEqual(yield* sweepJobs, ["ready"])
      }))

    test("signs a valid list for a service that was idle for eight days", () =>
      Effect.gen(function*() {
        yield* TestClock.adjust("8 days")
        yield* crl.sweep
        yield* work(kind)
        assert.isAbove((yield* stored).nextUpdate, yield* seconds)
      }))
  })

  describe("pruning", () => {
    /** Returns a certificate that is revoked and listed, with its expiry. */
    const revoked = Effect.gen(function*() {
      const [issued = assert.fail()] = yield* issue("a.example")
      yield* revoke(issued)
      yield* work(kind)
      return { issued, end: madeAt + 90 * daySeconds }
    })
    const at = (epochSeconds: number) => TestClock.setTime(epochSeconds * 1000)

    /** Checks that the stored list has the CA's signature and contains as many certificates as are recorded. */
    const acceptedByOpenssl = Effect.gen(function*() {
      const { der } = yield* stored
      assert.strictEqual(opensslOnCrl(join(directory, "ca.pem"), der), "verify OK")
      const text = openssl(["crl", "-inform", "DER", "-noout", "-text"], der).toString()
      const entries = text.match(/Serial Number:/g)?.length ?? 0
      assert.strictEqual(entries, (yield* rows).length)
    })

    test("removes a certificate more than an hour after its notAfter, but not before", () =>
      Effect.gen(function*() {
        const { end, issued } = yield* revoked
        yield* at(end + 1)
        yield* crl.sweep
        yield* work(kind)
        const before = yield* number
        yield* at(end + 3600)
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [issued.serial])
        yield* acceptedByOpenssl
        yield* at(end + 3601)
        yield* forget
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [])
        assert.deepStrictEqual(said("local_ca_crl_pruned"), [
          { issuer: yield* issuerId, crl_number: String(before), entries: 0, rows_removed: 1 }
        ])
        assert.deepStrictEqual(yield* jobs, [], "a list with one more is no reason to sign")
        assert.strictEqual(yield* number, before)
        yield* regenerate
        yield* acceptedByOpenssl
        assert.deepStrictEqual(yield* listed, [])
        assert.strictEqual(yield* number, before + 1)
        records.length = 0
        yield* crl.sweep
        assert.deepStrictEqual(eventsOf(records), [], "nothing pruned is nothing told")
      }))

    test("removes a certificate only after a list was signed that is later than the notAfter of the certificate", () =>
      Effect.gen(function*() {
        const { end, issued } = yield* revoked
        yield* at(end)
        yield* regenerate // this list is signed at the end of the certificate and not after it
        yield* at(end + 3 * daySeconds)
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [issued.serial])
        yield* regenerate
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [])
      }))

    test("keeps a certificate that was revoked after its expiry until a list has contained it", () =>
      Effect.gen(function*() {
        const [issued = assert.fail()] = yield* issue("a.example")
        const end = madeAt + 90 * daySeconds
        yield* at(end + daySeconds)
        yield* regenerate
        yield* at(end + daySeconds + 60)
        yield* revoke(issued)
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [issued.serial])
        yield* work(kind)
        assert.deepStrictEqual(yield* listed, [issued.serial])
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [issued.serial])
        yield* TestClock.adjust("5 days")
        yield* crl.sweep
        yield* work(kind)
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, [])
      }))

    test("never removes a row whose expiry is unknown", () =>
      Effect.gen(function*() {
        const [one = assert.fail(), two = assert.fail()] = yield* issue("a.example", "b.example")
        yield* sql("UPDATE orders SET cert_not_after = -1 WHERE cert_serial = '" + one.serial + "'")
        yield* sql("UPDATE orders SET cert_not_after = NULL WHERE cert_serial = '" + two.serial + "'")
        yield* revoke(one)
        yield* revoke(two)
        assert.strictEqual(yield* count("SELECT count(*) FROM revocations WHERE not_after IS NULL"), 2)
        yield* TestClock.adjust("36500 days")
        yield* regenerate
        yield* crl.sweep
        assert.strictEqual((yield* rows).length, 2)
        assert.strictEqual((yield* listed).length, 2)
      }))

    test("logs the CA if a row cannot be removed, and leaves the row in place", () =>
      Effect.gen(function*() {
        yield* revocations.insert({ issuer: yield* issuerId, serial: "01", now: 1, reason: undefined, notAfter: 5 })
        yield* breakWrites(backend.dialect, { table: "revocations", operation: "DELETE" })
        yield* Effect.ensuring(Effect.exit(crl.sweep), mend(backend.dialect))
        const [told, ...more] = said("local_ca_crl_prune_failed")
        assert.deepStrictEqual([told?.["issuer"], more], [yield* issuerId, []])
        assert.match(String(told?.["error"]), /planted/)
        assert.deepStrictEqual(yield* rows, ["01"])
      }))

    test("removes thousands of rows in one sweep, and only rows of the CA", () =>
      Effect.gen(function*() {
        const many = Array.from({ length: 2500 }, (_, index) => `4${index.toString(16).padStart(31, "0")}`)
        yield* revocations.insertAll(yield* issuerId, many.map((serial) => [serial, 1, -1] as const))
        yield* revocations.insert({ issuer: "another", serial: "01", now: 1, reason: undefined, notAfter: 5 })
        yield* sql("UPDATE revocations SET not_after = 5")
        yield* crl.sweep
        assert.deepStrictEqual(yield* rows, ["01"])
        assert.deepStrictEqual(said("local_ca_crl_pruned").map(({ rows_removed }) => rows_removed), [2500])
      }))
  })

  describe("the exported file", () => {
    const exported = (): string => readFileSync(filesIn(directory).crl, "utf8")
    const leftovers = () =>
      readdirSync(directory).filter((name) =>
        !["ca.pem", "ca.key", "ca.crl", "ca.crl.issued", "ca.json"].includes(name)
      )
    const agrees = Effect.map(stored, ({ der }) => {
      assert.strictEqual(exported(), pem("X509 CRL", der))
      assert.deepStrictEqual(leftovers(), [], "no lock and no half file")
      assert.strictEqual((statSync(filesIn(directory).crl).mode & 0o777).toString(8), "644")
    })

    test("contains the stored list as PEM each time a list was stored", () =>
      Effect.gen(function*() {
        yield* agrees
        yield* row("41")
        yield* regenerate
        yield* agrees
        assert.include(openssl(["crl", "-noout", "-text"], exported()).toString(), "Serial Number: 41")
      }))

    test("is written again at the next startup if it was damaged, and no list is signed for that", () =>
      Effect.gen(function*() {
        writeFileSync(filesIn(directory).crl, "spoilt")
        yield* crl.initialize
        yield* agrees
        assert.strictEqual(yield* number, 1)
      }))

    test("is written even if there is a lock that no process holds, however recent the lock is, and no lock remains", () =>
      Effect.gen(function*() {
        const lock = `${filesIn(directory).crl}.lock`
        yield* row("41")
        for (const at of [madeAt, madeAt + daySeconds]) {
          writeFileSync(lock, "")
          utimesSync(lock, at, at)
          const fiber = yield* Effect.forkChild(regenerate)
          yield* until(fiber)
          assert.strictEqual((yield* Fiber.join(fiber))._tag, "Done")
          yield* agrees
        }
        assert.strictEqual(happened("local_ca_crl_export_failed"), 0)
      }))

    test("is not written if other processes keep locking it, but the list is stored and their lock remains", () =>
      Effect.gen(function*() {
        const lock = `${filesIn(directory).crl}.lock`
        const before = exported()
        yield* row("41")
        let turn = 0
        const inTurn = Effect.sync(() => {
          if (turn++ % 10 > 0) return
          // Without the rename there would be a moment without a lock, in which an attempt may take it.
          writeFileSync(`${lock}.next`, "")
          utimesSync(`${lock}.next`, turn, turn)
          renameSync(`${lock}.next`, lock)
        })
        yield* inTurn
        const fiber = yield* Effect.forkChild(regenerate)
        yield* until(fiber, inTurn)
        assert.strictEqual((yield* Fiber.join(fiber))._tag, "Done")
        assert.strictEqual(yield* number, 2)
        assert.deepStrictEqual(yield* listed, ["41"])
        assert.isTrue(existsSync(lock))
        assert.strictEqual(exported(), before)
        const [failure] = said("local_ca_crl_export_failed")
        assert.match(
          String(failure?.["error"]),
          /ca\.crl\.lock: other processes have held the lock, one after another, for 5 s; .* tried again every 30 s$/
        )
      }))

    test("contains the newest list in the end, even if another process wrote that list while this process wrote an older list", () =>
      Effect.gen(function*() {
        const [list, issuer] = [yield* stored, yield* issuerId]
        const newer = { ...list, issuer, number: 2, thisUpdate: list.thisUpdate + 1, der: Buffer.from("newer") }
        const meanwhile = once(Effect.andThen(
          crls.replace(newer, 1),
          Effect.sync(() => writeFileSync(filesIn(directory).crl, "newer"))
        ))
        const whileLocked = Effect.suspend(() => existsSync(`${filesIn(directory).crl}.lock`) ? meanwhile : Effect.void)
        const reading = watched(/^SELECT .* FROM crls WHERE/s, { after: whileLocked })
        yield* Effect.provideService(crl.initialize, Database, reading)
        assert.strictEqual(exported(), pem("X509 CRL", newer.der))
      }))

    const kept = Effect.flatMap(
      Effect.context<Signers>(),
      (signers) => Effect.forkScoped(keepExported(Effect.succeed(signers)))
    )
    const half = "30 seconds"
    /** Moves the clock on by half a minute and by the waits for locks until a condition holds. */
    const soon = Effect.fnUntraced(function*(isSo: () => boolean) {
      for (let turns = 0; turns < 400 && !isSo(); turns++) yield* turn(turns === 0 ? half : "100 millis", isSo)
      assert.isTrue(isSo())
    })

    describe("that is outdated", () => {
      const isStored = Effect.map(
        stored,
        ({ der }) => () => existsSync(filesIn(directory).crl) && exported() === pem("X509 CRL", der)
      )

      test("is written within half a minute, whatever has happened to the file", () =>
        Effect.gen(function*() {
          yield* kept
          const file = filesIn(directory).crl
          const spoil: ReadonlyArray<() => void> = [
            () => rmSync(file),
            () => writeFileSync(file, "spoilt"),
            () => writeFileSync(file, exported().slice(0, 40)),
            () => writeFileSync(file, "A".repeat(100_000))
          ]
          for (const [index, spoilt] of spoil.entries()) {
            spoilt()
            yield* soon(yield* isStored)
            yield* soon(() => happened("local_ca_crl_exported") === index + 1)
          }
          yield* agrees
        }))

      test("is written as soon as possible, and the log says once why it could not be written before", () =>
        Effect.gen(function*() {
          records.length = 0
          yield* kept
          const path = filesIn(directory).crl
          rmSync(path)
          mkdirSync(path)
          yield* soon(() => happened("local_ca_crl_export_failed") === 1)
          for (let turns = 0; turns < 5; turns++) yield* turn(half)
          assert.strictEqual(happened("local_ca_crl_export_failed"), 1)
          rmdirSync(path)
          writeFileSync(`${path}.lock`, "")
          yield* soon(() => happened("local_ca_crl_exported") === 1)
          yield* agrees
        }))

      test("is written here if a list was stored by another process, and is not written if it is current", () =>
        Effect.gen(function*() {
          yield* kept
          const [list, issuer] = [yield* stored, yield* issuerId]
          const before = statSync(filesIn(directory).crl).ino
          for (let turns = 0; turns < 5; turns++) yield* turn(half)
          assert.strictEqual(statSync(filesIn(directory).crl).ino, before)
          yield* crls.replace({ ...list, issuer, number: 2, der: Buffer.from("elsewhere") }, 1)
          yield* soon(() => exported() === pem("X509 CRL", Buffer.from("elsewhere")))
        }))
    })

    describe("in DER", () => {
      const path = () => join(directory, "public.crl")
      const settings = (at: string) => ({ crl_der_path: join(at, "public.crl") })
      const inDer = Effect.map(stored, ({ der }) => () => existsSync(path()) && readFileSync(path()).equals(der))

      test(
        "is written beside the PEM file after every list that was stored, and everybody may read the DER file",
        () =>
          Effect.gen(function*() {
            assert.isTrue((yield* inDer)())
            yield* row("41")
            yield* regenerate
            assert.isTrue((yield* inDer)())
            assert.strictEqual(exported(), pem("X509 CRL", (yield* stored).der))
            assert.strictEqual((statSync(path()).mode & 0o777).toString(8), "644")
            assert.deepStrictEqual(leftovers(), ["public.crl"])
          }),
        { settings }
      )

      test("is written again within half a minute, even if the PEM file is current", () =>
        Effect.gen(function*() {
          yield* kept
          const spoil: ReadonlyArray<() => void> = [
            () => rmSync(path()),
            () => writeFileSync(path(), "spoilt"),
            () => rmSync(filesIn(directory).crl)
          ]
          for (const [index, spoilt] of spoil.entries()) {
            spoilt()
            yield* soon(() => happened("local_ca_crl_exported") === index + 1)
            assert.isTrue((yield* inDer)())
            assert.strictEqual(exported(), pem("X509 CRL", (yield* stored).der))
          }
          const before = statSync(path()).ino
          for (let turns = 0; turns < 5; turns++) yield* turn(half)
          assert.strictEqual(statSync(path()).ino, before)
        }), { settings })

      test(
        "causes a log record if it cannot be written, and the PEM file is still written",
        () =>
          Effect.gen(function*() {
            yield* row("41")
            yield* regenerate
            assert.strictEqual(exported(), pem("X509 CRL", (yield* stored).der))
            assert.include(
              String(said("local_ca_crl_export_failed").at(-1)?.["error"]),
              "absent/public.crl: no such file"
            )
          }),
        { settings: (at) => ({ crl_der_path: join(at, "absent", "public.crl") }) }
      )
    })

    test("is kept and logged if it is newer than a database that lost commits, and the next list has a number above both", () =>
      Effect.gen(function*() {
        const first = yield* stored
        yield* row("41")
        yield* regenerate
        const newer = exported()
        assert.strictEqual(yield* number, 2)
        yield* sql(`UPDATE crls SET crl_number = 1, der = ${backend.dialect === "sqlite" ? "?" : "$1"}`, [first.der])
        yield* kept
        yield* soon(() => happened("local_ca_crl_export_failed") === 1)
        assert.match(
          String(said("local_ca_crl_export_failed")[0]?.["error"]),
          /ca\.crl has list 2 and the database only list 1, so it has lost commits; .*ca\.crl\.issued had it, and otherwise by crl import/
        )
        assert.strictEqual(exported(), newer)
        yield* regenerate
        assert.strictEqual(yield* number, 3)
        assert.strictEqual(exported(), pem("X509 CRL", (yield* stored).der))
      }))

    test("does not disturb other work if a folder has its name, and the export fails at once", () =>
      Effect.gen(function*() {
        const path = filesIn(directory).crl
        rmSync(path)
        mkdirSync(path)
        yield* row("41")
        assert.strictEqual((yield* regenerate)._tag, "Done")
        assert.deepStrictEqual(yield* listed, ["41"])
        assert.match(
          String(said("local_ca_crl_export_failed")[0]?.["error"]),
          /ca\.crl: not a regular file; the list is still served, and writing the file is tried again every 30 s$/
        )
        rmdirSync(path)
        yield* crl.initialize
        yield* agrees
      }))

    test("has a lock that is always empty", () =>
      Effect.gen(function*() {
        const lock = `${filesIn(directory).crl}.lock`
        let sizes: ReadonlyArray<number> = []
        const look = Effect.sync(() => {
          if (existsSync(lock)) sizes = [...sizes, statSync(lock).size]
        })
        yield* Effect.provideService(regenerate, Database, watched(/^SELECT .* FROM crls WHERE/s, { after: look }))
        assert.deepStrictEqual([...new Set(sizes)], [0])
      }))

    /**
     * Waits until the work sleeps and then moves the clock on, unless the work is over. The wait is necessary because
     * the file system does not follow the clock.
     */
    const turn = (by: Duration.Input, isOver = () => false) =>
      Effect.andThen(
        Effect.repeat(Effect.andThen(Effect.yieldNow, sleeps), { until: ({ length }) => length > 0 || isOver() }),
        Effect.suspend(() => isOver() ? Effect.void : TestClock.adjust(by))
      )

    /** Moves the clock on until a fiber has ended. The fiber tries to take the lock every tenth of a second. */
    const until = <A, E>(fiber: Fiber.Fiber<A, E>, each: Effect.Effect<void> = Effect.void) =>
      Effect.suspend(() => {
        const isOver = () => fiber.pollUnsafe() !== undefined
        return Effect.repeat(Effect.andThen(each, turn("100 millis", isOver)), { until: isOver })
      })
  })

  describe("GET /crl", () => {
    test("serves the stored list even after its next update, and logs the outdated list once an hour", () =>
      Effect.gen(function*() {
        const { der, nextUpdate } = yield* stored
        const stale = (times: number) =>
          Effect.gen(function*() {
            for (const method of ["GET", "HEAD"]) {
              const answer = yield* get("/crl", method)
              assert.deepStrictEqual([answer.status, headerOf(answer, "content-type")], [200, "application/pkix-crl"])
              assert.deepStrictEqual(Buffer.from(answer.body ?? ""), Buffer.from(der))
              assert.isUndefined(answer.headers["replay-nonce"])
            }
            assert.strictEqual(happened("local_ca_crl_stale"), times)
          })
        yield* TestClock.setTime(nextUpdate * 1000)
        yield* stale(0)
        yield* TestClock.adjust("1 second")
        yield* stale(1)
        yield* TestClock.adjust("3599 seconds")
        yield* stale(1)
        yield* TestClock.adjust("1 second")
        yield* stale(2)
        assert.deepStrictEqual(said("local_ca_crl_stale")[0], {
          issuer: yield* issuerId,
          next_update: new Date(nextUpdate * 1000).toISOString()
        })
        yield* regenerate
        yield* TestClock.adjust("2 hours")
        yield* get("/crl")
        assert.strictEqual(happened("local_ca_crl_stale"), 2)
      }))

    test("never serves an older list than before, even if the database loses the newer list", () =>
      Effect.gen(function*() {
        const [old] = yield* sql("SELECT * FROM crls")
        yield* row("41")
        yield* regenerate
        const newer = Buffer.from((yield* get("/crl")).body ?? "")
        const served = (list: Buffer) =>
          Effect.map(get("/crl"), (answer) => assert.isTrue(Buffer.from(answer.body ?? "").equals(list)))
        // Sets the row back, as if the database were restored from a backup or replaced by a standby without the last
        // commits.
        yield* sql(
          `UPDATE crls SET crl_number = ${String(old?.["crl_number"])}, this_update = ${String(old?.["this_update"])}`
        )
        yield* served(newer)
        yield* served(newer)
        const issuer = yield* issuerId
        assert.deepStrictEqual(said("local_ca_crl_went_back"), [{ issuer, crl_number: "1", served_number: "2" }])
        yield* sql("DELETE FROM crls")
        yield* TestClock.adjust("1 hour")
        yield* served(newer)
        assert.strictEqual(happened("local_ca_crl_went_back"), 2)
        yield* regenerate
        const answer = Buffer.from((yield* get("/crl")).body ?? "")
        assert.deepStrictEqual([...Result.getOrThrow(listedSerials(answer))], ["41"])
      }))

    /** Returns the published lists of a process with this driver. */
    const publishedOver = (driver: Driver) =>
      Effect.provideService(
        Effect.map(Layer.build(PublishedCrls.layer(takeBack)), (built) => Context.get(built, PublishedCrls)),
        Database,
        driver
      )

    describe("after the database was restored without the last revocations", () => {
      /** Restores the older state of the database on a host that has no record of later lists. */
      const back = Effect.fnUntraced(function*(to: Effect.Success<typeof stored>, serials: ReadonlyArray<string>) {
        for (const serial of serials) yield* sql(`DELETE FROM revocations WHERE serial = '${serial}'`)
        yield* sql("DELETE FROM crls")
        yield* crls.insert({ issuer: yield* issuerId, number: to.crlNumber, ...to })
        rmSync(`${filesIn(directory).crl}.issued`)
        rmSync(filesIn(directory).crl)
        yield* TestClock.adjust("1 second")
      })
      const served = Effect.map(get("/crl"), ({ body }) => Buffer.from(body ?? ""))
      const serialsOf = (list: Buffer) => [...Result.getOrThrow(listedSerials(list))].sort()
      const signQueued = Effect.gen(function*() {
        const [job] = yield* sql(`SELECT payload FROM jobs WHERE kind = '${kind}' AND status = 'ready'`)
        yield* sql(`DELETE FROM jobs WHERE kind = '${kind}'`)
        return yield* crl.regenerate(JSON.parse(String(job?.["payload"])) as Parameters<typeof crl.regenerate>[0])
      })

      test("does not serve another worker's list with the same number until it contains the revocations that were served before", () =>
        Effect.gen(function*() {
          const old = yield* stored
          yield* row("41")
          yield* row("42")
          yield* regenerate
          const last = yield* served
          yield* TestClock.adjust("2 hours")
          yield* back(old, ["41", "42"])
          yield* row("43")
          yield* regenerate
          assert.strictEqual(yield* number, 2)
          assert.isTrue(last.equals(yield* served))
          yield* TestClock.adjust("1 second")
          assert.isTrue(last.equals(yield* served), "the revocations are back, but the list lacks them")
          yield* signQueued
          assert.deepStrictEqual(serialsOf(yield* served), ["41", "42", "43"])
          const issuer = yield* issuerId
          assert.deepStrictEqual(said("local_ca_crl_went_back"), [{ issuer, crl_number: "2", served_number: "2" }])
          assert.lengthOf(yield* sql("SELECT 1 FROM audit_log WHERE event = 'revocation_restored'"), 2)
        }))

      test("does not serve a list with a higher number until it contains the revocations that were served before", () =>
        Effect.gen(function*() {
          const old = yield* stored
          yield* row("41")
          yield* regenerate
          const last = yield* served
          yield* back(old, ["41"])
          for (const serial of ["42", "43", "44"]) {
            yield* row(serial)
            yield* regenerate
          }
          assert.strictEqual(yield* number, 4)
          assert.isTrue(last.equals(yield* served))
          yield* TestClock.adjust("1 second")
          assert.isTrue(last.equals(yield* served), "the revocation is back, but the list lacks it")
          yield* signQueued
          assert.deepStrictEqual(serialsOf(yield* served), ["41", "42", "43", "44"])

          const newest = yield* served
          yield* back(old, ["41", "42", "43", "44"])
          yield* TestClock.adjust("1 second")
          assert.isTrue(newest.equals(yield* served))
          yield* signQueued
          assert.strictEqual(yield* number, 6)
          assert.deepStrictEqual(serialsOf(yield* served), ["41", "42", "43", "44"])
        }))

      test("serves a list that lacks an earlier revocation if that revocation may have been pruned", () =>
        Effect.gen(function*() {
          yield* row("41")
          yield* regenerate
          yield* served
          yield* TestClock.adjust("2 hours")
          yield* sql("DELETE FROM revocations WHERE serial = '41'")
          yield* row("42")
          yield* regenerate
          // Two requests at once wait for the same comparison.
          const both = yield* Effect.all([served, served], { concurrency: 2 })
          assert.deepStrictEqual(both.map(serialsOf), [["42"], ["42"]])
          assert.strictEqual(happened("local_ca_crl_went_back"), 0)
        }))

      test("continues the comparison if the client that caused it disconnects", () =>
        Effect.gen(function*() {
          const old = yield* stored
          yield* row("41")
          yield* regenerate
          const [comparing, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const service = yield* Database
          // Only the comparison reads the rows of revocations.
          const published = yield* publishedOver({
            ...service,
            single: (statement, params) =>
              statement.text.includes("FROM revocations")
                ? Effect.andThen(
                  Deferred.succeed(comparing, undefined),
                  Effect.andThen(Deferred.await(go), service.single(statement, params))
                )
                : service.single(statement, params)
          })
          const issuer = yield* issuerId
          yield* published.of(issuer)
          yield* back(old, ["41"])
          const asking = yield* Effect.forkChild(published.of(issuer))
          yield* Deferred.await(comparing)
          yield* Fiber.interrupt(asking)
          yield* Deferred.succeed(go, undefined)
          const restored = sql("SELECT 1 FROM revocations WHERE serial = '41'")
          yield* Effect.repeat(Effect.andThen(Effect.yieldNow, restored), { until: ({ length }) => length > 0 })
        }))
    })

    test("answers a delayed request with the newer list that a later request has already got", () =>
      Effect.gen(function*() {
        yield* get("/crl")
        yield* row("41")
        yield* regenerate
        const service = yield* Database
        const [read, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        // The head that the first request reads arrives after the second request was answered.
        let isFirst = true
        const late: Driver = {
          ...service,
          single: (statement, params) =>
            isFirst && statement.text.includes("FROM crls")
              ? Effect.tap(service.single(statement, params), () => {
                isFirst = false
                return Effect.andThen(Deferred.succeed(read, undefined), Deferred.await(go))
              })
              : service.single(statement, params)
        }
        const published = yield* publishedOver(late)
        const issuer = yield* issuerId
        const first = yield* Effect.forkChild(published.of(issuer))
        yield* Deferred.await(read)
        yield* row("42")
        yield* regenerate
        const second = yield* published.of(issuer)
        yield* Deferred.succeed(go, undefined)
        assert.deepStrictEqual(yield* Fiber.join(first), second)
        assert.strictEqual(happened("local_ca_crl_went_back"), 0)
      }))

    test("serves a new list as soon as another process has stored it", () =>
      Effect.gen(function*() {
        const first = yield* get("/crl")
        const other = yield* database.another
        yield* row("41")
        yield* Effect.provideService(regenerate, Database, other)
        const second = yield* get("/crl")
        assert.isFalse(Buffer.from(first.body ?? "").equals(Buffer.from(second.body ?? "")))
        assert.deepStrictEqual([...Result.getOrThrow(listedSerials(Buffer.from(second.body ?? "")))], ["41"])
      }))

    test("accepts no methods except GET and HEAD, like /ca.pem", () =>
      Effect.gen(function*() {
        const app = yield* surface
        const key = acmeKey()
        const kid = yield* register(app, key)
        for (const path of ["/crl", "/ca.pem"]) {
          const answer = yield* app.handle(yield* byAccount(key, kid, at(path)))
          assert.deepStrictEqual([answer.status, headerOf(answer, "allow")], [405, "GET, HEAD"], path)
          for (const method of ["PUT", "DELETE", "OPTIONS"]) {
            assert.strictEqual((yield* get(path, method)).status, 405)
          }
        }
        assert.strictEqual((yield* get("/crl/")).status, 404)
      }))
  })
})
