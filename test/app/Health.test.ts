import { it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, describe } from "vitest"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"

/* Tests the command that asks a listener about its health. */

/**
 * Starts a server on 127.0.0.1 that gives every request the same answer, and returns its port. By default, the answer
 * says that the server is healthy.
 */
const answering = (status = 200, body = `{"healthy":true}`) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer((_, response) => void response.writeHead(status).end(body))
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
    ),
    (server) => (server.address() as AddressInfo).port
  )

describe("health", () => {
  it.live("reaches a listener over IPv4 if bind_address is [::], 0.0.0.0 or localhost", () =>
    Effect.gen(function*() {
      const port = yield* answering()
      for (const [host, code] of [["[::]", 0], ["0.0.0.0", 0], ["localhost", 0], ["[::1]", 1]] as const) {
        const { run } = freshPlace(() => `${minimalConfig}[server]\nbind_address = "${host}:${port}"\n`)
        assert.strictEqual((yield* run(["health"])).code, code, host)
      }
    }))

  it.live("succeeds for a worker only if the metrics listener answers that a worker is ready", () =>
    Effect.gen(function*() {
      const cases = [
        [200, `{"ready":true,"roles":["worker"]}`, 0],
        [503, `{"ready":false,"roles":["acme","worker"],"loops":["job_claims"]}`, 1],
        [200, `{"ready":true,"roles":["acme"]}`, 1],
        [200, "something else", 1]
      ] as const
      for (const [status, body, code] of cases) {
        const port = yield* answering(status, body)
        const { run } = freshPlace(() =>
          `${minimalConfig}[metrics]\nenabled = true\nbind_address = "127.0.0.1:${port}"\n`
        )
        yield* run(["migrate"])
        assert.strictEqual((yield* run(["health", "--role", "worker"])).code, code, body)
      }
    }))
})
