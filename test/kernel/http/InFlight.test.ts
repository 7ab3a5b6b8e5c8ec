import { Deferred, Effect, FiberId, Runtime } from "effect"
import type { RequestListener } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe } from "vitest"
import type { InFlight } from "../../../src/kernel/http/InFlight.ts"
import { millisToTake, RequestsInFlight } from "../../../src/kernel/http/InFlight.ts"
import { talk } from "../../support/Talk.ts"
import { useTests } from "../../support/UseTests.ts"

/* The requests under way of a real server, with times that a test names. */

const { test } = useTests({})

const serving = (listener: RequestListener) =>
  Effect.acquireRelease(
    Effect.async<ReturnType<typeof createServer>>((resume) => {
      const server = createServer(listener)
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

/** A server that hands over the same large answer to everybody, and whose handlers are done then. */
const handingOver = (size: number) =>
  Effect.gen(function*() {
    const requests = new RequestsInFlight()
    const fork = Runtime.runFork(yield* Effect.runtime<never>())
    const begun = Deferred.unsafeMake<InFlight>(FiberId.none)
    const server = yield* serving((message, response) =>
      requests.begin(message, response, server, (one) => {
        response.end(Buffer.alloc(size, "x"))
        Deferred.unsafeDone(begun, Effect.succeed(one))
        return fork(Effect.void)
      })
    )
    return { requests, begun: Deferred.await(begun), port: (server.address() as AddressInfo).port }
  })

const size = 32 * 1024 * 1024
const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

describe("a peer that takes nothing of its answer", () => {
  test("has a second for each 8 KiB", () =>
    Effect.gen(function*() {
      const { begun, port } = yield* handingOver(size)
      const client = yield* talk(port)
      client.socket.pause()
      yield* client.send(get)
      const seconds = millisToTake((yield* begun).response) / 1000
      assert.isAtLeast(seconds, 4096)
      assert.isBelow(seconds, 4097) // the head of the answer has a few octets more
    }))

  test("is cut off when its time is over, and not before", () =>
    Effect.gen(function*() {
      const { begun, port, requests } = yield* handingOver(size)
      const client = yield* talk(port)
      client.socket.pause()
      yield* client.send(get)
      const one = yield* begun
      assert.isTrue(requests.isSending)
      one.endsAt = 1000
      requests.expire(999)
      assert.isFalse(one.socket.destroyed)
      requests.expire(1000)
      yield* requests.none
      assert.strictEqual(requests.size, 0)
      client.socket.resume()
      assert.isBelow((yield* client.ended).length, size)
    }))
})

describe("a small answer", () => {
  test("is over as soon as it is handed over", () =>
    Effect.gen(function*() {
      const { begun, port, requests } = yield* handingOver(2)
      const client = yield* talk(port)
      yield* client.send(get)
      yield* begun
      yield* client.heard(/xx$/)
      yield* requests.none
      assert.isFalse(requests.isSending)
    }))
})
