import { Deferred, Effect } from "effect"
import type { IncomingMessage } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe } from "vitest"
import type { InFlight } from "../../../src/engine/http/InFlight.ts"
import { handedOver, RequestsInFlight } from "../../../src/engine/http/InFlight.ts"
import { talk } from "../../support/Talk.ts"
import { useTests } from "../../support/UseTests.ts"

/* Tests the requests in progress on a real server. The tests set the times themselves. */

const { test } = useTests({})

const size = 12 * 1024 * 1024
const timeout = 1000

/**
 * Starts a server. Each handler hands its answer to the socket at time 0, and then ends. The answer to `/large` is
 * large, and any other answer is one octet.
 */
const serving = Effect.gen(function*() {
  const requests = new RequestsInFlight()
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const begun: Array<InFlight> = []
  const waiting: Array<{ readonly count: number; readonly done: Deferred.Deferred<ReadonlyArray<InFlight>> }> = []
  const bodyOf = ({ url }: IncomingMessage) => Buffer.alloc(url === "/large" ? size : 1, "x")
  requests.handle = (one) => {
    one.response.end(bodyOf(one.message))
    handedOver(one, 0, timeout)
    begun.push(one)
    for (const { count, done } of waiting) {
      if (begun.length >= count) Deferred.doneUnsafe(done, Effect.succeed(begun))
    }
    return fork(Effect.void)
  }
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const made = createServer((message, response) => {
        requests.come({ message, response, server: made, target: { target: message.url ?? "", host: undefined } })
      })
      made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (made) =>
      Effect.sync(() => {
        made.closeAllConnections()
        made.close()
      })
  )
  /** Waits until the answers to the first `count` requests have been passed on. */
  const first = (count: number) =>
    Effect.suspend(() => {
      const done = Deferred.makeUnsafe<ReadonlyArray<InFlight>>()
      if (begun.length >= count) return Effect.succeed(begun)
      waiting.push({ count, done })
      return Deferred.await(done)
    })
  return { requests, first, port: (server.address() as AddressInfo).port }
})

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const large = get("/large")
const small = get("/small")
const connectTo = "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"

/** A connection that reads nothing until the test says so. */
const mute = (port: number) => Effect.tap(talk(port), ({ socket }) => Effect.sync(() => socket.pause()))

const patience = timeout + size / 8.192

describe("a peer that reads nothing of its answer", () => {
  test("has as much time as a request may take, and one more second for each 8 KiB of the answer", () =>
    Effect.gen(function*() {
      const { first, port } = yield* serving
      yield* (yield* mute(port)).send(large)
      const [one] = yield* first(1)
      // The header fields of the answer add some octets.
      assert.approximately(one?.endsAt ?? 0, patience + 15, 15)
    }))

  test("is disconnected exactly when its time is over", () =>
    Effect.gen(function*() {
      const { first, port, requests } = yield* serving
      const client = yield* mute(port)
      yield* client.send(large)
      const [one] = yield* first(1)
      requests.expire(patience - 1)
      assert.isFalse(one?.socket.destroyed)
      requests.expire(patience + 100)
      yield* requests.none
      assert.strictEqual(requests.size, 0)
      client.socket.resume()
      assert.isBelow((yield* client.ended).length, size)
    }))

  test("gets no further answer until it reads the first one", () =>
    Effect.gen(function*() {
      const { first, port, requests } = yield* serving
      const client = yield* mute(port)
      yield* client.send(large + small)
      const begun = yield* first(1)
      const other = yield* talk(port)
      yield* other.send(small)
      yield* first(2)
      yield* other.heard(/x$/)
      assert.notStrictEqual(begun[1]?.socket, begun[0]?.socket)
      client.socket.resume()
      yield* client.heard(/HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)+\r\nx$/)
      assert.strictEqual((yield* first(3))[2]?.socket, begun[0]?.socket)
      yield* requests.none
    }))
})

describe("a request", () => {
  test("is over as soon as its answer has been passed on, if the answer is small", () =>
    Effect.gen(function*() {
      const { first, port, requests } = yield* serving
      const client = yield* talk(port)
      yield* client.send(small)
      const [one] = yield* first(1)
      yield* client.heard(/x$/)
      yield* requests.none
      assert.isFalse(requests.isOn(one?.socket ?? assert.fail()))
    }))

  const endsWith = (last: string, leaves: boolean) =>
    Effect.gen(function*() {
      const { first, port, requests } = yield* serving
      const client = yield* mute(port)
      yield* client.send(large + small + small + small + last)
      yield* first(1)
      if (leaves) client.socket.resetAndDestroy()
      yield* requests.none
      assert.strictEqual(requests.size, 0)
    })

  test("is over when its connection is reset while the request waits behind another one", () => endsWith("", true))

  test("is no longer counted if it waits behind another one and the last request of the connection is CONNECT", () =>
    endsWith(connectTo, false))
})

describe("closing the idle connections", () => {
  test("spares a connection until the peer has read its answer", () =>
    Effect.gen(function*() {
      const { first, port, requests } = yield* serving
      const client = yield* mute(port)
      yield* client.send(large)
      const idle = yield* talk(port)
      yield* idle.send(small)
      yield* first(2)
      yield* idle.heard(/x$/)
      requests.endIdle()
      yield* idle.ended
      client.socket.resume()
      assert.strictEqual((yield* client.ended).split("\r\n\r\n")[1]?.length, size)
    }))

  test("does not cut off a connection that was ended, because its peer may still be sending", () =>
    Effect.gen(function*() {
      const { first, port, requests } = yield* serving
      const client = yield* mute(port)
      yield* client.send(small)
      const [one] = yield* first(1)
      yield* requests.none
      one?.socket.end()
      requests.endIdle()
      assert.isFalse(one?.socket.destroyed)
    }))
})
