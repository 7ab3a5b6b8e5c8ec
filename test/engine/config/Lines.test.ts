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

  it("are those of its keys, of tables, and of keys in inline tables, whatever texts hold", () => {
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

  it("tell of a key that is missing the innermost table it is missing in, unless another key is there", () => {
    assert.strictEqual(lineOf(lines, "server.tls.cert_path"), 7)
    assert.strictEqual(lineOf(lines, "server.tls.cert_path", "top.level"), 1)
    assert.strictEqual(lineOf(lines, "server.tls.cert_path", "nothing.here"), 7)
    assert.strictEqual(lineOf(lines, "admin.enabled"), undefined)
  })

  it("are none where the text is no TOML", () => {
    assert.strictEqual(linesOf("[server").size, 0)
  })
})
