import { describe, it } from "@effect/vitest"
import { Array, Cause, Effect, Exit, Fiber } from "effect"
import { readdirSync, readlinkSync } from "node:fs"
import { assert } from "vitest"
import { ResolveFailed, Resolver } from "../../../src/engine/net/Resolver.ts"
import type { Entry, Query } from "../../support/DnsAnswerer.ts"
import { dnsAnswerer } from "../../support/DnsAnswerer.ts"

/** The number of sockets of this process, also of those that the runtime does not list. */
const openSockets = () =>
  readdirSync("/proc/self/fd").filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith("socket:")
    } catch {
      return false // This is the descriptor by which the directory was read.
    }
  }).length

/** Starts a DNS server with this zone and a resolver that queries it. */
const dns = (zone: Record<string, Entry>, fallback?: Entry) =>
  Effect.gen(function*() {
    const answerer = yield* dnsAnswerer({ zone, ...fallback === undefined ? {} : { fallback } })
    return { ...answerer, ...yield* Effect.provide(Resolver, Resolver.layer(answerer.address)) }
  })

describe("the addresses of a name", () => {
  it.live("are found by A and AAAA queries that are sent together", () =>
    Effect.gen(function*() {
      const { addresses, queries } = yield* dns({
        "a.example": { A: ["192.0.2.1", "192.0.2.2"], AAAA: ["2001:db8::1"] }
      })
      const found = yield* addresses("a.example")
      assert.sameMembers([...found], ["2001:db8::1", "192.0.2.1", "192.0.2.2"])
      assert.strictEqual<string | undefined>(found[0], "2001:db8::1")
      assert.sameMembers(queries.map(({ type }) => type), ["A", "AAAA"])
    }))

  it.live("are found if they are of one family only", () =>
    Effect.gen(function*() {
      const { addresses } = yield* dns({
        "four.example": { A: ["192.0.2.1"] },
        "six.example": { AAAA: ["2001:db8::1"] }
      })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("four.example"), ["192.0.2.1"])
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("six.example"), ["2001:db8::1"])
    }))

  it.live("are absent after NXDOMAIN and after an answer without data", () =>
    Effect.gen(function*() {
      const { addresses } = yield* dns({ "text.example": { TXT: ["hello"] } })
      assert.deepStrictEqual(yield* addresses("absent.example"), [])
      assert.deepStrictEqual(yield* addresses("text.example"), [])
    }))

  for (const rcode of ["SERVFAIL", "REFUSED"] as const) {
    it.live(`fail with ${rcode}`, () =>
      Effect.gen(function*() {
        const { addresses } = yield* dns({}, { rcode })
        const failure = yield* Effect.flip(addresses("a.example"))
        assert.deepStrictEqual([failure.name, failure.code], ["a.example", `E${rcode}`])
      }))
  }

  it.live("cannot be resolved if there is no name server", () =>
    Effect.gen(function*() {
      const { addresses } = yield* Effect.scoped(dns({}))
      assert.instanceOf(yield* Effect.flip(addresses("a.example")), ResolveFailed)
    }))

  it.live("are returned for one family if the query for the other is never answered", () =>
    Effect.gen(function*() {
      const { addresses } = yield* dns({ "a.example": { A: ["192.0.2.1"], drop: ["AAAA"] } })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("a.example"), ["192.0.2.1"])
    }))

  it.live("are requested again over TCP after a truncated reply", () =>
    Effect.gen(function*() {
      const many = Array.makeBy(60, (n) => `192.0.2.${n}`)
      const { addresses, queries } = yield* dns({
        "flagged.example": { A: ["192.0.2.1"], truncate: true },
        "long.example": { A: many }
      })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("flagged.example"), ["192.0.2.1"])
      assert.sameMembers([...yield* addresses("long.example")], many)
      assert.isTrue(queries.some(({ name, transport }) => name === "long.example" && transport === "tcp"))
    }))

  it.live("are found through an alias in the same reply", () =>
    Effect.gen(function*() {
      const { addresses } = yield* dns({ "alias.example": { CNAME: "a.example" }, "a.example": { A: ["192.0.2.1"] } })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("alias.example"), ["192.0.2.1"])
    }))

  it.live("are queried by exactly the given name", () =>
    Effect.gen(function*() {
      const { addresses, queries } = yield* dns({})
      for (const name of ["intranet", "a_b.example", "xn--bcher-kva.example", "ip6-localhost"]) yield* addresses(name)
      assert.sameMembers([...new Set(queries.map(({ name }) => name))], [
        "intranet",
        "a_b.example",
        "xn--bcher-kva.example",
        "ip6-localhost"
      ])
    }))

  it.live("are not cached", () =>
    Effect.gen(function*() {
      const { addresses, zone } = yield* dns({})
      assert.deepStrictEqual(yield* addresses("a.example"), [])
      zone.set("a.example", { A: ["192.0.2.1"] })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("a.example"), ["192.0.2.1"])
      zone.set("a.example", { A: ["192.0.2.2"] })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("a.example"), ["192.0.2.2"])
    }))

  it.live("are those of the loopback interface for localhost, without a query", () =>
    Effect.gen(function*() {
      const { addresses, queries } = yield* dns({}, { A: ["192.0.2.1"] })
      for (const name of ["localhost", "LOCALHOST.", "a.b.localhost"]) {
        assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses(name), ["::1", "127.0.0.1"])
      }
      assert.deepStrictEqual(queries, [])
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("notlocalhost"), ["192.0.2.1"])
    }))

  it.live("are no longer queried after an interruption if no server answers", () =>
    Effect.gen(function*() {
      const { addresses, queried, queries } = yield* dns({}, { drop: true })
      const fiber = yield* Effect.forkChild(addresses("a.example"))
      yield* Effect.promise(() => queried("a.example", 2))
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      // When the later look-up is repeated, the interrupted look-up would have been repeated too.
      const other = yield* Effect.forkChild(addresses("b.example"))
      yield* Effect.promise(() => queried("b.example", 3))
      yield* Fiber.interrupt(other)
      assert.lengthOf(queries.filter(({ name }) => name === "a.example"), 2)
    }))
})

describe("look-ups by one resolver", () => {
  const names = Array.makeBy(24, (n) => `${n}.example`)
  /** The ports from which queries for these names came. */
  const portsOf = (queries: ReadonlyArray<Query>) => new Set(queries.map(({ from }) => from)).size

  // The system chooses ports at random, so a few may be equal.
  it.live("have a port each, one after another as well as at the same time", () =>
    Effect.gen(function*() {
      const { addresses, queries } = yield* dns({}, { A: ["192.0.2.1"] })
      yield* Effect.forEach(names, addresses)
      assert.isAtLeast(portsOf(queries.splice(0)), names.length - 4)
      yield* Effect.forEach(names, addresses, { concurrency: "unbounded" })
      assert.isAtLeast(portsOf(queries.splice(0)), names.length - 4)
    }))

  it.live("go on if another is interrupted", () =>
    Effect.gen(function*() {
      const { addresses, queried, zone } = yield* dns({}, { drop: true })
      const [kept, dropped] = [
        yield* Effect.forkChild(addresses("a.example")),
        yield* Effect.forkChild(addresses("b.example"))
      ]
      yield* Effect.promise(() => Promise.all([queried("a.example", 2), queried("b.example", 2)]))
      yield* Fiber.interrupt(dropped)
      zone.set("a.example", { A: ["192.0.2.1"] })
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* Fiber.join(kept), ["192.0.2.1"])
    }))

  it.live("close their socket at once if they are interrupted", () =>
    Effect.gen(function*() {
      const { addresses, queried } = yield* dns({}, { drop: true })
      const before = openSockets()
      const fiber = yield* Effect.forkChild(addresses("a.example"))
      yield* Effect.promise(() => queried("a.example", 2))
      assert.isAbove(openSockets(), before)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(openSockets(), before)
    }))

  it.live("end in order although earlier ones were interrupted or failed", () =>
    Effect.gen(function*() {
      const { addresses, queried } = yield* dns({
        "a.example": { A: ["192.0.2.1"] },
        "b.example": { drop: true },
        "c.example": { rcode: "SERVFAIL" }
      })
      for (const round of [1, 2, 3]) {
        assert.deepStrictEqual<ReadonlyArray<string>>(yield* addresses("a.example"), ["192.0.2.1"])
        const fiber = yield* Effect.forkChild(addresses("b.example"))
        yield* Effect.promise(() => queried("b.example", 2 * round))
        yield* Fiber.interrupt(fiber)
        assert.strictEqual((yield* Effect.flip(addresses("c.example"))).code, "ESERVFAIL")
      }
    }))
})

it.effect("are not requested from a resolver that is not an address", () =>
  Effect.gen(function*() {
    const exit = yield* Effect.exit(Effect.provide(Resolver, Resolver.layer("dns.example")))
    assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
  }))

it.effect("a static resolver answers from its table of addresses", () =>
  Effect.gen(function*() {
    const resolver = yield* Resolver
    assert.deepStrictEqual<ReadonlyArray<string>>(yield* resolver.addresses("a.example"), ["192.0.2.1"])
    assert.deepStrictEqual(yield* resolver.addresses("b.example"), [])
    assert.strictEqual((yield* Effect.flip(resolver.addresses("c.example"))).code, "ESERVFAIL")
  }).pipe(Effect.provide(Resolver.layerStatic({
    "a.example": ["192.0.2.1"],
    "c.example": new ResolveFailed({ name: "c.example", code: "ESERVFAIL" })
  }))))

describe("the texts of TXT records", () => {
  it.live("are joined within one record, but not across records", () =>
    Effect.gen(function*() {
      const { queries, texts } = yield* dns({
        "a.example": { TXT: [["v=spf1 ", "", "-all"], "one", [""], "a".repeat(255), ["b".repeat(255), "c"]] }
      })
      const found = yield* texts("a.example")
      assert.sameMembers([...found], ["v=spf1 -all", "one", "", "a".repeat(255), `${"b".repeat(255)}c`])
      assert.deepStrictEqual([...new Set(queries.map(({ type }) => type))], ["TXT"])
    }))

  it.live("keep their octets", () =>
    Effect.gen(function*() {
      const { texts } = yield* dns({ "a.example": { TXT: ["\"quoted\" ", "Case", "line\n", "nul\0"] } })
      assert.sameMembers([...yield* texts("a.example")], ["\"quoted\" ", "Case", "line\n", "nul\0"])
    }))

  it.live("are found through an alias", () =>
    Effect.gen(function*() {
      const { texts } = yield* dns({
        "alias.example": { CNAME: "second.example" },
        "second.example": { CNAME: "a.example" },
        "a.example": { TXT: ["one", "two"] }
      })
      assert.sameMembers([...yield* texts("alias.example")], ["one", "two"])
    }))

  it.live("are requested again over TCP after a truncated reply", () =>
    Effect.gen(function*() {
      const many = Array.makeBy(200, (n) => `value ${n}`)
      const { queries, texts } = yield* dns({
        "flagged.example": { TXT: ["one"], truncate: true },
        "long.example": { TXT: many }
      })
      assert.deepStrictEqual(yield* texts("flagged.example"), ["one"])
      assert.sameMembers([...yield* texts("long.example")], many)
      assert.sameMembers(queries.filter(({ transport }) => transport === "tcp").map(({ name }) => name), [
        "flagged.example",
        "long.example"
      ])
    }))

  it.live("are absent if there is no data, even at the end of an alias", () =>
    Effect.gen(function*() {
      const { texts } = yield* dns({ "a.example": { A: ["192.0.2.1"] }, "alias.example": { CNAME: "a.example" } })
      assert.deepStrictEqual(yield* texts("a.example"), [])
      assert.deepStrictEqual(yield* texts("alias.example"), [])
    }))

  it.live("fail with NXDOMAIN, even at the end of an alias", () =>
    Effect.gen(function*() {
      const { texts } = yield* dns({ "alias.example": { CNAME: "absent.example" } })
      for (const name of ["absent.example", "alias.example"]) {
        const failure = yield* Effect.flip(texts(name))
        assert.deepStrictEqual([failure.name, failure.code], [name, "ENOTFOUND"])
      }
    }))

  for (const rcode of ["SERVFAIL", "REFUSED"] as const) {
    it.live(`fail with ${rcode}`, () =>
      Effect.gen(function*() {
        const { texts } = yield* dns({}, { rcode })
        const failure = yield* Effect.flip(texts("a.example"))
        assert.deepStrictEqual([failure.name, failure.code], ["a.example", `E${rcode}`])
      }))
  }

  it.live("fail at an alias loop", () =>
    Effect.gen(function*() {
      const { texts } = yield* dns({
        "self.example": { CNAME: "self.example" },
        "upper.example": { CNAME: "UPPER.example" },
        "a.example": { CNAME: "b.example" },
        "b.example": { CNAME: "a.example" },
        "outside.example": { CNAME: "a.example" }
      })
      for (const name of ["self.example", "upper.example", "a.example", "outside.example"]) {
        assert.strictEqual((yield* Effect.flip(texts(name))).name, name)
      }
    }))

  it.live("cannot be resolved if there is no name server", () =>
    Effect.gen(function*() {
      const { texts } = yield* Effect.scoped(dns({}))
      assert.instanceOf(yield* Effect.flip(texts("a.example")), ResolveFailed)
    }))

  it.live("are queried by exactly the given name, and are not cached", () =>
    Effect.gen(function*() {
      const { queries, texts, zone } = yield* dns({ "_acme-challenge.a.example": { TXT: ["one"] } })
      assert.deepStrictEqual(yield* texts("_acme-challenge.a.example"), ["one"])
      zone.set("_acme-challenge.a.example", { TXT: ["two"] })
      assert.deepStrictEqual(yield* texts("_acme-challenge.a.example"), ["two"])
      assert.deepStrictEqual(queries.map(({ name }) => name), Array.makeBy(2, () => "_acme-challenge.a.example"))
    }))

  for (const forged of ["id", "port"] as const) {
    it.live(`are not taken from a reply with another ${forged}`, () =>
      Effect.gen(function*() {
        const { queried, texts, zone } = yield* dns({ "a.example": { TXT: ["false"], forged } })
        const fiber = yield* Effect.forkChild(texts("a.example"))
        yield* Effect.promise(() => queried("a.example"))
        zone.set("a.example", { TXT: ["true"] })
        assert.deepStrictEqual(yield* Fiber.join(fiber), ["true"])
      }))
  }

  it.live("are no longer queried after an interruption if no server answers", () =>
    Effect.gen(function*() {
      const { queried, queries, texts } = yield* dns({}, { drop: true })
      const fiber = yield* Effect.forkChild(texts("a.example"))
      yield* Effect.promise(() => queried("a.example"))
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      // When the later look-up is repeated, the interrupted look-up would have been repeated too.
      const other = yield* Effect.forkChild(texts("b.example"))
      yield* Effect.promise(() => queried("b.example", 2))
      yield* Fiber.interrupt(other)
      assert.lengthOf(queries.filter(({ name }) => name === "a.example"), 1)
    }))

  it.effect("come from the second table of a static resolver", () =>
    Effect.gen(function*() {
      const resolver = yield* Resolver
      assert.deepStrictEqual(yield* resolver.texts("a.example"), ["one", "two"])
      assert.strictEqual((yield* Effect.flip(resolver.texts("b.example"))).code, "ENOTFOUND")
      assert.strictEqual((yield* Effect.flip(resolver.texts("c.example"))).code, "ESERVFAIL")
    }).pipe(Effect.provide(Resolver.layerStatic({}, {
      "a.example": ["one", "two"],
      "c.example": new ResolveFailed({ name: "c.example", code: "ESERVFAIL" })
    }))))
})
