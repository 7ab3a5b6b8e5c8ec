import { it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe } from "vitest"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"

/* The command that asks a listener for its health. */

/** The port of a server on loopback of IPv4 alone, which says that it is healthy. */
const healthy = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((_, response) => void response.end(`{"healthy":true}`))
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  ),
  (server) => (server.address() as AddressInfo).port
)

describe("health", () => {
  it.live("of a listener that is bound to every address is asked over IPv4 where the host has no ::1", () =>
    Effect.gen(function*() {
      const port = yield* healthy
      for (const [host, code] of [["[::]", 0], ["0.0.0.0", 0], ["localhost", 0], ["[::1]", 1]] as const) {
        const { run } = freshPlace(() => `${minimalConfig}[server]\nbind_address = "${host}:${port}"\n`)
        assert.strictEqual((yield* run(["health"])).code, code, host)
      }
    }))
})
