import { it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { certificateEnds } from "../../../src/operations/operator/CertificateEnds.ts"

describe("the remaining validity of certificates", () => {
  const issuer = (id: string, notAfter: number) => ({ id, firstToEnd: { notAfter, subject: "CN=Upper" } })

  it.effect("is given in seconds for each CA once and for each listener, and is negative after the expiry", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const found = yield* certificateEnds(
        [issuer("aa", 1500), issuer("bb", 900), issuer("aa", 1200), issuer("aa", 1300)],
        [{ listener: "acme", notAfter: 1001 }, { listener: "admin", notAfter: 999 }]
      )
      assert.deepStrictEqual(
        found,
        new Map([
          ["acme_svc_authority_not_after_seconds", [
            { labels: { issuer: "aa" }, value: 200 },
            { labels: { issuer: "bb" }, value: -100 }
          ]],
          ["acme_svc_listener_not_after_seconds", [
            { labels: { listener: "acme" }, value: 1 },
            { labels: { listener: "admin" }, value: -1 }
          ]]
        ])
      )
      assert.strictEqual((yield* certificateEnds([], [])).size, 0)
    }))
})
