import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { existsSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { assert, describe } from "vitest"
import { newHeadKey, readHeadKey } from "../../../src/crypto/keys/HeadKey.ts"
import { hashedColumns, hashOfLink, nameOfHead, readHead } from "../../../src/domain/AuditChain.ts"
import { transaction } from "../../../src/engine/sql/Database.ts"
import type { VerifyOptions } from "../../../src/operations/operator/ChainVerification.ts"
import { verify } from "../../../src/operations/operator/ChainVerification.ts"
import { chainRows } from "../../../src/operations/work/AuditChaining.ts"
import { signHead } from "../../../src/operations/work/HeadSigning.ts"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import * as links from "../../../src/store/ChainLinks.ts"
import { tables } from "../../../src/store/transfer/Tables.ts"
import { databases, freshDirectory, postgres } from "../../support/Databases.ts"
import { column, count, sql } from "../../support/Graph.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"
import { useStore } from "../../support/UseTests.ts"

const row = (number: number) =>
  audit.insert({
    event: "crl_number_raised",
    actorKind: "cli",
    actorId: undefined,
    clientPtr: "naïve \u2028 \"name\"",
    detail: { issuer: "a", before: number, after: number + 1 }
  })

const rows = (many: number) => Effect.forEach(Array.from({ length: many }, (_, index) => index), row, { discard: true })

const chain = chainRows(1000)
const whole: VerifyOptions = {
  after: undefined,
  held: undefined,
  mostRows: Number.POSITIVE_INFINITY,
  keyPath: undefined
}
const verified = (options: Partial<VerifyOptions> = {}) => verify({ ...whole, ...options })

describe.each(databases)("the audit chain on $name", (backend) => {
  const { records, test } = useStore(backend, { startsAt: madeAt })
  const isSqlite = backend.dialect === "sqlite"

  /** Runs what a person with all rights on the database could run: without the triggers that refuse updates. */
  const unguarded = (...texts: ReadonlyArray<string>) =>
    Effect.gen(function*() {
      const guards = ["audit_log", "audit_chain"].map((table) => [table, `${table}_is_append_only`] as const)
      const kept = isSqlite
        ? yield* column("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'audit_%'")
        : []
      for (const [table, guard] of guards) {
        yield* sql(isSqlite ? `DROP TRIGGER ${guard}` : `ALTER TABLE ${table} DISABLE TRIGGER ${guard}`)
      }
      for (const text of texts) yield* sql(text)
      for (const guard of kept) yield* sql(guard)
      if (!isSqlite) { for (const [table, guard] of guards) yield* sql(`ALTER TABLE ${table} ENABLE TRIGGER ${guard}`) }
    })

  const ids = Effect.map(column("SELECT id FROM audit_log ORDER BY id"), (all) => all.map(Number))

  /** Begins the chain after two rows that are older, chains ten rows, and leaves three rows that are not chained. */
  const prepared = Effect.gen(function*() {
    yield* rows(2)
    yield* chain
    yield* TestClock.adjust("10 minutes")
    yield* rows(6)
    yield* chain
    yield* TestClock.adjust("10 minutes")
    yield* rows(4)
    yield* chain
    yield* rows(3)
    return yield* ids
  })

  const at = (all: ReadonlyArray<number>, index: number): number => all[index] ?? Number.NaN
  const said = (found: Effect.Success<ReturnType<typeof verified>>) =>
    found.faults.map(({ firstId, kind, lastId, of, rows: many, sequence }) => ({
      kind,
      of,
      sequence,
      firstId,
      lastId,
      rows: many
    }))

  test("covers the rows since it began, says which rows it does not cover, and finds nothing in what nobody touched", () =>
    Effect.gen(function*() {
      const all = yield* prepared
      const found = yield* verified()
      assert.deepStrictEqual(
        [found.verified, found.links, found.pruned, found.faults, found.faultsFound, found.next],
        [10, 3, 0, [], 0, undefined]
      )
      assert.deepStrictEqual(found.uncovered, { rows: 2, firstId: at(all, 0), lastId: at(all, 1) })
      assert.deepStrictEqual(found.unchained, { rows: 3, firstId: at(all, 12), lastId: at(all, 14) })
      assert.strictEqual(found.began, madeAt)
      assert.strictEqual(found.head?.sequence, 3)
      assert.strictEqual(records.filter(({ event }) => event === "audit_chain_begun").length, 1)
      assert.deepStrictEqual(records.filter(({ event }) => event === "audit_chain_faulty"), [])
      yield* chain
      assert.deepStrictEqual((yield* verified()).unchained, { rows: 0, firstId: undefined, lastId: undefined })
    }))

  test("says so if there is no chain yet", () =>
    Effect.gen(function*() {
      yield* rows(2)
      const found = yield* verified()
      assert.deepStrictEqual([found.head, found.uncovered.rows, found.faultsFound], [undefined, 2, 0])
    }))

  test("hashes every column of the table", () =>
    Effect.sync(() => {
      const table = tables.find(({ name }) => name === "audit_log")
      const columns = table?.columns.map(([name]) => name).filter((name) => name !== "id")
      assert.deepStrictEqual([...hashedColumns], columns?.toSorted())
    }))

  for (const name of hashedColumns) {
    test(`finds a row whose ${name} was changed`, () =>
      Effect.gen(function*() {
        const all = yield* prepared
        const values: { readonly [column: string]: string } = {
          created_at: "created_at + 1",
          outcome: "CASE outcome WHEN 'success' THEN 'failure' ELSE 'success' END",
          actor_kind: "'admin'"
        }
        yield* unguarded(`UPDATE audit_log SET ${name} = ${values[name] ?? "'other'"} WHERE id = ${at(all, 5)}`)
        assert.deepStrictEqual(said(yield* verified()), [
          { kind: "changed", of: "rows", sequence: 2, firstId: at(all, 5), lastId: at(all, 5), rows: 1 }
        ])
      }))
  }

  test("finds a removed row, and says since when it may be gone", () =>
    Effect.gen(function*() {
      const all = yield* prepared
      yield* sql(`DELETE FROM audit_log WHERE id IN (${at(all, 4)}, ${at(all, 5)}, ${at(all, 9)})`)
      const found = yield* verified()
      assert.deepStrictEqual(said(found), [
        { kind: "removed", of: "rows", sequence: 2, firstId: at(all, 4), lastId: at(all, 5), rows: 2 },
        { kind: "removed", of: "rows", sequence: 3, firstId: at(all, 9), lastId: at(all, 9), rows: 1 }
      ])
      assert.deepStrictEqual(found.faults.map(({ chainedAt }) => chainedAt), [madeAt + 600, madeAt + 1200])
      assert.strictEqual(found.verified, 7)
      assert.deepStrictEqual(
        records.filter(({ event }) => event === "audit_chain_faulty").map(({ fields }) => fields["total"]),
        [2]
      )
    }))

  test("finds an inserted row", () =>
    Effect.gen(function*() {
      const all = yield* prepared
      yield* sql(`DELETE FROM audit_log WHERE id = ${at(all, 13)}`)
      yield* row(77)
      yield* chain
      yield* sql(
        `INSERT INTO audit_log (id, created_at, event, outcome, actor_kind) ${
          isSqlite ? "" : "OVERRIDING SYSTEM VALUE"
        } VALUES (${at(all, 13)}, ${madeAt + 1200}, 'eab_created', 'success', 'cli')`
      )
      assert.deepStrictEqual(said(yield* verified()), [
        { kind: "inserted", of: "rows", sequence: 4, firstId: at(all, 13), lastId: at(all, 13), rows: 1 }
      ])
    }))

  test("finds two rows that were swapped, within a link and across links", () =>
    Effect.gen(function*() {
      const all = yield* prepared
      for (const [one, other] of [[at(all, 3), at(all, 6)], [at(all, 4), at(all, 9)]] as const) {
        const set = hashedColumns.map((name) => `${name} = b.${name}`).join(", ")
        yield* unguarded(
          `UPDATE audit_log AS a SET ${set} FROM audit_log AS b
           WHERE (a.id = ${one} AND b.id = ${other}) OR (a.id = ${other} AND b.id = ${one})`
        )
      }
      const found = yield* verified()
      assert.deepStrictEqual(new Set(found.faults.map(({ kind }) => kind)), new Set(["reordered"]))
      assert.strictEqual(found.faults.reduce((sum, { rows: many = 0 }) => sum + many, 0), 4)
      assert.strictEqual(found.verified, 6)
    }))

  test("finds a link that was removed, changed or written again, even if its rows fit", () =>
    Effect.gen(function*() {
      yield* prepared
      yield* rows(2)
      yield* chain
      const [kept] = yield* links.page({ after: 2, upto: 3, limit: 1 })
      if (kept === undefined) return assert.fail("no link")
      yield* sql("DELETE FROM audit_chain WHERE sequence = 3")
      assert.deepStrictEqual(said(yield* verified()).map(({ kind, of, sequence }) => [kind, of, sequence]), [
        ["removed", "links", 4]
      ])
      yield* links.append(kept)
      assert.strictEqual((yield* verified()).faultsFound, 0)
      yield* unguarded("UPDATE audit_chain SET chained_at = chained_at - 1 WHERE sequence = 3")
      const changed = yield* verified()
      assert.deepStrictEqual(said(changed).map(({ kind, of, sequence }) => [kind, of, sequence]), [[
        "changed",
        "links",
        3
      ]])
      // The link gets a hash that fits, so only the next link shows the change.
      const hash = hashOfLink({ ...kept, chainedAt: kept.chainedAt - 1 })
      yield* unguarded(`UPDATE audit_chain SET hash = '${hash}' WHERE sequence = 3`)
      assert.deepStrictEqual(said(yield* verified()).map(({ kind, of, sequence }) => [kind, of, sequence]), [
        ["changed", "links", 4]
      ])
    }))

  test("refuses changes of links by the service itself, except the signature", () =>
    Effect.gen(function*() {
      yield* prepared
      const exit = yield* Effect.exit(sql("UPDATE audit_chain SET hash = 'a' WHERE sequence = 2"))
      assert.strictEqual(exit._tag, "Failure")
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_chain WHERE hash = 'a'"), 0)
    }))

  test("does not notice that its end was removed, but a head that was kept outside tells", () =>
    Effect.gen(function*() {
      const all = yield* prepared
      const { head } = yield* verified()
      const held = head === undefined ? undefined : readHead(nameOfHead(head))
      assert.strictEqual((yield* verified({ held })).faultsFound, 0)
      yield* sql("DELETE FROM audit_chain WHERE sequence = 3")
      yield* sql(`DELETE FROM audit_log WHERE id > ${at(all, 7)}`)
      assert.strictEqual((yield* verified()).faultsFound, 0)
      assert.deepStrictEqual(said(yield* verified({ held })).map(({ kind, of, sequence }) => [kind, of, sequence]), [
        ["removed", "head", 3]
      ])
      yield* rows(4)
      yield* chain
      assert.deepStrictEqual(said(yield* verified({ held })).map(({ kind, of, sequence }) => [kind, of, sequence]), [
        ["changed", "head", 3]
      ])
    }))

  test("stays checkable while the retention deletes rows and links, and tells a deletion by others", () =>
    Effect.gen(function*() {
      yield* rows(2)
      yield* chain
      for (let day = 0; day < 20; day++) {
        yield* TestClock.adjust("1 day")
        yield* rows(2)
        yield* chain
        yield* sweeps.sweepAudit(10)
        const found = yield* verified()
        assert.deepStrictEqual(found.faults, [], `day ${day}`)
      }
      const oldest = yield* links.oldest
      assert.isAbove(oldest?.sequence ?? 0, 5)
      const found = yield* verified()
      assert.deepStrictEqual(found.uncovered, { rows: 0, firstId: undefined, lastId: undefined })
      assert.isAbove(found.pruned, 0)
      assert.isUndefined(found.began)
      // The oldest rows that the retention kept are removed by somebody else.
      const [first = 0] = yield* ids
      yield* sql(`DELETE FROM audit_log WHERE id = ${first}`)
      const removed = yield* verified()
      assert.deepStrictEqual(said(removed).map(({ firstId, kind }) => [kind, firstId]), [["removed", first]])
      // The links that would show it are deleted too.
      yield* sql(`DELETE FROM audit_chain WHERE last_id <= ${first}`)
      const gone = yield* verified()
      assert.isTrue(gone.faults.some(({ kind, of }) => kind === "removed" && of === "links"))
    }))

  test("takes a deletion as one of the retention only if its row could be written by the service", () =>
    Effect.gen(function*() {
      yield* prepared
      yield* TestClock.adjust("2 days")
      yield* sql("DELETE FROM audit_log WHERE id = (SELECT max(id) - 4 FROM audit_log)")
      const insert = (cutoff: string) =>
        sql(
          `INSERT INTO audit_log (created_at, event, outcome, actor_kind, detail)
           VALUES (${madeAt + 2 * daySeconds}, 'audit_pruned', 'success', 'system', '${cutoff}')`
        )
      yield* insert("{")
      yield* insert("[7]")
      yield* insert("{\"cutoff\":\"yesterday\",\"removed\":1}")
      yield* insert("{\"cutoff\":\"2100-01-01T00:00:00Z\",\"removed\":1}")
      assert.strictEqual((yield* verified()).faultsFound, 1)
    }))

  test("checks a long chain in parts that continue where the part before ended", () =>
    Effect.gen(function*() {
      yield* chain
      for (let pass = 0; pass < 60; pass++) {
        yield* row(pass)
        yield* chain
      }
      yield* sql("DELETE FROM audit_log WHERE id = (SELECT last_id FROM audit_chain WHERE sequence = 26)")
      const first = yield* verified({ mostRows: 1 })
      assert.deepStrictEqual([first.next, first.verified, first.faultsFound], [25, 24, 0])
      const second = yield* verified({ mostRows: 1, after: first.next })
      assert.deepStrictEqual([second.next, second.verified, second.uncovered.rows], [50, 24, 0])
      assert.deepStrictEqual(second.faults.map(({ kind, sequence }) => [kind, sequence]), [["removed", 26]])
      const third = yield* verified({ mostRows: 1, after: second.next })
      assert.deepStrictEqual([third.next, third.verified, third.faultsFound], [undefined, 11, 0])
      const refused = yield* Effect.flip(verified({ after: 999 }))
      assert.strictEqual(refused._tag, "NoSuch")
    }))

  test("chains many rows in bounded links, and continues after a pass that ended early", () =>
    Effect.gen(function*() {
      yield* chain
      yield* transaction(rows(1201))
      assert.deepStrictEqual(yield* chainRows(1), { links: 1, rows: 500, hasMore: true })
      assert.deepStrictEqual(yield* chainRows(5), { links: 2, rows: 701, hasMore: false })
      assert.deepStrictEqual(yield* chainRows(5), { links: 0, rows: 0, hasMore: false })
      const found = yield* verified()
      assert.deepStrictEqual([found.verified, found.faultsFound], [1201, 0])
    }))

  test("gets each row once if two processes chain at the same time, and nothing from a transaction that is undone", () =>
    Effect.gen(function*() {
      yield* chain
      yield* rows(20)
      yield* Effect.all([chain, chain, chain], { concurrency: "unbounded" })
      yield* Effect.exit(transaction(Effect.andThen(chain, Effect.fail("killed"))))
      yield* rows(1)
      yield* Effect.exit(transaction(Effect.andThen(chain, Effect.fail("killed"))))
      assert.strictEqual((yield* verified()).unchained.rows, 1)
      yield* chain
      const found = yield* verified()
      assert.deepStrictEqual([found.verified, found.faultsFound, found.unchained.rows], [21, 0, 0])
    }))

  describe("the signed head", () => {
    const keyPath = () => join(freshDirectory(), "chain.key")
    const none: ReadonlySet<string> = new Set()

    test("is signed each day with a key that is made at first, and its signature is checked", () =>
      Effect.gen(function*() {
        const path = keyPath()
        yield* signHead(path, none)
        assert.isFalse(existsSync(path), "there is no chain to sign")
        yield* prepared
        yield* signHead(path, none)
        assert.strictEqual(statSync(path).mode & 0o777, 0o600)
        const { signed, unsignedReason } = yield* verified({ keyPath: path })
        assert.deepStrictEqual([signed?.sequence, signed?.verdict, unsignedReason], [3, "valid", undefined])
        const told = records.filter(({ event }) => event === "audit_head_signed").map(({ fields }) => fields["head"])
        assert.deepStrictEqual(told, [signed === undefined ? "" : nameOfHead(signed)])
        assert.strictEqual(records.filter(({ event }) => event === "audit_chain_key_made").length, 1)
        yield* chain
        yield* signHead(path, none)
        assert.strictEqual((yield* verified({ keyPath: path })).signed?.sequence, 3, "a day has not passed")
        yield* TestClock.adjust("1 day")
        yield* signHead(path, none)
        assert.strictEqual((yield* verified({ keyPath: path })).signed?.sequence, 4)
        assert.strictEqual((yield* verified()).signed?.verdict, "unchecked")
        assert.include((yield* verified()).unsignedReason ?? "", "audit.chain_key_path is not set")
        assert.strictEqual(
          (yield* verified({ keyPath: join(freshDirectory(), "none.key") })).signed?.verdict,
          "unchecked"
        )
        const other = keyPath()
        writeFileSync(other, yield* newHeadKey, { mode: 0o600 })
        assert.strictEqual((yield* verified({ keyPath: other })).signed?.verdict, "other_key")
      }))

    test("tells that everything was written again by somebody without its key", () =>
      Effect.gen(function*() {
        const path = keyPath()
        yield* prepared
        yield* signHead(path, none)
        const all = yield* ids
        yield* unguarded(`UPDATE audit_log SET reason = 'other' WHERE id = ${at(all, 5)}`)
        const kept = yield* links.page({ after: 0, upto: 3, limit: 3 })
        // Every link is computed again, as the service would have done, and the signature is moved to the new head.
        yield* sql("DELETE FROM audit_chain WHERE sequence > 1")
        yield* chain
        yield* unguarded(
          `UPDATE audit_chain SET signature = '${kept[2]?.signature}', key_id = '${kept[2]?.keyId}',
             signed_at = ${kept[2]?.signedAt} WHERE sequence = 2`
        )
        const found = yield* verified({ keyPath: path })
        assert.deepStrictEqual(said(found).map(({ kind, of, sequence }) => [kind, of, sequence]), [[
          "changed",
          "signature",
          2
        ]])
        assert.strictEqual(found.signed?.verdict, "invalid")
      }))

    test("is refused with the key of a CA, and with a file that holds no fitting key", () =>
      Effect.gen(function*() {
        const path = keyPath()
        yield* prepared
        const pem = yield* newHeadKey
        writeFileSync(path, pem, { mode: 0o644 })
        const key = readHeadKey(pem)
        const id = key._tag === "Success" ? key.success.id : ""
        const refused = yield* Effect.flip(signHead(path, new Set([id])))
        assert.include(refused.message, `${path} holds the key of a CA`)
        assert.strictEqual(records.filter(({ event }) => event === "audit_chain_key_permissive").length, 1)
        writeFileSync(path, "nothing")
        assert.include((yield* Effect.flip(signHead(path, none))).message, "holds no private key")
        const inFolder = join(path, "below", "chain.key")
        assert.include((yield* Effect.flip(signHead(inFolder, none))).message, "cannot be written")
        assert.strictEqual((yield* verified({ keyPath: path })).unsignedReason?.includes("holds no private key"), true)
        assert.isUndefined((yield* verified()).signed)
      }))
  })
})

describe("the audit chain on PostgreSQL, with transactions that commit late", () => {
  const { database, records, test } = useStore(postgres, { startsAt: madeAt })
  const insert =
    "INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (1, 'eab_created', 'success', 'cli')"

  const late = Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: database.url() })
      await client.connect()
      await client.query("BEGIN")
      await client.query(insert)
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

  test("waits for a transaction with a lower id, and then has its row", () =>
    Effect.gen(function*() {
      yield* rows(1)
      yield* chain
      const client = yield* late
      yield* rows(3) // these have higher ids, and are visible
      const chaining = yield* Effect.forkChild(TestClock.withLive(chain), { startImmediately: true })
      yield* rows(1) // no insert waits for the job
      for (let turn = 0; turn < 100; turn++) yield* count("SELECT 1")
      assert.isUndefined(chaining.pollUnsafe(), "it waits while the transaction is open")
      yield* Effect.promise(() => client.query("COMMIT"))
      const { rows: many } = yield* Fiber.join(chaining)
      assert.isAtLeast(many, 4)
      yield* chain
      const found = yield* verified()
      assert.deepStrictEqual([found.verified, found.faultsFound, found.unchained.rows], [5, 0, 0])
    }))

  test("misses no row and no order of commits while several processes write", () =>
    Effect.gen(function*() {
      yield* chain
      const state = { isWriting: true, links: 0 }
      const write = async (number: number) => {
        const client = new Client({ connectionString: database.url() })
        await client.connect()
        for (let pass = 0; pass < 40 || state.links < 5; pass++) {
          await client.query("BEGIN")
          for (let many = 0; many <= (pass + number) % 3; many++) await client.query(insert)
          // The statements in between let the others take and commit higher ids.
          for (let many = 0; many < number; many++) await client.query("SELECT 1")
          await client.query(pass % 7 === 6 ? "ROLLBACK" : "COMMIT")
        }
        await client.end()
      }
      const writers = Effect.promise(async () => {
        await Promise.all([0, 1, 2, 3, 4].map(write))
        state.isWriting = false
      })
      const chaining = Effect.gen(function*() {
        while (state.isWriting) state.links += (yield* TestClock.withLive(chain)).links
      })
      yield* Effect.all([writers, chaining], { concurrency: "unbounded" })
      yield* chain
      const found = yield* verified()
      assert.deepStrictEqual([found.faults, found.unchained.rows], [[], 0])
      assert.strictEqual(found.verified, yield* count("SELECT count(*) FROM audit_log"))
    }))

  test("chains nothing while such a transaction stays open, and later chains everything", () =>
    Effect.gen(function*() {
      yield* rows(1)
      yield* chain
      const client = yield* late
      yield* rows(3)
      const chaining = yield* Effect.forkChild(chain)
      while (chaining.pollUnsafe() === undefined) {
        yield* TestClock.adjust("1 second")
        yield* count("SELECT 1") // lets the job use its connection
      }
      assert.strictEqual((yield* Fiber.join(chaining)).rows, 0)
      assert.strictEqual(records.filter(({ event }) => event === "audit_chain_postponed").length, 1)
      yield* Effect.promise(() => client.query("ROLLBACK"))
      assert.strictEqual((yield* chain).rows, 3)
      assert.strictEqual((yield* verified()).faultsFound, 0)
    }))
})
