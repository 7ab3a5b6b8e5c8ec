import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { findLive } from "../../../src/engine/queue/Job.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { column, configOf, sql } from "../../support/Graph.ts"
import { at, newClient, surfaceOf } from "../../support/Handle.ts"
import { work } from "../../support/Issued.ts"
import { useWorld } from "../../support/UseWorld.ts"
import { sleeps, watched } from "../../support/Watched.ts"

const objectOf = <A extends object>({ body }: Answer): A => JSON.parse(String(body)) as A

const shownOf = (answer: Answer) => [objectOf<OrderBody>(answer).status, answer.headers["retry-after"]]

/** How long a poll is held. The number is unusual, so that no other wait has this length. */
const holdMillis = 970

const limits = { request_timeout_ms: 60_000, max_concurrent_requests: 1, hold_ms: holdMillis }

/** The number of polls that are held while one request at a time is handled. */
const mostHeld = 4

/** Makes what tests on one database use. The services of this world handle one request at a time. */
const worldOn = (backend: (typeof databases)[number]) => {
  const { test } = useWorld(backend, { around: watched, script: () => ({ server: limits }) })

  /** Makes a client with an order. */
  const clientOf = (config: ReturnType<typeof configOf>) =>
    Effect.flatMap(
      Effect.flatMap(surfaceOf(config, 1), newClient),
      ({ send }) =>
        Effect.gen(function*() {
          const placed = yield* send(at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] })
          const { authorizations: [authorization = ""], finalize } = objectOf<OrderBody>(placed)
          const { challenges: [challenge] } = objectOf<AuthorizationBody>(yield* send(authorization))
          return {
            send,
            order: String(placed.headers["location"]),
            authorization,
            challenge: challenge?.url ?? "",
            finalize
          }
        })
    )

  const client = clientOf(configOf())

  /** Makes a client whose order is `ready`. */
  const readyBy = (config: ReturnType<typeof configOf>) =>
    Effect.gen(function*() {
      const { finalize, send, ...more } = yield* clientOf(config)
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      return { ...more, send, finalized: send(finalize, { csr }) }
    })

  /** Makes a client whose order is `processing`. */
  const signingBy = (config: ReturnType<typeof configOf>) =>
    Effect.gen(function*() {
      const { finalized, order, send, ...more } = yield* readyBy(config)
      assert.deepStrictEqual(shownOf(yield* finalized), ["processing", "0"], "the poll is held")
      return { ...more, order, poll: send(order), send }
    })

  const signing = signingBy(configOf())

  /** Waits until `count` requests are held that have begun since the clock was set. */
  const held = (count: number, limitMillis = holdMillis) =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        Effect.repeat(Effect.andThen(Effect.yieldNow, sleeps), {
          until: (ends) => ends.filter((at) => at === now + limitMillis).length >= count
        })
    )

  return { test, client, clientOf, held, readyBy, signing, signingBy }
}

describe.each(databases)("a poll, on $name", (backend) => {
  const { client, held, signing, signingBy, test } = worldOn(backend)

  test("of an order that is being signed is held until the order is signed", () =>
    Effect.gen(function*() {
      const { order, poll, send } = yield* signing
      const polling = yield* Effect.forkChild(poll)
      yield* held(1)
      assert.strictEqual(
        (yield* send(at("/newOrder"), { identifiers: [{ type: "dns", value: "b.example" }] })).status,
        201
      )
      yield* work("signer_issue")
      assert.deepStrictEqual(shownOf(yield* Fiber.join(polling)), ["valid", undefined])
      assert.deepStrictEqual(shownOf(yield* send(order)), ["valid", undefined])
    }))

  test("is answered with Retry-After when its time limit is over", () =>
    Effect.gen(function*() {
      const { poll } = yield* signing
      const polling = yield* Effect.forkChild(poll)
      yield* held(1)
      yield* TestClock.adjust(holdMillis - 1)
      assert.isUndefined(polling.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(shownOf(yield* Fiber.join(polling)), ["processing", "1"])
    }))

  test("of an order that another service signs gets a longer Retry-After the longer the signing takes", () =>
    Effect.gen(function*() {
      const { poll } = yield* signingBy(configOf("[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\""))
      const pauses: Array<unknown> = []
      for (const taken of [1, 3, 60]) {
        yield* sql(`UPDATE jobs SET created_at = ${yield* currentSeconds} - ${taken} WHERE kind = 'signer_issue'`)
        const polling = yield* Effect.forkChild(poll)
        yield* held(1)
        yield* TestClock.adjust(holdMillis)
        pauses.push(shownOf(yield* Fiber.join(polling)))
        yield* TestClock.adjust(1000 - holdMillis)
      }
      assert.deepStrictEqual(pauses, [["processing", "1"], ["processing", "3"], ["processing", "5"]])
    }))

  test("is answered with the time until the next attempt, if that is known", () =>
    Effect.gen(function*() {
      const { poll } = yield* signing
      const now = yield* currentSeconds
      const pauses: Array<unknown> = []
      for (const wait of [9, 3600]) {
        yield* sql(`UPDATE jobs SET run_at = ${now + wait} WHERE kind = 'signer_issue'`)
        const polling = yield* Effect.forkChild(poll)
        yield* held(1)
        yield* TestClock.adjust(holdMillis)
        pauses.push(shownOf(yield* Fiber.join(polling)))
      }
      assert.deepStrictEqual(pauses, [["processing", "9"], ["processing", "30"]])
    }))

  test("of an order that ended without a message is answered with the result after its time limit", () =>
    Effect.gen(function*() {
      const { poll } = yield* signing
      const polling = yield* Effect.forkChild(poll)
      yield* held(1)
      yield* sql("UPDATE orders SET status = 'valid'")
      yield* TestClock.adjust(holdMillis)
      assert.deepStrictEqual(shownOf(yield* Fiber.join(polling)), ["valid", undefined])
    }))

  test("that comes while no further poll can be held is told to come back in a second", () =>
    Effect.gen(function*() {
      const { poll } = yield* signing
      const { challenge, send } = yield* client
      const polls = yield* Effect.forEach(Array.from({ length: mostHeld }), () => Effect.forkChild(poll))
      yield* held(mostHeld)
      assert.deepStrictEqual(shownOf(yield* send(challenge, {})), ["processing", "1"])
      yield* Fiber.interruptAll(polls)
    }))

  test("beyond the maximum number is answered at once until a held poll is abandoned", () =>
    Effect.gen(function*() {
      const { poll } = yield* signing
      const [first] = yield* Effect.forEach(Array.from({ length: mostHeld }), () => Effect.forkChild(poll))
      yield* held(mostHeld)
      assert.deepStrictEqual(shownOf(yield* poll), ["processing", "1"])
      if (first !== undefined) yield* Fiber.interrupt(first)
      const next = yield* Effect.forkChild(poll)
      yield* held(mostHeld)
      yield* work("signer_issue")
      assert.deepStrictEqual(shownOf(yield* Fiber.join(next)), ["valid", undefined])
    }))

  test("of a challenge, or of its authorization, is held until the validation has ended", () =>
    Effect.gen(function*() {
      const { authorization, challenge, send } = yield* client
      assert.deepStrictEqual(shownOf(yield* send(authorization)), ["pending", "1"], "nothing is under way")
      assert.deepStrictEqual(shownOf(yield* send(challenge)), ["pending", undefined])
      assert.deepStrictEqual(shownOf(yield* send(challenge, {})), ["processing", "0"], "the poll is held")
      assert.deepStrictEqual(shownOf(yield* send(challenge, {})), ["processing", "1"], "this is no poll")
      const ofChallenge = yield* Effect.forkChild(send(challenge))
      const ofAuthorization = yield* Effect.forkChild(send(authorization))
      yield* held(2)
      yield* work("challenge_validate")
      assert.deepStrictEqual(shownOf(yield* Fiber.join(ofChallenge)), ["valid", undefined])
      assert.deepStrictEqual(shownOf(yield* Fiber.join(ofAuthorization)), ["valid", undefined])
    }))

  test("of an order is answered as soon as its job is abandoned", () =>
    Effect.gen(function*() {
      const { poll } = yield* signing
      const polling = yield* Effect.forkChild(poll)
      yield* held(1)
      yield* sql("UPDATE jobs SET attempts = max_attempts WHERE kind = 'signer_issue'")
      yield* work("signer_issue")
      assert.deepStrictEqual(shownOf(yield* Fiber.join(polling)), ["invalid", undefined])
    }))

  test("of an order whose job runs in this process is answered at the end of the job", () =>
    Effect.gen(function*() {
      const { order, poll } = yield* signing
      const { send } = yield* client
      const { ends } = yield* Queue
      const [account = ""] = yield* column("SELECT share FROM jobs WHERE kind = 'signer_issue'")
      const job = { kind: "signer_issue", dedupKey: order.slice(order.lastIndexOf("/") + 1) }
      ends.begun({ ...job, share: account })
      yield* sql("UPDATE orders SET status = 'valid'")
      const polling = yield* Effect.forkChild(poll)
      yield* held(1)
      assert.strictEqual((yield* send(order)).status, 404)
      ends.tell(job)
      assert.deepStrictEqual(shownOf(yield* Fiber.join(polling)), ["valid", undefined])
    }))

  test("of an order whose job runs in this process is answered at once if no further poll can be held", () =>
    Effect.gen(function*() {
      const { order, poll } = yield* signing
      const { ends } = yield* Queue
      const [share = ""] = yield* column("SELECT share FROM jobs WHERE kind = 'signer_issue'")
      const polls = yield* Effect.forEach(Array.from({ length: mostHeld }), () => Effect.forkChild(poll))
      yield* held(mostHeld)
      ends.begun({ kind: "signer_issue", dedupKey: order.slice(order.lastIndexOf("/") + 1), share })
      assert.deepStrictEqual(shownOf(yield* poll), ["processing", "1"])
      yield* Fiber.interruptAll(polls)
    }))
})

/** The wait for results in this configuration. The number is unusual, so that no other wait has this length. */
const waitMillis = 4321

describe.each(databases)(
  "a request whose answer waits for the result of the job that it begins, on $name",
  (backend) => {
    const { clientOf, held, readyBy, test } = worldOn(backend)
    const waiting = configOf(`[order]\nfinalize_wait_ms = ${waitMillis}\n[challenge]\nanswer_wait_ms = ${waitMillis}`)
    const ready = readyBy(waiting)

    test("is answered with the certificate, or with the reason why there is none", () =>
      Effect.gen(function*() {
        for (
          const [change, wanted] of [["", "valid"], ["UPDATE jobs SET attempts = max_attempts", "invalid"]] as const
        ) {
          const { finalized, order } = yield* ready
          const finalizing = yield* Effect.forkChild(finalized)
          yield* held(1, waitMillis)
          if (change !== "") yield* sql(change)
          yield* work("signer_issue")
          const answer = yield* Fiber.join(finalizing)
          assert.deepStrictEqual(shownOf(answer), [wanted, undefined])
          assert.strictEqual(answer.headers["location"], order)
          const { certificate, error } = objectOf<OrderBody>(answer)
          assert.deepStrictEqual([certificate !== undefined, error !== undefined], [
            wanted === "valid",
            wanted !== "valid"
          ])
        }
      }))

    test("is answered with the result of the validation, even if it is repeated", () =>
      Effect.gen(function*() {
        const { challenge, send } = yield* clientOf(waiting)
        const both = yield* Effect.forEach([1, 2], () => Effect.forkChild(send(challenge, {})))
        yield* held(2, waitMillis)
        yield* work("challenge_validate")
        for (const one of both) assert.deepStrictEqual(shownOf(yield* Fiber.join(one)), ["valid", undefined])
      }))

    test("is answered with the present state when the wait is over", () =>
      Effect.gen(function*() {
        const { finalized, order, send } = yield* ready
        const finalizing = yield* Effect.forkChild(finalized)
        yield* held(1, waitMillis)
        yield* TestClock.adjust(waitMillis - 1)
        assert.isUndefined(finalizing.pollUnsafe())
        yield* TestClock.adjust(1)
        const [status, pause] = shownOf(yield* Fiber.join(finalizing))
        assert.deepStrictEqual([status, Number(pause) >= 1], ["processing", true])
        yield* work("signer_issue")
        assert.deepStrictEqual(shownOf(yield* send(order)), ["valid", undefined])
      }))

    test("is answered at once while no further request can be held", () =>
      Effect.gen(function*() {
        const firsts = []
        for (let count = 0; count < mostHeld; count++) {
          firsts.push(yield* Effect.forkChild((yield* ready).finalized))
          yield* held(count + 1, waitMillis)
        }
        assert.deepStrictEqual(shownOf(yield* (yield* ready).finalized), ["processing", "1"])
        yield* Fiber.interruptAll(firsts)
        const next = yield* Effect.forkChild((yield* ready).finalized)
        yield* held(1, waitMillis)
        yield* work("signer_issue")
        assert.deepStrictEqual(shownOf(yield* Fiber.join(next)), ["valid", undefined])
      }))

    test("is answered with the present state when the process stops or an operator cancels the job", () =>
      Effect.gen(function*() {
        const { finalized, order } = yield* ready
        const cancelled = yield* Effect.forkChild(finalized)
        yield* held(1, waitMillis)
        const job = yield* findLive("signer_issue", order.slice(order.lastIndexOf("/") + 1))
        yield* jobs.cancel({ kind: "cli", id: "tester" }, job?.id ?? "")
        // The process also looks for jobs that have ended without a message to it.
        yield* TestClock.adjust(waitMillis - 1)
        assert.deepStrictEqual(shownOf(yield* Fiber.join(cancelled)), ["invalid", undefined])
        const stopped = yield* Effect.forkChild((yield* ready).finalized)
        yield* held(1, waitMillis)
        const { ends } = yield* Queue
        ends.stop()
        assert.deepStrictEqual(shownOf(yield* Fiber.join(stopped)), ["processing", "1"])
        assert.deepStrictEqual(shownOf(yield* (yield* ready).finalized), ["processing", "1"])
      }))
  }
)
