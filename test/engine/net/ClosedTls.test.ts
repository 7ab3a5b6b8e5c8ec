import { it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { connect } from "node:net"
import * as Tls from "node:tls"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { exchange } from "../../../src/engine/net/Exchange.ts"
import { expired } from "../../support/RawServer.ts"

/*
 * Peers that close a TLS connection over a socket. Node.js then closes the stream at once, inside an event of its own
 * client.
 */

describe("requests while connections of other requests are closed", () => {
  let turn = 0
  /** The number of streams that were closed while the end of the client's stream was being handled. */
  let within = 0
  // A quarter of the requests never get an answer, and a quarter of the answers are cut off.
  const server = createServer(expired, (incoming, response) => {
    incoming.resume().once("end", () => {
      const part = turn++ % 4
      if (part === 0) return void incoming.socket.destroy()
      response.writeHead(200, { "Content-Length": 100 })
      if (part === 1) return void response.write("x".repeat(50), () => incoming.socket.destroySoon())
      response.end("x".repeat(100))
    })
  })
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)))
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  const ask = (method: string) =>
    Effect.suspend(() => {
      const socket = connect((server.address() as AddressInfo).port, "127.0.0.1")
      const stream = Tls.connect({ socket, servername: "localhost", rejectUnauthorized: false }).on("error", () =>
        undefined)
      let isEnding = false
      stream.prependListener("end", () => {
        isEnding = true
        process.nextTick(() =>
          isEnding = false
        )
      })
      stream.once("close", () => isEnding && within++)
      const asked = exchange(stream, {
        method,
        path: "/",
        headers: { Host: "localhost" },
        maxBytes: 1000,
        body: method === "HEAD" ? undefined : "body"
      })
      return Effect.ensuring(Effect.result(asked), Effect.sync(() => socket.destroy()))
    })

  it.live("get only their own answers", () =>
    Effect.gen(function*() {
      const methods = Array.from({ length: 80 }, (_, index) => index % 2 === 0 ? "POST" : "HEAD")
      const ended = yield* Effect.forEach(methods, ask, { concurrency: 8 })
      const answered = ended.flatMap((one) => one._tag === "Success" ? [one.success.status] : [])
      assert.isAtLeast(answered.length, 40)
      assert.isTrue(answered.every((status) => status === 200))
      assert.strictEqual(within, 0)
    }))
})
