import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { SigningFailed } from "../../../src/services/signing/Signer.ts"
import { HookFailed } from "../../../src/services/signing/SignerScript.ts"
import { asleep, wakened } from "../../support/Asleep.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, count, eventsOf, orderOf, profileOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { issueTo, useForeignSigner, work } from "../../support/Issued.ts"

/* The answers to clients if a program or an upstream signs for the service. */

const config = configOf("[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\"")
const surface = surfaceOf(config)
const failing = new SigningFailed({ cause: "script_failed", detail: "the HSM is away" })

describe.each(databases)("a profile whose signer is not this service, on $name", (backend) => {
  const { records, test } = useForeignSigner(backend)

  const someone = Effect.gen(function*() {
    const key = acmeKey()
    const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
    const app = yield* surface
    const post = (path: string, payload?: object) =>
      Effect.flatMap(byAccount(key, urlOf(at(`/acct/${caller.accountId}`)), at(path), payload), app.handle)
    return { caller, post }
  })

  const holder = Effect.gen(function*() {
    const { caller, post } = yield* someone
    const issued = yield* issueTo(caller, ["a.example"])
    const revoke = post("/revokeCert", { certificate: issued.der.toString("base64url"), reason: 4 })
    return { issued, revoke }
  })

  /** Waits, in real time, until `wanted` rows exist. */
  const rowsAre = (query: string, wanted: number) =>
    Effect.repeat(Effect.andThen(Effect.yieldNow, count(`SELECT count(*) FROM ${query}`)), {
      until: (found) => found === wanted
    })
  const queued = rowsAre("jobs WHERE kind = 'signer_revoke' AND status = 'ready'", 1)
  const waiting = Effect.andThen(queued, asleep)

  const isPending = (answer: Answer) => {
    assert.strictEqual(answer.status, 503)
    assert.strictEqual(headerOf(answer, "retry-after"), "1")
    assert.strictEqual(bodyOf(answer).type, "urn:ietf:params:acme:error:serverInternal")
  }

  test("asks clients to wait five seconds for an order that is being signed", () =>
    Effect.gen(function*() {
      const { caller, post } = yield* someone
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64url")
      const answer = yield* post(`/order/${id}/finalize`, { csr })
      assert.deepStrictEqual([answer.status, headerOf(answer, "retry-after")], [200, "5"])
    }))

  test("answers revokeCert with success after the signer has revoked", () =>
    Effect.gen(function*() {
      const { revoke } = yield* holder
      const asking = yield* Effect.forkChild(revoke)
      yield* waiting
      assert.isUndefined(asking.pollUnsafe())
      yield* work("signer_revoke")
      assert.strictEqual((yield* wakened(asking)).status, 200)
      const again = yield* revoke
      assert.deepStrictEqual([again.status, bodyOf(again).type], [400, "urn:ietf:params:acme:error:alreadyRevoked"])
    }))

  test("asks the signer to revoke every certificate of a key that its holder reports as compromised", () =>
    Effect.gen(function*() {
      const { caller } = yield* someone
      const first = yield* issueTo(caller, ["a.example"])
      yield* issueTo(caller, ["b.example"], first.key)
      yield* issueTo(caller, ["c.example"])
      const app = yield* surface
      const key = acmeKey(first.key)
      const header = { jwk: key.jwk, url: urlOf(at("/revokeCert")), nonce: yield* freshNonce }
      const payload = { certificate: first.der.toString("base64url"), reason: 1 }
      const asking = yield* Effect.forkChild(app.handle(posted(at("/revokeCert"), signed(key, header, payload))))
      yield* waiting
      yield* work("key_revoke")
      yield* work("signer_revoke")
      assert.strictEqual((yield* wakened(asking)).status, 200)
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revocation_reason = 1"), 2)
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'signer_revoke'"), 2)
    }))

  test("answers revokeCert one second before the time limit if the signer has not revoked yet", () =>
    Effect.gen(function*() {
      const { revoke } = yield* holder
      const asking = yield* Effect.forkChild(revoke)
      yield* waiting
      const since = yield* Clock.currentTimeMillis
      yield* TestClock.adjust("58750 millis")
      assert.isUndefined(asking.pollUnsafe())
      isPending(yield* wakened(asking))
      assert.isBelow((yield* Clock.currentTimeMillis) - since, 60_000)
      yield* work("signer_revoke")
      const again = yield* revoke
      assert.strictEqual(bodyOf(again).type, "urn:ietf:params:acme:error:alreadyRevoked")
    }))

  for (
    const [how, given] of [
      ["that the signer never accepts", work("signer_revoke")],
      ["that an operator cancels", sql("UPDATE jobs SET status = 'cancelled' WHERE kind = 'signer_revoke'")]
    ] as const
  ) {
    test(`allows a client to request a revocation ${how} again`, () =>
      Effect.gen(function*() {
        const { revoke } = yield* holder
        const asking = yield* Effect.forkChild(revoke)
        yield* waiting
        yield* given
        const answer = yield* wakened(asking)
        assert.deepStrictEqual(bodyOf(answer), {
          type: "urn:ietf:params:acme:error:serverInternal",
          status: 500,
          detail: "The revocation was given up, and the certificate is not revoked; the server's log has the reason."
        })
        assert.isUndefined(answer.headers["retry-after"])
        assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 0)
        const again = yield* Effect.forkChild(revoke)
        yield* queued
        yield* Fiber.interrupt(again)
      }), {
      revoke: () => failing,
      maxAttempts: 1
    })
  }

  test(
    "lets requests that wait for the signer use at most a quarter of the slots",
    () =>
      Effect.gen(function*() {
        const { revoke } = yield* holder
        const asking = yield* Effect.forkChild(revoke)
        yield* waiting
        isPending(yield* revoke)
        yield* work("signer_revoke")
        assert.strictEqual((yield* wakened(asking)).status, 200)
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'signer_revoke'"), 1)
      }),
    {
      server: { request_timeout_ms: 60_000, max_concurrent_requests: 4 }
    }
  )

  const read = (path: string) => Effect.flatMap(surface, (app) => app.handle(requestOf("GET", at(path))))
  const list = Buffer.from("the list")

  for (
    const [what, crl, status] of [
      ["the list of the signer", Effect.succeed(list), 200],
      ["404 if the signer has no list", Effect.succeed(undefined), 404],
      ["404 if the signer fails", new HookFailed({ exit: 1, detail: "away" }), 404]
    ] as const
  ) {
    test(`answers a request for the revocation list with ${what}`, () =>
      Effect.gen(function*() {
        const answer = yield* read("/crl")
        assert.strictEqual(answer.status, status)
        if (status === 200) {
          assert.strictEqual(headerOf(answer, "content-type"), "application/pkix-crl")
          assert.deepStrictEqual(answer.body, list)
        }
        for (const path of ["/ca.pem", "/issuer.cer"]) assert.strictEqual((yield* read(path)).status, 404)
      }), { hooks: { crl: () => crl } })
  }

  const certIdOf = (leaf: { readonly raw: Buffer; readonly serialNumber: string }) => {
    const [, identifier = ""] = /0603551d230418301680(?:14)([0-9a-f]{40})/.exec(leaf.raw.toString("hex")) ?? []
    return [identifier, leaf.serialNumber].map((hex) => Buffer.from(hex, "hex").toString("base64url")).join(".")
  }

  test("sends the client the renewal window that the signer suggests", () =>
    Effect.gen(function*() {
      const { issued } = yield* holder
      const answer = yield* read(`/renewalInfo/${certIdOf(issued.leaf)}`)
      assert.isAbove(Number(headerOf(answer, "retry-after")), 17_000)
      assert.deepStrictEqual(JSON.parse(String(answer.body)), {
        suggestedWindow: { start: "1970-01-01T00:00:00Z", end: "1970-01-01T00:01:00Z" },
        explanationURL: "https://why.example/"
      })
    }), {
    hooks: { window: () => Effect.succeed({ start: 0, end: 60, explanationUrl: "https://why.example/" }) }
  })

  test(
    "suggests a renewal window of its own if the signer fails",
    () =>
      Effect.gen(function*() {
        const { issued } = yield* holder
        const answer = yield* read(`/renewalInfo/${certIdOf(issued.leaf)}`)
        assert.deepStrictEqual(Object.keys(JSON.parse(String(answer.body)) as object), ["suggestedWindow"])
        assert.include(eventsOf(records), "renewal_info_hook_failed")
      }),
    {
      hooks: { window: () => new HookFailed({ exit: 1, detail: "away" }) }
    }
  )

  test(
    "does not ask the signer about a certificate that the service knows to be revoked",
    () =>
      Effect.gen(function*() {
        const { issued } = yield* holder
        yield* sql("UPDATE orders SET revoked_at = 1")
        assert.strictEqual(headerOf(yield* read(`/renewalInfo/${certIdOf(issued.leaf)}`), "retry-after"), "60")
      }),
    {
      hooks: { window: () => Effect.die("was asked") }
    }
  )
})

describe.each(databases)("a profile whose upstream accepts no revocation reasons, on $name", (backend) => {
  const { test } = useForeignSigner(backend, {
    revoke: () =>
      new SigningFailed({ cause: "upstream_refused", detail: "only 0 is taken", problemType: "badRevocationReason" })
  })

  test("tells the client why the upstream refused the reason", () =>
    Effect.gen(function*() {
      const key = acmeKey()
      const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
      const { der } = yield* issueTo(caller, ["a.example"])
      const app = yield* surface
      const payload = { certificate: der.toString("base64url"), reason: 1 }
      const request = yield* byAccount(key, urlOf(at(`/acct/${caller.accountId}`)), at("/revokeCert"), payload)
      const asking = yield* Effect.forkChild(app.handle(request))
      const queued = count("SELECT count(*) FROM jobs WHERE kind = 'signer_revoke' AND status = 'ready'")
      yield* Effect.repeat(Effect.andThen(Effect.yieldNow, queued), { until: (found) => found === 1 })
      yield* asleep
      yield* work("signer_revoke")
      const answer = yield* wakened(asking)
      assert.deepStrictEqual(bodyOf(answer), {
        type: "urn:ietf:params:acme:error:badRevocationReason",
        status: 400,
        detail:
          "The upstream authority does not take this reason; revoke for another or for none. It says: only 0 is taken"
      })
    }))
})
