import { Effect, Stream } from "effect"
import type { Server } from "node:http"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe } from "vitest"
import { writeStream } from "../../../src/engine/http/Head.ts"
import { talk } from "../../support/Talk.ts"
import { useTests } from "../../support/UseTests.ts"

const { test } = useTests({})

/* Tests how answers are written to a real socket. */

describe("a streamed body", () => {
  test("continues even if the socket drains before the writer begins to wait for the drain", () =>
    Effect.gen(function*() {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const chunk = Buffer.alloc(1024 * 1024, "x")
      const server = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const made = createServer((_, response) => {
            // In the worst case, a fiber rests until the socket has drained.
            const rests = Effect.callback<void>((go) =>
              response.writableNeedDrain ? void response.once("drain", () => go(Effect.void)) : go(Effect.void)
            )
            fork(writeStream(response, "GET", Stream.make(chunk, chunk), rests))
          })
          made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
        }),
        (made) =>
          Effect.sync(() => {
            made.closeAllConnections()
            made.close()
          })
      )
      const client = yield* talk((server.address() as AddressInfo).port)
      yield* client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      const said = yield* client.ended
      assert.strictEqual(said.match(/x/g)?.length, 2 * chunk.length)
    }))
})
