import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import * as TlsFiles from "../../../src/kernel/http/TlsFiles.ts"
import { generateTlsPair } from "../../../src/pki/x509/TlsPair.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { useTests } from "../../support/UseTests.ts"

const start = Date.UTC(2026, 0, 1)
const daySeconds = 86_400

/** Every test has a directory of its own. */
const { records, test } = useTests({ startsAt: start / 1000, first: () => Effect.sync(freshDirectory) })

const settingsIn = (directory: string): TlsFiles.TlsFileSettings => ({
  listener: "acme",
  cert_path: join(directory, "server.pem"),
  key_path: join(directory, "server.key"),
  host: "acme.example"
})

describe("the TLS files of a listener", () => {
  test("are made when neither exists: the key for its owner alone, the host as the only name", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const pair = yield* TlsFiles.load(settings)
      assert.strictEqual(statSync(settings.key_path).mode & 0o777, 0o600)
      const certificate = new X509Certificate(readFileSync(settings.cert_path))
      assert.strictEqual(certificate.subjectAltName, "DNS:acme.example")
      assert.strictEqual(pair.notAfter.getTime(), new Date(certificate.validTo).getTime())
      assert.sameMembers(readdirSync(directory), ["server.pem", "server.key"])
      assert.deepStrictEqual(eventsOf(records), ["tls_pair_generated", "tls_certificate_loaded"])
    }))

  test("are left as they are when both exist", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const first = yield* TlsFiles.load(settings)
      assert.deepStrictEqual(yield* TlsFiles.load(settings), first)
      assert.isFalse(yield* TlsFiles.generateIfMissing(settings))
    }))

  for (const lone of ["server.pem", "server.key"]) {
    test(`${lone} alone is moved away, not overwritten`, (directory) =>
      Effect.gen(function*() {
        writeFileSync(join(directory, lone), "somebody's own\n")
        yield* TlsFiles.load(settingsIn(directory))
        const aside = `${lone}.set-aside-${start / 1000}`
        assert.strictEqual(readFileSync(join(directory, aside), "utf8"), "somebody's own\n")
        assert.strictEqual(records[0]?.fields["set_aside"], join(directory, aside))
      }))
  }

  test("are refused when the key is not the certificate's, and when they are no PEM", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      yield* TlsFiles.load(settings)
      const other = yield* generateTlsPair({ host: "other.example", now: start / 1000, serial: Uint8Array.of(1) })
      for (const key of [other.privateKeyPem, "no key\n"]) {
        writeFileSync(settings.key_path, key)
        const refused = yield* Effect.flip(TlsFiles.load(settings))
        assert.include(refused.message, settings.key_path)
        assert.notInclude(refused.message, "PRIVATE KEY")
        assert.isUndefined(refused.mayPass)
      }
    }))

  test("that cannot be written are told by name, as a fault of the host", (directory) =>
    Effect.gen(function*() {
      const settings = { ...settingsIn(directory), key_path: join(directory, "absent/server.key") }
      const failed = yield* Effect.flip(TlsFiles.load(settings))
      assert.isTrue(failed.mayPass)
      assert.include(failed.message, `${settings.key_path} cannot be written: no such file or directory`)
      assert.isEmpty(readdirSync(directory))
    }))

  test("warn once a day from fourteen days before the end", () =>
    Effect.gen(function*() {
      yield* TlsFiles.watchExpiry("acme", new Date(start + 16 * daySeconds * 1000))
      const warnings = Effect.as(Effect.yieldNow, records).pipe(
        Effect.map((all) => all.filter(({ event }) => event === "tls_certificate_expiring").length)
      )
      yield* TestClock.adjust("2 days")
      assert.strictEqual(yield* warnings, 0)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* warnings, 1)
      yield* TestClock.adjust("20 days")
      assert.strictEqual(yield* warnings, 21)
    }))
})
