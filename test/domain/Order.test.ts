import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { OrderStatus } from "../../src/domain/Order.ts"
import { orderMoves, statusShown } from "../../src/domain/Order.ts"
import { prop } from "../support/Property.ts"

const statuses: ReadonlyArray<OrderStatus> = ["pending", "ready", "processing", "valid", "invalid"]
const finished: ReadonlyArray<OrderStatus> = ["valid", "invalid"]

const moves = Object.values(orderMoves) as ReadonlyArray<
  { readonly from: ReadonlyArray<OrderStatus>; readonly to: OrderStatus }
>

/**
 * The statuses that an order goes through while these moves are tried on it one after another. A move that does not
 * apply changes nothing.
 */
const walk = (tried: ReadonlyArray<(typeof moves)[number]>): ReadonlyArray<OrderStatus> => {
  const passed: Array<OrderStatus> = ["pending"]
  for (const { from, to } of tried) if (from.includes(passed.at(-1) ?? "invalid")) passed.push(to)
  return passed
}

const tried = fc.array(fc.constantFrom(...moves), { maxLength: 30 })
const seconds = fc.integer({ min: 0, max: 4_102_444_800 })
const validity = fc.integer({ min: 1, max: 31_536_000 })

describe("the transitions of an order", () => {
  prop("end when the order is valid or invalid", [tried], ([attempts]) => {
    const before = walk(attempts).slice(0, -1)
    assert.deepStrictEqual(before.filter((status) => finished.includes(status)), [])
  })

  prop("make an order valid only after it was ready and then processing", [tried], ([attempts]) => {
    const passed = walk(attempts)
    for (const [index, status] of passed.entries()) {
      if (status === "ready") assert.strictEqual(passed[index - 1], "pending")
      if (status === "processing") assert.strictEqual(passed[index - 1], "ready")
      if (status === "valid") assert.strictEqual(passed[index - 1], "processing")
    }
  })

  it("can make every unfinished order invalid, and return only a ready order to pending", () => {
    const reached = (from: OrderStatus) => moves.filter((move) => move.from.includes(from)).map(({ to }) => to)
    for (const status of statuses) {
      assert.strictEqual(reached(status).includes("invalid"), !finished.includes(status), status)
      assert.strictEqual(reached(status).includes("pending"), status === "ready", status)
    }
  })

  it("reach every status", () => {
    const reached = new Set<OrderStatus>(["pending"])
    for (const _ of statuses) {
      for (const { from, to } of moves) if (from.some((one) => reached.has(one))) reached.add(to)
    }
    assert.sameMembers([...reached], [...statuses])
  })
})

describe("the status that a client sees", () => {
  prop("is the stored status before the expiry, and invalid afterwards unless the order is processing or valid", [
    fc.constantFrom(...statuses),
    seconds,
    validity,
    fc.integer({ min: -1_000_000, max: 1_000_000 })
  ], ([status, createdAt, validitySeconds, fromExpiry]) => {
    const now = createdAt + validitySeconds + fromExpiry
    const waits = status === "pending" || status === "ready"
    const shown = waits && fromExpiry >= 0 ? "invalid" : status
    assert.strictEqual(statusShown({ status, createdAt, expiresAt: undefined }, validitySeconds, now), shown)
    // The expiry that a client was told stays the same, even if the configured validity changes later.
    const told = { status, createdAt, expiresAt: createdAt + validitySeconds }
    for (const since of [0, validitySeconds * 2]) assert.strictEqual(statusShown(told, since, now), shown)
  })

  prop("never changes back from invalid to another status as time passes", [
    fc.constantFrom(...statuses),
    seconds,
    validity,
    seconds,
    seconds
  ], ([status, createdAt, validitySeconds, one, other]) => {
    const [earlier, later] = [Math.min(one, other), Math.max(one, other)]
    const shown = (now: number) => statusShown({ status, createdAt, expiresAt: undefined }, validitySeconds, now)
    if (shown(earlier) === "invalid") assert.strictEqual(shown(later), "invalid")
  })
})
