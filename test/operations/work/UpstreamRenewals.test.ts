import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { namedLeafOf } from "../../../src/crypto/x509/CertId.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import { renewalInfo } from "../../../src/operations/Renewal.ts"
import { ProfileNotMounted, Signers, SigningFailed } from "../../../src/services/signing/Signer.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { databases } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"
import { finalized, relay, relaying, signsByCa, useRelays } from "../../support/Relayed.ts"

/*
 * Tests renewal windows of an upstream (docs/contribute/decisions/relays.md, "The upstream's word on renewal is kept").
 */

const hour = 3600
const window = {
  start: madeAt + 5 * daySeconds,
  end: madeAt + 6 * daySeconds,
  explanationUrl: "https://ca.example/why"
}

describe.each(databases)("the renewal window of an upstream on $name", (backend) => {
  const { play, suggest, test } = useRelays(backend)
  let opened = 0

  const issued = (names: ReadonlyArray<string> = ["a.example"], profile = "default") =>
    Effect.gen(function*() {
      const orderUrl = `https://ca.example/order/${++opened}`
      play(({ keeper, request }) => Effect.andThen(keeper.opened(orderUrl, undefined), signsByCa(request)))
      const { caller, id } = yield* finalized(profile, names)
      yield* relay
      const certId = namedLeafOf((yield* orders.certificate(caller, id, 0)).chain)?.certId ?? ""
      return { certId, orderUrl }
    })

  /** Does the work that is due, like a worker that has just started. */
  const ask = Effect.gen(function*() {
    const known = (yield* handlers(relaying)).filter(({ kind }) => kind === "upstream_renewals")
    const { enqueuePeriodic, idle, pass } = yield* Runner.make({ ...relaying.jobs, owner: "host:1:a" }, known)
    yield* enqueuePeriodic()
    yield* pass
    yield* Effect.orDie(idle)
  })
  const nextRun = Effect.map(
    column("SELECT run_at FROM jobs WHERE kind = 'upstream_renewals' AND status = 'ready'"),
    ([at]) => Number(at)
  )
  const now = Effect.map(Effect.clockWith((clock) => clock.currentTimeMillis), (millis) => Math.floor(millis / 1000))

  test("is sent to clients, and is refreshed only as often as the upstream permits and not at requests of clients", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const asked: Array<unknown> = []
      let retryAfter = 0
      suggest((one) =>
        Effect.sync(() => {
          asked.push(one)
          return { window, retryAfter }
        })
      )
      const certificate = yield* issued()
      const estimate = yield* renewalInfo("default", certificate.certId)
      assert.notStrictEqual(estimate.start, window.start)
      assert.deepStrictEqual(asked, [])
      yield* ask
      assert.deepStrictEqual(asked, [certificate])
      assert.deepStrictEqual(yield* renewalInfo("default", certificate.certId), { ...window, isRevoked: false })
      assert.strictEqual(yield* nextRun, (yield* now) + hour)
      for (
        const [asks, wait, next] of [[1, 6 * hour - 1, 0], [2, 1, 12 * hour], [2, 12 * hour - 1, 0], [3, 1, 9e9], [
          3,
          daySeconds - 1,
          0
        ], [4, 1, 0]] as const
      ) {
        retryAfter = next
        yield* TestClock.adjust(wait * 1000)
        yield* ask
        assert.lengthOf(asked, asks, `${wait} seconds later`)
      }
    }))

  test("is dropped if the upstream withdraws it, and is kept while the upstream is unreachable", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const { certId } = yield* issued()
      const estimate = yield* renewalInfo("default", certId)
      suggest(() => Effect.succeed({ window, retryAfter: undefined }))
      yield* ask
      let asks = 0
      suggest(() => {
        asks++
        return new SigningFailed({ cause: "signer_failed", detail: "away" })
      })
      const [, second] = [yield* issued(["b.example"]), yield* issued(["c.example"])]
      yield* TestClock.adjust("6 hours")
      yield* ask
      assert.strictEqual(asks, 1, "the others are not asked about")
      assert.deepInclude(yield* renewalInfo("default", certId), window)
      yield* TestClock.adjust("59 minutes")
      yield* ask
      assert.strictEqual(asks, 1)
      suggest(() => Effect.succeed({ window: undefined, retryAfter: undefined }))
      yield* TestClock.adjust("1 minute")
      yield* ask
      assert.deepStrictEqual(yield* renewalInfo("default", certId), estimate)
      assert.notStrictEqual((yield* renewalInfo("default", second.certId)).start, window.start)
    }))

  test("is requested from the other upstreams although one of them never answers", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const hanging = yield* Effect.forEach(["a.example", "b.example", "c.example"], (name) => issued([name]))
      yield* TestClock.adjust("1 second")
      const { certId } = yield* issued(["d.example"], "other")
      const silent = new Set(hanging.map((one) => one.certId))
      const asked: Array<string> = []
      suggest((one) => {
        asked.push(one.certId)
        return silent.has(one.certId)
          ? Effect.andThen(
            TestClock.adjust("30 seconds"),
            new SigningFailed({ cause: "signer_failed", detail: "no answer" })
          )
          : Effect.succeed({ window, retryAfter: undefined })
      })
      const known = (yield* handlers(relaying)).filter(({ kind }) => kind === "upstream_renewals")
      const { enqueuePeriodic, idle, pass } = yield* Runner.make({ ...relaying.jobs, owner: "host:1:a" }, known)
      yield* enqueuePeriodic()
      const once = Effect.andThen(pass, Effect.orDie(idle))
      yield* once
      yield* TestClock.adjust("1 minute")
      yield* once
      assert.deepStrictEqual(asked.slice(1), [certId])
      assert.deepInclude(yield* renewalInfo("other", certId), window)
    }))

  test("is not requested for a certificate that has expired, is revoked or no longer has a relay", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const certificate = yield* issued()
      suggest(() => Effect.succeed({ window, retryAfter: undefined }))
      yield* ask
      let asks = 0
      suggest(() => Effect.sync(() => ({ window, retryAfter: ++asks })))
      yield* Effect.provideService(ask, Signers, {
        ...yield* Signers,
        of: (profile) => new ProfileNotMounted({ profile })
      })
      yield* sql(`UPDATE orders SET revoked_at = ${madeAt}`)
      yield* TestClock.adjust("1 day")
      yield* ask
      assert.deepInclude(yield* renewalInfo("default", certificate.certId), { isRevoked: true })
      yield* issued(["b.example"])
      yield* finalized("default", ["c.example"])
      yield* sql("UPDATE upstream_orders SET status = 'invalid', renewal_due = 0 WHERE status = 'processing'")
      yield* sql(`UPDATE orders SET cert_not_after = ${(yield* now) - 1} WHERE revoked_at IS NULL`)
      yield* ask
      assert.strictEqual(asks, 0)
      assert.deepStrictEqual(yield* column("SELECT count(*) FROM upstream_orders WHERE renewal_due IS NOT NULL"), ["0"])
    }))
})
