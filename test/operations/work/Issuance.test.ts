import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { AcmeError } from "../../../src/domain/AcmeError.ts"
import { AuthorizationId, ChallengeId } from "../../../src/domain/Id.ts"
import type { OrderId } from "../../../src/domain/Id.ts"
import { statusShown } from "../../../src/domain/Order.ts"
import { problemOf } from "../../../src/domain/Problem.ts"
import { emit } from "../../../src/domain/words/Log.ts"
import { series } from "../../../src/domain/words/Series.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { StorageFailed } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as Registry from "../../../src/engine/telemetry/Registry.ts"
import * as accounts from "../../../src/operations/acme/Accounts.ts"
import * as authorizations from "../../../src/operations/acme/Authorizations.ts"
import * as challenges from "../../../src/operations/acme/Challenges.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import type { OrderView } from "../../../src/operations/acme/Orders.ts"
import type { Caller } from "../../../src/operations/Caller.ts"
import * as orderRecords from "../../../src/operations/operator/OrderRecords.ts"
import * as verdicts from "../../../src/operations/work/Verdicts.ts"
import type { DirectSigner, Issued, IssueRequest } from "../../../src/services/signing/Signer.ts"
import { CsrRejected, SigningFailed } from "../../../src/services/signing/Signer.ts"
import { ChallengePostponed, ChallengeRefused } from "../../../src/services/validation/Attempt.ts"
import { Validator } from "../../../src/services/validation/Validator.ts"
import * as stored from "../../../src/store/AccountRows.ts"
import * as burntKeys from "../../../src/store/revocation/BurntKeys.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { counted } from "../../support/Counted.ts"
import { der, makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, killedAfter, mend as mendWrites } from "../../support/Faults.ts"
import type { Script } from "../../support/Graph.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  configOf,
  count,
  eventsOf,
  handmadeChain,
  newPrivateKey,
  orderOf,
  profileOf,
  signsAtOnce,
  sql,
  world
} from "../../support/Graph.ts"
import { storedChains } from "../../support/StoredChains.ts"
import { useWorld } from "../../support/UseWorld.ts"

const config = configOf(`
[challenge]
max_in_flight_per_account = 32
http_01.port = 5002
tls_alpn_01.port = 5001
`)
const profile = profileOf(config)
const bypassing = configOf("[challenge]\nbypass = true")

let hostRuns = 0
let isAway = true

const refuses = (error: ChallengeRefused["error"]) => () =>
  new ChallengeRefused({ error, reason: "connect_failed", detail: "planted detail" })

const csrText = (...names: ReadonlyArray<string>) => makeCsr({ names }).csr.toString("base64url")

describe.each(databases)("from order to certificate on $name", (backend) => {
  const { database, records, test } = useWorld(backend)

  const runner = Effect.suspend(() =>
    Effect.flatMap(
      handlers(config),
      (known) => Runner.make({ ...config.jobs, owner: "host:1:a" }, known.filter(({ periodic }) => !periodic))
    )
  )

  /** Runs the jobs that are due until none is left. */
  const work = Effect.gen(function*() {
    const { idle, pass } = yield* runner
    for (let round = 0; round < 20; round++) {
      yield* pass
      yield* Effect.orDie(idle)
      const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      if (
        (yield* count(`SELECT count(*) FROM jobs WHERE status = 'ready' AND run_at <= ${Math.floor(now / 1000)}`)) === 0
      ) return
    }
  })

  const challengesOf = (caller: Caller, order: OrderView) =>
    Effect.forEach(
      order.authorizationIds,
      (id) => Effect.map(authorizations.find(caller, id), ({ challenges: [first] }) => first?.id ?? ChallengeId(""))
    )

  const statuses = Effect.gen(function*() {
    return {
      orders: yield* column("SELECT status FROM orders ORDER BY id"),
      authorizations: yield* column("SELECT status FROM authorizations ORDER BY id"),
      challenges: yield* column("SELECT status FROM challenges ORDER BY id")
    }
  })

  const readyOrder = Effect.fnUntraced(function*(...names: ReadonlyArray<string>) {
    const caller = yield* callerAt(profile)
    const order = yield* orderOf(caller, ...names)
    yield* sql("UPDATE authorizations SET status = 'valid'")
    yield* sql("UPDATE orders SET status = 'ready'")
    return { caller, order, id: order.id }
  })

  describe("triggering a challenge", () => {
    test("makes one job and one probe if it is requested 50 times at once, and answers every request", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        const answers = yield* Effect.all(Array.from({ length: 50 }, () => challenges.trigger(caller, id)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], ["processing"])
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 1)
        yield* work
        assert.strictEqual(eventsOf(records).filter((event) => event === "challenge_validated").length, 1)
        assert.deepStrictEqual((yield* challenges.trigger(caller, id)).status, "valid")
      }))

    test("queues a job that contains what the check needs, and no secret", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(1_000_000)
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* challenges.trigger(caller, id)
        const [job] = yield* sql("SELECT * FROM jobs")
        assert.deepStrictEqual(JSON.parse(String(job?.payload)), {
          challenge_id: id,
          profile: "default",
          thumbprint: caller.thumbprint,
          client_ip: "192.0.2.1",
          request_id: "request-1"
        })
        assert.deepStrictEqual([job?.dedup_key, Number(job?.deadline), Number(job?.run_at)], [id, 605_800, 1000])
      }))

    test("is refused once if 33 challenges are triggered at once with a limit of 32, and the client is told to wait", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const names = Array.from({ length: 33 }, (_, index) => `n${index}.example`)
        const ids = yield* challengesOf(caller, yield* orderOf(caller, ...names))
        const exits = yield* Effect.all(ids.map((id) => Effect.result(challenges.trigger(caller, id))), {
          concurrency: "unbounded"
        })
        const refused = exits.flatMap((exit) => exit._tag === "Failure" ? [exit.failure] : [])
        assert.deepStrictEqual(refused.map(({ _tag }) => _tag), ["TooManyValidations"])
        const [{ detail, type } = { detail: "", type: "" }] = refused.map((error) => problemOf(error as AcmeError))
        assert.strictEqual(type, "urn:ietf:params:acme:error:rateLimited")
        assert.match(detail, /^No more than 32 challenges .* try again at 1970-01-01T00:00:\d\dZ\.$/)
        assert.deepInclude(refused[0] ?? {}, { retryAfter: 5 })
        assert.strictEqual(yield* count("SELECT count(*) FROM challenges WHERE status = 'processing'"), 32)
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 32)
        const limited = records.find(({ event }) => event === "challenge_trigger_rate_limited")
        assert.deepInclude(limited?.fields ?? {}, { account_id: caller.accountId, in_flight: 32 })
      }))

    test("leaves the challenge pending if the job cannot be queued", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* breakInserts("jobs")
        assert.strictEqual((yield* Effect.flip(challenges.trigger(caller, id)))._tag, "ChallengeEnqueueFailed")
        yield* mend
        assert.deepStrictEqual((yield* statuses).challenges, ["pending"])
        assert.include(eventsOf(records), "challenge_validation_enqueue_failed")
        yield* challenges.trigger(caller, id)
        assert.deepStrictEqual((yield* statuses).challenges, ["processing"])
      }))

    test("happens completely if it is interrupted during the commit", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        const driver = database.driver()
        const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const slow: Driver = {
          ...driver,
          transact: (body) =>
            driver.transact((connection) =>
              Effect.andThen(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)), body(connection))
            )
        }
        const fiber = yield* Effect.forkChild(Effect.provideService(challenges.trigger(caller, id), Database, slow))
        yield* Deferred.await(begun)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
        yield* Effect.yieldNow
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(interrupting)
        assert.deepStrictEqual((yield* statuses).challenges, ["processing"])
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 1)
      }))

    test("is refused as malformed if the authorization or the order has ended, and returns a challenge that was decided", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        for (const status of ["invalid", "deactivated", "expired", "revoked"]) {
          yield* sql(`UPDATE authorizations SET status = '${status}'`)
          assert.strictEqual((yield* Effect.flip(challenges.trigger(caller, id)))._tag, "Malformed", status)
        }
        yield* sql(`UPDATE challenges SET status = 'invalid', error = '{"status":403,"detail":"kept"}'`)
        const shown = yield* challenges.trigger(caller, id)
        assert.deepStrictEqual([shown.status, shown.error], ["invalid", { status: 403, detail: "kept" }])
        yield* sql("UPDATE challenges SET status = 'pending', error = NULL")
        yield* sql("UPDATE authorizations SET status = 'pending'")
        yield* sql("UPDATE orders SET status = 'invalid'")
        assert.strictEqual((yield* Effect.flip(challenges.trigger(caller, id)))._tag, "Malformed")
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
      }))

    test("is refused as malformed after the expiry of the authorization, and the authorization is then stored as expired", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* TestClock.adjust(`${profile.order.validity_seconds} seconds`)
        assert.strictEqual((yield* Effect.flip(challenges.trigger(caller, id)))._tag, "Malformed")
        assert.deepStrictEqual((yield* statuses).authorizations, ["expired"])
      }))

    test("shows a pending challenge whose authorization is already valid, and queues no job", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* sql("UPDATE authorizations SET status = 'valid'")
        assert.strictEqual((yield* challenges.trigger(caller, id)).status, "pending")
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
      }))

    test("does not find a challenge of another account", () =>
      Effect.gen(function*() {
        const [caller, stranger] = [yield* callerAt(profile), yield* callerAt(profile)]
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        const elsewhere = { ...caller, profile: profileOf(config, "other") }
        for (const one of [stranger, elsewhere]) {
          assert.strictEqual((yield* Effect.flip(challenges.trigger(one, id)))._tag, "NotFound")
          assert.strictEqual((yield* Effect.flip(challenges.find(one, id)))._tag, "NotFound")
        }
        assert.deepStrictEqual((yield* statuses).challenges, ["pending"])
      }))

    test("makes the challenge valid at once and without a job if validation is bypassed", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profileOf(bypassing))
        const ids = yield* challengesOf(caller, yield* orderOf(caller, "a.example", "b.example"))
        for (const id of ids) {
          const shown = yield* challenges.trigger(caller, id)
          assert.deepStrictEqual([shown.status, shown.validatedAt], ["valid", 0])
        }
        assert.deepStrictEqual((yield* statuses).orders, ["ready"])
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
      }))
  })

  describe("validating a challenge", () => {
    test("makes the order ready if its last two authorizations are accepted at the same time", () =>
      Effect.gen(function*() {
        for (let round = 0; round < 10; round++) {
          const caller = yield* callerAt(profile)
          const order = yield* orderOf(caller, "a.example", "b.example")
          const ids = yield* challengesOf(caller, order)
          yield* sql("UPDATE challenges SET status = 'processing'")
          const other = yield* database.another
          yield* Effect.all(
            ids.map((id, index) =>
              Effect.provideService(
                verdicts.commitAccepted({
                  id,
                  authzId: order.authorizationIds[index] ?? AuthorizationId(""),
                  orderId: order.id
                }, 5),
                Database,
                index === 0 ? other : database.driver()
              )
            ),
            { concurrency: "unbounded" }
          )
          assert.strictEqual((yield* orders.find(caller, order.id)).status, "ready")
        }
      }))

    test("does not make an authorization valid before its order is ready", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const order = yield* orderOf(caller, "a.example")
        const [id = ChallengeId("")] = yield* challengesOf(caller, order)
        yield* challenges.trigger(caller, id)
        const seen: Array<string> = []
        const driver = database.driver()
        const looking: Driver = {
          ...driver,
          transact: (body) =>
            Effect.tap(driver.transact(body), () =>
              Effect.provideService(
                Effect.map(statuses, (all) => void seen.push(`${String(all.authorizations)} ${String(all.orders)}`)),
                Database,
                driver
              ))
        }
        yield* Effect.provideService(work, Database, looking)
        assert.notInclude(seen, "valid pending")
        assert.include(seen, "valid ready")
      }))

    test("makes the challenge and the authorization valid and stores the time if the challenge is accepted", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(7_000_000)
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example", "b.example"))
        yield* challenges.trigger(caller, id)
        yield* work
        assert.deepStrictEqual(yield* statuses, {
          orders: ["pending"],
          authorizations: ["valid", "pending"],
          challenges: ["valid", "pending"]
        })
        assert.deepInclude(yield* challenges.find(caller, id), { status: "valid", validatedAt: 7000, error: undefined })
      }))

    for (
      const [type, error, status, says] of [
        [
          "http-01",
          "connection",
          400,
          /^Could not fetch the challenge response of a\.example at port 5002 or where this port redirects;/
        ],
        ["http-01", "unauthorized", 403, /^The challenge response of a\.example was not the expected one;/],
        ["dns-01", "dns", 400, /^The TXT record of _acme-challenge\.a\.example could not be looked up;/],
        ["dns-01", "incorrectResponse", 403, /^There is no TXT record at _acme-challenge\.a\.example\.$/],
        ["tls-alpn-01", "connection", 400, /^Could not fetch the challenge response of a\.example at port 5001;/],
        ["tls-alpn-01", "tls", 400, /^The host of a\.example did not speak the validation protocol at port 5001;/],
        ["tls-alpn-01", "incorrectResponse", 403, /^The validation certificate of a\.example was not the expected one;/]
      ] as const
    ) {
      test(
        `makes challenge, authorization and order invalid after a refusal of ${type} with ${error}, and hides the received content from the client`,
        () =>
          Effect.gen(function*() {
            const caller = yield* callerAt(profileOf(configOf(`[challenge]\nenabled = ["${type}"]`)))
            const order = yield* orderOf(caller, "a.example", "b.example")
            const [id = ChallengeId("")] = yield* challengesOf(caller, order)
            yield* challenges.trigger(caller, id)
            yield* work
            assert.deepStrictEqual(yield* statuses, {
              orders: ["invalid"],
              authorizations: ["invalid", "pending"],
              challenges: ["invalid", "pending"]
            })
            const shown = yield* challenges.find(caller, id)
            assert.deepInclude(shown.error ?? {}, {
              type: `urn:ietf:params:acme:error:${error}`,
              status,
              identifier: { type: "dns", value: "a.example" }
            })
            assert.match(shown.error?.detail ?? "", says)
            assert.deepStrictEqual((yield* orders.find(caller, order.id)).error, shown.error)
            assert.notInclude(JSON.stringify(shown), "planted detail")
            assert.strictEqual(
              yield* count("SELECT count(*) FROM jobs WHERE status = 'done'"),
              1,
              "a verdict is not retried"
            )
            assert.include(eventsOf(records), "challenge_failed")
          }),
        { validate: refuses(error) }
      )
    }

    test("tells clients the same text whether the probe was refused, filtered or denied, and tells operators the cause", () =>
      Effect.gen(function*() {
        const told: Array<unknown> = []
        for (const reason of ["connect_failed", "timeout", "address_denied", "no_address"] as const) {
          const caller = yield* callerAt(profile)
          const order = yield* orderOf(caller, "a.example")
          const [id = ChallengeId("")] = yield* challengesOf(caller, order)
          yield* challenges.trigger(caller, id)
          const outside = () => new ChallengeRefused({ error: "connection", reason, detail: `planted ${reason}` })
          yield* Effect.provide(work, Validator.layerScripted(outside))
          const detail = yield* orderRecords.detail(config, order.id)
          const found = detail.challenges.find((one) => one.id === id)
          assert.deepStrictEqual(found?.cause, { reason, detail: `planted ${reason}` })
          told.push((yield* challenges.find(caller, id)).error)
          const seen = [yield* challenges.find(caller, id), yield* orders.find(caller, order.id)]
          assert.notInclude(JSON.stringify(seen), "planted")
        }
        assert.deepStrictEqual(told, Array(4).fill(told[0]))
        assert.hasAllKeys(told[0], ["type", "status", "detail", "identifier"])
        const { port } = profile.challenge.http_01
        assert.propertyVal(
          told[0],
          "detail",
          `Could not fetch the challenge response of a.example at port ${port} or where this port redirects; ` +
            "the server's log has the reason."
        )
      }))

    test("changes nothing if the authorization was deactivated before the verdict", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const order = yield* orderOf(caller, "a.example")
        const [id = ChallengeId("")] = yield* challengesOf(caller, order)
        yield* challenges.trigger(caller, id)
        yield* authorizations.deactivate(caller, order.authorizationIds[0] ?? AuthorizationId(""))
        yield* work
        assert.deepStrictEqual(yield* statuses, {
          orders: ["invalid"],
          authorizations: ["deactivated"],
          challenges: ["valid"]
        })
      }))

    test("does not undo a valid order if a refusal comes too late", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* challenges.trigger(caller, id)
        yield* sql("UPDATE authorizations SET status = 'valid'")
        yield* sql("UPDATE orders SET status = 'valid'")
        yield* work
        assert.deepStrictEqual(yield* statuses, {
          orders: ["valid"],
          authorizations: ["valid"],
          challenges: ["invalid"]
        })
      }), { validate: refuses("connection") })

    test("changes nothing at a second verdict for the challenge, and the log reports that verdict", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const order = yield* orderOf(caller, "a.example")
        const [id = ChallengeId("")] = yield* challengesOf(caller, order)
        yield* challenges.trigger(caller, id)
        yield* sql(`UPDATE challenges SET status = 'invalid', error = '{"status":400,"detail":"first"}'`)
        yield* sql("UPDATE authorizations SET status = 'invalid'")
        yield* sql("UPDATE orders SET status = 'invalid'")
        yield* verdicts.commitAccepted({
          id,
          authzId: order.authorizationIds[0] ?? AuthorizationId(""),
          orderId: order.id
        }, 9)
        assert.deepStrictEqual(yield* statuses, {
          orders: ["invalid"],
          authorizations: ["invalid"],
          challenges: ["invalid"]
        })
        assert.include(eventsOf(records), "challenge_verdict_superseded")
      }))

    const withTwo = profileOf(configOf(`[challenge]\nenabled = ["http-01", "dns-01"]`))

    /** Makes an order with one name, and triggers both of its challenges. */
    const bothTriggered = Effect.gen(function*() {
      const caller = yield* callerAt(withTwo)
      const order = yield* orderOf(caller, "a.example")
      const { challenges: offered } = yield* authorizations.find(
        caller,
        order.authorizationIds[0] ?? AuthorizationId("")
      )
      assert.deepStrictEqual(offered.map(({ type }) => type), ["http-01", "dns-01"])
      for (const { id } of offered) yield* challenges.trigger(caller, id)
    })

    const processing = database.use(count("SELECT count(*) FROM challenges WHERE status = 'processing'"))
    const refused = new ChallengeRefused({ error: "dns", reason: "resolve_failed", detail: "planted detail" })

    for (
      const [first, authorization, order, shown] of [
        ["http-01", "valid", "ready", ["valid", "invalid"]],
        ["dns-01", "invalid", "invalid", ["valid", "invalid"]]
      ] as const
    ) {
      test(
        `lets the first verdict decide if two challenges of one authorization end differently, here the verdict of ${first}`,
        () =>
          Effect.gen(function*() {
            yield* bothTriggered
            yield* work
            const { authorizations: [itself], challenges: both, orders: [its] } = yield* statuses
            assert.deepStrictEqual([itself, its], [authorization, order])
            assert.sameMembers([...both], [...shown])
          }),
        {
          // http-01 passes and dns-01 fails. The second verdict waits until the first has been committed.
          validate: ({ type }) =>
            Effect.andThen(
              type === first ? Effect.void : Effect.repeat(processing, { until: (left) => left === 1 }),
              type === "http-01" ? Effect.void : refused
            )
        }
      )
    }

    test(
      "keeps order and authorization consistent if two workers decide two challenges of one authorization at once",
      () =>
        Effect.gen(function*() {
          for (let round = 0; round < 10; round++) {
            yield* sql("DELETE FROM orders")
            yield* bothTriggered
            const { idle, pass } = yield* Runner.make(
              { ...config.jobs, max_concurrent: 1, owner: "host:1:a" },
              yield* handlers(config)
            )
            const other = yield* database.another
            const second = yield* Effect.provideService(
              Runner.make({ ...config.jobs, max_concurrent: 1, owner: "host:2:b" }, yield* handlers(config)),
              Database,
              other
            )
            yield* Effect.all([pass, Effect.provideService(second.pass, Database, other)], { concurrency: 2 })
            yield* Effect.all([idle, second.idle], { concurrency: 2 })
            yield* work
            const { authorizations: [itself], challenges: both, orders: [its] } = yield* statuses
            assert.sameMembers([...both], ["valid", "invalid"])
            assert.include(["valid ready", "invalid invalid"], `${itself} ${its}`)
          }
        }),
      { validate: ({ type }) => type === "http-01" ? Effect.void : refused }
    )

    const lapsing = TestClock.adjust(`${profile.order.validity_seconds} seconds`)
    test(
      "makes an order invalid if it expires during the check, and the order cannot be finalized",
      () =>
        Effect.gen(function*() {
          const caller = yield* callerAt(profile)
          const order = yield* orderOf(caller, "a.example")
          const [id = ChallengeId("")] = yield* challengesOf(caller, order)
          yield* challenges.trigger(caller, id)
          yield* work
          const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
          const found = yield* orders.find(caller, order.id)
          assert.strictEqual(statusShown(found, profile.order.validity_seconds, now / 1000), "invalid")
          assert.strictEqual(
            (yield* Effect.flip(finalize(caller, order.id, csrText("a.example"))))._tag,
            "OrderNotReady"
          )
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
        }),
      { validate: () => lapsing }
    )

    test("does not probe a challenge that is no longer processing", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* challenges.trigger(caller, id)
        yield* sql("UPDATE challenges SET status = 'valid'")
        yield* work
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
      }), { validate: () => Effect.die("probed") })

    test("probes each name of an order with 20 names once, with its own token and the key at the time of the trigger", () => {
      const probed: Array<string> = []
      return Effect.provide(
        Effect.gen(function*() {
          const caller = yield* callerAt(profile)
          const names = Array.from({ length: 20 }, (_, index) => `n${index}.example`)
          const order = yield* orderOf(caller, ...names)
          for (const id of yield* challengesOf(caller, order)) yield* challenges.trigger(caller, id)
          yield* work
          const tokens = yield* Effect.forEach(
            order.authorizationIds,
            (id) => Effect.map(authorizations.find(caller, id), ({ challenges: [first] }) => first?.token ?? "")
          )
          assert.deepStrictEqual(
            [...probed].sort(),
            names.map((name, index) => `${name} ${tokens[index]}.${caller.thumbprint}`).sort()
          )
          assert.strictEqual((yield* orders.find(caller, order.id)).status, "ready")
        }),
        world({
          validate: ({ identifier, keyAuthorization }) =>
            Effect.sync(() => void probed.push(`${identifier} ${keyAuthorization}`))
        })
      )
    })

    test(
      "makes challenge, authorization and order invalid with serverInternal if the queue abandons the validation",
      () =>
        Effect.gen(function*() {
          const caller = yield* callerAt(profile)
          const order = yield* orderOf(caller, "a.example")
          const [id = ChallengeId("")] = yield* challengesOf(caller, order)
          yield* challenges.trigger(caller, id)
          for (let round = 0; round < 3; round++) {
            yield* work
            yield* TestClock.adjust("2 hours")
          }
          assert.deepStrictEqual(yield* statuses, {
            orders: ["invalid"],
            authorizations: ["invalid"],
            challenges: ["invalid"]
          })
          const shown = yield* challenges.find(caller, id)
          assert.deepInclude(shown.error ?? {}, { type: "urn:ietf:params:acme:error:serverInternal", status: 500 })
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["failed"])
          assert.include(eventsOf(records), "challenge_validation_abandoned")
        }),
      { validate: () => Effect.die("boom") }
    )

    test(
      "gives no verdict as long as this host cannot run the check, and repeats the check until it can run",
      () =>
        Effect.gen(function*() {
          hostRuns = 0
          const caller = yield* callerAt(profile)
          const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
          yield* challenges.trigger(caller, id)
          for (let round = 0; round < 10; round++) {
            yield* work
            assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["ready"])
            assert.deepStrictEqual((yield* statuses).challenges, ["processing"])
            yield* TestClock.adjust("5 seconds")
          }
          yield* work
          assert.deepStrictEqual(yield* statuses, {
            orders: ["ready"],
            authorizations: ["valid"],
            challenges: ["valid"]
          })
          const told = eventsOf(records).filter((event) => event.startsWith("challenge_"))
          assert.deepStrictEqual(told, [
            "challenge_validation_requested",
            ...Array.from({ length: 10 }, () => "challenge_validation_postponed"),
            "challenge_validated"
          ])
        }),
      {
        validate: () =>
          Effect.suspend(() => hostRuns++ < 10 ? new ChallengePostponed({ detail: "no descriptors" }) : Effect.void)
      }
    )

    test("waits while the profile is not served", () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(profile)
        const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
        yield* challenges.trigger(caller, id)
        const parked = { ...config, profiles: config.profiles.filter(({ name }) => name !== "default") }
        const { idle, pass } = yield* Runner.make({ ...config.jobs, owner: "o" }, yield* handlers(parked))
        yield* pass
        yield* idle
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["ready"])
        assert.deepStrictEqual((yield* statuses).challenges, ["processing"])
      }))
  })

  describe("finalizing an order", () => {
    const auditOf = Effect.map(
      sql(
        "SELECT event, outcome, reason, detail, order_id, account_id, identifiers, cert_serial FROM audit_log ORDER BY id"
      ),
      (rows) =>
        rows.map((row) => ({ ...row, detail: JSON.parse(String(row.detail)) as { readonly [name: string]: unknown } }))
    )

    test("succeeds for one of 50 requests at once, and makes one job and one certificate", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example")
        const csr = csrText("a.example")
        const exits = yield* Effect.all(Array.from({ length: 50 }, () => Effect.result(finalize(caller, id, csr))), {
          concurrency: "unbounded"
        })
        const refused = exits.flatMap((exit) => exit._tag === "Failure" ? [exit.failure] : [])
        assert.strictEqual(refused.length, 49)
        for (const error of refused) assert.deepInclude(error, { _tag: "OrderNotReady", status: "processing" })
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 1)
        yield* work
        assert.strictEqual(eventsOf(records).filter((event) => event === "order_finalized").length, 1)
      }))

    test("stores the chain with its serial number, key and expiry, and an audit row, together with the end of the job", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example", "b.example")
        const answered = yield* finalize(caller, id, csrText("b.example", "A.example."))
        assert.strictEqual(answered.status, "processing")
        yield* work
        assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
        assert.deepStrictEqual(yield* storedChains, [handmadeChain])
        const [row] = yield* sql("SELECT cert_serial, cert_not_after, cert_pubkey FROM orders")
        assert.deepStrictEqual([row?.cert_serial, Number(row?.cert_not_after)], ["0badcafe", 7_776_000])
        assert.isAbove((row?.["cert_pubkey"] as Buffer | undefined)?.length ?? 0, 80)
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
        const [audited] = yield* auditOf
        assert.deepInclude(audited ?? {}, {
          event: "certificate_issued",
          outcome: "success",
          order_id: id,
          account_id: caller.accountId,
          cert_serial: "0badcafe",
          identifiers: `["a.example","b.example"]`
        })
        assert.deepInclude(audited?.detail ?? {}, { not_after: "1970-04-01T00:00:00Z" })
      }))

    test("is refused before the CSR is read if the order is not ready or has expired", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example")
        for (const status of ["pending", "processing", "valid", "invalid"]) {
          yield* sql(`UPDATE orders SET status = '${status}'`)
          assert.strictEqual((yield* Effect.flip(finalize(caller, id, "garbage")))._tag, "OrderNotReady", status)
        }
        yield* sql("UPDATE orders SET status = 'ready'")
        yield* TestClock.adjust(`${profile.order.validity_seconds} seconds`)
        assert.strictEqual((yield* Effect.flip(finalize(caller, id, csrText("a.example"))))._tag, "OrderNotReady")
        assert.deepStrictEqual(yield* auditOf, [])
        assert.deepStrictEqual(
          records.flatMap(({ event, fields }) => event === "order_finalize_rejected" ? [fields.reason] : []),
          ["not_ready", "not_ready", "not_ready", "not_ready", "expired"]
        )
      }))

    test("is refused as badCSR and audited for every unacceptable CSR, and leaves the order ready", () =>
      Effect.gen(function*() {
        const accountKey = newPrivateKey()
        const caller = yield* callerAt(profile, accountKeyOf(accountKey))
        const { id } = yield* orderOf(caller, "a.example", "b.example")
        yield* sql("UPDATE authorizations SET status = 'valid'")
        yield* sql("UPDATE orders SET status = 'ready'")
        const names = ["a.example", "b.example"]
        const good = makeCsr({ names }).csr
        const burnt = makeCsr({ names })
        const flipped = Buffer.from(good)
        flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1
        const cases: ReadonlyArray<readonly [string, string]> = [
          ["", "undecodable"],
          ["!!!", "undecodable"],
          [good.toString("base64url").replace(/^./, "/"), "undecodable"],
          [`${good.toString("base64url")}===`, "undecodable"],
          [Buffer.from("garbage").toString("base64url"), "undecodable"],
          [Buffer.concat([good, Buffer.from([0])]).toString("base64url"), "undecodable"],
          [flipped.toString("base64url"), "signature"],
          [makeCsr({ names, digest: "sha1" }).csr.toString("base64url"), "digest"],
          [makeCsr({ names, key: accountKey }).csr.toString("base64url"), "account_key"],
          [csrText("a.example"), "san_missing"],
          [csrText(...names, "c.example"), "san_extra"],
          [makeCsr({ names, withoutSan: true }).csr.toString("base64url"), "san_missing"],
          [makeCsr({ names, withoutSan: true, commonNames: ["a.example"] }).csr.toString("base64url"), "san_missing"],
          [
            makeCsr({ names, otherNames: [der(0x87, Buffer.from([192, 0, 2, 1]))] }).csr.toString("base64url"),
            "san_type"
          ],
          [makeCsr({ names, commonNames: ["c.example"] }).csr.toString("base64url"), "common_name"],
          [burnt.csr.toString("base64url"), "burnt_key"]
        ]
        yield* burn(burnt.csr, caller)
        const reasons: Array<unknown> = []
        for (const [csr, expected] of cases) {
          yield* sql("DELETE FROM audit_log")
          records.length = 0
          const error = yield* Effect.flip(finalize(caller, id, csr))
          assert.strictEqual(error._tag, "BadCsr", expected)
          reasons.push(records.find(({ event }) => event === "csr_rejected")?.fields.reason)
          const [audited] = yield* auditOf
          assert.deepInclude(audited ?? {}, {
            event: "certificate_issue_failed",
            outcome: "failure",
            reason: "badCSR",
            order_id: id
          })
          assert.strictEqual(audited?.detail.cause, "bad_csr")
          assert.strictEqual((yield* orders.find(caller, id)).status, "ready")
        }
        assert.deepStrictEqual(reasons, cases.map(([, reason]) => reason))
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
        yield* finalize(caller, id, `${good.toString("base64url")}${good.length % 3 === 0 ? "" : "="}`)
      }))

    test("accepts a CSR that has all or some of its names only as common names", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example")
        const alone = makeCsr({ names: [], withoutSan: true, commonNames: ["A.example"] }).csr
        assert.strictEqual((yield* finalize(caller, id, alone.toString("base64url"))).status, "processing")
        const both = yield* readyOrder("a.example", "b.example")
        const { csr } = makeCsr({ names: ["b.example"], commonNames: ["a.example"] })
        assert.strictEqual(
          (yield* finalize(both.caller, both.id, csr.toString("base64url"))).status,
          "processing"
        )
      }))

    test("is refused with an explanation if the CSR is not base64url or not DER", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example")
        const der = makeCsr({ names: ["a.example"] }).csr
        const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${
          der.toString("base64")
        }\n-----END CERTIFICATE REQUEST-----\n`
        const isPem = "it is PEM; send the DER inside it, as base64url."
        for (
          const [csr, detail] of [
            [pem, `The CSR is not base64url: ${isPem}`],
            [Buffer.from(pem).toString("base64url"), "The CSR is PEM; send the DER inside it, as base64url."],
            ["MII+", "The CSR is not base64url: it holds the character + of base64, where base64url has - and _."],
            ["MII A", "The CSR is not base64url: it holds a space."],
            ["MII===", "The CSR is not base64url: it has padding."],
            ["M", "The CSR is not base64url: it is cut short, or stray bits are set at its end."]
          ] as const
        ) assert.deepInclude(yield* Effect.flip(finalize(caller, id, csr)), { _tag: "BadCsr", detail })
      }))

    test("leaves the order ready if the job cannot be queued", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example")
        yield* breakInserts("jobs")
        assert.strictEqual((yield* Effect.flip(finalize(caller, id, csrText("a.example"))))._tag, "StorageFailed")
        yield* mend
        assert.strictEqual((yield* orders.find(caller, id)).status, "ready")
        yield* finalize(caller, id, csrText("a.example"))
      }))

    test("is refused without a job if an authorization is deactivated between the check and the claim", () =>
      Effect.gen(function*() {
        const { caller, id } = yield* readyOrder("a.example")
        const driver = database.driver()
        const racing: Driver = {
          ...driver,
          transact: (body) =>
            Effect.andThen(
              Effect.provideService(sql("UPDATE authorizations SET status = 'deactivated'"), Database, driver),
              driver.transact(body)
            )
        }
        const error = yield* Effect.flip(
          Effect.provideService(finalize(caller, id, csrText("a.example")), Database, racing)
        )
        assert.strictEqual(error._tag, "OrderNotReady")
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
        assert.strictEqual((yield* orders.find(caller, id)).status, "ready")
      }))

    test("does not find an order of another account", () =>
      Effect.gen(function*() {
        const { id } = yield* readyOrder("a.example")
        const stranger = yield* callerAt(profile)
        assert.strictEqual((yield* Effect.flip(finalize(stranger, id, csrText("a.example"))))._tag, "NotFound")
      }))

    describe("signing an order", () => {
      /** Reports a certificate that was signed but cannot be used, as a local CA does. */
      const openly = ({ orderId }: IssueRequest, signed: Issued): Issued => ({
        ...signed,
        discarded: emit("local_ca_leaf_discarded", { order_id: orderId, cert_serial: signed.serial })
      })
      const signsOpenly: DirectSigner["issue"] = (request) =>
        Effect.map(signsAtOnce(request), (signed) => openly(request, signed))

      const ended = (
        caller: Caller,
        id: OrderId,
        as: { readonly cause: string; readonly type: string; readonly status: number; readonly detail: RegExp }
      ) =>
        Effect.gen(function*() {
          const order = yield* orders.find(caller, id)
          assert.strictEqual(order.status, "invalid")
          const { detail = "", ...error } = order.error ?? assert.fail("no error")
          assert.deepInclude(error, { type: `urn:ietf:params:acme:error:${as.type}`, status: as.status })
          assert.match(detail, as.detail)
          assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 0)
          const last = (yield* auditOf).at(-1)
          assert.deepInclude(last ?? {}, { event: "certificate_issue_failed", reason: as.type })
          assert.deepStrictEqual(last?.detail, { cause: as.cause })
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
        })
      const withdrawn = (caller: Caller, id: OrderId) =>
        Effect.gen(function*() {
          const detail = /account was blocked or deactivated, or an authorization was deactivated/
          yield* ended(caller, id, { cause: "authority_withdrawn", type: "unauthorized", status: 403, detail })
          assert.include(eventsOf(records), "order_finalize_authority_withdrawn")
        })

      test(
        "does not happen if the account was deactivated before, and the order becomes invalid",
        () =>
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            const account = yield* Effect.flatMap(stored.find("default", caller.accountId), Effect.fromNullishOr)
            yield* accounts.deactivate(caller, account)
            yield* work
            yield* withdrawn(caller, id)
          }),
        { issue: () => Effect.die("signed") }
      )

      test("does not happen if an authorization was deactivated before", () =>
        Effect.gen(function*() {
          const { caller, id, order } = yield* readyOrder("a.example", "b.example")
          yield* finalize(caller, id, csrText("a.example", "b.example"))
          yield* authorizations.deactivate(caller, order.authorizationIds[1] ?? AuthorizationId(""))
          yield* work
          yield* withdrawn(caller, id)
        }), { issue: () => Effect.die("signed") })

      const withdrawing: { run: Effect.Effect<void> } = { run: Effect.void }
      test(
        "discards the certificate if the account is deactivated before the signer has finished",
        () =>
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            withdrawing.run = Effect.asVoid(database.use(sql("UPDATE accounts SET status = 'deactivated'")))
            yield* work
            yield* withdrawn(caller, id)
            assert.include(eventsOf(records), "local_ca_leaf_discarded")
          }),
        { issue: (request) => Effect.andThen(withdrawing.run, signsOpenly(request)) }
      )

      const duringSigning = (
        words: string,
        change: (caller: Caller, csr: Buffer) => Effect.Effect<unknown, StorageFailed, Database>,
        check: typeof withdrawn
      ) =>
        test(words, () =>
          Effect.gen(function*() {
            const { csr } = makeCsr({ names: ["a.example"] })
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csr.toString("base64url"))
            withdrawing.run = Effect.orDie(Effect.asVoid(database.use(change(caller, csr))))
            yield* work
            yield* check(caller, id)
            assert.include(eventsOf(records), "local_ca_leaf_discarded")
          }), { issue: (request) => Effect.andThen(withdrawing.run, signsOpenly(request)) })

      duringSigning(
        "discards the certificate if the account is blocked before the signer has finished",
        () => sql("UPDATE accounts SET blocked_at = 1"),
        withdrawn
      )

      duringSigning(
        "discards the certificate if the credential is deleted before the signer has finished, and says so",
        () => sql("UPDATE accounts SET scope_lost = 1"),
        (caller, id) => {
          const detail = /the credential of the account was deleted; create an account with another/
          return ended(caller, id, { cause: "credential_denied", type: "unauthorized", status: 403, detail })
        }
      )

      duringSigning(
        "discards the certificate if its key is burnt before the signer has finished, and says so",
        (caller, csr) => burn(csr, caller),
        (caller, id) => {
          const detail = /A certificate for this key was revoked for key compromise/
          return ended(caller, id, { cause: "bad_csr", type: "badCSR", status: 400, detail })
        }
      )

      for (const cause of ["lint_failed", "chain_rejected"] as const) {
        test(
          `is not tried again after ${cause}, ends the order at once and shows the cause to operators`,
          () =>
            Effect.gen(function*() {
              const { caller, id } = yield* readyOrder("a.example")
              yield* finalize(caller, id, csrText("a.example"))
              yield* work
              const order = yield* orders.find(caller, id)
              assert.strictEqual(order.status, "invalid")
              assert.deepInclude(order.error ?? {}, { type: "urn:ietf:params:acme:error:serverInternal", status: 500 })
              assert.notInclude(JSON.stringify(order.error), "the leaf failed")
              assert.deepStrictEqual((yield* auditOf).map(({ detail }) => detail), [
                { cause, error: `${cause}: the leaf failed the check serial` }
              ])
              assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["failed"])
            }),
          { issue: () => new SigningFailed({ cause, detail: "the leaf failed the check serial" }) }
        )
      }

      for (const [cause, told] of [["signer_failed", "attempts_exhausted"]] as const) {
        test(
          `is tried again after ${cause}, then abandoned with serverInternal and audited as ${told}`,
          () =>
            Effect.gen(function*() {
              const { caller, id } = yield* readyOrder("a.example")
              yield* finalize(caller, id, csrText("a.example"))
              yield* work
              assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["ready"])
              assert.strictEqual((yield* orders.find(caller, id)).status, "processing")
              for (let round = 0; round < 3; round++) {
                yield* TestClock.adjust("2 hours")
                yield* work
              }
              const order = yield* orders.find(caller, id)
              assert.strictEqual(order.status, "invalid")
              assert.deepInclude(order.error ?? {}, { type: "urn:ietf:params:acme:error:serverInternal", status: 500 })
              assert.notInclude(JSON.stringify(order.error), "the leaf failed")
              const rows = yield* auditOf
              assert.strictEqual(rows.length, 1)
              assert.deepStrictEqual(rows[0]?.detail, {
                cause: told,
                error: `${cause}: the leaf failed the check serial`
              })
              assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["failed"])
              assert.strictEqual(
                eventsOf(records).filter((event) => event === "order_finalize_issuance_failed").length,
                3
              )
              assert.include(eventsOf(records), "order_finalize_abandoned")
            }),
          { issue: () => new SigningFailed({ cause, detail: "the leaf failed the check serial" }) }
        )
      }

      test(
        "waits while the CA is away, without counting the attempts, and ends when the order would have expired",
        () =>
          Effect.gen(function*() {
            isAway = true
            const { caller, id } = yield* readyOrder("a.example")
            const late = yield* readyOrder("b.example")
            yield* finalize(caller, id, csrText("a.example"))
            for (let minute = 0; minute < 90; minute++) {
              yield* TestClock.adjust("1 minute")
              yield* work
            }
            assert.strictEqual((yield* orders.find(caller, id)).status, "processing")
            assert.isBelow(eventsOf(records).filter((event) => event === "order_finalize_issuance_failed").length, 100)
            const [row] = yield* column("SELECT last_error FROM jobs")
            assert.include(String(row), "the token is away")
            isAway = false
            yield* TestClock.adjust("1 minute")
            yield* work
            assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
            isAway = true
            yield* finalize(late.caller, late.id, csrText("b.example"))
            yield* TestClock.adjust("7 days")
            yield* work
            assert.strictEqual((yield* orders.find(late.caller, late.id)).status, "invalid")
          }),
        {
          issue: (request) =>
            isAway
              ? new SigningFailed({ cause: "signer_failed", detail: "the token is away", isAway: true })
              : signsAtOnce(request)
        }
      )

      test(
        "counts a program that is killed separately at each attempt",
        () =>
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            yield* work
            const of = (cause: string) =>
              counted(`acme_svc_signer_failures_total{role="worker",profile="default",cause="${cause}"}`)
            assert.strictEqual(yield* of("script_timeout"), yield* count("SELECT attempts FROM jobs"))
            assert.strictEqual(yield* of("script_failed"), undefined)
          }).pipe(Effect.provide(Registry.layer("worker", series))),
        { issue: () => new SigningFailed({ cause: "script_failed", detail: "it was ended", isTimedOut: true }) }
      )

      test("ends the order at once with badCSR if the signer rejects the CSR", () =>
        Effect.gen(function*() {
          const { caller, id } = yield* readyOrder("a.example")
          yield* finalize(caller, id, csrText("a.example"))
          yield* work
          const order = yield* orders.find(caller, id)
          assert.deepInclude(order.error ?? {}, {
            type: "urn:ietf:params:acme:error:badCSR",
            status: 400,
            detail: "not this name"
          })
          assert.deepStrictEqual((yield* auditOf).map(({ detail }) => detail.cause), ["bad_csr"])
          const told = records.filter(({ event }) => event === "order_finalize_bad_csr").map(({ fields }) => fields)
          assert.deepStrictEqual(told, [{ order_id: id, error: "not this name" }])
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
        }), { issue: () => new CsrRejected({ detail: "not this name" }) })

      for (const [table, operation] of [["orders", "UPDATE"], ["audit_log", "INSERT"]] as const) {
        test(`logs a certificate that cannot be stored, and stores it as soon as possible, if writes to ${table} fail`, () =>
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            yield* breakWrites(backend.dialect, { table, operation })
            const signing = yield* Effect.forkChild(work)
            const told = () => records.find(({ event }) => event === "order_finalize_persistence_failed")
            const passing = Effect.andThen(Effect.yieldNow, TestClock.adjust("10 millis"))
            yield* Effect.ensuring(Effect.repeat(passing, { until: () => told() !== undefined }), mend)
            assert.strictEqual(told()?.fields["order_id"], id)
            assert.match(String(told()?.fields["error"]), /planted/)
            yield* Effect.raceFirst(Fiber.join(signing), Effect.forever(passing))
            assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
          }))
      }

      test("ends its job after the expiry of the order, and makes the order invalid", () =>
        Effect.gen(function*() {
          const { caller, id } = yield* readyOrder("a.example")
          yield* finalize(caller, id, csrText("a.example"))
          yield* TestClock.adjust(`${profile.order.validity_seconds} seconds`)
          yield* work
          assert.strictEqual((yield* orders.find(caller, id)).status, "invalid")
          assert.deepStrictEqual((yield* auditOf).map(({ detail }) => detail.cause), ["order_expired"])
        }), { issue: () => Effect.die("signed") })

      const lapsing = TestClock.adjust(`${profile.order.validity_seconds} seconds`)
      test(
        "discards the certificate and makes the order invalid if the order expires before the signer has finished",
        () =>
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            yield* work
            assert.strictEqual((yield* orders.find(caller, id)).status, "invalid")
            assert.deepStrictEqual((yield* auditOf).map(({ detail }) => detail.cause), ["order_expired"])
            assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["failed"])
            assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 0)
            assert.include(eventsOf(records), "local_ca_leaf_discarded")
          }),
        { issue: (request) => Effect.andThen(lapsing, signsOpenly(request)) }
      )

      test("discards the first worker's certificate with job_lease_lost if the lease ends while that worker still signs", () => {
        let calls = 0
        const [entered, go] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
        // The first worker takes so long that a second worker has replaced it.
        const issue: Script["issue"] = (request) =>
          Effect.suspend(() => {
            const isFirst = calls++ === 0
            const waits = Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(go))
            return Effect.map(
              Effect.andThen(isFirst ? waits : Effect.void, signsAtOnce(request)),
              (signed) => openly(request, { ...signed, serial: isFirst ? "0f1257" : "05ec0d" })
            )
          })
        return Effect.provide(
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            const first = yield* runner
            yield* first.pass
            yield* Deferred.await(entered)
            yield* TestClock.adjust("2 minutes")
            const second = yield* Runner.make({ ...config.jobs, owner: "host:2:b" }, yield* handlers(config))
            yield* second.pass
            yield* Effect.orDie(second.idle)
            yield* Deferred.succeed(go, undefined)
            yield* Effect.orDie(first.idle)
            assert.strictEqual(calls, 2)
            assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
            assert.deepStrictEqual(yield* column("SELECT cert_serial FROM orders"), ["05ec0d"])
            assert.strictEqual((yield* auditOf).length, 1)
            assert.include(eventsOf(records), "job_lease_lost")
            const discarded = records.filter(({ event }) => event === "local_ca_leaf_discarded")
            assert.deepStrictEqual(discarded.map(({ fields }) => fields), [{ order_id: id, cert_serial: "0f1257" }])
          }),
          world({ records, issue })
        )
      })

      test("does not happen if the order is no longer processing", () =>
        Effect.gen(function*() {
          const { caller, id } = yield* readyOrder("a.example")
          yield* finalize(caller, id, csrText("a.example"))
          yield* sql("UPDATE orders SET status = 'invalid'")
          yield* work
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
          assert.deepStrictEqual(yield* auditOf, [])
          assert.strictEqual((yield* Effect.exit(orders.certificate(caller, id, 0)))._tag, "Failure")
        }), { issue: () => Effect.die("signed") })

      test(
        "logs a certificate once if its settlement cannot be written, and never logs a certificate that is stored",
        () =>
          Effect.gen(function*() {
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            yield* breakWrites(backend.dialect, { table: "orders", operation: "UPDATE" })
            const first = yield* runner
            yield* first.pass
            const ending = yield* Effect.forkChild(Effect.orDie(first.idle))
            // Each turn waits for the database, so that on a busy machine the clock does not run away from the job.
            while (ending.pollUnsafe() === undefined) {
              yield* TestClock.adjust("1 second")
              yield* count("SELECT 1")
            }
            yield* Fiber.join(ending)
            yield* mendWrites(backend.dialect)
            const discarded = () => eventsOf(records).filter((event) => event === "local_ca_leaf_discarded").length
            assert.strictEqual(discarded(), 1)
            yield* TestClock.adjust("2 minutes")
            yield* work
            assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
            assert.strictEqual(discarded(), 1)
          }),
        { issue: (request) => signsOpenly(request) }
      )

      test("makes one certificate even if two workers sign at once", () =>
        Effect.gen(function*() {
          const { caller, id } = yield* readyOrder("a.example")
          yield* finalize(caller, id, csrText("a.example"))
          const { idle, pass } = yield* runner
          const second = yield* Runner.make({ ...config.jobs, owner: "host:2:b" }, yield* handlers(config))
          yield* Effect.all([pass, second.pass], { concurrency: 2 })
          yield* Effect.all([idle, second.idle], { concurrency: 2 })
          assert.deepStrictEqual(yield* storedChains, [handmadeChain])
          assert.strictEqual((yield* auditOf).length, 1)
        }))
    })
  })

  describe("a worker that is killed at each of its steps", () => {
    /** Runs one pass of a worker that dies after `statements` statements. Returns whether it has died. */
    const diesAfter = Effect.fnUntraced(function*(statements: number) {
      const { driver, killed } = yield* killedAfter(database.driver(), statements)
      const dying = Effect.gen(function*() {
        const { idle, pass } = yield* Runner.make({ ...config.jobs, owner: "host:9:dead" }, yield* handlers(config))
        yield* pass
        yield* Effect.race(Effect.orDie(idle), Deferred.await(killed))
      })
      yield* Effect.provideService(Effect.scoped(dying), Database, driver)
      return yield* Deferred.isDone(killed)
    })

    /** Longer than any lease. */
    const later = TestClock.adjust("2 minutes")

    test("records one certificate, and never another certificate, if it is signing", () => {
      let signatures = 0
      const issue: Script["issue"] = (request) =>
        Effect.map(signsAtOnce(request), (signed) => ({ ...signed, serial: `0badcafe${signatures++}` }))
      return Effect.provide(
        Effect.gen(function*() {
          let died = true
          let steps = 0
          for (; died; steps++) {
            yield* sql("DELETE FROM orders")
            yield* sql("DELETE FROM jobs")
            const { caller, id } = yield* readyOrder("a.example")
            yield* finalize(caller, id, csrText("a.example"))
            died = yield* diesAfter(steps)
            const recorded = yield* column("SELECT cert_serial FROM orders WHERE certificate IS NOT NULL")
            yield* later
            yield* work
            assert.strictEqual((yield* orders.find(caller, id)).status, "valid", `after ${steps} statements`)
            assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
            const now = yield* column("SELECT cert_serial FROM orders WHERE certificate IS NOT NULL")
            assert.strictEqual(now.length, 1)
            if (recorded.length > 0) assert.deepStrictEqual(now, recorded)
          }
          assert.isAbove(steps, 5, "it died in between")
        }),
        world({ records, issue })
      )
    })

    test("leaves challenge, authorization and order consistent in the end if it is validating", () =>
      Effect.gen(function*() {
        let died = true
        let steps = 0
        for (; died; steps++) {
          yield* sql("DELETE FROM orders")
          yield* sql("DELETE FROM jobs")
          const caller = yield* callerAt(profile)
          const [id = ChallengeId("")] = yield* challengesOf(caller, yield* orderOf(caller, "a.example"))
          yield* challenges.trigger(caller, id)
          died = yield* diesAfter(steps)
          const between = JSON.stringify(yield* statuses)
          assert.include(
            [
              `{"orders":["pending"],"authorizations":["pending"],"challenges":["processing"]}`,
              `{"orders":["ready"],"authorizations":["valid"],"challenges":["valid"]}`
            ],
            between
          )
          yield* later
          yield* work
          assert.deepStrictEqual(yield* statuses, {
            orders: ["ready"],
            authorizations: ["valid"],
            challenges: ["valid"]
          })
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["done"])
        }
        assert.isAbove(steps, 5, "it died in between")
      }))
  })

  const breakInserts = (table: string) => breakWrites(backend.dialect, { table, operation: "INSERT" })
  const mend = mendWrites(backend.dialect)

  /** Marks the key of a CSR as a key that was revoked here for key compromise. */
  const burn = (csr: Buffer, caller: Caller) =>
    Effect.gen(function*() {
      const spki = Buffer.from(
        csr.subarray(csr.indexOf(Buffer.from("3059301306072a8648ce3d0201", "hex"))).subarray(0, 91)
      )
      yield* burntKeys.insert({ pubkey: spki, accountId: caller.accountId, now: 1 })
    })
})
