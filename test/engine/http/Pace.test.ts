import { assert, describe, it } from "@effect/vitest"
import { setImmediate } from "node:timers/promises"
import { Pace } from "../../../src/engine/http/InFlight.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"

const someone = peerOf("192.0.2.1")

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
    }, someone)
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
      pace.run(() => void begun.push("third"), someone)
    }, someone)
    pace.run(() => void begun.push("second"), someone)
    await setImmediate()
    assert.deepStrictEqual(begun, ["first", "second"])
    await setImmediate()
    assert.deepStrictEqual(begun, ["first", "second", "third"])
  })

  /** Lets requests of these addresses arrive in this order. Returns the addresses of those that begin in each turn. */
  const inTurns = async (addresses: ReadonlyArray<string>, turns: number): Promise<ReadonlyArray<Array<string>>> => {
    const pace = new Pace()
    let begun: Array<string> = []
    for (const address of addresses) pace.run(() => void begun.push(address), peerOf(address))
    const seen: Array<Array<string>> = []
    for (let turn = 0; turn < turns; turn++) {
      await setImmediate()
      seen.push(begun)
      begun = []
    }
    return seen
  }

  it("begins a newcomer's request in the next turn, however many of one host wait", async () => {
    const [busy, newcomer] = ["192.0.2.1", "198.51.100.1"]
    const [first, second] = await inTurns([...Array.from({ length: 1000 }, () => busy), newcomer, newcomer], 2)
    assert.deepStrictEqual(first?.slice(0, 4), [busy, newcomer, busy, newcomer])
    assert.deepStrictEqual([first?.length, second?.length], [64, 64], "and the others still begin together")
  })

  it("begins a newcomer's request in the next turn, however many hosts of one network wait", async () => {
    const busy = Array.from({ length: 200 }, (_, at) => `192.0.2.${at}`)
    const [first] = await inTurns([...busy, "198.51.100.1"], 1)
    assert.deepStrictEqual(first?.slice(0, 3), ["192.0.2.0", "198.51.100.1", "192.0.2.1"])
  })

  it("gives no place to requests that have left", async () => {
    const pace = new Pace()
    const begun: Array<string> = []
    const leaves = Array.from({ length: 100 }, () => pace.run(() => void begun.push("left"), someone))
    pace.run(() => void begun.push("waits"), someone)
    for (const leave of leaves) leave()
    await setImmediate()
    assert.deepStrictEqual(begun, ["waits"])
    pace.run(() => void begun.push("left"), someone)()
    pace.run(() => void begun.push("later"), someone)
    await setImmediate()
    assert.deepStrictEqual(begun, ["waits", "later"])
  })

  it("lets the hosts of one network take its turns one after another", async () => {
    const busy = Array.from({ length: 200 }, () => "192.0.2.1")
    const [first] = await inTurns([...busy, "192.0.2.2", "192.0.2.2"], 1)
    assert.deepStrictEqual(first?.slice(0, 5), ["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2", "192.0.2.1"])
  })
})
