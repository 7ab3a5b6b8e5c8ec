import { Effect } from "effect"
import { assert, describe } from "vitest"
import { adviseOfIgnored } from "../../src/app/Advisories.ts"
import { accepted } from "../settings/Samples.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"
import { useTests } from "../support/UseTests.ts"

/*
 * Faults in sections that are turned off are reported with the advisories. They prevent only the use of those sections.
 */

const { records, test } = useTests({ startsAt: 1_800_000_000 })

const fileText = `[admin]
bind_address = "0.0.0.0:3001"
${minimalConfig}[profiles.old]
enabled = false
filter.rules = ["x"]
`

describe("a fault in a section that is turned off", () => {
  test("is reported as an advisory that names the key", () =>
    Effect.gen(function*() {
      yield* adviseOfIgnored(accepted({ fileText }))
      assert.deepStrictEqual(records.map(({ event, fields: { key }, outcome }) => [event, outcome, key]), [
        ["server_config_fault_ignored", "advisory", "admin.bind_address"],
        ["server_config_fault_ignored", "advisory", "profiles.old.filter.rules"]
      ])
    }))

  test("is reported by config check once, with its line", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(() => fileText)
      const { code, err } = yield* run(["config", "check"])
      assert.strictEqual(code, 0, err)
      const [panel = "", ...others] = err.split("\n").filter((line) => line.includes("server_config_fault_ignored"))
      assert.match(panel, /^Advisory: admin\.bind_address: \w+, error is not a loopback .* \(line 2 of config\.toml\)$/)
      assert.lengthOf(others, 1)
    }))

  test("prevents only commands about the profile that is turned off", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(() => fileText)
      for (const words of [["filter", "show"], ["filter", "explain"], ["upstream", "show"]]) {
        const { code, err } = yield* run([...words, "--profile", "old"])
        assert.strictEqual(code, 3, err)
        assert.match(err, /^Profile old is parked and cannot be used.*\n  profiles\.old\.filter\.rules: .*line \d+ of/)
      }
      assert.strictEqual((yield* run(["filter", "show", "--profile", "default"])).code, 0)
    }))
})
