import { it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber } from "effect"
import { assert, describe } from "vitest"
import type { FairSemaphore } from "../../../src/engine/net/FairSemaphore.ts"
import { currentPeer, makeFairSemaphore } from "../../../src/engine/net/FairSemaphore.ts"
import type { Peer } from "../../../src/engine/net/Peer.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"

/** A peer at an address, or an anonymous peer, that keeps its turn until the test releases it. */
const visitor = (turns: FairSemaphore, address: string | undefined) =>
  Effect.gen(function*() {
    const inside = yield* Deferred.make<void>()
    const leave = yield* Deferred.make<void>()
    const work = turns.take(Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(leave)))
    const peer = address === undefined ? undefined : peerOf(address)
    const fiber = yield* Effect.forkChild(Effect.provideService(work, currentPeer, peer))
    yield* Effect.yieldNow
    return {
      giveUp: Fiber.interrupt(fiber),
      address,
      entered: Deferred.await(inside),
      isInside: Deferred.isDone(inside),
      leave: Deferred.succeed(leave, undefined)
    }
  })

const crowd = (turns: FairSemaphore, count: number, address: (at: number) => string | undefined) =>
  Effect.forEach(Array.from({ length: count }), (_, at) => visitor(turns, address(at)))

const inside = (visitors: ReadonlyArray<{ readonly isInside: Effect.Effect<boolean> }>) =>
  Effect.map(Effect.all(visitors.map(({ isInside }) => isInside)), (all) => all.filter(Boolean).length)

describe("the turns of a fair semaphore", () => {
  it.effect("are left for others if one host or one network asks for all of them", () =>
    Effect.gen(function*() {
      const turns = makeFairSemaphore(100)
      const greedy = yield* crowd(turns, 200, () => "192.0.2.1")
      assert.strictEqual(yield* inside(greedy), 67)
      const neighbours = yield* crowd(turns, 200, (at) => `192.0.2.${at}`)
      assert.strictEqual((yield* inside(greedy)) + (yield* inside(neighbours)), 80)
      assert.isTrue(yield* (yield* visitor(turns, "198.51.100.1")).isInside, "at once")
    }))

  it.effect("can be limited so that no host has more turns than remain free", () =>
    Effect.gen(function*() {
      const shares = Context.Reference<Peer | undefined>("test/shares", { defaultValue: () => undefined })
      for (const [count, most] of [[1, 1], [2, 1], [3, 2], [10, 5]] as const) {
        const turns = makeFairSemaphore(count, { peer: shares, hostToFree: 1 })
        const greedy = yield* Effect.provideService(
          crowd(turns, 20, (at) => `203.0.${at}.1`),
          shares,
          { host: "one", network: "one" }
        )
        assert.strictEqual(yield* inside(greedy), most, `of ${count}`)
      }
    }))

  it.effect("are given to the waiting peer with the fewest turns first, and then in order", () =>
    Effect.gen(function*() {
      const turns = makeFairSemaphore(4)
      const [first, second, ...rest] = yield* crowd(turns, 4, (at) => `203.0.${at}.1`)
      assert.strictEqual(rest.length, 2)
      const greedy = yield* crowd(turns, 50, () => "203.0.2.1")
      const newcomer = yield* visitor(turns, "198.51.100.1")
      assert.isFalse(yield* newcomer.isInside)
      yield* first?.leave ?? Effect.void
      yield* newcomer.entered
      assert.strictEqual(yield* inside(greedy), 0)
      yield* second?.leave ?? Effect.void
      yield* greedy[0]?.entered ?? Effect.void
      assert.strictEqual(yield* inside(greedy), 1)
    }))

  it.effect("go round among networks, and then among hosts, even if there is a single turn", () =>
    Effect.gen(function*() {
      const turns = makeFairSemaphore(1)
      const many = yield* crowd(turns, 60, (at) => `203.0.2.${at % 30}`)
      const newcomer = yield* visitor(turns, "198.51.100.1")
      const neighbour = yield* visitor(turns, "203.0.2.77")
      const order: Array<string | undefined> = []
      let waiting = [...many, newcomer, neighbour]
      while (waiting.length > 0) {
        const entered = yield* Effect.filter(waiting, ({ isInside }) => isInside)
        assert.lengthOf(entered, 1)
        order.push(entered[0]?.address)
        waiting = waiting.filter((one) => !entered.includes(one))
        yield* entered[0]?.leave ?? Effect.void
        yield* Effect.yieldNow
        yield* Effect.yieldNow
      }
      // The first turn was free, and the second belongs to the network that waited first.
      assert.strictEqual(order.indexOf("198.51.100.1"), 2)
      assert.isAtMost(order.indexOf("203.0.2.77"), 33)
    }))

  for (const neighbour of ["198.51.100.66", "198.51.100.7"]) {
    it.effect(`come as soon if ${neighbour} keeps asking and giving up beside 198.51.100.7`, () =>
      Effect.gen(function*() {
        const turns = makeFairSemaphore(1)
        let rivals = yield* crowd(turns, 4, (at) => `203.0.${at}.1`)
        const waiting = yield* visitor(turns, "198.51.100.7")
        for (let given = 0; given < 4; given++) {
          assert.isFalse(yield* waiting.isInside)
          yield* (yield* visitor(turns, neighbour)).giveUp
          const [inside = assert.fail("nobody")] = yield* Effect.filter(rivals, ({ isInside }) => isInside)
          yield* inside.leave
          yield* Effect.yieldNow
          rivals = [...rivals.filter((one) => one !== inside), yield* visitor(turns, inside.address)]
        }
        assert.isTrue(yield* waiting.isInside)
      }))
  }

  it.effect("go to the host with the fewest turns of a network, whichever of its hosts came first", () =>
    Effect.gen(function*() {
      const turns = makeFairSemaphore(4)
      const [first = assert.fail("nobody")] = yield* crowd(turns, 3, (at) => `192.0.${at}.1`)
      yield* crowd(turns, 1, () => "203.0.2.1")
      const again = yield* visitor(turns, "203.0.2.1")
      const neighbour = yield* visitor(turns, "203.0.2.3")
      assert.strictEqual(yield* inside([again, neighbour]), 0)
      yield* first.leave
      yield* neighbour.entered
      assert.isFalse(yield* again.isInside)
    }))

  it.effect("can all be taken by a peer that stands for many clients", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* inside(yield* crowd(makeFairSemaphore(10), 20, () => undefined)), 10)
    }))

  it.effect("are not awaited by a caller that does not want to wait", () =>
    Effect.gen(function*() {
      const turns = makeFairSemaphore(1)
      const asked = turns.takeIfFree(Effect.succeed("turn"), Effect.succeed("none"))
      assert.strictEqual(yield* asked, "turn")
      const holder = yield* visitor(turns, undefined)
      assert.strictEqual(yield* asked, "none")
      yield* holder.leave
      yield* Effect.yieldNow
      assert.strictEqual(yield* asked, "turn")
    }))
})
