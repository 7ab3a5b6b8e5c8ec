import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { checkAddresses } from "../../src/app/Addresses.ts"
import type { Record } from "../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../src/engine/telemetry/EventLog.ts"
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
    it.effect(`prevent the startup with an error that names both keys if they are ${server} and ${metrics}`, () =>
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
    it.effect(`count as different if they are ${server} and ${metrics}`, () =>
      Effect.map(verdict(server, metrics), (said) => assert.strictEqual(said, "apart")))
  }

  for (const [admin, other] of [["127.0.0.1:3000", "server"], ["localhost:3002", "metrics"]] as const) {
    it.effect(`prevent the startup if the listener of operators and the ${other} listener both have ${admin}`, () =>
      Effect.gen(function*() {
        const records: Array<Record> = []
        const refused = yield* Effect.flip(
          Effect.provide(
            checkAddresses(
              configOf(
                `[server]\nbind_address = "127.0.0.1:3000"\n[admin]\nenabled = true\nbind_address = "${admin}"\n[metrics]\nenabled = true`
              ),
              new Set(["acme", "admin"])
            ),
            layerMemory(records)
          )
        )
        assert.strictEqual(refused.code, 3)
        assert.include(refused.message, "admin.bind_address")
        assert.include(
          records.map(({ event }) => event),
          other === "server" ? "admin_config_invalid" : "metrics_config_invalid"
        )
      }))
  }

  it.effect("must differ from publish.bind_address only in processes that serve both listeners", () =>
    Effect.gen(function*() {
      const config = (enabled: boolean) =>
        configOf(
          `[server]\nbind_address = "127.0.0.1:3000"\n[publish]\nenabled = ${enabled}\nbind_address = "[::]:3000"`
        )
      const refused = yield* Effect.flip(checkAddresses(config(true), new Set(["acme"])))
      assert.match(refused.message, /^publish\.bind_address: .*server\.bind_address/)
      yield* checkAddresses(config(false), new Set(["acme"]))
      yield* checkAddresses(config(true), new Set(["worker"]))
    }))

  it.effect("may be equal if the process serves only one of the listeners", () =>
    Effect.map(verdict("[::]:3000", "[::]:3000", ["worker"]), (said) => assert.strictEqual(said, "apart")))
})
