import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { make } from "../../src/app/Logging.ts"
import { emit } from "../../src/kernel/telemetry/EventLog.ts"
import { accepted } from "../settings/Samples.ts"

const configOf = (logging: string) => accepted({ fileText: `[logging]\n${logging}\n[profiles.default]\n` }).config

/** What is logged after a reload from one `[logging]` to another. */
const told = (
  { after, before, env = {}, logLevel }: {
    readonly before: string
    readonly after: string
    readonly env?: { readonly [name: string]: string }
    readonly logLevel?: "info"
  }
) =>
  Effect.suspend(() => {
    let text = ""
    const output = { isTerminal: false, write: (more: string) => void (text += more) }
    const streams = { stdout: output, stderr: { isTerminal: false, write: () => {} }, env }
    const log = make(configOf(before), streams, { logLevel, color: "auto" })
    const reloaded = Effect.andThen(log.enforce(configOf(after)), emit("db_listen_restored", {}))
    return Effect.map(Effect.provide(reloaded, log.layer), () => {
      const lines = text.trimEnd().split("\n").map((line) => line.split(" ").slice(2).filter((word) => word !== ""))
      assert.deepStrictEqual(lines.pop(), ["db_listen_restored", "outcome=success"])
      return lines.map((words) => words.join(" "))
    })
  })

describe("the log after a reload", () => {
  it.effect("goes by its new filter, and says when something outranks it", () =>
    Effect.gen(function*() {
      const before = "filter = \"acme_svc=info\""
      const after = "filter = \"acme_svc=warn,acme_svc.db=info\""
      const overridden = (source: string) => [`server_logging_filter_overridden outcome=advisory source=${source}`]
      assert.deepStrictEqual(yield* told({ before, after }), [])
      assert.deepStrictEqual(yield* told({ before, after, logLevel: "info" }), overridden("flag"))
      assert.deepStrictEqual(yield* told({ before, after, env: { RUST_LOG: "info" } }), overridden("env"))
      assert.deepStrictEqual(yield* told({ before, after: before, logLevel: "info" }), [], "nothing was edited")
    }))

  it.effect("says which of its keys is without effect", () =>
    Effect.gen(function*() {
      const after = "flatten_event = true\njson_format = false"
      assert.deepStrictEqual(yield* told({ before: "", after }), [
        "server_logging_key_unused outcome=advisory key=logging.flatten_event"
      ])
    }))
})
