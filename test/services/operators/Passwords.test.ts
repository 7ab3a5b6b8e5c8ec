import { Deferred, Effect, Fiber, Result } from "effect"
import { assert, describe } from "vitest"

import type { Derive } from "../../../src/crypto/PasswordHash.ts"
import { derive, parsePasswordHash } from "../../../src/crypto/PasswordHash.ts"
import { currentPeer } from "../../../src/engine/net/FairSemaphore.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"
import { Passwords } from "../../../src/services/operators/Passwords.ts"
import { atOnce, tally } from "../../support/AtOnce.ts"
import { useTests } from "../../support/UseTests.ts"

const { test } = useTests()

describe("hashes of passwords", () => {
  const withPasswords = <A, E, R>(
    settings: Parameters<(typeof Passwords)["layer"]>[0],
    use: (passwords: Passwords["Service"]) => Effect.Effect<A, E, R>
  ) => Effect.provide(Effect.flatMap(Passwords, use), Passwords.layer(settings))

  test("have 600,000 iterations and a salt of their own, and match only their password", () =>
    withPasswords({}, ({ hash, verify }) =>
      Effect.gen(function*() {
        const [one, other] = [yield* hash("tramway"), yield* hash("tramway")]
        assert.match(one, /^\$pbkdf2-sha256\$i=600000\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
        assert.notStrictEqual(one, other)
        assert.deepStrictEqual(yield* verify("tramway", one), { _tag: "Right", isWeak: false })
        assert.deepStrictEqual(yield* verify("Tramway", one), { _tag: "Wrong" })
      })))

  test("take as much work, and never match, if the user is unknown or the stored hash is unreadable", () => {
    const asked: Array<number> = []
    const counted: Derive = (password, salt, iterations) =>
      Effect.andThen(Effect.sync(() => void asked.push(iterations)), derive(password, salt, iterations))
    return withPasswords({ iterations: 10, derive: counted }, ({ hash, verify }) =>
      Effect.gen(function*() {
        const weak = yield* withPasswords({ iterations: 4 }, (weaker) => weaker.hash("tramway"))
        const strong = yield* withPasswords({ iterations: 20 }, (stronger) => stronger.hash("tramway"))
        const own = yield* hash("tramway")
        const cost = (password: string, stored: string | undefined) =>
          Effect.suspend(() => {
            asked.length = 0
            return Effect.map(
              verify(password, stored),
              (verdict) => [verdict._tag, asked.reduce((sum, one) => sum + one, 0)] as const
            )
          })
        assert.deepStrictEqual(yield* cost("wrong", own), ["Wrong", 10])
        assert.deepStrictEqual(yield* cost("wrong", undefined), ["Wrong", 10])
        assert.deepStrictEqual(yield* cost("wrong", "md5"), ["Unreadable", 10])
        assert.deepStrictEqual(yield* cost("wrong", weak), ["Wrong", 10])
        assert.deepStrictEqual(yield* cost("tramway", weak), ["Right", 4])
        assert.deepStrictEqual(yield* verify("tramway", weak), { _tag: "Right", isWeak: true })
        assert.deepStrictEqual(yield* verify("tramway", strong), { _tag: "Right", isWeak: false })
      }))
  })

  test("are computed two at a time while up to 32 wait, and a further caller is told to try again", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      let [running, most] = [0, 0]
      const held: Derive = () =>
        Effect.acquireUseRelease(
          Effect.sync(() => most = Math.max(most, ++running)),
          () => Effect.as(Deferred.await(gate), new Uint8Array(32)),
          () => Effect.sync(() => running--)
        )
      yield* withPasswords({ derive: held }, ({ hash }) =>
        Effect.gen(function*() {
          const all = yield* Effect.forkChild(atOnce(40, hash("tramway")))
          yield* Effect.repeat(Effect.yieldNow, { times: 100 })
          assert.deepInclude(yield* Effect.flip(hash("tramway")), { _tag: "RateLimited", retryAfter: 1 })
          yield* Deferred.succeed(gate, undefined)
          assert.deepStrictEqual(tally(yield* Fiber.join(all)), { done: 34, RateLimited: 6 })
          assert.strictEqual(most, 2)
          yield* hash("tramway")
        }))
    }))

  /** Makes hashes wait until the test releases them. */
  const heldHashes = Effect.map(Deferred.make<void>(), (gate) => {
    let running = 0
    const held: Derive = () =>
      Effect.acquireUseRelease(
        Effect.sync(() => running++),
        () => Effect.as(Deferred.await(gate), new Uint8Array(32)),
        () => Effect.sync(() => running--)
      )
    return { held, letGo: Deferred.succeed(gate, undefined), running: () => running }
  })
  const from = <A, E, R>(address: string, self: Effect.Effect<A, E, R>) =>
    Effect.provideService(self, currentPeer, peerOf(address))
  const settled = Effect.repeat(Effect.yieldNow, { times: 100 })

  test("are computed fairly, so that a client is next even while sixty hosts of another network wait", () =>
    Effect.gen(function*() {
      const begun: Array<string> = []
      const gates: Array<Deferred.Deferred<void>> = []
      const stepped: Derive = (password) =>
        Effect.gen(function*() {
          begun.push(password)
          const gate = yield* Deferred.make<void>()
          gates.push(gate)
          yield* Deferred.await(gate)
          return new Uint8Array(32)
        })
      yield* withPasswords({ derive: stepped }, ({ verify }) =>
        Effect.gen(function*() {
          const crowd = yield* Effect.forEach(
            Array.from({ length: 60 }, (_, at) => `192.0.2.${at + 1}`),
            (address) => Effect.forkChild(Effect.result(from(address, verify("crowd", undefined))))
          )
          yield* settled
          for (const round of [1, 2, 3]) {
            const honest = yield* Effect.forkChild(from("198.51.100.7", verify(`honest ${round}`, undefined)))
            yield* settled
            assert.notInclude(begun, `honest ${round}`, "two are computed")
            const before = begun.length
            const [first] = gates.splice(0, 1)
            if (first !== undefined) yield* Deferred.succeed(first, undefined)
            yield* settled
            assert.strictEqual(begun[before], `honest ${round}`)
            const own = gates.pop()
            if (own !== undefined) yield* Deferred.succeed(own, undefined)
            assert.deepStrictEqual(yield* Fiber.join(honest), { _tag: "Wrong" })
            yield* settled
          }
          const openAll = Effect.suspend(() =>
            Effect.forEach(gates.splice(0), (gate) => Deferred.succeed(gate, undefined))
          )
          yield* Effect.repeat(Effect.andThen(openAll, settled), { times: 30 })
          const refused = (yield* Effect.forEach(crowd, Fiber.join)).filter(Result.isFailure)
          assert.strictEqual(refused.length, 26 + 1, "the first honest one took the place of one of them")
        }))
    }))

  test("that find no place in the queue count only against a client that already waits in the queue", () =>
    Effect.gen(function*() {
      const { held, letGo } = yield* heldHashes
      yield* withPasswords({ derive: held }, ({ verify }) =>
        Effect.gen(function*() {
          const refusalOf = (address: string) => Effect.flip(from(address, verify("tramway", undefined)))
          const flood = yield* Effect.forkChild(atOnce(34, from("192.0.2.1", verify("tramway", undefined))))
          yield* settled
          assert.deepInclude(yield* refusalOf("192.0.2.1"), { _tag: "RateLimited", retryAfter: 1, isOwnDoing: true })
          const neighbours = yield* Effect.forEach(
            Array.from({ length: 40 }, (_, at) => `192.0.2.${at + 2}`),
            (address) => Effect.forkChild(Effect.result(from(address, verify("tramway", undefined))))
          )
          yield* settled
          yield* letGo
          const ends = yield* Effect.forEach(neighbours, Fiber.join)
          const refused = ends.flatMap((end) => Result.isFailure(end) ? [end.failure.isOwnDoing] : [])
          assert.isNotEmpty(refused)
          assert.notInclude(refused, true)
          yield* Fiber.join(flood)
        }))
    }))

  test("for a signed-in operator do not wait for the hashes of strangers", () =>
    Effect.gen(function*() {
      const { held, letGo, running } = yield* heldHashes
      yield* withPasswords({ derive: held, recoveryIterations: 1 }, ({ findCode, hash, hashCodes, verify }) =>
        Effect.gen(function*() {
          const strangers = yield* Effect.forEach(
            Array.from({ length: 60 }, (_, at) =>
              `10.${at}.0.1`),
            (address) => Effect.forkChild(Effect.result(from(address, verify("tramway", undefined))))
          )
          yield* settled
          assert.strictEqual(running(), 2)
          const asked = [
            verify("tramway", undefined, "olga"),
            hash("tramway", "olga"),
            hashCodes(["AAAAAAAAAA"], "olga"),
            findCode("AAAAAAAAAA", [], "olga")
          ]
          const own = yield* Effect.forkChild(Effect.all(asked, { concurrency: "unbounded" }))
          yield* settled
          assert.strictEqual(running(), 3, "one beside them")
          const flood = yield* Effect.forkChild(atOnce(40, hash("tramway", "otto")))
          const ruth = yield* Effect.forkChild(hash("tramway", "ruth"))
          yield* settled
          yield* letGo
          yield* Fiber.join(own)
          yield* Fiber.join(ruth)
          assert.strictEqual(
            tally(yield* Fiber.join(flood))["RateLimited"],
            28,
            "of sixteen places four are olga's and ruth's"
          )
          yield* Effect.forEach(strangers, Fiber.join)
        }))
    }))

  test("are computed outside the event loop, which runs between them however many wait", () =>
    withPasswords({ iterations: 50_000 }, ({ hash }) =>
      Effect.gen(function*() {
        let turns = 0
        const turning = yield* Effect.forkChild(
          Effect.forever(Effect.andThen(Effect.yieldNow, Effect.sync(() => void turns++)))
        )
        const times: Array<number> = []
        const all = Array.from({ length: 34 }, () => Effect.map(hash("tramway"), () => void times.push(turns)))
        yield* Effect.all(all, { concurrency: "unbounded" })
        yield* Fiber.interrupt(turning)
        assert.lengthOf(times, 34)
        // Two are computed at once, so at most two of them end before the event loop runs.
        for (const [at, time] of times.entries()) assert.isAbove(time, times[at - 2] ?? 0)
      })))

  test("leave the queue when no caller waits for them any more", () =>
    Effect.gen(function*() {
      const never: Derive = () => Effect.never
      yield* withPasswords({ derive: never }, ({ hash }) =>
        Effect.gen(function*() {
          for (let round = 0; round < 3; round++) {
            const waiting = yield* Effect.forkChild(atOnce(34, hash("tramway")))
            yield* Effect.repeat(Effect.yieldNow, { times: 100 })
            assert.strictEqual((yield* Effect.flip(hash("tramway")))._tag, "RateLimited")
            yield* Fiber.interrupt(waiting)
          }
        }))
    }))

  test("of recovery codes take less work and match a code at any position", () =>
    withPasswords({}, ({ findCode, hashCodes }) =>
      Effect.gen(function*() {
        const hashes = yield* hashCodes(["AAAAAAAAAA", "BBBBBBBBBB"], "olga")
        assert.deepStrictEqual(hashes.map((hash) => parsePasswordHash(hash)?.iterations), [10_000, 10_000])
        const among = [...hashes, "unreadable"].map((codeHash, id) => ({ id, codeHash }))
        assert.strictEqual((yield* findCode("BBBBBBBBBB", among, "olga"))?.id, 1)
        assert.isUndefined(yield* findCode("CCCCCCCCCC", among, "olga"))
      })))

  test("of recovery codes are all compared, whichever of them matches", () => {
    let compared = 0
    const counted: Derive = (password, salt, iterations) =>
      Effect.andThen(Effect.sync(() => void compared++), derive(password, salt, iterations))
    return withPasswords(
      { recoveryIterations: 1, derive: counted },
      ({ findCode, hashCodes }) =>
        Effect.gen(function*() {
          const codes = ["AAAAAAAAAA", "BBBBBBBBBB", "CCCCCCCCCC"]
          const among = (yield* hashCodes(codes, "olga")).map((codeHash) => ({ codeHash }))
          for (const code of [...codes, "DDDDDDDDDD"]) {
            compared = 0
            yield* findCode(code, among, "olga")
            assert.strictEqual(compared, 3, code)
          }
        })
    )
  })
})
