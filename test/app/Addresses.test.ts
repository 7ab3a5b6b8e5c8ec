import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { checkAddresses } from "../../src/app/Addresses.ts"
import { configOf } from "../support/Graph.ts"

const verdict = (server: string, metrics: string, roles: ReadonlyArray<"acme" | "worker"> = ["acme", "worker"]) =>
  checkAddresses(
    configOf(`[server]\nbind_address = "${server}"\n[metrics]\nenabled = true\nbind_address = "${metrics}"`),
    new Set(roles)
  ).pipe(Effect.match({ onFailure: ({ code, message }) => `${code} ${message}`, onSuccess: () => "apart" }))

describe("the addresses of listeners", () => {
  for (
    const [server, metrics] of [
      ["127.0.0.1:3000", "127.0.0.1:3000"],
      ["127.0.0.1:3000", "localhost:3000"],
      ["[::]:3000", "0.0.0.0:3000"],
      ["[::]:3000", "127.0.0.1:3000"],
      ["[::1]:3000", "[::]:3000"],
      ["0.0.0.0:3000", "127.0.0.2:3000"],
      ["[::ffff:127.0.0.1]:3000", "127.0.0.1:3000"],
      ["[0:0:0:0:0:0:0:1]:3000", "[::1]:3000"]
    ] as const
  ) {
    it.effect(`${server} and ${metrics} are the same: refused, and both keys are named`, () =>
      Effect.map(verdict(server, metrics), (said) => {
        assert.match(said, /^3 metrics\.bind_address: .*server\.bind_address/)
        assert.include(said, server)
        assert.include(said, metrics)
      }))
  }

  for (
    const [server, metrics] of [
      ["127.0.0.1:3000", "127.0.0.1:3001"],
      ["127.0.0.1:3000", "127.0.0.2:3000"],
      ["0.0.0.0:3000", "[::1]:3000"],
      ["[::]:0", "[::]:0"],
      ["127.0.0.1:3000", "no-such-host.invalid:3000"]
    ] as const
  ) {
    it.effect(`${server} and ${metrics} are not`, () =>
      Effect.map(verdict(server, metrics), (said) => assert.strictEqual(said, "apart")))
  }

  it.effect("of a process that does not serve one of them are not compared", () =>
    Effect.map(verdict("[::]:3000", "[::]:3000", ["worker"]), (said) => assert.strictEqual(said, "apart")))
})
