import { Context, Deferred, Effect, Exit, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { AccountId } from "../../../src/domain/Id.ts"
import { currentPeer } from "../../../src/engine/net/FairSemaphore.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"
import { Database, StorageFailed } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import { sweepNonces } from "../../../src/operations/work/Sweeps.ts"
import { Nonces } from "../../../src/services/nonce/Nonces.ts"
import * as accounts from "../../../src/store/AccountRows.ts"
import * as rows from "../../../src/store/NonceRows.ts"
import { databases } from "../../support/Databases.ts"
import { column, count, sql } from "../../support/Graph.ts"
import { someoneWaits } from "../../support/Meanwhile.ts"
import { useStore } from "../../support/UseTests.ts"

const ttlSeconds = 300
const margin = ttlSeconds / 10

const together = { concurrency: "unbounded" } as const

/** Makes the service Nonces as one process has it, with this database. */
const noncesOver = (driver: Driver) =>
  Effect.map(
    Layer.build(Layer.fresh(Layer.provide(
      Nonces.layer(() => ({ nonce: { ttl_seconds: ttlSeconds } })),
      Layer.merge(Layer.succeed(Database, driver), Entropy.layer)
    ))),
    Context.get(Nonces)
  )

/** Returns a driver that runs an effect before each statement and each transaction. */
const before = (driver: Driver, first: Effect.Effect<void, SqlError>): Driver => ({
  ...driver,
  single: (statement, params) => Effect.andThen(first, driver.single(statement, params)),
  transact: (body) => Effect.andThen(first, driver.transact(body))
})

const gone = new SqlError({ cause: new Error("gone"), message: "gone" })

const stored = count("SELECT count(*) FROM nonces")

const issued = (nonces: Nonces["Service"]) =>
  Effect.map(nonces.issue, (nonce) => {
    if (nonce === undefined) throw new Error("no nonce could be had")
    return nonce
  })

/** Runs the body while the table has another name, so that statements fail. */
const withoutTable = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    sql("ALTER TABLE nonces RENAME TO nonces_away"),
    () => body,
    () => sql("ALTER TABLE nonces_away RENAME TO nonces")
  )

const addAccount = Effect.fnUntraced(function*(profile: string, key: string) {
  const { uuid } = yield* Entropy
  const id = AccountId(yield* uuid)
  yield* accounts.insert({
    id,
    profile,
    pubkey: Buffer.from(key),
    contact: ["mailto:a@example.com"],
    termsOfServiceAgreed: undefined,
    eabKid: undefined,
    now: 100,
    ip: "192.0.2.1",
    network: undefined,
    ptr: undefined
  })
  return id
})

describe.each(databases)("nonces on $name", (backend) => {
  const { database, test } = useStore(backend, { first: () => Effect.flatMap(Database, noncesOver) })

  describe("issue", () => {
    test("gives each of many simultaneous callers a different nonce, which is stored", (nonces) =>
      Effect.gen(function*() {
        const given = yield* Effect.replicateEffect(issued(nonces), 600, together)
        assert.strictEqual(new Set(given).size, 600)
        for (const nonce of given) assert.match(nonce, /^[\w-]{43}$/)
        const found = new Set(yield* column("SELECT value FROM nonces"))
        assert.deepStrictEqual(given.filter((nonce) => !found.has(nonce)), [])
      }))

    test("prepares the next batch before the last nonce is taken", () =>
      Effect.gen(function*() {
        const sent: Array<string> = []
        const nonces = yield* noncesOver(before(database.driver(), Effect.sync(() => void sent.push("insert"))))
        yield* issued(nonces)
        const batch = yield* stored
        let taken = 1
        while (sent.length === 1 && taken < batch) {
          yield* issued(nonces)
          taken++
        }
        assert.isBelow(taken, batch)
      }))

    test("gives no nonce that has used up more than a tenth of its lifetime", (nonces) =>
      Effect.gen(function*() {
        for (let now = 0; now < 4 * ttlSeconds; now += 7) {
          yield* TestClock.setTime(now * 1000)
          const nonce = yield* issued(nonces)
          const made = yield* count(`SELECT created_at FROM nonces WHERE value = '${nonce}'`)
          assert.isAtLeast(made, now - margin)
          assert.isAtMost(made, now)
        }
      }))

    test("gives no nonce while nonces cannot be stored, and gives nonces again afterwards", (nonces) =>
      Effect.gen(function*() {
        const given = yield* withoutTable(Effect.replicateEffect(nonces.issue, 50, together))
        assert.deepStrictEqual(given.filter((nonce) => nonce !== undefined), [])
        assert.strictEqual(yield* nonces.spend(yield* issued(nonces)), "fresh")
      }))

    test("gives no nonce if the database does not answer", () =>
      Effect.gen(function*() {
        const asked = yield* Deferred.make<void>()
        const silent = before(database.driver(), Effect.andThen(Deferred.succeed(asked, undefined), Effect.never))
        const nonces = yield* noncesOver(silent)
        const asking = yield* Effect.forkChild(nonces.issue)
        yield* Deferred.await(asked)
        yield* TestClock.adjust("1 minute")
        assert.isUndefined(yield* Fiber.join(asking))
      }))

    test("gives the other callers their nonces if the first caller leaves", () =>
      Effect.gen(function*() {
        const [asked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const driver = before(
          database.driver(),
          Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go))
        )
        const nonces = yield* noncesOver(driver)
        const first = yield* Effect.forkChild(nonces.issue)
        yield* Deferred.await(asked)
        const second = yield* Effect.forkChild(issued(nonces))
        yield* Effect.yieldNow
        yield* Fiber.interrupt(first)
        yield* Deferred.succeed(go, undefined)
        assert.strictEqual(yield* nonces.spend(yield* Fiber.join(second)), "fresh")
      }))
  })

  describe("issue, if many requests of one host wait", () => {
    const from = (address: string) => Effect.provideService(currentPeer, peerOf(address))

    test("gives a newcomer a nonce of the next batch", () =>
      Effect.gen(function*() {
        const [first, second, go] = [
          yield* Deferred.make<void>(),
          yield* Deferred.make<void>(),
          yield* Deferred.make<void>()
        ]
        let batches = 0
        const driver = before(
          database.driver(),
          Effect.suspend(() =>
            ++batches === 1
              ? Effect.andThen(Deferred.succeed(first, undefined), Deferred.await(go))
              : Effect.andThen(Deferred.succeed(second, undefined), Effect.never)
          )
        )
        const nonces = yield* noncesOver(driver)
        const busy = yield* Effect.forEach(
          Array.from({ length: 600 }),
          () => Effect.forkChild(from("192.0.2.1")(nonces.issue), { startImmediately: true })
        )
        yield* Deferred.await(first)
        const newcomer = yield* Effect.forkChild(from("198.51.100.1")(nonces.issue), { startImmediately: true })
        yield* Deferred.succeed(go, undefined)
        yield* Deferred.await(second)
        // The second batch is never stored, so who got no nonce of the first batch now gets none.
        yield* TestClock.adjust("1 minute")
        assert.isDefined(yield* Fiber.join(newcomer))
        const given = yield* Effect.forEach(busy, Fiber.join)
        assert.strictEqual(given.filter((nonce) => nonce !== undefined).length, (yield* stored) - 1)
      }))

    test("gives no nonce to requests that have left", () =>
      Effect.gen(function*() {
        const [asked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const nonces = yield* noncesOver(
          before(database.driver(), Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go)))
        )
        const leaving = yield* Effect.forEach(
          Array.from({ length: 600 }),
          () => Effect.forkChild(from("192.0.2.1")(nonces.issue), { startImmediately: true })
        )
        yield* Deferred.await(asked)
        const staying = yield* Effect.forkChild(from("192.0.2.1")(issued(nonces)), { startImmediately: true })
        yield* Fiber.interruptAll(leaving)
        yield* Deferred.succeed(go, undefined)
        const own = yield* Fiber.join(staying)
        const batch = yield* stored
        assert.isBelow(batch, leaving.length)
        assert.strictEqual(yield* nonces.spend(own), "fresh")
      }))
  })

  describe("spend", () => {
    test("does not look up a text that cannot be a nonce of this service, however long it is", () =>
      Effect.gen(function*() {
        const nonces = yield* noncesOver(before(database.driver(), gone))
        for (const nonce of ["", "a", "a".repeat(42), "a".repeat(44), "a".repeat(90_000)]) {
          assert.strictEqual(yield* nonces.spend(nonce), "unknown")
        }
        assert.strictEqual((yield* Effect.flip(nonces.spend("a".repeat(43))))._tag, "StorageFailed")
      }))

    test("refuses a nonce whose row cannot be read, whether it comes alone or among others", (nonces) =>
      Effect.gen(function*() {
        const made = "created_at = 9223372036854775807"
        for (const spoilt of [made, "created_millisecond = 9223372036854775807"]) {
          const [alone, one, two] = [yield* issued(nonces), yield* issued(nonces), yield* issued(nonces)]
          yield* sql(`UPDATE nonces SET ${spoilt} WHERE value IN ('${alone}', '${one}')`)
          assert.strictEqual(yield* nonces.spend(alone), "unknown")
          assert.deepStrictEqual(yield* Effect.forEach([one, two], nonces.spend, together), ["unknown", "fresh"])
        }
      }))

    test("leaves a nonce unspent if its client leaves before the look-up", (nonces) =>
      Effect.gen(function*() {
        const [asked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const slow = yield* noncesOver(
          before(database.driver(), Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go)))
        )
        const [first, left, last] = [yield* issued(nonces), yield* issued(nonces), yield* issued(nonces)]
        const spending = yield* Effect.forkChild(slow.spend(first))
        yield* Deferred.await(asked)
        const leaving = yield* Effect.forkChild(slow.spend(left))
        const waiting = yield* Effect.forkChild(slow.spend(last))
        yield* Effect.yieldNow
        // On SQLite, the batch contains the callers that wait when the statement runs. The caller that has left is not
        // among them.
        yield* Fiber.interrupt(leaving)
        yield* Deferred.succeed(go, undefined)
        assert.deepStrictEqual([yield* Fiber.join(spending), yield* Fiber.join(waiting)], ["fresh", "fresh"])
        assert.strictEqual(yield* nonces.spend(left), "fresh")
      }))

    test("accepts a nonce once", (nonces) =>
      Effect.gen(function*() {
        const nonce = yield* issued(nonces)
        assert.deepStrictEqual(
          [yield* nonces.spend(nonce), yield* nonces.spend(nonce), yield* nonces.spend(nonce)],
          ["fresh", "unknown", "unknown"]
        )
      }))

    test("discards the prepared nonces once one of them shows that the table was emptied", (nonces) =>
      Effect.gen(function*() {
        const lost = yield* issued(nonces)
        yield* sql("DELETE FROM nonces") // A crash of PostgreSQL or a promoted standby leaves the table empty.
        assert.strictEqual(yield* nonces.spend(lost), "unknown")
        assert.strictEqual(yield* nonces.spend(yield* issued(nonces)), "fresh")
      }))

    test("discards several batches of prepared nonces once one of them shows that the table was emptied", (nonces) =>
      Effect.gen(function*() {
        const lost = yield* issued(nonces)
        const batch = yield* stored
        yield* TestClock.adjust("1 second") // Otherwise the batches could not be told apart.
        while ((yield* stored) === batch) yield* issued(nonces)
        yield* sql("DELETE FROM nonces")
        assert.strictEqual(yield* nonces.spend(lost), "unknown")
        // A client tries again only once.
        assert.strictEqual(yield* nonces.spend(yield* issued(nonces)), "fresh")
      }))

    test("keeps the prepared nonces when an unknown nonce is presented", (nonces) =>
      Effect.gen(function*() {
        yield* issued(nonces)
        const before = yield* stored
        assert.strictEqual(yield* nonces.spend("A".repeat(43)), "unknown")
        yield* issued(nonces)
        assert.strictEqual(yield* stored, before)
      }))

    test("reads the signer together with the nonce, and keeps the nonce unspent if the signer has changed", (nonces) =>
      Effect.gen(function*() {
        const [id, other] = [yield* addAccount("p", "key of one"), yield* addAccount("p", "key of another")]
        const pubkey = Buffer.from("key of one")
        const nonce = yield* issued(nonces)
        for (
          const changed of [
            { profile: "q" },
            { pubkey: Buffer.from("key of another") },
            { accountId: other },
            { accountId: AccountId("00000000-0000-4000-8000-000000000001") }
          ]
        ) {
          const asked = { nonce, profile: "p", accountId: id, pubkey, ...changed }
          assert.isUndefined(yield* nonces.spendSigned(asked), JSON.stringify(changed))
        }
        const signed = { nonce, profile: "p", accountId: id, pubkey }
        const first = yield* nonces.spendSigned(signed)
        assert.strictEqual(first?.spent, "fresh")
        assert.deepInclude(first?.account ?? {}, {
          id,
          profile: "p",
          status: "valid",
          contact: ["mailto:a@example.com"]
        })
        assert.strictEqual((yield* nonces.spendSigned(signed))?.spent, "unknown")
        yield* sql("UPDATE accounts SET status = 'deactivated'")
        const later = yield* nonces.spendSigned({ ...signed, nonce: yield* issued(nonces) })
        assert.strictEqual(later?.account.status, "deactivated")
        assert.isUndefined(yield* nonces.spendSigned({ ...signed, nonce: "a".repeat(44) }))
      }))

    test("checks nonces with and without a signer in one batch, each nonce once", (nonces) =>
      Effect.gen(function*() {
        const pubkey = Buffer.from("key of one")
        const accountId = yield* addAccount("p", "key of one")
        const given = yield* Effect.replicateEffect(issued(nonces), 30, together)
        const of = (nonce: string) => ({ nonce, profile: "p", accountId, pubkey })
        const [shared = ""] = given
        const verdicts = yield* Effect.forEach(given, (nonce, index) =>
          index % 2 === 1
            ? Effect.map(nonces.spendSigned(of(nonce)), (one) => one?.spent)
            : nonces.spend(nonce), together)
        assert.deepStrictEqual(verdicts, given.map(() => "fresh"))
        const again = yield* issued(nonces)
        const twice = yield* Effect.forEach([1, 2, 3], () => nonces.spendSigned(of(again)), together)
        assert.deepStrictEqual(twice.map((one) => one?.spent), ["fresh", "unknown", "unknown"])
        assert.strictEqual((yield* nonces.spendSigned(of(shared)))?.spent, "unknown")
      }))

    test("checks requests that share a nonce and an account in one batch, each by its own profile and key", (nonces) =>
      Effect.gen(function*() {
        const pubkey = Buffer.from("key of one")
        const accountId = yield* addAccount("p", "key of one")
        for (const changed of [{ profile: "q" }, { pubkey: Buffer.from("former key") }]) {
          const [nonce, first] = [yield* issued(nonces), yield* issued(nonces)]
          const mine = { nonce, profile: "p", accountId, pubkey }
          // The other requests come while the statement for the first request runs, so they form one batch.
          const verdicts = yield* Effect.forEach(
            [{ ...mine, nonce: first }, { ...mine, ...changed }, mine],
            nonces.spendSigned,
            together
          )
          assert.deepStrictEqual(
            verdicts.map((one) => one?.spent),
            ["fresh", undefined, "fresh"],
            JSON.stringify(changed)
          )
        }
      }))

    if (backend.dialect === "postgres") {
      test("locks no nonce while it waits for the lock of another nonce", (nonces) =>
        Effect.gen(function*() {
          const pubkey = Buffer.from("key of one")
          const accountId = yield* addAccount("p", "key of one")
          const given = yield* Effect.replicateEffect(issued(nonces), 3)
          const [first = "", plain = "", signed = ""] = given
          const other = yield* database.another
          yield* other.exclusive((connection) =>
            Effect.gen(function*() {
              yield* other.begin(connection)
              yield* connection.executeRaw(`SELECT 1 FROM nonces WHERE value = '${signed}' FOR UPDATE`, [])
              // The other nonces come while the statement for the first nonce runs.
              const spending = yield* Effect.forkChild(Effect.all([
                nonces.spend(first),
                nonces.spend(plain),
                nonces.spendSigned({ nonce: signed, profile: "p", accountId, pubkey })
              ], together))
              yield* someoneWaits(connection)
              yield* connection.executeRaw(`SELECT 1 FROM nonces WHERE value = '${plain}' FOR UPDATE NOWAIT`, [])
              yield* other.commit(connection)
              const [one, two, three] = yield* Fiber.join(spending)
              assert.deepStrictEqual([one, two, three?.spent], ["fresh", "fresh", "fresh"])
            })
          )
        }))
    }

    test("returns nothing for a signer whose row cannot be read, and answers the other requests", (nonces) =>
      Effect.gen(function*() {
        const [good, bad] = [yield* addAccount("p", "good"), yield* addAccount("p", "bad")]
        yield* sql(
          "UPDATE accounts SET contact = 'no JSON' WHERE pubkey = (SELECT pubkey FROM accounts WHERE pubkey < "
            + (backend.dialect === "sqlite" ? "X'67'" : "'g'::bytea") + " ORDER BY pubkey DESC LIMIT 1)"
        )
        const [one, two] = yield* Effect.forEach(
          [[good, "good"], [bad, "bad"]] as const,
          ([accountId, key]) =>
            Effect.flatMap(
              issued(nonces),
              (nonce) => nonces.spendSigned({ nonce, profile: "p", accountId, pubkey: Buffer.from(key) })
            ),
          together
        )
        assert.strictEqual(one?.spent, "fresh")
        assert.isUndefined(two)
      }))

    test("accepts one of a hundred and fifty requests that present the same nonce at once", (nonces) =>
      Effect.gen(function*() {
        const nonce = yield* issued(nonces)
        const verdicts = yield* Effect.replicateEffect(nonces.spend(nonce), 150, together)
        assert.strictEqual(verdicts.filter((one) => one === "fresh").length, 1)
        assert.strictEqual(verdicts.filter((one) => one === "unknown").length, 149)
      }))

    test("accepts each nonce once if many clients present the same ones to two processes", (nonces) =>
      Effect.gen(function*() {
        const other = yield* noncesOver(yield* database.another)
        const given = yield* Effect.replicateEffect(issued(nonces), 20, together)
        const verdicts = yield* Effect.forEach(
          given.flatMap((nonce) => [nonce, nonce, nonce, nonce]),
          (nonce, index) =>
            Effect.map((index % 2 === 0 ? nonces : other).spend(nonce), (verdict) => ({ nonce, verdict })),
          together
        )
        const fresh = verdicts.filter(({ verdict }) => verdict === "fresh").map(({ nonce }) => nonce)
        assert.sameMembers(fresh, given)
      }))

    test("accepts a nonce that another process issued, but only once in both processes together", (nonces) =>
      Effect.gen(function*() {
        const other = yield* noncesOver(yield* database.another)
        const nonce = yield* issued(other)
        assert.deepStrictEqual(
          [yield* nonces.spend(nonce), yield* other.spend(nonce)],
          ["fresh", "unknown"]
        )
      }))

    test("refuses every text that is not a nonce, and uses up no nonce for such a text", (nonces) =>
      Effect.gen(function*() {
        const nonce = yield* issued(nonces)
        const before = yield* stored
        const strangers = [
          "",
          "A".repeat(43),
          nonce.slice(0, -1),
          `${nonce}=`,
          ` ${nonce}`,
          nonce.replaceAll(/[a-zA-Z]/g, (c) => c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase()),
          "%",
          "_".repeat(43),
          "' OR '1' = '1",
          `"],["${nonce}`,
          "\\",
          "é\u{1f511}\n",
          "a".repeat(100_000)
        ]
        for (const stranger of strangers) assert.strictEqual(yield* nonces.spend(stranger), "unknown", stranger)
        const atOnce = yield* Effect.forEach(strangers, nonces.spend, together)
        assert.deepStrictEqual(atOnce, strangers.map(() => "unknown"))
        assert.strictEqual(yield* stored, before)
        assert.strictEqual(yield* nonces.spend(nonce), "fresh")
      }))

    test("gives each of many simultaneous callers the answer about their own nonce", (nonces) =>
      Effect.gen(function*() {
        yield* TestClock.setTime(0)
        const old = yield* Effect.replicateEffect(issued(nonces), 40, together)
        yield* TestClock.setTime((ttlSeconds + 1) * 1000)
        const fresh = yield* Effect.replicateEffect(issued(nonces), 120, together)
        const presented = Array.from({ length: 120 }, (_, index) => [
          { nonce: fresh[index] ?? "", expected: "fresh" },
          { nonce: `unknown-${index}`, expected: "unknown" },
          ...(index < 40 ? [{ nonce: old[index] ?? "", expected: "expired" }] : [])
        ]).flat()
        const verdicts = yield* Effect.forEach(presented, ({ nonce }) => nonces.spend(nonce), together)
        assert.deepStrictEqual(verdicts, presented.map(({ expected }) => expected))
      }))

    test("accepts a nonce exactly until its expiry, whatever the fraction of the second at which it was made", () =>
      Effect.gen(function*() {
        for (const within of [0, 1, 500, 999]) {
          yield* TestClock.setTime(1_000_000_000 + within)
          const nonces = yield* noncesOver(database.driver())
          const [first, second] = [yield* issued(nonces), yield* issued(nonces)]
          yield* TestClock.adjust(`${ttlSeconds} seconds`)
          assert.strictEqual(yield* nonces.spend(first), "fresh")
          yield* TestClock.adjust("1 millis")
          assert.strictEqual(yield* nonces.spend(second), "expired")
          assert.strictEqual(yield* nonces.spend(second), "unknown", "expired ones are spent too")
        }
      }))

    test("accepts a nonce that an older version made until the end of its last second", (nonces) =>
      Effect.gen(function*() {
        const [first, second] = ["a", "b"].map((letter) => letter.repeat(43)) as [string, string]
        yield* sql(`INSERT INTO nonces (value, created_at) VALUES ('${first}', 1000000), ('${second}', 1000000)`)
        yield* TestClock.setTime(1_000_000_999 + ttlSeconds * 1000)
        assert.strictEqual(yield* nonces.spend(first), "fresh")
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(yield* nonces.spend(second), "expired")
      }))

    test("accepts nonces until the end of their lifetime, and accepts nonces from the future if the clock was set back", (nonces) =>
      Effect.gen(function*() {
        const now = 1_000_000_000
        for (const [later, verdict] of [[ttlSeconds - 1, "fresh"], [ttlSeconds + 1, "expired"], [-3600, "fresh"]]) {
          yield* TestClock.setTime(now)
          const nonce = yield* issued(yield* noncesOver(database.driver()))
          yield* TestClock.setTime(now + Number(later) * 1000)
          assert.strictEqual(yield* nonces.spend(nonce), verdict, `${later} s later`)
        }
        // Nonces that were prepared before the clock was changed are still handed out, and are still valid.
        yield* TestClock.setTime(now)
        yield* issued(nonces)
        yield* TestClock.setTime(now - 3_600_000)
        const given = yield* issued(nonces)
        assert.strictEqual(yield* nonces.spend(given), "fresh")
      }))

    test("reports a failure to every waiting caller without using up a nonce, and works afterwards", (nonces) =>
      Effect.gen(function*() {
        const given = yield* Effect.replicateEffect(issued(nonces), 130, together)
        const failures = yield* withoutTable(
          Effect.forEach(given, (nonce) => Effect.flip(nonces.spend(nonce)), together)
        )
        for (const failure of failures) assert.instanceOf(failure, StorageFailed)
        assert.deepStrictEqual(yield* Effect.forEach(given, nonces.spend, together), given.map(() => "fresh"))
      }))

    test("reports a failure to every waiting caller if a transaction cannot begin", (nonces) =>
      Effect.gen(function*() {
        const given = yield* Effect.replicateEffect(issued(nonces), 130, together)
        let reachable = false
        const driver = before(
          database.driver(),
          Effect.suspend(() => reachable ? Effect.void : Effect.fail(gone))
        )
        const failing = yield* noncesOver(driver)
        const ends = yield* Effect.forEach(given, (nonce) => Effect.result(failing.spend(nonce)), together)
        assert.isTrue(ends.every(Result.isFailure))
        reachable = true
        assert.deepStrictEqual(yield* Effect.forEach(given, failing.spend, together), given.map(() => "fresh"))
      }))

    test("answers every caller, and continues, if the check of the prepared nonces fails", (nonces) =>
      Effect.gen(function*() {
        const driver = database.driver()
        const dying = yield* noncesOver({
          ...driver,
          single: (statement, params) =>
            statement.text.startsWith("SELECT value") ? Effect.die("unsent") : driver.single(statement, params)
        })
        yield* issued(dying)
        assert.strictEqual(yield* dying.spend("A".repeat(43)), "unknown")
        assert.strictEqual(yield* dying.spend(yield* issued(nonces)), "fresh")
      }))

    test("answers the other callers if one caller leaves", () =>
      Effect.gen(function*() {
        const [sent, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const driver = database.driver()
        const nonces = yield* noncesOver(
          before(driver, Effect.andThen(Deferred.succeed(sent, undefined), Deferred.await(go)))
        )
        const given = yield* Effect.replicateEffect(Effect.flatMap(noncesOver(driver), issued), 3)
        const leaving = yield* Effect.forkChild(nonces.spend(given[0] ?? ""))
        const staying = yield* Effect.forEach(given.slice(1), (nonce) => Effect.forkChild(nonces.spend(nonce)))
        yield* Deferred.await(sent)
        yield* Fiber.interrupt(leaving)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(leaving)))
        yield* Deferred.succeed(go, undefined)
        assert.deepStrictEqual(yield* Effect.forEach(staying, Fiber.join), ["fresh", "fresh"])
      }))
  })

  test("leave no more rows after a flood than one for each request and one prepared batch, and the rows are swept in batches", (nonces) =>
    Effect.gen(function*() {
      const asked = 1000
      yield* Effect.replicateEffect(issued(nonces), asked)
      assert.isAtLeast(yield* stored, asked)
      assert.isAtMost(yield* stored, asked + 256)
      yield* rows.insert(Array.from({ length: 2500 }, (_, index) => `flood-${index}`), 0)
      const flood = yield* stored
      yield* TestClock.adjust(`${ttlSeconds + 1} seconds`)
      const fresh = yield* issued(nonces)
      const kept = (yield* stored) - flood
      const driver = database.driver()
      const passes: Array<number> = []
      const counting: Driver = {
        ...driver,
        single: (statement, params) =>
          Effect.tap(
            driver.single(statement, params),
            (gone) => Effect.sync(() => statement.reads || passes.push(gone.length))
          )
      }
      yield* Effect.provideService(sweepNonces(ttlSeconds), Database, counting)
      assert.isTrue(passes.every((gone) => gone <= 1000), String(passes))
      assert.strictEqual(passes.reduce((sum, gone) => sum + gone, 0), flood)
      assert.strictEqual(yield* stored, kept)
      assert.strictEqual(yield* nonces.spend(fresh), "fresh")
    }))
})
