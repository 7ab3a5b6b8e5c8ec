import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe } from "vitest"
import { readRevocationList } from "../../../../src/crypto/x509/RevocationList.ts"
import { Database } from "../../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../../src/engine/sql/Driver.ts"
import { rfc3339 } from "../../../../src/engine/Time.ts"
import * as lists from "../../../../src/operations/operator/CrlRecords.ts"
import * as orderRecords from "../../../../src/operations/operator/OrderRecords.ts"
import { makeReport, refresh } from "../../../../src/operations/ProfileHealth.ts"
import { keepExported } from "../../../../src/operations/work/crl/CrlExport.ts"
import * as crl from "../../../../src/operations/work/crl/ListPublication.ts"
import { Signers } from "../../../../src/services/signing/Signer.ts"
import * as crls from "../../../../src/store/revocation/Crls.ts"
import { databases, freshDirectory } from "../../../support/Databases.ts"
import { callerAt, column, configOf, count, fieldsOf, profileOf, sql, world } from "../../../support/Graph.ts"
import type { IssuedHere } from "../../../support/Issued.ts"
import { issueTo, profilesIn, useOwnCa, work } from "../../../support/Issued.ts"
import { sleeps } from "../../../support/Watched.ts"

/*
 * Tests how a restored database is compared with the record of the last list
 * (docs/contribute/decisions/issued-lists.md).
 */

const config = configOf()
const olga = { kind: "cli", id: "olga" } as const
const kind = "local_ca_crl_regenerate"

describe.each(databases)("the record of the last list, with a database on $name", (backend) => {
  const { database, records, test } = useOwnCa(backend)
  const said = (event: (typeof records)[number]["event"]) => fieldsOf(records, event)

  const own = Effect.map(Signers, ({ crlIssuers: [only] }) => only ?? assert.fail("no CA"))
  const seconds = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1000))
  const stored = Effect.flatMap(
    Effect.flatMap(own, ({ id }) => crls.find(id)),
    (list) => list === undefined ? Effect.die("there is no list") : Effect.succeed(list)
  )
  const listed = Effect.map(
    Effect.flatMap(stored, ({ der }) => readRevocationList(der)),
    ({ entries }) => new Map(entries.map((entry) => [entry.serial, entry]))
  )
  const number = Effect.map(stored, ({ crlNumber }) => crlNumber)
  const record = Effect.map(own, ({ issued: { path } }) => readFileSync(path))
  const agrees = Effect.gen(function*() {
    assert.deepStrictEqual(yield* record, Buffer.from((yield* stored).der))
  })
  const regenerate = Effect.flatMap(own, ({ id }) => crl.regenerate({ issuer: id }))

  const issue = (...names: ReadonlyArray<string>) =>
    Effect.flatMap(callerAt(profileOf(config)), (caller) => Effect.forEach(names, (name) => issueTo(caller, [name])))
  const revoke = ({ orderId }: IssuedHere, reason = 4) =>
    Effect.andThen(orderRecords.revoke(config, olga, orderId, reason), work(kind))

  /** Returns an effect that puts back the present rows about revocations. */
  const backup = Effect.gen(function*() {
    const list = yield* stored
    const [revocations, orders] = [
      yield* column("SELECT serial FROM revocations"),
      yield* column("SELECT cert_serial FROM orders WHERE revoked_at IS NOT NULL")
    ]
    const others = (serials: ReadonlyArray<string>) => serials.map((one) => `'${one}'`).join() || "''"
    return Effect.gen(function*() {
      yield* sql(`DELETE FROM revocations WHERE serial NOT IN (${others(revocations)})`)
      yield* sql(
        `UPDATE orders SET revoked_at = NULL, revocation_reason = NULL WHERE cert_serial NOT IN (${others(orders)})`
      )
      yield* sql("DELETE FROM jobs")
      yield* sql("DELETE FROM burnt_keys")
      yield* sql("DELETE FROM audit_log")
      const issuer = (yield* own).id
      yield* sql("DELETE FROM crls")
      yield* crls.insert({ ...list, issuer, number: list.crlNumber })
      records.length = 0
    })
  })

  const trail = Effect.map(
    sql("SELECT cert_serial, order_id, reason, actor_kind, detail FROM audit_log WHERE event = 'revocation_restored'"),
    (rows) => rows.toSorted((one, other) => String(one["cert_serial"]) < String(other["cert_serial"]) ? -1 : 1)
  )

  test("restores revocations that the database has lost, with date and reason, before a list is served", () =>
    Effect.gen(function*() {
      const [known, late, before] = yield* issue("known.example", "late.example", "before.example")
      if (known === undefined || late === undefined || before === undefined) return assert.fail("nothing was issued")
      yield* revoke(before)
      const putBack = yield* backup
      yield* TestClock.adjust("2 hours")
      const at = (yield* seconds) - 3600 // the date of the list
      yield* revoke(known, 1)
      yield* revoke(late, 4)
      const published = yield* number
      yield* TestClock.adjust("1 hour")
      yield* putBack
      yield* sql(`UPDATE orders SET cert_serial = 'abad1dea' WHERE cert_serial = '${late.serial}'`)
      assert.isBelow(yield* number, published)

      yield* crl.initialize
      const entries = yield* listed
      assert.deepStrictEqual(entries.get(known.serial), { serial: known.serial, revokedAt: at, reason: 1 })
      assert.deepStrictEqual(entries.get(late.serial), { serial: late.serial, revokedAt: at, reason: 4 })
      assert.strictEqual(entries.size, 3)
      assert.isAbove(yield* number, published)
      yield* agrees

      const ends = yield* sql("SELECT serial, not_after FROM revocations")
      const endOf = (serial: string) => ends.find((row) => row["serial"] === serial)?.["not_after"]
      assert.strictEqual(Number(endOf(known.serial)), new Date(known.leaf.validTo).getTime() / 1000)
      assert.isNull(endOf(late.serial), "nobody knows its end")
      assert.deepStrictEqual(
        yield* sql(`SELECT revocation_reason FROM orders WHERE revoked_at = ${at}`).pipe(
          Effect.map((rows) => rows.map((row) => Number(row["revocation_reason"])))
        ),
        [1]
      )
      assert.strictEqual(yield* count("SELECT count(*) FROM burnt_keys"), 1, "the key was compromised")
      const rows = yield* trail
      assert.deepStrictEqual(rows.map((row) => row["cert_serial"]), [known.serial, late.serial].toSorted())
      const detail = rows.map((row) => JSON.parse(String(row["detail"])) as { readonly [_: string]: unknown })
      assert.deepInclude(detail[0] ?? {}, {
        crl_number: published,
        revoked_at: rfc3339(at)
      })
      assert.deepStrictEqual(new Set(rows.map((row) => row["actor_kind"])), new Set(["system"]))
      assert.deepInclude(said("local_ca_revocations_restored")[0] ?? {}, {
        crl_number: String(published),
        rows_imported: 2,
        entries: 3
      })

      records.length = 0
      yield* crl.initialize
      assert.deepStrictEqual(said("local_ca_revocations_restored"), [], "once")
    }))

  test("restores revocations within half a minute if the database loses commits while a worker runs", () =>
    Effect.gen(function*() {
      const [one] = yield* issue("a.example")
      if (one === undefined) return assert.fail("nothing was issued")
      const putBack = yield* backup
      yield* revoke(one)
      const published = yield* number
      yield* putBack
      rmSync((yield* own).path)
      const signers = yield* Effect.context<Signers>()
      yield* Effect.forkScoped(keepExported(Effect.succeed(signers)))
      yield* Effect.repeat(sleeps, { until: ({ length }) => length > 0 })
      yield* TestClock.adjust("30 seconds")
      yield* Effect.repeat(Effect.yieldNow, { until: () => said("local_ca_crl_exported").length > 0 })
      assert.deepStrictEqual(yield* column("SELECT serial FROM revocations"), [one.serial])
      assert.strictEqual(yield* number, published, "whichever host signs the next list numbers it above")
      yield* work(kind)
      assert.deepStrictEqual([...(yield* listed).keys()], [one.serial])
    }))

  test("restores revocations in an empty database, and the first list of that database gets a higher number", () =>
    Effect.gen(function*() {
      const [one] = yield* issue("a.example")
      if (one === undefined) return assert.fail("nothing was issued")
      yield* revoke(one)
      const published = yield* number
      for (const table of ["revocations", "crls", "jobs", "orders"]) yield* sql(`DELETE FROM ${table}`)
      yield* crl.initialize
      assert.deepStrictEqual([...(yield* listed).keys()], [one.serial])
      assert.isAbove(yield* number, published)
    }))

  /** Returns a driver that runs `act` before the statement that stores a list. */
  const beforeStoring = (act: Effect.Effect<void>): Driver => {
    const driver = database.driver()
    return {
      ...driver,
      single: (statement, params) =>
        /^UPDATE crls SET crl_number = .* der = /s.test(statement.text)
          ? Effect.andThen(act, driver.single(statement, params))
          : driver.single(statement, params)
    }
  }

  test("contains a list before the list is served, and a process that dies in between leaves a number unused", () =>
    Effect.gen(function*() {
      const before = yield* number
      yield* sql(`INSERT INTO revocations (issuer, serial, revoked_at) VALUES ('${(yield* own).id}', '41', 5)`)
      let found: Buffer | undefined
      const dies = beforeStoring(Effect.andThen(
        Effect.map(record, (octets) => void (found = octets)).pipe(Effect.provide(yield* Effect.context<Signers>())),
        Effect.die("kill -9")
      ))
      yield* Effect.exit(Effect.provideService(regenerate, Database, dies))
      assert.strictEqual(yield* number, before)
      const list = yield* readRevocationList(found ?? Buffer.alloc(0))
      assert.deepStrictEqual([list.number, list.entries.map(({ serial }) => serial)], [before + 1, ["41"]])
      yield* crl.initialize
      assert.deepStrictEqual(said("local_ca_revocations_restored"), [], "the database knows them")
      yield* work(kind)
      assert.strictEqual(yield* number, before + 2)
      yield* agrees
    }))

  test("prevents a list from being served while the record cannot be written", () =>
    Effect.gen(function*() {
      const { id, issued: { path } } = yield* own
      assert.isUndefined(yield* crls.findHead(id))
      assert.match(
        String(said("local_ca_crl_initialization_failed")[0]?.["error"]),
        /^the list is recorded before it is published, and .*absent\/ca\.crl\.issued: no such file or directory$/
      )
      assert.strictEqual((yield* regenerate)._tag, "Retry")
      mkdirSync(dirname(path))
      yield* work(kind)
      assert.strictEqual((yield* regenerate)._tag, "Done")
      yield* agrees
    }), { profiles: profilesIn(freshDirectory(), { crl_path: join(freshDirectory(), "absent", "ca.crl") }) })

  test("does not restore pruned revocations, except those of unknown expiry from an older record", () =>
    Effect.gen(function*() {
      const [one, gone] = yield* issue("a.example", "gone.example")
      if (one === undefined || gone === undefined) return assert.fail("nothing was issued")
      yield* revoke(one)
      yield* revoke(gone)
      const older = yield* record
      yield* sql(`DELETE FROM orders WHERE cert_serial = '${gone.serial}'`)
      yield* TestClock.adjust("91 days")
      yield* regenerate
      yield* TestClock.adjust("2 hours")
      yield* crl.sweep
      assert.strictEqual(yield* count("SELECT count(*) FROM revocations"), 0)
      records.length = 0
      yield* crl.initialize
      assert.strictEqual(
        yield* count("SELECT count(*) FROM revocations"),
        0,
        "the stored list has it, so it was pruned"
      )
      writeFileSync((yield* own).issued.path, older)
      yield* crl.initialize
      assert.strictEqual(yield* count("SELECT count(*) FROM revocations"), 0, "so it has, beside an older record")
      yield* regenerate
      assert.strictEqual((yield* listed).size, 0)
      writeFileSync((yield* own).issued.path, older)
      yield* crl.initialize
      assert.deepStrictEqual(
        yield* column("SELECT serial FROM revocations"),
        [gone.serial],
        "of the one that no order has nobody knows whether it has ended"
      )
    }))

  test("is recognised as older and updated if it has an older list", () =>
    Effect.gen(function*() {
      const [one, two] = yield* issue("a.example", "b.example")
      if (one === undefined || two === undefined) return assert.fail("nothing was issued")
      yield* revoke(one)
      const older = yield* record
      yield* revoke(two)
      const current = yield* number
      records.length = 0
      writeFileSync((yield* own).issued.path, older)
      yield* crl.initialize
      assert.deepStrictEqual(said("local_ca_revocations_restored"), [])
      assert.strictEqual(yield* number, current)
      yield* agrees
    }))

  const report = (owner: string) => Effect.andThen(makeReport(owner), refresh)
  const seen = (owner: string) =>
    Effect.flatMap(seconds, (now) =>
      sql(
        `INSERT INTO workers (owner, roles, version, started_at, last_seen_at) VALUES ('${owner}', 'worker', '1', ${now}, ${now})`
      ))

  test("stops revocations and new lists as long as it cannot be used", () =>
    Effect.gen(function*() {
      const [one, two] = yield* issue("a.example", "b.example")
      if (one === undefined || two === undefined) return assert.fail("nothing was issued")
      yield* revoke(one)
      const [good, { id, issued: { path } }, before] = [yield* record, yield* own, yield* number]
      yield* seen("host:1:a")
      const watching = report("host:1:a")
      writeFileSync(path, good.subarray(0, 50))
      yield* watching
      const [state] = yield* lists.list(["default", "other"])
      assert.deepInclude(state ?? {}, { state: "stopped", entries: 1 })
      assert.include(state?.trouble ?? "", "cannot be used: it is no revocation list")
      const refused = yield* Effect.flip(orderRecords.revoke(config, olga, two.orderId, 4))
      assert.deepInclude(refused, { _tag: "IssuerStopped", trouble: state?.trouble ?? "" })
      assert.strictEqual((yield* Effect.flip(lists.revokeUnknown(olga, id, "0badcafe", 4)))._tag, "IssuerStopped")
      assert.deepStrictEqual(
        yield* column("SELECT reason FROM audit_log WHERE event = 'certificate_revoke_failed'"),
        ["serverInternal"]
      )
      assert.strictEqual((yield* regenerate)._tag, "Retry")
      yield* crl.initialize
      assert.isAtLeast(said("local_ca_crl_initialization_failed").length, 2)
      assert.strictEqual(yield* number, before)
      assert.deepStrictEqual(readFileSync(path), good.subarray(0, 50), "nothing is written over it")
      assert.deepStrictEqual(
        (yield* Effect.flatMap(Signers, ({ troubles }) => troubles)).get("default"),
        state?.trouble
      )

      yield* seen("host:2:b")
      yield* sql("INSERT INTO profile_states (profile, owner, since) VALUES ('default', 'host:2:b', 0)")
      yield* sql("INSERT INTO profile_states (profile, owner, since) VALUES ('other', 'host:2:b', 0)")
      assert.strictEqual((yield* lists.list(["default"]))[0]?.state, "ok", "another worker signs")
      yield* sql("DELETE FROM workers WHERE owner = 'host:2:b'")

      writeFileSync(path, good)
      yield* sql("DELETE FROM jobs")
      yield* makeReport("host:1:a")
      yield* revoke(two)
      assert.strictEqual((yield* listed).size, 2)
    }))

  test("causes one job for a list after it was repaired, and no job before", () =>
    Effect.gen(function*() {
      const { issued: { path } } = yield* own
      const good = yield* record
      writeFileSync(path, "")
      const signers = yield* Effect.context<Signers>()
      yield* Effect.forkScoped(keepExported(Effect.succeed(signers)))
      const half = Effect.andThen(
        Effect.repeat(Effect.andThen(Effect.yieldNow, sleeps), { until: ({ length }) => length > 0 }),
        TestClock.adjust("30 seconds")
      )
      yield* half
      yield* half
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'local_ca_crl_regenerate'"), 0)
      writeFileSync(path, good)
      yield* half
      yield* half
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'local_ca_crl_regenerate'"), 1)
    }))

  test("stops this CA and remains unchanged if the record is of another CA", () =>
    Effect.gen(function*() {
      const { id, issued: { path } } = yield* own
      const foreign = yield* Effect.provide(
        Effect.gen(function*() {
          yield* Effect.forEach((yield* Signers).crlIssuers, ({ id }) => crl.regenerate({ issuer: id }))
          return yield* record
        }),
        world({ seed: "another", profiles: profilesIn(freshDirectory()) })
      )
      writeFileSync(path, foreign)
      assert.strictEqual((yield* crl.regenerate({ issuer: id }))._tag, "Retry")
      assert.match(
        String(said("local_ca_crl_initialization_failed")[0]?.["error"]),
        /ca\.crl\.issued, the record .*: it does not verify under the key of this CA/
      )
      assert.deepStrictEqual(readFileSync(path), foreign)
      rmSync(path)
      assert.strictEqual((yield* crl.regenerate({ issuer: id }))._tag, "Done")
      yield* agrees
    }))
})
