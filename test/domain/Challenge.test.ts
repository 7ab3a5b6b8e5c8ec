import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { ChallengeStatus } from "../../src/domain/Challenge.ts"
import { challengeMoves, keyAuthorization } from "../../src/domain/Challenge.ts"
import { prop } from "../support/Property.ts"

const moves = Object.values(challengeMoves) as ReadonlyArray<
  { readonly from: ReadonlyArray<ChallengeStatus>; readonly to: ChallengeStatus }
>

describe("the transitions of a challenge", () => {
  prop(
    "allow one attempt and one verdict",
    [fc.array(fc.constantFrom(...moves), { maxLength: 20 })],
    ([tried]) => {
      const passed: Array<ChallengeStatus> = ["pending"]
      for (const { from, to } of tried) if (from.includes(passed.at(-1) ?? "invalid")) passed.push(to)
      // A bypassed validation is accepted without an attempt.
      const [first, ...rest] = passed.slice(1)
      const [verdict, ...more] = first === "processing" ? rest : [first, ...rest]
      if (verdict !== undefined) assert.include(first === "processing" ? ["valid", "invalid"] : ["valid"], verdict)
      assert.deepStrictEqual(more, [])
    }
  )

  it("reach both verdicts", () => {
    assert.sameMembers(moves.filter(({ from }) => from.includes("processing")).map(({ to }) => to), [
      "valid",
      "invalid"
    ])
  })
})

describe("a key authorization", () => {
  it("is computed as in RFC 8555 section 8.1", () => {
    assert.strictEqual(
      keyAuthorization("evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA", "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
      "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA.NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    )
  })

  const base64url = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((octets) =>
    Buffer.from(octets).toString("base64url")
  )
  const pair = fc.tuple(base64url, base64url)
  /**
   * Two pairs of a token and a key: equal pairs, different pairs, or pairs with the same text divided at another place.
   */
  const two = fc.oneof(
    pair.map((one) => ({ one, other: one })),
    fc.record({ one: pair, other: pair }),
    pair.map(([token, thumbprint]): { one: [string, string]; other: [string, string] } => ({
      one: [token, thumbprint],
      other: [`${token}${thumbprint.slice(0, 1)}`, thumbprint.slice(1)]
    }))
  )

  prop("belongs to only one token and one key", [two], ([{ one, other }]) => {
    assert.strictEqual(
      keyAuthorization(one[0], one[1]) === keyAuthorization(other[0], other[1]),
      one[0] === other[0] && one[1] === other[1]
    )
  })
})
