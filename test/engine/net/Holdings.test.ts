import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { Holdings, peerOf } from "../../../src/engine/net/Peer.ts"

/** Holdings with `count` entries for each address. An entry is named by its address and number. */
const sharesOf = (...held: ReadonlyArray<readonly [address: string, count: number]>) => {
  const shares = new Holdings<string>()
  for (const [address, count] of held) {
    for (let at = 1; at <= count; at++) shares.add(peerOf(address), `${address} ${at}`)
  }
  return shares
}

describe("the shares of hosts", () => {
  it("give up the newest entry of the host with the most entries", () => {
    const shares = sharesOf(["192.0.2.1", 3], ["198.51.100.1", 5])
    assert.strictEqual(shares.victimOf(peerOf("203.0.113.1")), "198.51.100.1 5")
    assert.strictEqual(shares.victimOf(peerOf("192.0.2.1")), "198.51.100.1 5")
    assert.isUndefined(shares.victimOf(peerOf("198.51.100.1")))
    assert.strictEqual(shares.victimOf(peerOf("198.51.100.2")), "198.51.100.1 5", "a neighbour is not refused for it")
  })

  it("count many hosts of one network as one host with many entries", () => {
    const many = Array.from({ length: 100 }, (_, at) => [`192.0.2.${at}`, 1] as const)
    assert.match(sharesOf(["198.51.100.1", 50], ...many).victimOf(peerOf("203.0.113.1")) ?? "", /^192\.0\.2\./)
    const wide = Array.from({ length: 100 }, (_, at) => [`2001:db8:0:${at.toString(16)}::1`, 1] as const)
    assert.match(sharesOf(["2001:db8:1::1", 50], ...wide).victimOf(peerOf("2001:db8:2::1")) ?? "", /^2001:db8:0:/)
    const narrow = Array.from({ length: 10 }, (_, at) => [`2001:db8::${at}`, 1] as const)
    assert.isUndefined(sharesOf(...narrow, ["2001:db8:0:1::1", 5]).victimOf(peerOf("2001:db8::ffff")), "one host")
  })

  it("give up the entry that was held longest if every host has one entry", () => {
    const shares = sharesOf(["192.0.2.1", 1], ["198.51.100.1", 1])
    assert.strictEqual(shares.victimOf(peerOf("203.0.113.1")), "192.0.2.1 1")
  })

  it("never give up an entry that belongs to no share", () => {
    const shares = new Holdings<string>()
    shares.add(undefined, "proxied")
    assert.isUndefined(shares.victimOf(peerOf("192.0.2.1")))
    assert.isUndefined(shares.victimOf(undefined))
    shares.add(peerOf("192.0.2.1"), "own")
    assert.strictEqual(shares.victimOf(undefined), "own")
    assert.strictEqual(shares.size, 2)
    for (let time = 0; time < 2; time++) shares.remove(undefined, "proxied")
    assert.strictEqual(shares.size, 1)
  })

  it("always give an entry to a host that has none, whatever the order of the events", () => {
    const hosts = ["192.0.2.1", "192.0.2.2", "198.51.100.1", "2001:db8::1", "2001:db8:0:1::1"]
    const act = fc.record({ host: fc.constantFrom(...hosts), comes: fc.boolean() })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 4 }),
        fc.array(act, { maxLength: 60 }),
        (most, acts) => {
          interface Held {
            readonly host: string
          }
          const shares = new Holdings<Held>()
          const held = new Set<Held>()
          const end = (one: Held) => {
            held.delete(one)
            shares.remove(peerOf(one.host), one)
            shares.remove(peerOf(one.host), one)
          }
          for (const { comes, host } of acts) {
            const [own] = [...held].filter((one) => one.host === host)
            if (!comes) {
              if (own !== undefined) end(own)
              continue
            }
            if (shares.size >= most) {
              const victim = shares.victimOf(peerOf(host))
              assert.isFalse(own === undefined && victim === undefined, "a newcomer was refused")
              if (victim === undefined) continue
              end(victim)
            }
            const one: Held = { host }
            shares.add(peerOf(host), one)
            held.add(one)
            assert.strictEqual(shares.size, held.size)
          }
          held.forEach(end)
          assert.strictEqual(shares.size, 0)
        }
      ),
      { seed: 7 }
    )
  })
})
