import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { encodeSubject } from "../../../src/crypto/x509/CaCertificate.ts"
import { subjectKeyIdentifier } from "../../../src/crypto/x509/Leaf.ts"
import { generateSelfSigned } from "../../../src/crypto/x509/SelfSigned.ts"
import { readTlsCertificate } from "../../../src/crypto/x509/TlsCertificate.ts"
import { generateTlsPair } from "../../../src/crypto/x509/TlsPair.ts"
import * as TlsFiles from "../../../src/engine/http/TlsFiles.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { useTests } from "../../support/UseTests.ts"

const start = Date.UTC(2026, 0, 1)
const daySeconds = 86_400

/** Every test has its own directory. */
const { records, test } = useTests({ startsAt: start / 1000, first: () => Effect.sync(freshDirectory) })

const settingsIn = (directory: string): TlsFiles.TlsFileSettings => ({
  listener: "acme",
  section: "server.tls",
  cert_path: join(directory, "server.pem"),
  key_path: join(directory, "server.key"),
  host: "acme.example"
})

const at = (days: number) => new Date(start + days * daySeconds * 1000)
const filesIn = (directory: string) => readdirSync(directory).sort()
const countOf = (event: Record["event"]) => records.filter((record) => record.event === event).length

/** Files are written some time after the clock was moved, so the test waits for them. */
const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => holds() ? Effect.void : Effect.andThen(Effect.promise(nextTurn), eventually(holds)))
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Returns the records of an event as soon as there are `count` of them. */
const recorded = (event: Record["event"], count: number) =>
  Effect.map(
    eventually(() => countOf(event) >= count),
    () => records.filter((record) => record.event === event)
  )

const until = (time: string) => TestClock.setTime(Date.parse(time))

/** Collects the renewals of a watched pair, each with the old and the new pair. */
const watched = (settings: TlsFiles.TlsFileSettings, pair: TlsFiles.TlsPair) =>
  Effect.gen(function*() {
    const renewals: Array<readonly [former: TlsFiles.TlsPair, next: TlsFiles.TlsPair]> = []
    yield* TlsFiles.watchExpiry(settings, pair, (former, next) => Effect.sync(() => renewals.push([former, next])))
    return renewals
  })

/** Returns a pair that is watched and announced, on the day of its renewal. */
const announced = (settings: TlsFiles.TlsFileSettings) =>
  Effect.gen(function*() {
    const pair = yield* TlsFiles.load(settings)
    yield* until("2027-01-31T12:00:00Z")
    const renewals = yield* watched(settings, pair)
    yield* recorded("tls_pair_renewal_announced", 1)
    return { pair, renewals }
  })
const renewal = until("2027-01-31T23:00:00Z")

/** A pair that the operator made. It lacks the mark of the service, as pairs of earlier versions also do. */
const operatorsPair = generateSelfSigned({
  keyType: "ecdsa-p256",
  name: encodeSubject({ commonName: "acme.example" }),
  now: start / 1000,
  serial: Uint8Array.of(1),
  validityDays: 397,
  extensions: (spki) => [subjectKeyIdentifier(spki)]
})

describe("the TLS files of a listener", () => {
  test("are created if neither exists, with a key that only the owner may read", (directory) =>
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

  test("are left unchanged when both exist", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const first = yield* TlsFiles.load(settings)
      assert.deepStrictEqual(yield* TlsFiles.load(settings), first)
      assert.isFalse(yield* TlsFiles.generateIfMissing(settings))
    }))

  test("stay if another process makes them meanwhile", (directory) =>
    Effect.gen(function*() {
      const [entropy, settings] = [yield* Entropy, settingsIn(directory)]
      // This is drawn when the pair is ready to be written.
      const token = Effect.andThen(Effect.orDie(TlsFiles.generateIfMissing(settings)), entropy.token)
      const late = Effect.provideService(TlsFiles.generateIfMissing(settings), Entropy, {
        ...entropy,
        token: Effect.provideService(token, Entropy, entropy)
      })
      assert.isFalse(yield* late)
      yield* TlsFiles.load(settings)
    }))

  for (const lone of ["server.pem", "server.key"]) {
    test(`are created anew if only ${lone} exists, which is kept under another name`, (directory) =>
      Effect.gen(function*() {
        writeFileSync(join(directory, lone), "somebody's own\n")
        yield* TlsFiles.load(settingsIn(directory))
        const aside = `${lone}.set-aside-${start / 1000}`
        assert.strictEqual(readFileSync(join(directory, aside), "utf8"), "somebody's own\n")
        assert.strictEqual(records[0]?.fields["set_aside"], join(directory, aside))
      }))
  }

  test("are refused if the key does not belong to the certificate, or if they are not PEM", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      yield* TlsFiles.load(settings)
      const other = yield* generateTlsPair({ host: "other.example", now: start / 1000, serial: Uint8Array.of(1) })
      const encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
      for (
        const [key, says] of [
          [other.privateKeyPem, "is not the key of the first certificate in"],
          ["no key\n", "holds no private key in PEM"],
          [encrypted, "is encrypted"]
        ] as const
      ) {
        writeFileSync(settings.key_path, key)
        const refused = yield* Effect.flip(TlsFiles.load(settings))
        assert.include(refused.message, `.tls.key_path: ${settings.key_path} ${says}`)
        assert.notInclude(refused.message, "PRIVATE KEY")
        assert.isUndefined(refused.mayPass)
      }
      writeFileSync(settings.cert_path, "no certificate")
      const refused = yield* Effect.flip(TlsFiles.load(settings))
      assert.include(refused.message, `.tls.cert_path: ${settings.cert_path} holds no certificate in PEM`)
    }))

  test("cause a warning if others may read or change the key", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      yield* TlsFiles.load(settings)
      assert.notInclude(eventsOf(records), "tls_key_permissive")
      chmodSync(settings.key_path, 0o620)
      yield* TlsFiles.load(settings)
      assert.include(eventsOf(records), "tls_key_permissive")
    }))

  test("expire with the certificate of their chain that expires first", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const { cert } = yield* TlsFiles.load(settings)
      const early = start / 1000 - 3000 * daySeconds
      const above = yield* generateTlsPair({ host: "ca.example", now: early, serial: Uint8Array.of(1) })
      writeFileSync(settings.cert_path, `${cert}${above.certificatePem}`)
      const { notAfter } = yield* TlsFiles.load(settings)
      assert.strictEqual(notAfter.getTime(), Date.parse(new X509Certificate(above.certificatePem).validTo))
      assert.isBelow(notAfter.getTime(), Date.parse(new X509Certificate(cert).validTo))
      assert.strictEqual(records.at(-1)?.fields["not_after"], notAfter.toISOString())
    }))

  test("are named in the message if they cannot be written", (directory) =>
    Effect.gen(function*() {
      const settings = { ...settingsIn(directory), key_path: join(directory, "absent/server.key") }
      const failed = yield* Effect.flip(TlsFiles.load(settings))
      assert.isTrue(failed.mayPass)
      assert.include(failed.message, `${settings.key_path} cannot be written: no such file or directory`)
      assert.isEmpty(readdirSync(directory))
    }))

  test("cause a warning each day of their last fourteen days if the service did not make them", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const pair = { ...yield* TlsFiles.load(settings), notAfter: at(16), isOwn: false }
      const files = filesIn(directory)
      yield* TlsFiles.watchExpiry(settings, pair, () => Effect.die("it is not renewed"))
      yield* TestClock.adjust("2 days")
      assert.strictEqual(countOf("tls_certificate_expiring"), 0)
      yield* TestClock.adjust("1 day")
      assert.strictEqual(countOf("tls_certificate_expiring"), 1)
      yield* TestClock.adjust("20 days")
      assert.strictEqual(countOf("tls_certificate_expiring"), 21)
      assert.deepStrictEqual(filesIn(directory), files)
    }))
})

describe("a pair that the service made", () => {
  test("is announced with the next certificate on each of thirty days, and then renewed", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const pair = yield* TlsFiles.load(settings)
      const renewals = yield* watched(settings, pair)
      yield* until("2027-01-01T22:59:59Z")
      assert.strictEqual(countOf("tls_pair_renewal_announced"), 0)
      assert.deepStrictEqual(filesIn(directory), ["server.key", "server.pem"])

      yield* until("2027-01-02T00:00:00Z")
      const [announced] = yield* recorded("tls_pair_renewal_announced", 1)
      const next = readFileSync(`${settings.cert_path}.next`, "utf8")
      assert.deepStrictEqual(announced?.fields, {
        listener: "acme",
        not_after: "2027-02-01T23:00:00.000Z",
        renewal_at: "2027-01-31T23:00:00.000Z",
        path: `${settings.cert_path}.next`,
        sha256: readTlsCertificate(next).fingerprint
      })
      assert.strictEqual(new X509Certificate(next).validTo, "Feb  2 23:00:00 2028 GMT")
      for (let days = 2; days <= 30; days++) {
        yield* TestClock.adjust("1 day")
        yield* recorded("tls_pair_renewal_announced", days)
      }
      assert.isEmpty(renewals)

      yield* renewal
      const [renewed] = yield* recorded("tls_pair_renewed", 1)
      yield* recorded("tls_certificate_loaded", 2)
      assert.strictEqual(readFileSync(settings.cert_path, "utf8"), next)
      assert.strictEqual(readFileSync(settings.key_path, "utf8"), pair.key)
      const set_aside = `${settings.cert_path}.set-aside-${Date.UTC(2027, 0, 31, 23) / 1000}`
      assert.strictEqual(readFileSync(set_aside, "utf8"), pair.cert)
      assert.deepStrictEqual(filesIn(directory), ["server.key", "server.pem", set_aside.slice(directory.length + 1)])
      assert.deepStrictEqual(renewed?.fields, {
        listener: "acme",
        sha256: readTlsCertificate(next).fingerprint,
        not_after: "2028-02-02T23:00:00.000Z",
        set_aside
      })
      assert.deepStrictEqual(renewals.map(([former, made]) => [former.cert, made.cert]), [[pair.cert, next]])
      assert.strictEqual(countOf("tls_certificate_expiring"), 0)
    }))

  test("is renewed at startup if it has expired", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const pair = yield* TlsFiles.load(settings)
      yield* TestClock.adjust("500 days")
      const next = yield* TlsFiles.load(settings)
      assert.strictEqual(next.key, pair.key)
      assert.isAbove(next.notAfter.getTime(), start + 890 * daySeconds * 1000)
      assert.deepStrictEqual(eventsOf(records).slice(-2), ["tls_pair_renewed", "tls_certificate_loaded"])
    }))

  test("is renewed by only one of the processes that share it", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const { pair, renewals } = yield* announced(settings)
      const others = yield* watched(settings, pair)
      yield* recorded("tls_pair_renewal_announced", 2)
      const isUnlocked = () => !filesIn(directory).includes("server.pem.lock")
      yield* eventually(isUnlocked)
      yield* renewal
      yield* recorded("tls_pair_renewed", 1)
      yield* eventually(isUnlocked)
      yield* TestClock.adjust("100 millis") // The process that found the lock tries again after this time.
      yield* recorded("tls_certificate_loaded", 3)
      const served = readFileSync(settings.cert_path, "utf8")
      assert.deepStrictEqual([...renewals, ...others].map(([former, { cert }]) => [former.cert, cert]), [
        [pair.cert, served],
        [pair.cert, served]
      ])
      assert.strictEqual(countOf("tls_pair_renewed"), 1)
    }))

  test("is not renewed after its operator has replaced it", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const { renewals } = yield* announced(settings)
      const theirs = yield* operatorsPair
      writeFileSync(settings.cert_path, theirs.certificatePem)
      writeFileSync(settings.key_path, theirs.privateKeyPem)
      yield* renewal
      yield* recorded("tls_certificate_loaded", 2)
      assert.deepStrictEqual(renewals.map(([, { cert, key }]) => [cert, key]), [
        [theirs.certificatePem, theirs.privateKeyPem]
      ])
      assert.strictEqual(countOf("tls_pair_renewed"), 0)
      assert.strictEqual(readFileSync(settings.cert_path, "utf8"), theirs.certificatePem)
    }))

  test("is renewed only when a file that prevents the renewal is gone", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const { renewals } = yield* announced(settings)
      const next = `${settings.cert_path}.next`
      writeFileSync(next, "somebody's own\n")
      yield* renewal
      const [failed] = yield* recorded("tls_pair_renewal_failed", 1)
      assert.include(failed?.fields["error"], `server.tls: ${next} was not made by this service`)
      assert.strictEqual(readFileSync(next, "utf8"), "somebody's own\n")
      assert.isEmpty(renewals)
      rmSync(next)
      yield* TestClock.adjust("1 hour")
      yield* recorded("tls_pair_renewed", 1)
    }))

  test("is followed by a certificate for its own key, even if the announced one is for another key", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const pair = yield* TlsFiles.load(settings)
      const other = yield* generateTlsPair({ host: "acme.example", now: start / 1000, serial: Uint8Array.of(1) })
      writeFileSync(`${settings.cert_path}.next`, other.certificatePem)
      yield* renewal
      const next = yield* TlsFiles.load(settings)
      assert.strictEqual(next.key, pair.key)
      assert.strictEqual(countOf("tls_pair_renewed"), 1)
    }))
})
