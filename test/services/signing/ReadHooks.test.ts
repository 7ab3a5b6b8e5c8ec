import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { encodePem } from "../../../src/crypto/asn1/Pem.ts"
import type { ScriptOutcome, ScriptRequest } from "../../../src/engine/host/Scripts.ts"
import type { ScriptFailed } from "../../../src/engine/host/Scripts.ts"
import { Scripts } from "../../../src/engine/host/Scripts.ts"
import { currentPeer } from "../../../src/engine/net/FairSemaphore.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"
import { ReadHooks } from "../../../src/services/signing/ReadHooks.ts"
import type { CustomSettings } from "../../../src/services/signing/SignerScript.ts"
import { openssl } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { settingsIn, signerOf } from "../../support/LocalCa.ts"
import { useTests } from "../../support/UseTests.ts"
import type { Making } from "../../support/UseTests.ts"

/* Tests the hooks crl and renewal_info (docs/configure/signers.md, "A program"), which run while a client waits. */

const leaf = Buffer.from("a leaf")

const profile = (name: string, custom: Partial<CustomSettings> = {}) => {
  const local = signerOf(settingsIn(freshDirectory()))
  const hooks = { supports_crl: true, supports_renewal_info: true, script_path: "sign" }
  return {
    name,
    signer: {
      ...local,
      local_ca: local.local_ca,
      backend: "custom" as const,
      custom: { ...local.custom, ...hooks, ...custom }
    }
  }
}

const exits = (exit: number, stdout: Uint8Array | string = ""): ScriptOutcome => ({
  exit,
  stdout: Buffer.from(stdout),
  stderr: Buffer.alloc(0)
})

/** How the operator's script is configured in a test, and what the script does. */
interface Scripted {
  readonly custom?: Partial<CustomSettings>
  readonly answers: (request: ScriptRequest, times: number) => Effect.Effect<ScriptOutcome, ScriptFailed>
}

/** The requests that the script of a test got. */
const seen: Array<ScriptRequest> = []

const { records, test } = useTests({
  layer: ({ script }: Making<Scripted>) => {
    seen.length = 0
    const scripts = Scripts.layerScripted((request) =>
      script?.answers(request, seen.push(request)) ?? Effect.die("none")
    )
    const { local_ca } = signerOf(settingsIn(freshDirectory()))
    return Layer.provide(
      ReadHooks.layer([profile("p", script?.custom), { name: "own", signer: signerOf(local_ca) }]),
      scripts
    )
  }
})

const crlOf = (name: string) => Effect.flatMap(ReadHooks, ({ crl }) => crl(name))
const windowOf = (name: string, of: Uint8Array = leaf) => Effect.flatMap(ReadHooks, ({ window }) => window(name, of))

/** Returns a list of the requested version, signed by OpenSSL. */
const opensslCrl = (version: 1 | 2): Buffer => {
  const directory = freshDirectory()
  const [config, database, key, certificate] = ["config", "database", "key", "certificate"].map((name) =>
    join(directory, name)
  ) as [string, string, string, string]
  const extensions = version === 2 ? "crl_extensions = more\n[more]\nauthorityKeyIdentifier = keyid\n" : ""
  writeFileSync(
    config,
    `[ca]\ndefault_ca = it\n[it]\ndatabase = ${database}\ndefault_md = sha256\ndefault_crl_days = 7\n${extensions}`
  )
  writeFileSync(database, "")
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]
  openssl(["req", "-x509", ...curve, "-subj", "/CN=x", "-keyout", key, "-out", certificate])
  const list = openssl(["ca", "-config", config, "-gencrl", "-keyfile", key, "-cert", certificate])
  return openssl(["crl", "-outform", "DER"], list)
}

describe("the hook crl", () => {
  for (const version of [1, 2] as const) {
    const der = opensslCrl(version)
    test(`returns a list of version ${version} unchanged, and caches it for a minute`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(Buffer.from((yield* crlOf("p")) ?? []), der)
        const [asked] = seen
        assert.deepInclude(asked, { env: { ACME_SIGNER_HOOK: "crl" }, stdin: `{"hook":"crl"}`, path: "sign" })
        yield* TestClock.adjust("59 seconds")
        yield* crlOf("p")
        assert.lengthOf(seen, 1)
        yield* TestClock.adjust("2 seconds")
        yield* crlOf("p")
        assert.lengthOf(seen, 2)
      }), { answers: () => Effect.succeed(exits(0, der)) })
  }

  const list = opensslCrl(2)
  test(
    "returns a list in DER if the program prints PEM with other text before it",
    () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(Buffer.from((yield* crlOf("p")) ?? []), list)
        assert.deepStrictEqual(eventsOf(records), [])
      }),
    { answers: () => Effect.succeed(exits(0, openssl(["crl", "-inform", "DER", "-text"], list))) }
  )

  test("returns no list if there is no output", () => Effect.map(crlOf("p"), (der) => assert.isUndefined(der)), {
    answers: () => Effect.succeed(exits(0))
  })

  for (
    const [what, answer] of [
      ["garbage", exits(0, "garbage")],
      ["PEM of something else", exits(0, encodePem("CERTIFICATE", opensslCrl(2)))],
      ["PEM of two lists", exits(0, encodePem("X509 CRL", opensslCrl(2)).repeat(2))],
      ["a list with an octet after it", exits(0, Buffer.concat([opensslCrl(2), Buffer.of(0)]))],
      ["exit 1", exits(1, opensslCrl(2))],
      ["exit 3, which is reserved for issue", exits(3)]
    ] as const
  ) {
    test(`fails after ${what}, and the program is run again after some seconds`, () =>
      Effect.gen(function*() {
        yield* Effect.flip(crlOf("p"))
        yield* Effect.flip(crlOf("p"))
        assert.lengthOf(seen, 1)
        yield* TestClock.adjust("6 seconds")
        yield* Effect.flip(crlOf("p"))
        assert.lengthOf(seen, 2)
        assert.deepStrictEqual(
          eventsOf(records).filter((event) => event.startsWith("signer_script_")).length,
          2,
          "and each is recorded"
        )
      }), { answers: () => Effect.succeed(answer) })
  }

  test(
    "is not run for a profile with another signer, or if the configuration does not turn the hook on",
    () =>
      Effect.gen(function*() {
        for (const name of ["p", "own", "nobody"]) {
          assert.isUndefined(yield* crlOf(name))
          assert.isUndefined(yield* windowOf(name))
        }
      }),
    {
      custom: {
        supports_crl: false,
        supports_renewal_info: false
      },
      answers: () => Effect.die("never run")
    }
  )

  test("runs once for simultaneous callers", () =>
    Effect.gen(function*() {
      const asking = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 50 }, () => crlOf("p")), { concurrency: 50 })
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(asking)
      assert.lengthOf(seen, 1)
    }), { answers: () => Effect.delay(Effect.succeed(exits(0)), "1 second") })
})

describe("a client that leaves", () => {
  const goes = (ask: Effect.Effect<unknown, unknown, ReadHooks>) => () =>
    Effect.gen(function*() {
      const first = yield* Effect.forkChild(ask)
      yield* TestClock.adjust("500 millis")
      const second = yield* Effect.forkChild(ask)
      yield* TestClock.adjust("100 millis")
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(second)
      assert.lengthOf(seen, 1)
    })
  const slowly = (printed: string) => () => Effect.delay(Effect.succeed(exits(0, printed)), "1 second")

  test("does not stop the program that prints a list, and the other clients get the answer", goes(crlOf("p")), {
    answers: slowly("")
  })
  test("does not stop the program that prints a window, and the other clients get the answer", goes(windowOf("p")), {
    answers: slowly("100 200")
  })
})

describe("the hook renewal_info", () => {
  for (
    const [printed, window] of [
      ["", undefined],
      [" \n\n", undefined],
      ["100 200", { start: 100, end: 200, explanationUrl: undefined }],
      ["\t100\n200 https://why.example/x?y=z \n", {
        start: 100,
        end: 200,
        explanationUrl: "https://why.example/x?y=z"
      }],
      ["-5 0 http://why.example", { start: -5, end: 0, explanationUrl: "http://why.example" }],
      ["100 200 javascript:alert(1)", { start: 100, end: 200, explanationUrl: undefined }],
      ["100 200 no-url", { start: 100, end: 200, explanationUrl: undefined }]
    ] as const
  ) {
    test(`accepts ${JSON.stringify(printed)}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* windowOf("p"), window)
        assert.deepInclude(seen[0], {
          env: { ACME_SIGNER_HOOK: "renewal_info" },
          stdin: JSON.stringify({ hook: "renewal_info", cert_der_base64: leaf.toString("base64") })
        })
      }), { answers: () => Effect.succeed(exits(0, printed)) })
  }

  for (
    const printed of [
      "100",
      "100 200 https://a.example more",
      "now then",
      "1.5 2",
      "1e3 2e3",
      "200 100",
      "100 100",
      "100 999999999999"
    ]
  ) {
    test(`fails after ${JSON.stringify(printed)}`, () => Effect.asVoid(Effect.flip(windowOf("p"))), {
      answers: () => Effect.succeed(exits(0, printed))
    })
  }

  test("logs a failure once, with the output of the script", () =>
    Effect.gen(function*() {
      yield* Effect.flip(windowOf("p"))
      yield* Effect.flip(windowOf("p"))
      assert.deepStrictEqual(eventsOf(records), ["signer_script_failed"])
      assert.deepInclude(records[0]?.fields, { hook: "renewal_info", exit_code: 7, error: "away" })
    }), { answers: () => Effect.succeed(exits(7, "away")) })

  test(
    "runs once a minute for one certificate, and at most four times at once",
    () =>
      Effect.gen(function*() {
        const leaves = Array.from({ length: 40 }, (_, index) => Buffer.of(index % 20))
        const asking = yield* Effect.forkChild(Effect.forEach(leaves, (of) => windowOf("p", of), { concurrency: 40 }))
        yield* Deferred.await(four)
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(asking)
        assert.deepStrictEqual([seen.length, most], [20, 4])
        yield* Effect.forEach(leaves, (of) => windowOf("p", of))
        assert.lengthOf(seen, 20)
      }),
    {
      answers: (_, times) =>
        Effect.gen(function*() {
          running++
          most = Math.max(most, running)
          if (times >= 4) yield* Deferred.succeed(four, undefined)
          yield* Deferred.await(go)
          running--
          return exits(0, "100 200")
        })
    }
  )
  let [running, most] = [0, 0]
  const [four, go] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
})

describe("a client whose windows take long", () => {
  const from = (address: string) => Effect.provideService(currentPeer, peerOf(address))
  const [flooder, victim] = [from("203.0.113.66"), from("198.51.100.7")]
  const timeout_ms = 5000
  const slowly = Buffer.from("slowly")
  const requestOf = ({ stdin }: ScriptRequest) => String(stdin)
  /** The program never ends for a leaf whose name begins with "slowly". */
  const answers = (request: ScriptRequest) =>
    requestOf(request).includes(slowly.toString("base64")) ? Effect.never : Effect.succeed(exits(0))
  const scripted = { custom: { timeout_ms }, answers }
  const flood = Effect.forEach(
    Array.from({ length: 12 }, (_, at) => Buffer.from(`slowly${at}`)),
    (of) => Effect.forkChild(flooder(windowOf("p", of)), { startImmediately: true })
  )
  /** Asks, and fails if the answer does not come before any program is late. */
  const atOnce = Effect.fnUntraced(function*<A, E, R>(asked: Effect.Effect<A, E, R>) {
    const fiber = yield* Effect.forkChild(asked)
    yield* TestClock.adjust(1)
    assert.isDefined(fiber.pollUnsafe(), "the client waits")
    return yield* Fiber.join(fiber)
  })

  test("does not delay the list for others by asking for it first", () =>
    Effect.gen(function*() {
      yield* flood
      yield* Effect.forkChild(flooder(crlOf("p")), { startImmediately: true })
      assert.isUndefined(yield* atOnce(victim(crlOf("p"))))
    }), scripted)

  test("does not delay another client's window by asking for it first", () =>
    Effect.gen(function*() {
      yield* flood
      const first = yield* Effect.forkChild(flooder(windowOf("p")), { startImmediately: true })
      assert.isUndefined(yield* atOnce(victim(windowOf("p"))))
      assert.lengthOf(seen.filter((request) => requestOf(request).includes(leaf.toString("base64"))), 1)
      assert.isUndefined(first.pollUnsafe(), "it waits for its own turn")
    }), scripted)

  test("passes on no failure if it had no turn in time", () =>
    Effect.gen(function*() {
      yield* flood
      const first = yield* Effect.forkChild(flooder(windowOf("p")), { startImmediately: true })
      yield* TestClock.adjust(timeout_ms)
      const { detail } = yield* Effect.flip(atOnce(Fiber.join(first)))
      assert.strictEqual(detail, "the script did not begin within 5000 ms, because other scripts ran")
      assert.include(eventsOf(records), "signer_script_timeout")
      assert.isUndefined(yield* atOnce(victim(windowOf("p"))))
    }), scripted)

  test("leaves the queue if it disconnects", () =>
    Effect.gen(function*() {
      const asked = yield* flood
      const begun = seen.length
      yield* Effect.forEach(asked.slice(begun), Fiber.interrupt)
      assert.isBelow(begun, asked.length)
      yield* Deferred.succeed(go, undefined)
      yield* Effect.forEach(asked.slice(0, begun), Fiber.join)
      assert.isUndefined(yield* atOnce(flooder(windowOf("p"))))
      assert.lengthOf(seen, begun + 1)
    }), {
    ...scripted,
    answers: () => Effect.as(Deferred.await(go), exits(0))
  })
  const go = Deferred.makeUnsafe<void>()

  test("is not charged for the wait when its program begins", () =>
    Effect.gen(function*() {
      const asked = yield* flood
      yield* TestClock.adjust(timeout_ms - 1)
      yield* Deferred.succeed(later, undefined)
      yield* Effect.forEach(asked, Fiber.join)
      assert.deepStrictEqual(
        seen.map(({ timeoutMillis, turns }) => [timeoutMillis, turns]),
        asked.map(() => [timeout_ms, undefined])
      )
    }), {
    ...scripted,
    answers: () => Effect.as(Deferred.await(later), exits(0))
  })
  const later = Deferred.makeUnsafe<void>()
})
