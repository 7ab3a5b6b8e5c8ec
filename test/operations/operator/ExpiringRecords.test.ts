import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe, it } from "vitest"
import { namedLeafOf } from "../../../src/crypto/x509/CertId.ts"
import type { OrderId } from "../../../src/domain/Id.ts"
import type { Caller } from "../../../src/operations/Caller.ts"
import * as expiring from "../../../src/operations/operator/ExpiringRecords.ts"
import type { Config } from "../../../src/settings/AppConfig.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, handmadeChain, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"
import { daySeconds, madeAt } from "../../support/LocalCa.ts"

/*
 * Tests which certificates expire soon, and which certificates have replaced them
 * (docs/contribute/decisions/expiring.md).
 */

const config = configOf()

describe.each(databases)("certificates that expire soon on $name", (backend) => {
  const { test } = useOwnCa(backend)

  const update = (id: OrderId, set: string) => {
    const literal = idLiteral(backend.dialect, id)
    return sql(`UPDATE orders SET ${set} WHERE id = ${literal}`)
  }

  /** Makes an order of this account whose certificate expires in `days` days. */
  const ending = Effect.fnUntraced(function*(caller: Caller, days: number, ...names: ReadonlyArray<string>) {
    const { id } = yield* orderOf(caller, ...names)
    const end = madeAt + days * daySeconds
    yield* update(id, `status = 'valid', certificate = '${handmadeChain}', cert_serial = '0a', cert_not_after = ${end}`)
    return id
  })

  const here = Effect.suspend(() => callerAt(profileOf(config)))
  const everything = { limit: 100, offset: 0 }
  const within = (days: number, more: { readonly profile?: string; readonly hideSuperseded?: boolean } = {}) =>
    Effect.map(
      expiring.list({ days, hideSuperseded: false, ...more }, everything),
      ({ items, ...counts }) => ({
        ...counts,
        items,
        ids: items.map(({ order }) => order.id),
        followers: items.map(({ supersededBy }) =>
          supersededBy === undefined ? undefined : [supersededBy.order.id, supersededBy.via]
        )
      })
    )

  test("are valid, are not revoked and expire in the window, and are listed by their expiry", () =>
    Effect.gen(function*() {
      const [caller, elsewhere] = [yield* here, yield* callerAt(profileOf(config, "other"))]
      yield* orderOf(caller, "pending.example")
      const later = yield* ending(caller, 5, "later.example")
      const sooner = yield* ending(elsewhere, 2, "sooner.example")
      const last = yield* ending(caller, 7, "last.example")
      yield* ending(caller, 7.5, "beyond.example")
      yield* ending(caller, 0, "ended.example")
      const revoked = yield* ending(caller, 3, "revoked.example")
      yield* update(revoked, `revoked_at = ${madeAt}`)
      const unread = yield* ending(caller, 3, "unread.example")
      yield* update(unread, "cert_not_after = -1")

      const found = yield* within(7)
      assert.deepStrictEqual(found.ids, [sooner, later, last])
      assert.deepStrictEqual(found.items.map(({ daysRemaining }) => daysRemaining), [2, 5, 7])
      assert.deepInclude(found, { total: 3, hidden: 0 })
      assert.deepStrictEqual((yield* within(7, { profile: "default" })).ids, [later, last])
      assert.deepStrictEqual((yield* within(7, { profile: "other" })).ids, [sooner])
      assert.deepInclude(yield* within(7, { profile: "nowhere" }), { ids: [], total: 0, hidden: 0 })
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual((yield* within(7)).items.map(({ daysRemaining }) => daysRemaining), [1, 4, 6])
    }))

  test("are replaced by a certificate of the same account that has every name and expires later", () =>
    Effect.gen(function*() {
      const [caller, other] = [yield* here, yield* here]
      const old = yield* ending(caller, 2, "a.example", "b.example")
      yield* ending(other, 50, "a.example", "b.example")
      yield* ending(caller, 50, "a.example")
      yield* ending(caller, 1, "a.example", "b.example", "0.example")
      const alone = yield* within(2)
      assert.deepStrictEqual(alone.followers[1], undefined)
      assert.deepStrictEqual(alone.ids[1], old)

      const renewed = yield* ending(caller, 40, "c.example", "b.example", "a.example")
      assert.deepStrictEqual((yield* within(2)).followers[1], [renewed, "identifiers"])
      const again = yield* ending(caller, 60, "a.example", "b.example")
      assert.deepStrictEqual((yield* within(2)).followers[1], [again, "identifiers"])
      yield* update(again, `revoked_at = ${madeAt}`)
      yield* update(renewed, `revoked_at = ${madeAt}`)
      assert.deepStrictEqual((yield* within(2)).followers[1], undefined)
    }))

  test("are not replaced by a certificate with their other names if the row of one name is missing", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const old = yield* ending(caller, 2, "a.example", "b.example")
      yield* ending(caller, 50, "a.example")
      yield* sql(`DELETE FROM order_identifiers WHERE name = 'b.example'`)
      assert.deepStrictEqual([(yield* within(2)).ids, (yield* within(2)).followers], [[old], [undefined]])
    }))

  test("are replaced by a certificate whose order names them in replaces, whatever names that certificate has", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const { chain, orderId } = yield* issueTo(caller, ["a.example", "b.example"])
      yield* update(orderId, `cert_not_after = ${madeAt + 2 * daySeconds}`)
      const { certId } = namedLeafOf(chain) ?? assert.fail("a leaf with a name")
      const successor = yield* ending(caller, 40, "a.example")
      assert.deepStrictEqual((yield* within(2)).followers, [undefined])

      yield* update(successor, `replaces = '${certId}'`)
      assert.deepStrictEqual((yield* within(2)).followers, [[successor, "replaces"]])
      yield* ending(caller, 60, "a.example", "b.example")
      assert.deepStrictEqual((yield* within(2)).followers, [[successor, "replaces"]])
      assert.deepInclude(yield* within(2, { hideSuperseded: true }), { ids: [], total: 1, hidden: 1 })
    }))

  test("are not replaced by a claimed replacement whose certificate expires sooner, is revoked or is not issued yet", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const { chain, orderId } = yield* issueTo(caller, ["a.example"])
      const { certId } = namedLeafOf(chain) ?? assert.fail("a leaf with a name")
      yield* update(orderId, `cert_not_after = ${madeAt + 2 * daySeconds}`)
      const claims = yield* ending(caller, 1, "b.example")
      const followers = Effect.map(within(2), ({ followers, ids }) => followers[ids.indexOf(orderId)])
      yield* update(claims, `replaces = '${certId}'`)
      assert.isUndefined(yield* followers)
      yield* update(claims, `cert_not_after = ${madeAt + 40 * daySeconds}, revoked_at = ${madeAt}`)
      assert.isUndefined(yield* followers)
      yield* update(claims, "revoked_at = NULL")
      assert.deepStrictEqual(yield* followers, [claims, "replaces"])
      yield* update(claims, "certificate = NULL")
      assert.isUndefined(yield* followers)
    }))

  it("are listed for the days of the digests, or for thirty days if there is no digest, unless a number of days is given", () => {
    const told = configOf("[profiles.a.notify.expiry]\nlead_days = 14\n[profiles.b.notify.expiry]\nlead_days = 60\n")
    const days = (configured: Config, profile?: string, days?: number) =>
      expiring.wantedOf(configured, { profile, days }).days
    assert.deepStrictEqual(
      [
        days(told, "a"),
        days(told, "b"),
        days(told),
        days(told, "default"),
        days(told, "nowhere"),
        days(told, "a", 3),
        days(config)
      ],
      [14, 60, 60, 30, 30, 3, 30]
    )
    assert.deepStrictEqual([-1, 0, 100_001].map((asked) => days(told, "a", asked)), [1, 1, 100_000])
  })

  test("are listed in pages, with or without the replaced certificates", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const ids: Array<OrderId> = []
      for (let index = 0; index < 9; index++) ids.push(yield* ending(caller, 3, `host-${index}.example`))
      const open = ids.filter((_, index) => index % 3 !== 0)
      for (const index of [0, 3, 6]) yield* ending(caller, 90, `host-${index}.example`)
      const pages = (hideSuperseded: boolean) =>
        Effect.forEach([0, 4, 8], (offset) => expiring.list({ days: 7, hideSuperseded }, { limit: 4, offset }))
      const all = yield* pages(false)
      assert.deepStrictEqual(all.flatMap(({ items }) => items.map(({ order }) => order.id)), ids.toSorted())
      assert.deepStrictEqual(all.map(({ hidden, total }) => [total, hidden]), [[9, 0], [9, 0], [9, 0]])
      const shown = yield* pages(true)
      assert.deepStrictEqual(shown.flatMap(({ items }) => items.map(({ order }) => order.id)), open.toSorted())
      assert.deepStrictEqual(shown.map(({ hidden, total }) => [total, hidden]), [[9, 3], [9, 3], [9, 3]])
    }))

  test("fill a page even if counting the replaced certificates takes too long", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const open = yield* ending(caller, 2.1, "open.example")
      const later = yield* ending(caller, 4.1, "later.example")
      for (const days of [2, 3, 4, 6]) {
        yield* ending(caller, days, `host-${days}.example`)
        yield* ending(caller, 90, `host-${days}.example`)
      }
      const page = (limit: number, countMillis: number) =>
        Effect.map(
          expiring.list({ days: 7, hideSuperseded: true }, { limit, offset: 0 }, countMillis),
          ({ items, ...counts }) => ({ ids: items.map(({ order }) => order.id), ...counts })
        )
      assert.deepStrictEqual(yield* page(1, 0), { ids: [open], total: 6, hidden: 2, truncated: true })
      assert.deepStrictEqual(yield* page(2, 0), { ids: [open, later], total: 6, hidden: 3, truncated: true })
      assert.deepStrictEqual(yield* page(3, 0), { ids: [open, later], total: 6, hidden: 4, truncated: false })
      assert.deepStrictEqual(yield* page(1, 1000), { ids: [open], total: 6, hidden: 4, truncated: false })
    }))
})
