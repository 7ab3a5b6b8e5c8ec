import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "vitest"
import { makeFairSemaphore } from "../../../src/engine/net/FairSemaphore.ts"
import { StorageFailed } from "../../../src/engine/sql/Database.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import { PublishedCrls } from "../../../src/services/signing/PublishedCrls.ts"
import { ReadHooks } from "../../../src/services/signing/ReadHooks.ts"
import { make } from "../../../src/surfaces/publish/Publish.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { bodyOf, headerOf, requestOf } from "../../support/Handle.ts"
import { foreignCa, madeAt, settingsIn, signerOf } from "../../support/LocalCa.ts"
import { useTests } from "../../support/UseTests.ts"

/* The listener without TLS, with two CAs, a profile that signs with a program, and a profile with an upstream. */

const cas = { web: foreignCa({ name: "Web CA" }), mail: foreignCa({ name: "Mail CA" }) }
const lists = { web: Buffer.from("list of web"), mail: Buffer.from("list of mail"), printed: Buffer.from("printed") }

interface Script {
  /** What the store returns instead of the lists. */
  readonly list?: ReturnType<PublishedCrls["Service"]["of"]>
}

const { test } = useTests({
  startsAt: madeAt,
  layer: ({ script }: { readonly script: Script | undefined }) => {
    const profiles = Object.entries(cas).map(([name, { certificatePem }]) => {
      const directory = freshDirectory()
      writeFileSync(join(directory, "ca.pem"), certificatePem)
      return { name, signer: signerOf(settingsIn(directory)) }
    })
    const issuers = Issuers.layer(profiles)
    const crls = Layer.effect(
      PublishedCrls,
      Effect.map(Issuers, ({ of }) => ({
        of: (issuer: string) => script?.list ?? Effect.succeed(of("web", 0)?.id === issuer ? lists.web : lists.mail)
      }))
    )
    const hooks = Layer.succeed(ReadHooks, {
      crl: (profile: string) => Effect.succeed(profile === "program" ? lists.printed : undefined),
      window: () => Effect.succeed(undefined)
    })
    return Layer.mergeAll(Layer.provideMerge(crls, issuers), hooks)
  }
})

/** Makes the app with this many slots. */
const appOf = (slots = 10) =>
  make(new Set(["web", "mail", "program", "upstream"]), {
    proxies: { trusted_proxies: ["192.0.2.1"], forwarded_header: "x-forwarded-for" },
    slots: makeFairSemaphore(slots),
    waitMillis: 1000
  })

const ask = (method: string, target: string, more: Parameters<typeof requestOf>[2] = {}) => {
  const request = requestOf(method, target, more)
  return appOf().route(request).handle(request)
}

test("the listener without TLS serves the list, the certificate and the trust anchor of every CA", () =>
  Effect.gen(function*() {
    for (const name of ["web", "mail"] as const) {
      const { certificatePem } = cas[name]
      const expected = {
        crl: ["application/pkix-crl", lists[name]],
        "issuer.cer": ["application/pkix-cert", new X509Certificate(certificatePem).raw],
        "ca.pem": ["application/x-pem-file", Buffer.from(certificatePem)]
      } as const
      for (const [path, [mediaType, body]] of Object.entries(expected)) {
        const answer = yield* ask("GET", `/profile/${name}/${path}`)
        assert.strictEqual(answer.status, 200, path)
        assert.strictEqual(headerOf(answer, "content-type"), mediaType)
        assert.deepStrictEqual(Buffer.from(answer.body ?? ""), Buffer.from(body))
        const again = { headers: { "if-none-match": headerOf(answer, "etag") } }
        for (const method of ["GET", "HEAD"]) {
          const held = yield* ask(method, `/profile/${name}/${path}?a=b`, again)
          assert.deepStrictEqual([held.status, held.body], [304, undefined])
        }
      }
    }
    assert.deepStrictEqual((yield* ask("GET", "/profile/program/crl")).body, lists.printed)
  }))

test("the listener without TLS serves no other path", () =>
  Effect.gen(function*() {
    const monitors = ["/health", "/ready", "/metrics"]
    const elsewhere = ["/", "/crl", "/profile/web", "/profile/other/crl", "//profile/web/crl"]
    const below = ["", "/", "/directory", "/newNonce", "/newOrder", "/crl/", "//crl", "/CRL", "/%63rl", "/../web/crl"]
    for (const path of [...monitors, ...elsewhere, ...below.map((rest) => `/profile/web${rest}`)]) {
      for (const method of ["GET", "HEAD", "POST"]) {
        const answer = yield* ask(method, path)
        assert.strictEqual(answer.status, 404, `${method} ${path}`)
        assert.strictEqual(headerOf(answer, "content-type"), "application/problem+json")
      }
    }
    for (const path of ["/profile/upstream/crl", "/profile/upstream/ca.pem", "/profile/program/issuer.cer"]) {
      assert.include(bodyOf(yield* ask("GET", path)).detail, "publishes no such resource")
    }
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"]) {
      const answer = yield* ask(method, "/profile/web/crl")
      assert.deepStrictEqual([answer.status, headerOf(answer, "allow")], [405, "GET, HEAD"], method)
    }
  }))

test("the listener without TLS logs the profile, the pattern and the client of a request", () =>
  Effect.gen(function*() {
    const { route } = appOf()
    const forwarded = { clientIp: "192.0.2.1", headers: { "x-forwarded-for": "203.0.113.9" } }
    const { clientIp, facts, pattern } = route(requestOf("GET", "/profile/web/crl", forwarded))
    assert.deepStrictEqual([facts["profile"], pattern, clientIp], ["web", "/crl", "203.0.113.9"])
    const other = route(requestOf("GET", "/profile/web/directory", { clientIp: "203.0.113.9" }))
    assert.deepStrictEqual([other.facts["profile"], other.pattern], [undefined, "<unmatched>"])
  }))

test(
  "the listener without TLS answers 503 with Retry-After while no worker has signed the list",
  () =>
    Effect.gen(function*() {
      const answer = yield* ask("GET", "/profile/web/crl")
      assert.deepStrictEqual([answer.status, headerOf(answer, "retry-after")], [503, "5"])
    }),
  { list: Effect.succeed(undefined) }
)

test("the listener without TLS does not reveal why the database fails", () =>
  Effect.gen(function*() {
    const answer = yield* ask("GET", "/profile/web/crl")
    assert.strictEqual(answer.status, 500)
    assert.notInclude(String(answer.body), "disk")
  }), { list: new StorageFailed({ statement: "crl_find", detail: "disk I/O error", transient: false }) })

const [begun, held] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<undefined>()]

test(
  "the listener without TLS answers only as many requests at once as it has slots",
  () =>
    Effect.gen(function*() {
      const { route } = appOf(1)
      const request = requestOf("GET", "/profile/web/crl")
      const first = yield* Effect.forkChild(route(request).handle(request))
      yield* Deferred.await(begun)
      const second = yield* Effect.forkChild(route(request).handle(request))
      yield* TestClock.adjust("1 second")
      const shed = yield* Fiber.join(second)
      assert.strictEqual(shed.status, 503)
      assert.isDefined(shed.headers["retry-after"])
      assert.strictEqual((yield* route(request).late(request)).status, 503)
      yield* Deferred.succeed(held, undefined)
      assert.strictEqual((yield* Fiber.join(first)).status, 503, "there is no list")
    }),
  { list: Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(held)) }
)
