import { assert, describe, it } from "vitest"
import { peerOf } from "../../../src/engine/net/Peer.ts"

describe("a peer", () => {
  it("consists of a host and its network: an IPv4 address and its /24, or an IPv6 /64 and its /48", () => {
    assert.deepStrictEqual(peerOf("192.0.2.7"), { host: "192.0.2.7", network: "192.0.2" })
    assert.deepStrictEqual(peerOf("::ffff:192.0.2.7"), peerOf("192.0.2.7"))
    assert.deepStrictEqual(peerOf("2001:db8:1:2::7"), peerOf("2001:db8:1:2:ffff::1"))
    assert.notStrictEqual(peerOf("2001:db8:1:2::7").host, peerOf("2001:db8:1:3::7").host)
    assert.strictEqual(peerOf("2001:db8:1:2::7").network, peerOf("2001:db8:1:3::7").network)
    assert.notStrictEqual(peerOf("2001:db8:1::7").network, peerOf("2001:db8:2::7").network)
    assert.deepStrictEqual(peerOf("no:address"), { host: "no:address", network: "no:address" })
  })

  it("is the IPv4 host to which an IPv6 address is routed, however many networks that host has or shares", () => {
    const host = peerOf("192.0.2.7")
    const addresses = [
      "2002:c000:207::1", // 6to4
      "2002:c000:207:ffff:1:2:3:4",
      "64:ff9b::192.0.2.7", // NAT64
      "2001:0:cb00:7101:0:f227:3fff:fdf8" // Teredo, by a server at 203.0.113.1
    ]
    for (const address of addresses) assert.deepStrictEqual(peerOf(address), host, address)
  })

  it("is a single address behind a local NAT64, in a network of addresses that differ only in the last octet", () => {
    for (
      const [one, neighbour, stranger] of [
        ["64:ff9b:1::192.0.2.7", "64:ff9b:1::192.0.2.8", "64:ff9b:1::198.51.100.7"],
        ["64:ff9b:1:ffff:c0:2:700::", "64:ff9b:1:ffff:c0:2:800::", "64:ff9b:1:ffff:c6:3364:700::"]
      ] as const
    ) {
      assert.notStrictEqual(peerOf(one).host, peerOf(neighbour).host)
      assert.strictEqual(peerOf(one).network, peerOf(neighbour).network)
      assert.notStrictEqual(peerOf(one).network, peerOf(stranger).network)
    }
  })

  it("stays the same whatever last bits a client chooses for its address", () => {
    assert.strictEqual(peerOf("2001:db8::5efe:192.0.2.7").host, peerOf("2001:db8::1").host, "ISATAP")
  })
})
