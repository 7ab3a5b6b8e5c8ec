import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Resolver } from "../../../src/engine/net/Resolver.ts"
import type { TransitSettings, TransitVersion } from "../../../src/engine/net/Transit.ts"
import { makeTransit } from "../../../src/engine/net/Transit.ts"
import type { WebAnswer, WebRequest } from "../../../src/engine/net/Web.ts"
import { Web, WebFailed } from "../../../src/engine/net/Web.ts"
import { pem, spkiOf } from "../../crypto/Pki.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { newPrivateKey } from "../../support/Graph.ts"
import { pending } from "../../support/Pending.ts"
import { rawServer } from "../../support/RawServer.ts"
import { useTests } from "../../support/UseTests.ts"

/* Servers that answer late, wrongly or not at all. TransitKey.test.ts has a server of OpenBao. */

const { test } = useTests({ first: () => Effect.sync(freshDirectory) })

const secret = "s.planted-token"
const asked = { digestName: "sha256", digest: new Uint8Array(32) } as const
const public_key = pem("PUBLIC KEY", spkiOf(newPrivateKey()))

const settingsIn = (directory: string, more: Partial<TransitSettings> = {}): TransitSettings => {
  const token_file = join(directory, "token")
  writeFileSync(token_file, `${secret}\n`)
  return {
    address: "https://bao.example:8200/prefix/",
    mount: "a/transit",
    namespace: "",
    key: "ca",
    key_version: 0,
    token_file,
    ca_path: "",
    ...more
  }
}

const newest = (versions: ReadonlyArray<TransitVersion>) => versions[0] ?? "none"

const answer = (status: number, body: string | object, truncated = false): WebAnswer => ({
  status,
  headers: {},
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
  truncated
})

const key = answer(200, {
  data: { type: "ecdsa-p256", keys: { 1: { public_key }, 2: { public_key }, 10: { public_key } } }
})
const signed = (version = 10) => answer(200, { data: { signature: `vault:v${version}:AQID` } })

type Answers = (request: WebRequest, at: number) => WebAnswer | Effect.Effect<WebAnswer, WebFailed>

/** A network in which one server answers, and the requests that it got. */
const serving = (answers: Answers) => {
  const requests: Array<WebRequest> = []
  const send = (request: WebRequest): Effect.Effect<WebAnswer, WebFailed> => {
    const said = answers(request, requests.push(request) - 1)
    return Effect.isEffect(said) ? said : Effect.succeed(said)
  }
  return { requests, web: { send, reach: () => Effect.void } }
}

const isRead = ({ method }: WebRequest) => method === "GET"

/** Returns the detail of the failure with which a server that answers so refuses the first signature. */
const refusalOf = (directory: string, answers: Answers, more: Partial<TransitSettings> = {}) =>
  Effect.gen(function*() {
    const { web } = serving(answers)
    const failed = yield* Effect.flip(makeTransit(web, settingsIn(directory, more), newest).sign(asked))
    assert.notInclude(JSON.stringify(failed), secret)
    return failed
  })

describe("a key of a Transit engine", () => {
  test("is asked for the digest and for the newest version by its number, with the token in a header only", (directory) =>
    Effect.gen(function*() {
      const { requests, web } = serving((request) => isRead(request) ? key : signed())
      const transit = makeTransit(web, settingsIn(directory, { namespace: "team/ca" }), newest)
      assert.deepEqual(yield* transit.sign(asked), Buffer.from([1, 2, 3]))
      yield* transit.sign(asked)
      assert.deepStrictEqual(requests.map(({ method, url }) => `${method} ${url.href}`), [
        "GET https://bao.example:8200/prefix/v1/a/transit/keys/ca",
        "POST https://bao.example:8200/prefix/v1/a/transit/sign/ca",
        "POST https://bao.example:8200/prefix/v1/a/transit/sign/ca"
      ])
      for (const { body, headers } of requests) {
        assert.strictEqual(headers["X-Vault-Token"], secret)
        assert.strictEqual(headers["X-Vault-Namespace"], "team/ca")
        assert.notInclude(String(body), secret)
      }
      assert.deepStrictEqual(JSON.parse(String(requests[1]?.body)), {
        input: Buffer.from(asked.digest).toString("base64"),
        prehashed: true,
        hash_algorithm: "sha2-256",
        signature_algorithm: "pkcs1v15",
        marshaling_algorithm: "asn1",
        key_version: 10
      })
    }))

  test("gives no signature if an answer is wrong, long, of another version, or a redirect", (directory) =>
    Effect.gen(function*() {
      const first = (wrong: WebAnswer) => (request: WebRequest) => isRead(request) ? wrong : signed()
      const second = (wrong: WebAnswer) => (request: WebRequest) => isRead(request) ? key : wrong
      const cases: ReadonlyArray<readonly [Answers, string, isFault: boolean]> = [
        [first(answer(200, "no JSON")), "answers in a form that is not expected", false],
        [
          first(answer(200, { data: { type: "x", keys: { 1: 1795950986 } } })),
          "is of the type x, which signs nothing",
          true
        ],
        [first(answer(200, key.body.toString(), true)), "answers with more than 1048576 bytes", false],
        [first(answer(404, { errors: [] })), "there is no key a/transit/ca; the server answers 404", true],
        [second(answer(307, "")), "the server answers 307; redirects are not followed", false],
        [second(answer(200, "{}")), "answers with no signature of version 10", false],
        [second(signed(9)), "answers with no signature of version 10", false],
        [second(answer(200, { data: { signature: "vault:v10:!" } })), "answers with no signature of version 10", false],
        [second(answer(500, "x".repeat(10), true)), "answers with more than 65536 bytes", false],
        [
          second(answer(400, { errors: [`a\n${secret}`, "b".repeat(500)] })),
          `the server answers 400: a ***; ${"b".repeat(193)}`,
          false
        ]
      ]
      for (const [answers, said, isFault] of cases) {
        const failed = yield* refusalOf(directory, answers)
        assert.include(failed.detail, said)
        assert.strictEqual(failed.isFault, isFault)
      }
      const none = yield* refusalOf(directory, () => new WebFailed({ detail: "connection refused" }))
      assert.deepInclude(none, { detail: "the server cannot be asked: connection refused", isFault: false })
    }))

  test("is asked again with a new token at once, but not twice with the same one", (directory) =>
    Effect.gen(function*() {
      const settings = settingsIn(directory)
      const good = "s.new"
      const { requests, web } = serving((request) =>
        request.headers["X-Vault-Token"] !== good ? answer(403, {}) : isRead(request) ? key : signed()
      )
      const transit = makeTransit(web, settings, newest)
      assert.include((yield* Effect.flip(transit.sign(asked))).detail, "the server answers 403; the token in")
      assert.strictEqual(requests.length, 1)
      // Until a second has passed, the server is not asked.
      yield* Effect.flip(transit.sign(asked))
      assert.strictEqual(requests.length, 1)
      yield* TestClock.adjust("1 second")
      writeFileSync(settings.token_file, good)
      yield* transit.sign(asked)
      assert.strictEqual(requests.length, 3)
    }))

  test("waits longer after each failure, at most a minute, and reports the trouble until it is over", (directory) =>
    Effect.gen(function*() {
      let isUp = false
      const { requests, web } = serving((request) =>
        isUp ? isRead(request) ? key : signed() : answer(503, { errors: ["sealed"] })
      )
      const transit = makeTransit(web, settingsIn(directory), newest)
      for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
        const before = requests.length
        assert.strictEqual(yield* transit.trouble, "the server answers 503: sealed")
        assert.strictEqual(requests.length, before + 1)
        yield* TestClock.adjust(seconds * 1000 - 1)
        assert.strictEqual(yield* transit.trouble, "the server answers 503: sealed")
        assert.strictEqual(requests.length, before + 1)
        yield* TestClock.adjust(1)
      }
      isUp = true
      assert.isUndefined(yield* transit.trouble)
      yield* transit.sign(asked)
    }))

  test("is given up after ten seconds, while it is opened and while it signs", (directory) =>
    Effect.gen(function*() {
      for (const hangs of [(request: WebRequest) => isRead(request), (request: WebRequest) => !isRead(request)]) {
        const begun = yield* Deferred.make<void>()
        const { web } = serving((request) =>
          hangs(request) ? Effect.andThen(Deferred.succeed(begun, undefined), Effect.never) : key
        )
        const fiber = yield* Effect.forkChild(Effect.flip(makeTransit(web, settingsIn(directory), newest).sign(asked)))
        yield* Deferred.await(begun)
        yield* TestClock.adjust("10 seconds")
        assert.include((yield* Fiber.join(fiber)).detail, "the server did not answer within 10 s")
      }
    }))

  test("signs at most eight digests at once", (directory) =>
    Effect.gen(function*() {
      const [full, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let [under, most] = [0, 0]
      const { web } = serving((request) =>
        isRead(request) ? key : Effect.gen(function*() {
          under++
          most = Math.max(most, under)
          if (under === 8) yield* Deferred.succeed(full, undefined)
          yield* Deferred.await(go)
          under--
          return signed()
        })
      )
      const transit = makeTransit(web, settingsIn(directory), newest)
      const fiber = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 40 }, () => transit.sign(asked)), { concurrency: "unbounded" })
      )
      yield* Deferred.await(full)
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Fiber.join(fiber)).length, 40)
      assert.strictEqual(most, 8)
    }))

  test("lets go of a server that hangs as soon as nobody waits for it, and is in no trouble", (directory) =>
    Effect.gen(function*() {
      const [signing, gone] = [pending(), pending()]
      const { port } = yield* rawServer((socket, head) => {
        if (head.startsWith("GET")) {
          socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${key.body.length}\r\n\r\n${key.body.toString()}`)
          return
        }
        socket.once("close", gone.resolve)
        signing.resolve()
      })
      const web = yield* Effect.provide(Web, Layer.provide(Web.layer("1"), Resolver.layerStatic({})))
      const transit = makeTransit(web, settingsIn(directory, { address: `http://127.0.0.1:${port}` }), newest)
      yield* transit.open
      const fiber = yield* Effect.forkChild(transit.sign(asked))
      yield* Effect.promise(() => signing.promise)
      yield* Fiber.interrupt(fiber)
      yield* Effect.promise(() => gone.promise)
      assert.isUndefined(yield* transit.trouble)
    }))
})
