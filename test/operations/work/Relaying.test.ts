import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { namedLeafOf } from "../../../src/crypto/x509/CertId.ts"
import { shown } from "../../../src/domain/JobFailure.ts"
import { series } from "../../../src/domain/words/Series.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import * as Registry from "../../../src/engine/telemetry/Registry.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import { SigningFailed } from "../../../src/services/signing/Signer.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { counted } from "../../support/Counted.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, killedAfter, mend } from "../../support/Faults.ts"
import {
  callerAt,
  column,
  count,
  eventsOf,
  fieldsOf,
  handmadeChain,
  orderOf,
  profileOf,
  signsAtOnce,
  sql
} from "../../support/Graph.ts"
import { madeAt } from "../../support/LocalCa.ts"
import {
  finalized,
  relay,
  relaying,
  relayJobs,
  relaysBy,
  signsByCa,
  trail,
  upstreamRows,
  useRelays
} from "../../support/Relayed.ts"
import { storedChains } from "../../support/StoredChains.ts"

/*
 * Tests what one attempt of signer_relay_issue does with an order (docs/contribute/decisions/relays.md).
 * RelayingEnds.test.ts tests the failures.
 */

const away = new SigningFailed({ cause: "signer_failed", detail: "no route to the upstream" })

describe.each(databases)("an order that is relayed on $name", (backend) => {
  const { asked, database, play, records, test } = useRelays(backend)

  test("is counted in the metrics as upstream_unavailable if the upstream does not answer", () =>
    Effect.gen(function*() {
      yield* finalized()
      play(() => away)
      yield* relay
      const of = (cause: string) =>
        counted(`acme_svc_signer_failures_total{role="worker",profile="default",cause="${cause}"}`)
      assert.deepStrictEqual([yield* of("upstream_unavailable"), yield* of("signer_failed")], [1, undefined])
    }).pipe(Effect.provide(Registry.layer("worker", series))))

  test("is queued with its CSR and the facts of the request in a separate row, and the job contains neither", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const { csr, id } = yield* finalized()
      const [row] = yield* sql("SELECT * FROM upstream_orders")
      assert.deepInclude(row, {
        status: "processing",
        upstream_order_url: null,
        client_ip: "192.0.2.1",
        user_agent: "test/1",
        request_id: "request-1",
        started_at: null
      })
      assert.isTrue(csr.equals(Buffer.from(row?.["csr_der"] as Uint8Array)))
      const [job] = yield* sql("SELECT kind, dedup_key, payload, deadline FROM jobs")
      assert.deepStrictEqual(
        [job?.["kind"], job?.["dedup_key"], JSON.parse(String(job?.["payload"])), Number(job?.["deadline"])],
        ["signer_relay_issue", id, { order_id: id, profile: "default" }, 605_800]
      )
    }))

  test("becomes valid together with its upstream row and with the upstream's chain, and the trail has one row", () =>
    Effect.gen(function*() {
      const { caller, csr, id } = yield* finalized("default", ["a.example", "*.a.example"])
      yield* relay
      assert.deepStrictEqual(asked.map(({ profile, request: { names, orderId } }) => [profile, orderId, names]), [
        ["default", id, ["a.example", "*.a.example"]]
      ])
      assert.isTrue(csr.equals(Buffer.from(asked[0]?.request.csr.der ?? [])))
      assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
      assert.deepStrictEqual(yield* storedChains, [handmadeChain])
      assert.deepStrictEqual(yield* upstreamRows, [["valid", null]])
      assert.deepStrictEqual(yield* relayJobs, ["done"])
      assert.deepStrictEqual((yield* trail).map(({ event }) => event), ["certificate_issued"])
      assert.includeMembers([...eventsOf(records)], ["upstream_relay_succeeded", "order_finalized"])
    }))

  test("becomes valid through the next worker if its worker is killed at any step, and always agrees with its upstream row", () =>
    Effect.gen(function*() {
      let [died, steps] = [true, 0]
      play(({ keeper, request }) =>
        keeper.opened("https://ca.example/order/1", "https://ca.example/f").pipe(
          Effect.andThen(keeper.issued("https://ca.example/cert/1")),
          Effect.andThen(signsAtOnce(request))
        )
      )
      for (; died; steps++) {
        yield* sql("DELETE FROM orders")
        yield* sql("DELETE FROM jobs")
        yield* finalized()
        const { driver, killed } = yield* killedAfter(database.driver(), steps)
        const dying = Effect.gen(function*() {
          const { idle, pass } = yield* Runner.make(
            { ...relaying.jobs, owner: "host:9:dead" },
            yield* handlers(relaying)
          )
          yield* pass
          yield* Effect.race(Effect.orDie(idle), Deferred.await(killed))
        })
        yield* Effect.provideService(Effect.scoped(dying), Database, driver)
        died = yield* Deferred.isDone(killed)
        const between = `${String(yield* column("SELECT status FROM orders"))} ${
          String((yield* upstreamRows).map(([now]) => now))
        }`
        assert.include(["processing processing", "valid valid"], between)
        // longer than any lease
        yield* TestClock.adjust("10 minutes")
        yield* relay
        assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"], `after ${steps} statements`)
        assert.deepStrictEqual(yield* upstreamRows, [["valid", null]])
        assert.deepStrictEqual(yield* relayJobs, ["done"])
      }
      assert.isAbove(steps, 8, "it died in between")
    }))

  test("lets a stopped attempt notice that another attempt has taken over the order", () =>
    Effect.gen(function*() {
      yield* finalized()
      const stoodStill = yield* Deferred.make<Effect.Effect<boolean>>()
      play(({ isTakenOver }) => Effect.andThen(Deferred.succeed(stoodStill, isTakenOver), Effect.never))
      const still = yield* Runner.make({ ...relaying.jobs, owner: "host:9:still:" }, yield* handlers(relaying))
      yield* still.pass
      const isTakenOver = yield* Deferred.await(stoodStill)
      assert.isFalse(yield* isTakenOver, "its own row")
      const other = yield* Runner.make({ ...relaying.jobs, owner: "host:9:other:" }, yield* handlers(relaying))
      for (let second = 0; second < 20; second++) yield* Effect.andThen(TestClock.adjust("1 second"), other.tend)
      assert.deepStrictEqual(yield* relayJobs, ["ready"])
      assert.isFalse(yield* isTakenOver, "nobody has begun")
      const begun = yield* Deferred.make<void>()
      const end = yield* Deferred.make<void>()
      play(({ request }) =>
        Deferred.succeed(begun, undefined).pipe(
          Effect.andThen(Deferred.await(end)),
          Effect.andThen(signsAtOnce(request))
        )
      )
      yield* other.pass
      yield* Deferred.await(begun)
      assert.isTrue(yield* isTakenOver)
      yield* Deferred.succeed(end, undefined)
      yield* other.idle
      assert.deepStrictEqual(yield* relayJobs, ["done"])
      assert.isFalse(yield* isTakenOver, "the order has ended")
    }))

  test("counts only the time of its attempts, and not the time when its worker was dead", () =>
    Effect.gen(function*() {
      yield* finalized()
      let spent: number | undefined
      const owner = "host:9:dead:"
      const { pass, renew } = yield* Runner.make({ ...relaying.jobs, owner }, yield* handlers(relaying))
      const hung = yield* Deferred.make<void>()
      play(() => Effect.andThen(Deferred.succeed(hung, undefined), Effect.never))
      yield* pass
      yield* Deferred.await(hung)
      for (let second = 0; second < 20; second++) yield* Effect.andThen(TestClock.adjust("1 second"), renew)
      play(({ request, spentSeconds }) => {
        spent = spentSeconds
        return signsAtOnce(request)
      })
      yield* TestClock.adjust("2 days")
      const next = yield* Runner.make(
        { ...relaying.jobs, owner: "host:10:next:", isGone: (other) => other === owner },
        yield* handlers(relaying)
      )
      yield* next.pass
      yield* next.idle
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"])
      assert.isAtLeast(spent ?? 0, 18)
      assert.isAtMost(spent ?? 0, 20)
    }))

  test("is never sent to the upstream if it was not validated here, because the upstream may already have authorized the names", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(relaying))
      const { id } = yield* orderOf(caller, "a.example")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      assert.strictEqual((yield* Effect.flip(finalize(caller, id, csr)))._tag, "OrderNotReady")
      yield* sql("UPDATE orders SET status = 'ready'")
      assert.strictEqual((yield* Effect.flip(finalize(caller, id, csr)))._tag, "OrderNotReady")
      assert.strictEqual(yield* count("SELECT count(*) FROM upstream_orders"), 0)
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
    }))

  for (const [status, left] of [["valid", "valid"], ["invalid", "invalid"]] as const) {
    test(`is not sent to the upstream if it is already ${status}`, () =>
      Effect.gen(function*() {
        yield* finalized()
        yield* sql(`UPDATE orders SET status = '${status}'`)
        yield* relay
        assert.deepStrictEqual(asked, [])
        assert.deepStrictEqual(yield* relayJobs, ["done"])
        assert.deepStrictEqual((yield* upstreamRows).map(([now]) => now), [left])
        assert.deepStrictEqual(yield* trail, [])
      }))
  }

  test("is not sent to the upstream if it was deleted, or if its upstream row was deleted", () =>
    Effect.gen(function*() {
      yield* finalized()
      yield* sql("DELETE FROM orders")
      yield* finalized()
      yield* sql("DELETE FROM upstream_orders")
      yield* relay
      assert.deepStrictEqual(asked, [])
      assert.deepStrictEqual(yield* relayJobs, ["done", "done"])
    }))

  test("is made invalid by the recovery, together with its upstream row, if its job is missing", () =>
    Effect.gen(function*() {
      yield* finalized()
      yield* sql("DELETE FROM jobs")
      yield* TestClock.adjust("2 minutes")
      yield* sweeps.recover(relaying)
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["invalid"])
      assert.deepStrictEqual(yield* upstreamRows, [["invalid", "its signing job is gone"]])
    }))

  /** Returns the error as operators see it. */
  const whyTried = Effect.map(
    column("SELECT last_error FROM jobs"),
    (rows) => rows.map((row) => shown(String(row)))
  )

  test("is tried again with the stored progress and the remaining time if the upstream is unreachable", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const { caller, id } = yield* finalized()
      play(({ keeper }) => Effect.andThen(keeper.opened("https://ca.example/order/1", "https://ca.example/f"), away))
      yield* relay
      assert.deepStrictEqual(yield* relayJobs, ["ready"])
      assert.strictEqual((yield* orders.find(caller, id)).status, "processing")
      assert.deepStrictEqual(yield* upstreamRows, [["processing", null]])
      assert.deepStrictEqual(yield* whyTried, ["signer_failed: no route to the upstream"])
      assert.include(eventsOf(records), "upstream_relay_failed")
      play(({ keeper, request }) => Effect.andThen(keeper.issued("https://ca.example/cert/1"), signsAtOnce(request)))
      const waited = Number((yield* column("SELECT run_at FROM jobs"))[0]) - 1000
      yield* TestClock.adjust("1 minute")
      yield* relay
      // Only the wait that the first attempt asked for counts, and not the time after that wait.
      assert.deepStrictEqual(asked.map(({ spentSeconds, wasBegun }) => [spentSeconds, wasBegun]), [[0, false], [
        waited,
        true
      ]])
      assert.isAbove(waited, 0)
      assert.isUndefined(asked[0]?.stored.orderUrl)
      assert.deepInclude(asked[1]?.stored, {
        orderUrl: "https://ca.example/order/1",
        finalizeUrl: "https://ca.example/f"
      })
      const [row] = yield* sql("SELECT started_at, upstream_certificate_url FROM upstream_orders")
      assert.deepStrictEqual(
        [Number(row?.["started_at"]), row?.["upstream_certificate_url"]],
        [1000, "https://ca.example/cert/1"]
      )
      assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
      assert.deepStrictEqual(yield* upstreamRows, [["valid", null]])
    }))

  test("passes the number of earlier newOrder requests to each attempt, and logs a second request", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const { id } = yield* finalized()
      const askedAgain = (asks: number) => () => {
        play(({ keeper }) => Effect.andThen(keeper.asked(asks), away))
        return Effect.andThen(relay, TestClock.adjust("1 minute"))
      }
      yield* askedAgain(1)()
      assert.notInclude(eventsOf(records), "upstream_order_lost")
      yield* askedAgain(2)()
      yield* relay
      assert.deepStrictEqual(asked.map(({ stored }) => [stored.asks, stored.askedAt]), [
        [0, undefined],
        [1, 1000],
        [2, 1060]
      ])
      const [record] = records.filter(({ event }) => event === "upstream_order_lost")
      assert.deepStrictEqual(record?.fields, { order_id: id, attempts: 2 })
    }))

  test("passes the replaced certificate and the upstream order of that certificate to each attempt until a new order is opened", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const orderUrl = "https://ca.example/order/1"
      play(({ keeper, request }) => Effect.andThen(keeper.opened(orderUrl, undefined), signsByCa(request)))
      const { caller, id } = yield* finalized()
      yield* relay
      const certId = namedLeafOf((yield* orders.certificate(caller, id, 0)).chain)?.certId ?? ""
      const served = { order_id: id, account_id: caller.accountId }
      assert.deepStrictEqual(fieldsOf(records, "certificate_served"), [served])
      const renewal = yield* finalized("default", ["a.example"], { caller, certId })
      play(({ keeper }) =>
        Effect.andThen(
          keeper.notReplaced("not yours"),
          Effect.andThen(keeper.opened("https://ca.example/order/2", undefined), away)
        )
      )
      yield* relay
      yield* TestClock.adjust("1 minute")
      yield* relay
      assert.deepStrictEqual(asked.map(({ replaced }) => replaced), [undefined, { certId, orderUrl }, undefined])
      const [record] = records.filter(({ event }) => event === "upstream_replaces_refused")
      assert.deepStrictEqual(record?.fields, { order_id: renewal.id, error: "not yours" })
    }))

  test("learns which orders at the upstream belong to no other order here", () =>
    Effect.gen(function*() {
      let unclaimed: ReadonlyArray<string> = []
      const urls = ["https://ca.example/order/1", "https://ca.example/order/2"]
      yield* finalized()
      play(({ keeper }) => Effect.andThen(keeper.opened("https://ca.example/order/1", "https://ca.example/f"), away))
      yield* relay
      yield* finalized("other", ["b.example"])
      play(({ keeper, request }) =>
        Effect.andThen(
          Effect.map(keeper.unclaimed(urls), (found) => void (unclaimed = found)),
          signsAtOnce(request)
        )
      )
      yield* relay
      assert.deepStrictEqual(unclaimed, ["https://ca.example/order/2"])
    }))

  test("is sent to the relay of its own profile, although one handler serves both profiles", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* finalized("default", ["a.example"]), yield* finalized("other", ["b.example"])]
      yield* relay
      assert.sameDeepMembers(asked.map(({ profile, request }) => [profile, request.names]), [
        ["default", ["a.example"]],
        ["other", ["b.example"]]
      ])
      for (const { caller, id } of [one, other]) {
        assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
      }
      assert.deepStrictEqual(yield* upstreamRows, [["valid", null], ["valid", null]])
    }))

  test("waits and is not sent to the upstream if its profile is not served", () =>
    Effect.gen(function*() {
      yield* finalized("other")
      yield* Effect.provide(relay, relaysBy(() => Effect.die("asked"), ["default"]))
      assert.deepStrictEqual(yield* relayJobs, ["ready"])
      assert.deepStrictEqual(yield* whyTried, ["profile other is not mounted here"])
      assert.deepStrictEqual(yield* upstreamRows, [["processing", null]])
    }))

  describe("by http01", () => {
    const tokens = Effect.map(
      sql("SELECT token, key_authorization, created_at, expires_at FROM http01_tokens"),
      (found) =>
        found.map((
          row
        ) => [row["token"], row["key_authorization"], Number(row["created_at"]), Number(row["expires_at"])])
    )

    test("has its tokens stored for the processes that serve them, and has the tokens deleted afterwards", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(1_000_000)
        yield* finalized()
        let between: unknown
        play(({ request, tokens: store }) =>
          Effect.gen(function*() {
            yield* Effect.orDie(store.put("token", "token.thumbprint"))
            between = yield* database.use(tokens)
            yield* store.remove("token")
            return yield* signsAtOnce(request)
          })
        )
        yield* relay
        assert.deepStrictEqual(between, [["token", "token.thumbprint", 1000, 4600]])
        assert.deepStrictEqual(yield* tokens, [])
        assert.deepStrictEqual(yield* relayJobs, ["done"])
      }))

    test("is tried again if a token cannot be stored, and the log reports the failure", () =>
      Effect.gen(function*() {
        yield* finalized()
        play(({ request, tokens: store }) =>
          store.put("token", "token.thumbprint").pipe(
            Effect.mapError(({ detail }) => new SigningFailed({ cause: "signer_failed", detail })),
            Effect.andThen(signsAtOnce(request))
          )
        )
        yield* breakWrites(backend.dialect, { table: "http01_tokens", operation: "INSERT" })
        yield* relay
        yield* mend(backend.dialect)
        assert.deepStrictEqual(yield* relayJobs, ["ready"])
        assert.deepStrictEqual(yield* whyTried, [
          "signer_failed: the challenge's token could not be stored in the database here"
        ])
        const [record] = records.filter(({ event }) => event === "http_01_token_store_failed")
        assert.include(String(record?.fields["error"]), "http01_token_put")
        assert.notInclude(JSON.stringify(records.map(({ fields }) => fields)), "token.thumbprint")
        yield* TestClock.adjust("1 minute")
        yield* relay
        assert.deepStrictEqual(yield* relayJobs, ["done"])
      }))
  })
})
