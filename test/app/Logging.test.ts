import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { make } from "../../src/app/Logging.ts"
import { emit } from "../../src/domain/words/Log.ts"
import { accepted, fileWith, refusedFor } from "../settings/Samples.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

const configOf = (logging: string) => accepted({ fileText: `[logging]\n${logging}\n[profiles.default]\n` }).config

/** Returns the log after a reload from one `[logging]` section to another. */
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
  it.effect("uses the new filter, and reports a flag or variable that overrides this filter", () =>
    Effect.gen(function*() {
      const before = "filter = \"acme_svc=info\""
      const after = "filter = \"acme_svc=warn,acme_svc.db=info\""
      const overridden = (source: string) => [`server_logging_filter_overridden outcome=advisory source=${source}`]
      assert.deepStrictEqual(yield* told({ before, after }), [])
      assert.deepStrictEqual(yield* told({ before, after, logLevel: "info" }), overridden("flag"))
      assert.deepStrictEqual(yield* told({ before, after, env: { RUST_LOG: "info" } }), overridden("env"))
      assert.deepStrictEqual(yield* told({ before, after: before, logLevel: "info" }), [], "nothing was edited")
    }))

  it.effect("reports a configured key that has no effect", () =>
    Effect.gen(function*() {
      const after = "flatten_event = true\njson_format = false"
      assert.deepStrictEqual(yield* told({ before: "", after }), [
        "server_logging_key_unused outcome=advisory key=logging.flatten_event"
      ])
    }))
})

const { test } = useTests({ startsAt: 1_800_000_000 })

describe("an invalid filter", () => {
  test("is refused by every command, whether it is set in logging.filter or in RUST_LOG", () =>
    Effect.gen(function*() {
      const { run } = freshPlace()
      for (
        const [filter, said] of [
          ["debugg", "has \"debugg\", and no record has that target; the nearest are "],
          ["acme_svc=loud", "has \"acme_svc=loud\", whose level is none: a level is one of off, error, "],
          ["acme_svc[span]=debug", "has \"acme_svc[span]=debug\", which is neither target=level nor a level nor "],
          ["info,acme_svc::chalenge=debug", "has \"acme_svc::chalenge=debug\", and no record has that target; the "],
          ["hyper=info", "has no level and no target that begins with acme_svc, so that nothing would be logged"]
        ] as const
      ) {
        const fault = refusedFor({ fileText: fileWith("logging.filter", filter) })
        assert.isTrue(fault.key === "logging.filter" && fault.message.startsWith(said), fault.message)
        for (const words of [["serve"], ["config", "check"], ["nonce", "count"]]) {
          const ended = yield* run(words, { env: { RUST_LOG: filter } })
          assert.isTrue(ended.code === 3 && ended.err.startsWith(`RUST_LOG: ${said}`), ended.err)
        }
      }
      const outranked = yield* run(["config", "check", "--log-level", "3"], { env: { RUST_LOG: "debugg" } })
      assert.strictEqual(outranked.code, 0, outranked.err)
    }))
})
