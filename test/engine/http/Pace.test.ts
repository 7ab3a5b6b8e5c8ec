import { assert, describe, it } from "@effect/vitest"
import { setImmediate } from "node:timers/promises"
import { Pace } from "../../../src/engine/http/InFlight.ts"

/**
 * Lets this many requests arrive. Each entry of `accepts` is one turn of the event loop, which accepts a connection if
 * the entry is true. Returns the number of requests that began in each turn.
 */
const begunIn = async (requests: number, accepts: ReadonlyArray<boolean>): Promise<ReadonlyArray<number>> => {
  const pace = new Pace()
  let begun = 0
  for (let at = 0; at < requests; at++) {
    pace.run(() => {
      begun++
    })
  }
  const seen: Array<number> = []
  for (const hasAccepted of accepts) {
    if (hasAccepted) pace.accepted()
    await setImmediate()
    seen.push(begun)
    begun = 0
  }
  return seen
}

describe("the pace of requests", () => {
  it("begins all waiting requests together if no connection comes", async () => {
    assert.deepStrictEqual(await begunIn(10, [false, false]), [10, 0])
  })

  it("lets the event loop accept connections first", async () => {
    assert.deepStrictEqual(await begunIn(10, [true, true, false]), [0, 0, 10])
  })

  it("lets requests wait for no more than 64 connections", async () => {
    const begun = await begunIn(100, Array.from({ length: 130 }, () => true))
    assert.deepStrictEqual(begun.flatMap((count, at) => count === 0 ? [] : [[at, count]]), [[63, 64], [127, 36]])
  })

  it("begins no more than 64 before it looks for connections again", async () => {
    assert.deepStrictEqual(await begunIn(100, [false, true, false]), [64, 0, 36])
  })

  it("begins a request that arrives while others begin in a later turn", async () => {
    const pace = new Pace()
    const begun: Array<string> = []
    pace.run(() => {
      begun.push("first")
      pace.run(() => void begun.push("third"))
    })
    pace.run(() => void begun.push("second"))
    await setImmediate()
    assert.deepStrictEqual(begun, ["first", "second"])
    await setImmediate()
    assert.deepStrictEqual(begun, ["first", "second", "third"])
  })
})
