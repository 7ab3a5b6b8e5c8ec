import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { AuthorizationStatus } from "../../src/domain/Authorization.ts"
import { authorizationMoves, statusShown } from "../../src/domain/Authorization.ts"
import * as Order from "../../src/domain/Order.ts"
import { prop } from "../support/Property.ts"

const statuses: ReadonlyArray<AuthorizationStatus> = [
  "pending",
  "valid",
  "invalid",
  "deactivated",
  "expired",
  "revoked"
]
const moves = Object.values(authorizationMoves) as ReadonlyArray<
  { readonly from: ReadonlyArray<AuthorizationStatus>; readonly to: AuthorizationStatus }
>
const reached = (from: AuthorizationStatus) => moves.filter((move) => move.from.includes(from)).map(({ to }) => to)

const seconds = fc.integer({ min: 0, max: 4_102_444_800 })
const validity = fc.integer({ min: 1, max: 31_536_000 })

describe("the transitions of an authorization", () => {
  prop("decide the authorization once, and afterwards allow only the deactivation of a valid one", [
    fc.array(fc.constantFrom(...moves), { maxLength: 20 })
  ], ([tried]) => {
    const passed: Array<AuthorizationStatus> = ["pending"]
    for (const { from, to } of tried) if (from.includes(passed.at(-1) ?? "invalid")) passed.push(to)
    const [, decided, after, ...more] = passed
    assert.deepStrictEqual(more, [])
    if (after !== undefined) assert.deepStrictEqual([decided, after], ["valid", "deactivated"])
  })

  it("never leave the statuses invalid, deactivated, expired and revoked", () => {
    for (const status of ["invalid", "deactivated", "expired", "revoked"] as const) {
      assert.deepStrictEqual(reached(status), [], status)
    }
    assert.deepStrictEqual(reached("valid"), ["deactivated"])
  })

  it("reach every status except pending and revoked", () => {
    assert.sameMembers(moves.map(({ to }) => to), statuses.filter((one) => one !== "pending" && one !== "revoked"))
  })
})

describe("the status that a client sees", () => {
  prop(
    "is expired after the expiry of one that is pending, or valid without a certificate, and is the stored one else",
    [
      fc.constantFrom(...statuses),
      fc.constantFrom(...Order.orderStatuses),
      seconds,
      validity,
      fc.integer({ min: -1_000_000, max: 1_000_000 })
    ],
    ([status, orderStatus, createdAt, validitySeconds, fromExpiry]) => {
      const now = createdAt + validitySeconds + fromExpiry
      const isOver = orderStatus !== "processing" && orderStatus !== "valid"
      assert.strictEqual(
        statusShown({ status, orderStatus, createdAt, expiresAt: undefined }, validitySeconds, now),
        fromExpiry >= 0 && (status === "pending" || (status === "valid" && isOver)) ? "expired" : status
      )
    }
  )

  prop("becomes expired in the same second in which the order becomes invalid", [seconds, validity, seconds], (
    [createdAt, validitySeconds, now]
  ) => {
    const record = { status: "pending", createdAt, expiresAt: undefined } as const
    for (const at of [now, createdAt + validitySeconds - 1, createdAt + validitySeconds]) {
      assert.strictEqual(
        statusShown({ ...record, orderStatus: "pending" }, validitySeconds, at) === "expired",
        Order.statusShown(record, validitySeconds, at) === "invalid"
      )
    }
  })
})
