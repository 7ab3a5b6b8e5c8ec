import { assert, describe, it } from "vitest"
import { lineOf, linesOf } from "../../../src/engine/config/Lines.ts"

const file = [
  "top.level = 1", // 1
  "# [server]",
  "[server]", // 3
  "base_url = '''", // 4
  "[admin]",
  "'''",
  "tls = {", // 7
  "  enabled = true,", // 8
  "}",
  "[profiles.\"two words\".order]", // 10
  "max_identifiers = 3", // 11
  "[[tables]]", // 12
  "one = 1", // 13
  "[[tables]]",
  "one = 2"
].join("\n")

describe("the lines of a file", () => {
  const lines = linesOf(file)

  it("are found for keys, for tables and for keys in inline tables, whatever the strings contain", () => {
    assert.deepStrictEqual(
      [
        "top.level",
        "top",
        "server",
        "server.base_url",
        "server.tls",
        "server.tls.enabled",
        "profiles.\"two words\".order.max_identifiers",
        "profiles.\"two words\"",
        "admin"
      ].map((key) => lines.get(key)),
      [1, 1, 3, 4, 7, 8, 11, 10, undefined]
    )
  })

  it("are those of the innermost table around a missing key, unless another given key is present", () => {
    assert.strictEqual(lineOf(lines, "server.tls.cert_path"), 7)
    assert.strictEqual(lineOf(lines, "server.tls.cert_path", "top.level"), 1)
    assert.strictEqual(lineOf(lines, "server.tls.cert_path", "nothing.here"), 7)
    assert.strictEqual(lineOf(lines, "admin.enabled"), undefined)
  })

  it("are unknown if the text is not TOML", () => {
    assert.strictEqual(linesOf("[server").size, 0)
  })
})
