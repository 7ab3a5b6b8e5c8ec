import { it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { assert, describe } from "vitest"
import { relayOf } from "../../../support/ScriptedRelay.ts"
import type { Said } from "../../../support/ScriptedUpstream.ts"
import { ca, directory } from "../../../support/ScriptedUpstream.ts"

/* Tests what the relay reads from the upstream about a renewal (RFC 9773 section 4). */

const certificate = { certId: "key.serial", orderUrl: `${ca}/order/1` }
const path = "/renewal/key.serial"
const offering = { "/directory": [{ json: { ...directory, renewalInfo: `${ca}/renewal` } }] }

const answered = (said: Said, of = certificate, paths: { readonly [path: string]: ReadonlyArray<Said> } = offering) =>
  Effect.gen(function*() {
    const { asked, made, records, world } = yield* relayOf({ ...paths, [path]: [said] })
    const { renewal } = Result.getOrThrow(made)
    const got = yield* Effect.result(Effect.provide(renewal(of), world))
    const gets = asked.filter(({ url }) => url.pathname === path).map(({ body, method }) => [method, body])
    return { got, gets, failures: records.filter(({ event }) => event === "upstream_request_failed") }
  })

const suggestedWindow = { start: "2027-01-15T08:00:00.5Z", end: "2027-01-16T10:00:00+02:00" }
const times = { start: 1_800_000_000, end: 1_800_086_400 }
const nothing = { window: undefined, retryAfter: undefined }

describe("an upstream's renewal information", () => {
  it.effect("is read by an unsigned request, with the window, the explanation and the time to ask again", () =>
    Effect.gen(function*() {
      const json = { suggestedWindow, explanationURL: "https://ca.example/why" }
      const { gets, got } = yield* answered({ json, headers: { "retry-after": "21600" } })
      assert.deepStrictEqual(gets, [["GET", undefined]])
      assert.deepStrictEqual(
        got,
        Result.succeed({ window: { ...times, explanationUrl: "https://ca.example/why" }, retryAfter: 21_600 })
      )
    }))

  for (
    const [what, said] of [
      ["a certificate that it does not know", { status: 404, json: { type: "urn:ietf:params:acme:error:malformed" } }],
      ["no JSON", { text: "<html>" }],
      ["no window", { json: { suggestedWindow: 7 } }],
      ["no dates", { json: { suggestedWindow: { start: "soon", end: "later" } } }],
      ["an end before the start", {
        json: { suggestedWindow: { start: suggestedWindow.end, end: suggestedWindow.start } }
      }]
    ] as const
  ) {
    it.effect(`counts as absent if it has ${what}`, () =>
      Effect.gen(function*() {
        const { failures, got } = yield* answered(said)
        assert.deepStrictEqual(got, Result.succeed(nothing))
        assert.deepStrictEqual(failures, [])
      }))
  }

  it.effect("loses an explanation whose URL no browser opens", () =>
    Effect.gen(function*() {
      for (const explanationURL of ["javascript:alert(1)", `https://ca.example/${"x".repeat(2000)}`, 7]) {
        const { got } = yield* answered({ json: { suggestedWindow, explanationURL } })
        assert.deepStrictEqual(
          got,
          Result.succeed({ window: { ...times, explanationUrl: undefined }, retryAfter: undefined })
        )
      }
    }))

  it.effect("is not requested if the directory has no renewalInfo, or if another upstream issued the certificate", () =>
    Effect.gen(function*() {
      const json = { suggestedWindow }
      for (
        const { gets, got } of [
          yield* answered({ json }, certificate, {}),
          yield* answered({ json }, { ...certificate, orderUrl: "https://former.example/order/1" })
        ]
      ) {
        assert.deepStrictEqual(got, Result.succeed(nothing))
        assert.deepStrictEqual(gets, [])
      }
    }))

  it.effect("is requested again after a failure, no earlier than the upstream says", () =>
    Effect.gen(function*() {
      const { failures, got } = yield* answered({ status: 503, headers: { "retry-after": "7200" } })
      assert.deepInclude(Result.isFailure(got) ? got.failure : {}, {
        _tag: "SigningFailed",
        again: { atLeast: 7201, atMost: 86_400 }
      })
      assert.lengthOf(failures, 1)
    }))
})
