import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { connect, createServer } from "node:net"
import { Connections } from "../../../src/engine/http/Connections.ts"

describe("the connections of a listener", () => {
  it("free their places as soon as their time is over, before their end is reported", async () => {
    const connections = new Connections(1000)
    const server = createServer((socket) => {
      socket.on("error", () => {})
      connections.opened(socket)
      connections.handshakeBegun(socket, 5000)
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const open = async () => {
      const socket = connect(port, "127.0.0.1").on("error", () => {})
      await Promise.all([once(socket, "connect"), once(server, "connection")])
      return socket
    }
    const peers = [await open(), await open()]
    connections.expire(0)
    assert.strictEqual(connections.pending, 2)
    connections.expire(5000)
    assert.strictEqual(connections.pending, 0)
    await Promise.all(peers.map((peer) => once(peer, "close")))
    assert.strictEqual(connections.pending, 0)
    server.close()
  })
})
