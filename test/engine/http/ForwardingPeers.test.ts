import { assert, describe, it } from "vitest"
import { ForwardingPeers } from "../../../src/engine/http/ForwardingPeers.ts"

describe("a peer that is not a trusted proxy", () => {
  const named = (peers: ForwardingPeers, peer: string, clients: ReadonlyArray<string>) =>
    clients.filter((client) => peers.note(peer, client)).length
  const clients = (count: number) => Array.from({ length: count }, (_, at) => `192.0.2.${at}`)

  it("is reported once, after it has named sixteen clients", () => {
    const peers = new ForwardingPeers()
    assert.strictEqual(named(peers, "a", clients(15)), 0)
    assert.strictEqual(named(peers, "a", clients(15)), 0, "the same ones")
    assert.strictEqual(named(peers, "b", ["192.0.2.200"]), 0, "by another peer")
    assert.strictEqual(named(peers, "a", ["192.0.2.200"]), 1)
    assert.strictEqual(named(peers, "a", clients(100)), 0)
  })

  it("is remembered among at most 64 peers, and the oldest peer that was not reported is dropped first", () => {
    const peers = new ForwardingPeers()
    assert.strictEqual(named(peers, "first", clients(15)), 0)
    for (let at = 0; at < 64; at++) peers.note(`other-${at}`, "192.0.2.1")
    assert.strictEqual(named(peers, "first", ["192.0.2.200"]), 0, "it was forgotten")
    assert.strictEqual(named(peers, "first", clients(15)), 1)
    for (let at = 0; at < 63; at++) assert.strictEqual(named(peers, `loud-${at}`, clients(16)), 1)
    assert.strictEqual(named(peers, "one more", clients(100)), 0, "so many were told of")
  })
})
