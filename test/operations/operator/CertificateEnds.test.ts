import { it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { AuthorityEnd } from "../../../src/operations/operator/CertificateEnds.ts"
import { certificateEnds } from "../../../src/operations/operator/CertificateEnds.ts"

describe("the remaining validity of certificates", () => {
  const ca = (id: string, notAfter: number, from: number | undefined = 0) => ({
    from,
    issuer: { id, firstToEnd: { notAfter, subject: "CN=Upper" } }
  })

  it.effect("is given in seconds for each CA once and for each listener, and is negative after the expiry", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const found = yield* certificateEnds(
        [[ca("aa", 1500)], [ca("bb", 900)], [ca("aa", 1200)], [ca("aa", 1300)]],
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

  it.effect("is not given for a CA that does not issue any more at any profile", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_000_000)
      const [old, former, present, next] = [
        ca("old", 1100, undefined),
        ca("former", 1200, 0),
        ca("present", 1300, 900),
        ca("next", 1400, 1001)
      ]
      const given = (...sections: ReadonlyArray<ReadonlyArray<AuthorityEnd>>) =>
        Effect.map(
          certificateEnds(sections, []),
          (found) => found.get("acme_svc_authority_not_after_seconds")?.map(({ labels }) => labels["issuer"])
        )
      assert.deepStrictEqual(yield* given([old, former, present, next]), ["present", "next"])
      assert.deepStrictEqual(yield* given([old, former, present], [former]), ["present", "former"])
    }))
})
