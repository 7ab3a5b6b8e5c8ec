import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { series } from "../../../../src/domain/words/Series.ts"
import { Metrics } from "../../../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../../../src/engine/telemetry/Registry.ts"
import { refusal } from "../../../support/ScriptedRelay.ts"
import type { Said } from "../../../support/ScriptedUpstream.ts"
import { play } from "../../../support/ScriptedUpstream.ts"

/* Tests what the metrics say about the requests of a relay (docs/reference/metrics.md). */

const countsOf = (paths: { readonly [path: string]: ReadonlyArray<Said> }) =>
  Effect.gen(function*() {
    yield* play(paths)
    const text = yield* Effect.flatMap(Metrics, ({ render }) => render(new Map()))
    return Object.fromEntries(
      [...text.matchAll(/^acme_svc_upstream_requests_total\{.*operation="(\w+)",result="(\w+)"\} (\d+)$/gm)]
        .map(([, operation, result, count]) => [`${operation} ${result}`, Number(count)])
    )
  }).pipe(Effect.provide(Registry.layer("worker", series)))

describe("the requests of a relay", () => {
  it.effect("are counted by their purpose", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* countsOf({}), {
        "directory ok": 1,
        "newOrder ok": 1,
        "authorization ok": 2,
        "challenge ok": 1,
        "order ok": 3,
        "finalize ok": 1,
        "certificate ok": 1
      })
    }))

  for (
    const [result, said] of [
      ["refused", refusal("rejectedIdentifier")],
      ["refused", { status: 403, text: "<h1>no</h1>" }],
      ["bad_nonce", refusal("badNonce", 400)],
      ["limited", refusal("rateLimited", 403)],
      ["limited", { status: 429 }],
      ["failed", { status: 500 }],
      ["failed", { status: 302 }],
      ["unanswered", { lost: true }],
      ["unreachable", { unsent: true }]
    ] as const
  ) {
    it.effect(`are counted as ${result} after the answer ${JSON.stringify(said).slice(0, 60)}`, () =>
      Effect.gen(function*() {
        const counts = yield* countsOf({ "/order": [said] })
        assert.strictEqual(counts[`newOrder ${result}`], result === "bad_nonce" ? 8 : 1)
      }))
  }
})
