import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "vitest"
import { AppConfig } from "../../src/settings/AppConfig.ts"
import { loadConfig } from "../../src/settings/Load.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "acme-config-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const fromEnv = { ACME_SVC_PROFILES__A__ENABLED: "true" }

describe("loadConfig", () => {
  it.effect("reads config.toml of the working directory", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      writeFileSync(join(cwd, "config.toml"), "\ufeff[profiles.a]\n[order]\nmax_identifiers = 3\n")
      const loaded = yield* loadConfig({ cwd, env: { ACME_SVC_CONFIG: "" } })
      assert.strictEqual(loaded.path, join(cwd, "config.toml"))
      assert.deepStrictEqual([loaded.filePresent, loaded.fileNamedButAbsent], [true, false])
      assert.deepStrictEqual([loaded.keysFromFile, loaded.keysFromEnv], [1, 0])
      const config = yield* Effect.provide(AppConfig, AppConfig.layer(loaded.config))
      assert.strictEqual(config.order.max_identifiers, 3)
    }))

  it.effect("works without a file", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      const loaded = yield* loadConfig({ cwd, env: fromEnv })
      assert.deepStrictEqual([loaded.filePresent, loaded.fileNamedButAbsent], [false, false])
      assert.strictEqual(loaded.path, join(cwd, "config.toml"))
    }))

  it.effect("reports that the file which ACME_SVC_CONFIG names does not exist", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      const loaded = yield* loadConfig({ cwd, env: { ...fromEnv, ACME_SVC_CONFIG: "conf/acme" } })
      assert.deepStrictEqual([loaded.filePresent, loaded.fileNamedButAbsent], [false, true])
      assert.strictEqual(loaded.path, join(cwd, "conf/acme"))
      const refused = yield* Effect.flip(loadConfig({ cwd, env: { ACME_SVC_CONFIG: "conf/acme" } }))
      assert.deepStrictEqual(refused.faults.map(({ key }) => key), ["profiles"])
      const [first, second] = refused.message.split("\n")
      assert.strictEqual(first, `ACME_SVC_CONFIG names ${join(cwd, "conf/acme")}, which does not exist.`)
      assert.match(second ?? "", /^The configuration is refused, 1 fault:$/)
    }))

  it.effect("finds the named file with or without its extension", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      mkdirSync(join(cwd, "acme"))
      writeFileSync(join(cwd, "acme.toml"), "[profiles.dotted]")
      writeFileSync(join(cwd, "plain"), "[profiles.plain]")
      const nameOf = (file: string) =>
        Effect.map(
          loadConfig({ cwd, env: { ACME_SVC_CONFIG: file } }),
          ({ config, path }) => [config.profiles[0]?.name, path]
        )
      assert.deepStrictEqual(yield* nameOf("acme"), ["dotted", join(cwd, "acme.toml")])
      assert.deepStrictEqual(yield* nameOf(join(cwd, "acme.toml")), ["dotted", join(cwd, "acme.toml")])
      assert.deepStrictEqual(yield* nameOf("plain"), ["plain", join(cwd, "plain")])
    }))

  it.effect("reports that the file is a directory, together with the mistakes in the environment", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      mkdirSync(join(cwd, "config.toml"))
      const refused = yield* Effect.flip(loadConfig({
        cwd,
        env: { ACME_SVC_NONCE__TTL_SECONDS: "0", ACME_SVC_CHALLENGE__TIMEOUT_MS: "70000" }
      }))
      assert.deepStrictEqual(refused.faults, [
        { key: join(cwd, "config.toml"), message: "is a directory" },
        { key: "nonce.ttl_seconds", message: "must be at least 1 (ACME_SVC_NONCE__TTL_SECONDS)" }
      ])
      assert.deepStrictEqual(refused._tag, "ConfigRefused")
    }))

  it.effect("refuses a file that is not UTF-8 text or not TOML", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      const file = join(cwd, "config.toml")
      writeFileSync(file, Uint8Array.of(0x23, 0xff))
      const binary = yield* Effect.flip(loadConfig({ cwd, env: {} }))
      assert.deepStrictEqual(binary.faults, [{ key: file, message: "is not UTF-8 text" }])
      writeFileSync(file, "[profiles.a]\n[order\n")
      const broken = yield* Effect.flip(loadConfig({ cwd, env: {} }))
      assert.include(broken.message, `${file}: is not well-formed TOML at line 2, column `)
    }))

  it.effect("refuses a file that exists but cannot be opened", () =>
    Effect.gen(function*() {
      const cwd = yield* directory
      symlinkSync("config.toml", join(cwd, "config.toml"))
      const refused = yield* Effect.flip(loadConfig({ cwd, env: fromEnv }))
      assert.deepStrictEqual(refused.faults, [{ key: join(cwd, "config.toml"), message: "cannot be read (ELOOP)" }])
    }))
})
