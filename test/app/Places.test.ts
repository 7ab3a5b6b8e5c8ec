import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* A fault of a configuration is reported with its line of the file, whichever step finds it. */

const { test } = useTests({ startsAt: 1_800_000_000 })

const placeWith = (...lines: ReadonlyArray<string>) => freshPlace(() => lines.join("\n"))

describe("a fault in a configuration", () => {
  test("is reported with its line if a key is wrong, unknown or missing, or conflicts with others", () =>
    Effect.gen(function*() {
      const { run } = placeWith(
        "[profiles.web]",
        "enabled = true",
        "[server]",
        "base_url = \"ftp://a.example\"",
        "request_timeout_ms = 100",
        "speed = 3",
        "[profiles.web.filter]",
        "rules = [\"lan\"]",
        "[profiles.web.filter.rule.lan]",
        "then = \"allow\""
      )
      const env = { ACME_SVC_NONCE__TTL_SECONDS: "0", ACME_SVC_ORDER__VALIDITY_SECONDS: "900" }
      for (const words of [["config", "check"], ["profile", "list"], ["serve"]]) {
        const { code, err } = yield* run(words, { env })
        assert.strictEqual(code, 3, err)
        assert.deepStrictEqual(err.trimEnd().split("\n").slice(1).map((line) => line.trim()), [
          // A default conflicts with a key of the file.
          "challenge.timeout_ms: must be less than server.request_timeout_ms, which is 100 (line 5 of config.toml)",
          "nonce.ttl_seconds: must be at least 1 (ACME_SVC_NONCE__TTL_SECONDS)",
          "profiles.web.filter.rule.lan.when: must be set (line 9 of config.toml)",
          "server.base_url: must be an absolute http or https URL (line 4 of config.toml)",
          "server.speed: is not a known key; the nearest is server.processes (line 6 of config.toml)"
        ])
      }
    }))

  test("is reported without a line if a variable overrides the value", () =>
    Effect.gen(function*() {
      const { run } = placeWith("[profiles.web]", "enabled = true", "[challenge]", "timeout_ms = 100")
      const { err } = yield* run(["config", "check"], { env: { ACME_SVC_CHALLENGE__TIMEOUT_MS: "70000" } })
      assert.match(err, /challenge\.timeout_ms: must be less than .*\d$/m)
    }))

  test("is reported with the line of the key if the fault is in the file, address or program that the key names", () =>
    Effect.gen(function*() {
      const { directory, run } = placeWith(
        "[server]",
        "bind_address = \"127.0.0.1:3009\"",
        "[server.tls]",
        "enabled = true",
        "cert_path = \"pair.pem\"",
        "[metrics]",
        "enabled = true",
        "bind_address = \"127.0.0.1:3009\"",
        "[signer.local_ca]",
        "key_path = \"folder\"",
        "[profiles.web]",
        "[profiles.web.ipam]",
        "backend = \"custom\"",
        "custom.script_path = \"missing.sh\""
      )
      writeFileSync(join(directory, "pair.pem"), "no certificate")
      writeFileSync(join(directory, "tls-key.pem"), "no key")
      mkdirSync(join(directory, "folder"))
      const { code, err } = yield* run(["config", "check"], {
        env: { ACME_SVC_SERVER__TLS__KEY_PATH: join(directory, "tls-key.pem") }
      })
      assert.strictEqual(code, 3)
      const told = err.trimEnd().split("\n").map((line) => line.replaceAll(`${directory}/`, ""))
      assert.deepStrictEqual(told, [
        "metrics.bind_address: 127.0.0.1:3009 is an address of another listener too, server.bind_address = 127.0.0.1:3009 (line 8 of config.toml).",
        "Profile web: signer.local_ca.key_path: folder cannot be used: not a regular file (line 10 of config.toml).",
        "server.tls.cert_path: pair.pem holds no certificate in PEM (line 5 of config.toml).",
        "profiles.web.ipam.custom.script_path: missing.sh is not an executable file (line 14 of config.toml)."
      ])
      const start = yield* run(["serve"])
      assert.deepStrictEqual([start.code, start.err.trimEnd()], [3, told[0]])
    }))
})
