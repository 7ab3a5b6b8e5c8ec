import { it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { nameRequests } from "../../../src/domain/policy/Stage.ts"
import { Scripts } from "../../../src/engine/host/Scripts.ts"
import { makeFairSemaphore } from "../../../src/engine/net/FairSemaphore.ts"
import { JsonGet } from "../../../src/engine/net/JsonGet.ts"
import { ResolveFailed, Resolver } from "../../../src/engine/net/Resolver.ts"
import type { CheckAnswer, Credential } from "../../../src/services/policy/Check.ts"
import { Policies } from "../../../src/services/policy/Policies.ts"
import type { Decision } from "../../../src/services/policy/Policy.ts"
import { dnsAnswerer } from "../../support/DnsAnswerer.ts"
import { text } from "../../support/Documents.ts"
import { configOf } from "../../support/Graph.ts"
import { connecting, ordering, policiesOf } from "../../support/Policies.ts"
import { shellScript } from "../../support/Script.ts"

/** Makes a policy whose only rule allows the requests that pass the check. */
const policyOf = (check: string, extra = "") =>
  configOf(`filter.rules = ["r"]
[filter.rule.r]
when = "c"
then = "allow"
[filter.check.c]
${check}
${extra}`)

const shown = ({ _tag, asked }: Decision): string => {
  const [answer]: Iterable<CheckAnswer | undefined> = asked.values()
  const why = answer?.verdict === "fail" ? answer.reason : answer?.verdict === "undecided" ? answer.error : ""
  return `${_tag}${why === "" ? "" : `: ${why}`}`
}

const allowed = "Allowed"

describe("allowed_ip", () => {
  const denied = (ip: string) =>
    new RegExp(`^Denied: the client address ${ip.replace("::ffff:", "")} is (denied|not among those allowed)$`)
  it.effect.each(
    [
      [`allow = ["10.0.0.0/8", "2001:db8::/32"]`, ["10.1.2.3", "2001:db8::1", "::ffff:10.0.0.1"], [
        "192.0.2.1",
        "fe80::1"
      ]],
      [`deny = ["10.0.0.1"]`, ["10.0.0.2", "::1"], ["10.0.0.1", "::ffff:10.0.0.1"]],
      [`deny = ["::ffff:10.0.0.0/120", "::ffff:a01:1"]`, ["10.0.1.1", "::1", "::a00:1"], ["10.0.0.1", "10.1.0.1"]],
      [`allow = ["10.0.0.0/8"]\ndeny = ["10.1.0.0/16"]`, ["10.2.0.1"], ["10.1.0.1", "192.0.2.1"]]
    ] as const
  )("applies to IPv4, IPv6 and mapped addresses: %s", ([lists, passing, failing]) =>
    Effect.gen(function*() {
      for (const ip of passing) assert.strictEqual(shown(yield* connecting(ip)), allowed, ip)
      for (const ip of failing) assert.match(shown(yield* connecting(ip)), denied(ip))
      for (const ip of failing) assert.match(shown(yield* ordering(ip, ["a"])), denied(ip))
      // An unknown client address fails the check, even in a rule that only denies.
      assert.strictEqual(shown(yield* connecting("")), "Denied: the client address is not known")
    }).pipe(Effect.provide(policiesOf(policyOf(`type = "allowed_ip"\n${lists}`)))))
})

describe("allowed_ip", () => {
  it.effect("says which address failed, and whether it is denied or not allowed", () =>
    Effect.gen(function*() {
      assert.strictEqual(shown(yield* connecting("10.1.0.1")), "Denied: the client address 10.1.0.1 is denied")
      assert.strictEqual(
        shown(yield* connecting("192.0.2.1")),
        "Denied: the client address 192.0.2.1 is not among those allowed"
      )
    }).pipe(Effect.provide(policiesOf(policyOf(`type = "allowed_ip"
allow = ["10.0.0.0/8"]
deny = ["10.1.0.0/16"]`)))))
})

describe("path", () => {
  it.effect("compares the path with the globs of deny, and then with the globs of allow", () =>
    Effect.gen(function*() {
      for (const path of ["/crl", "/acct/1"]) assert.strictEqual(shown(yield* connecting("::1", path)), allowed)
      for (const path of ["/crl/", "/acct/1/orders", "/CRL", "/%63rl"]) {
        assert.strictEqual(shown(yield* connecting("::1", path)), `Denied: the path ${path} is not among those allowed`)
      }
      assert.strictEqual(shown(yield* connecting("::1", "/acct/2")), "Denied: the path /acct/2 is denied")
      const long = shown(yield* connecting("::1", `/${"x".repeat(9000)}`))
      assert.isBelow(long.length, 400, "a path is cut")
    }).pipe(Effect.provide(policiesOf(policyOf(`type = "path"\nallow = ["/crl", "/acct/*"]\ndeny = ["/acct/2"]`)))))

  it.effect("does not apply to names, so that such a policy allows newOrder and finalize", () =>
    Effect.map(Policies, (policies) => {
      assert.isDefined(policies.get("default")?.connection)
      assert.isUndefined(policies.get("default")?.identifiers)
    }).pipe(Effect.provide(policiesOf(policyOf(`type = "path"\nallow = ["/crl"]`)))))
})

describe("kinds", () => {
  it.effect("compares the kind of certificate with the globs of deny, and then with the globs of allow", () =>
    Effect.gen(function*() {
      const of = (kind: string) => Effect.map(ordering("::1", ["a"], { kind }), shown)
      for (const kind of ["default", "mutual-day"]) assert.strictEqual(yield* of(kind), allowed, kind)
      assert.strictEqual(
        yield* of("server"),
        "Denied: the certificate profile server is not among those allowed"
      )
      assert.strictEqual(yield* of("mutual-year"), "Denied: the certificate profile mutual-year is denied")
    }).pipe(Effect.provide(policiesOf(policyOf(`type = "kinds"\nallow = ["default", "mutual-*"]\ndeny = ["*-year"]`)))))

  it.effect("does not apply to connections", () =>
    Effect.map(
      Policies,
      (policies) => assert.isUndefined(policies.get("default")?.connection)
    ).pipe(Effect.provide(policiesOf(policyOf(`type = "kinds"\ndeny = ["mutual"]`)))))
})

describe("identifiers", () => {
  const names = (check: string) => policiesOf(policyOf(`type = "identifiers"\n${check}`))

  it.effect("refuses evilexample.com, example.com.evil and *.a.example.com if *.example.com is allowed", () =>
    Effect.gen(function*() {
      const refused = ["evilexample.com", "example.com.evil", "*.a.example.com", "a.b.example.com", "example.com"]
      assert.strictEqual(shown(yield* ordering("::1", ["a.example.com", "*.example.com"])), allowed)
      for (const name of refused) {
        assert.strictEqual(shown(yield* ordering("::1", [name])), `Denied: not allowed: ${name}`)
      }
    }).pipe(Effect.provide(names(`allow = ["*.example.com"]\nallow_wildcards = true`))))

  it.effect("requires that every name pass, and lists the names that fail", () =>
    Effect.gen(function*() {
      const decision = yield* ordering("::1", ["a.x", "b.y", "c.x", "d.y"])
      assert.strictEqual(shown(decision), "Denied: not allowed: b.y, d.y")
      assert.deepStrictEqual(decision._tag === "Denied" ? decision.identifiers : [], [
        { type: "dns", value: "b.y" },
        { type: "dns", value: "d.y" }
      ])
    }).pipe(Effect.provide(names(`allow = ["*.x"]`))))

  it.effect("lists names separately if they are refused for different reasons", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        shown(yield* ordering("::1", ["a.y", "*.x", "b.y", "no.x"])),
        "Denied: not allowed: a.y, b.y; wildcards are not allowed: *.x; denied: no.x"
      )
    }).pipe(Effect.provide(names(`allow = ["*.x"]\ndeny = ["no.x"]`))))

  it.effect("refuses wildcards unless they are permitted separately", () =>
    Effect.gen(function*() {
      assert.strictEqual(shown(yield* ordering("::1", ["*.x"])), "Denied: wildcards are not allowed: *.x")
      assert.strictEqual(shown(yield* ordering("::1", ["a.x"])), allowed)
    }).pipe(Effect.provide(names(""))))

  it.effect("applies deny but not allow to common names, with globs and regular expressions alike", () =>
    Effect.gen(function*() {
      assert.strictEqual(shown(yield* ordering("::1", ["host1.x", "cn:A printer"])), allowed)
      assert.strictEqual(shown(yield* ordering("::1", ["secret.x"])), "Denied: denied: secret.x")
      assert.strictEqual(
        shown(yield* ordering("::1", ["a.x", "cn:secret.x"])),
        "Denied: denied as a common name of the CSR: secret.x"
      )
      assert.strictEqual(
        shown(yield* ordering("::1", ["cn:TOP 7"])),
        "Denied: denied as a common name of the CSR: TOP 7"
      )
      assert.strictEqual(shown(yield* ordering("::1", ["host1.x.evil"])), "Denied: not allowed: host1.x.evil")
    }).pipe(Effect.provide(names(
      `allow = ["a.x"]\nallow_regex = ["host[0-9]+\\\\.x"]\ndeny = ["secret.*"]\ndeny_regex = ["top.*"]`
    ))))

  it.effect("refuses common names if allowed_types lists only dns", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        shown(yield* ordering("::1", ["a.x", "cn:a.x"])),
        "Denied: common names of the CSR are not allowed: a.x"
      )
    }).pipe(Effect.provide(names(`allowed_types = ["dns"]`))))
})

describe("eab", () => {
  const of = (label: string | undefined, more: Partial<Credential> = {}) => ({
    credential: Effect.succeed<Credential>({ kid: "kid-1", label, status: "active", ...more })
  })
  const eab = (check: string) => policiesOf(policyOf(`type = "eab"\n${check}`, "[eab]\nenabled = true"))
  const none = "Denied: the account has no external account binding"
  const other = "Denied: the account's credential kid-1 is not among those allowed"
  const denied = "Denied: the account's credential kid-1 is denied"

  it.effect("refuses an account without a credential, even if the check only denies", () =>
    Effect.gen(function*() {
      assert.strictEqual(shown(yield* ordering("::1", ["a"])), none)
      assert.strictEqual(shown(yield* ordering("::1", ["a"], of("ok"))), allowed)
      assert.strictEqual(shown(yield* ordering("::1", ["a"], of(undefined))), allowed)
      const decision = yield* ordering("::1", ["a"], of("Bad one"))
      assert.strictEqual(shown(decision), denied)
      // Only operators see the label, because they wrote it.
      assert.strictEqual(
        decision._tag === "Denied" ? decision.finding : "",
        "the account's credential kid-1 is denied (its label is Bad one)"
      )
    }).pipe(Effect.provide(eab(`deny = ["bad*"]`))))

  it.effect("compares labels with globs and regular expressions, and ids exactly", () =>
    Effect.gen(function*() {
      for (const label of ["team-", "TEAM-a", "Printer 7"]) {
        assert.strictEqual(shown(yield* ordering("::1", ["a"], of(label))), allowed, label)
      }
      for (const label of ["ateam-a", "printer", undefined, ""]) {
        assert.strictEqual(shown(yield* ordering("::1", ["a"], of(label))), other, label)
      }
      assert.strictEqual(shown(yield* ordering("::1", ["a"], of(undefined, { kid: "kid-2" }))), allowed)
      assert.strictEqual(
        shown(yield* ordering("::1", ["a"], of(undefined, { kid: "KID-2" }))),
        other.replace("kid-1", "KID-2")
      )
    }).pipe(Effect.provide(eab(`allow = ["team-*"]\nallow_regex = ["printer [0-9]"]\nkids = ["kid-2"]`))))

  it.effect("accepts any credential without lists, or any active one with require_active", () =>
    Effect.gen(function*() {
      for (const [check, revoked] of [["", "Allowed"], ["require_active = true", "Denied"]] as const) {
        yield* Effect.gen(function*() {
          assert.strictEqual(shown(yield* ordering("::1", ["a"])), none)
          assert.strictEqual(shown(yield* ordering("::1", ["a"], of("x"))), allowed)
          const decision = yield* ordering("::1", ["a"], of("x", { status: "revoked" }))
          assert.strictEqual(decision._tag, revoked)
        }).pipe(Effect.provide(eab(check)))
      }
    }))

  it.effect("still accepts a revoked credential", () =>
    Effect.map(
      ordering("::1", ["a"], of("x", { status: "revoked" })),
      (decision) => assert.strictEqual(shown(decision), allowed)
    ).pipe(Effect.provide(eab(`allow = ["x"]`))))

  it.effect("refuses a revoked credential with require_active", () =>
    Effect.map(
      ordering("::1", ["a"], of("x", { status: "revoked" })),
      (decision) => assert.strictEqual(shown(decision), "Denied: the account's credential kid-1 is revoked")
    ).pipe(
      Effect.provide(eab(`allow = ["x"]\nrequire_active = true`))
    ))

  it.effect("is undecided when the credential cannot be read", () =>
    Effect.map(
      ordering("::1", ["a"], { credential: Effect.fail({ message: "no database" }) }),
      (decision) => assert.strictEqual(shown(decision), "Undecided: no database")
    ).pipe(Effect.provide(eab(`allow = ["x"]`))))
})

describe("reverse_dns", () => {
  const pointer = "7.2.0.192.in-addr.arpa"
  const zone = {
    [pointer]: { PTR: ["a.corp.example", "B.corp.example"], ttl: 60 },
    "a.corp.example": { A: ["192.0.2.9"], ttl: 60 },
    "b.corp.example": { A: ["192.0.2.8", "192.0.2.7"], ttl: 60 },
    "8.2.0.192.in-addr.arpa": { PTR: ["a.corp.example"] },
    "9.2.0.192.in-addr.arpa": { rcode: "SERVFAIL" as const },
    "10.2.0.192.in-addr.arpa": { PTR: ["broken.corp.example"] },
    "broken.corp.example": { rcode: "REFUSED" as const },
    "11.2.0.192.in-addr.arpa": {
      PTR: Array.from({ length: 17 }, (_, n) => n === 16 ? "last.corp.example" : `n${n}.other.example`)
    },
    "last.corp.example": { A: ["192.0.2.11"] },
    "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa": { PTR: ["six.corp.example"] },
    "six.corp.example": { AAAA: ["2001:db8:0::7"] },
    "12.2.0.192.in-addr.arpa": { PTR: ["dual.corp.example"] },
    "13.2.0.192.in-addr.arpa": { PTR: ["new.corp.example"] },
    "14.2.0.192.in-addr.arpa": { PTR: Array.from({ length: 5 }, (_, n) => `n${n}.other`) }
  }
  const over = (
    check: string,
    look: (answerer: Effect.Success<ReturnType<typeof dnsAnswerer>>) => Effect.Effect<void, unknown, Policies>,
    more: NonNullable<Parameters<typeof dnsAnswerer>[0]>["zone"] = {}
  ) =>
    Effect.gen(function*() {
      const answerer = yield* dnsAnswerer({ zone: { ...zone, ...more } })
      yield* Effect.provide(
        look(answerer),
        policiesOf(policyOf(`type = "reverse_dns"\n${check}`, `[dns]\nresolver = "${answerer.address}"`))
      )
    })
  const refused = (ip: string, why: string) => `Denied: the client address ${ip} ${why}`

  it.live("accepts a name only if the name resolves to the client address", () =>
    over(`allow = ["*.corp.example"]`, () =>
      Effect.gen(function*() {
        assert.strictEqual(shown(yield* connecting("192.0.2.7")), allowed)
        assert.strictEqual(shown(yield* connecting("2001:db8::7")), allowed)
        assert.strictEqual(
          shown(yield* connecting("192.0.2.8")),
          refused("192.0.2.8", "is not an address of its name: a.corp.example")
        )
        assert.strictEqual(shown(yield* connecting("192.0.2.99")), refused("192.0.2.99", "has no name in the DNS"))
        assert.strictEqual(
          shown(yield* connecting("192.0.2.14")),
          refused("192.0.2.14", "has no name that is among those allowed: n0.other, n1.other, n2.other and 2 more")
        )
        assert.strictEqual(shown(yield* connecting("")), "Denied: the client address is not known")
        assert.strictEqual(shown(yield* connecting("192.0.2.11")), allowed, "of 17 names the one that is asked about")
      })))

  it.live("finds a denied name at any position among many", () =>
    Effect.gen(function*() {
      for (const [at, count] of [[0, 1], [15, 17], [16, 17], [17, 40], [199, 200]] as const) {
        const PTR = Array.from({ length: count }, (_, n) => n === at ? "last.corp.example" : `n${n}.other.example`)
        yield* over(`deny = ["*.corp.example"]\nrequire_forward_confirm = false`, () =>
          Effect.gen(function*() {
            const said = shown(yield* connecting("192.0.2.20"))
            const denied = refused("192.0.2.20", "has the name last.corp.example, which is denied")
            assert.strictEqual(said, denied, `${at} of ${count}`)
          }), { "20.2.0.192.in-addr.arpa": { PTR } })
      }
    }))

  it.live("looks up sixteen names, and is undecided if none of them has the address and there are more", () =>
    over(`allow = ["*.corp.example"]`, () =>
      Effect.gen(function*() {
        const most = "the first 16 do not have the address"
        assert.strictEqual(shown(yield* connecting("192.0.2.21")), `Undecided: 192.0.2.21 has 17 names; ${most}`)
        assert.strictEqual(
          shown(yield* connecting("192.0.2.22")),
          refused(
            "192.0.2.22",
            "is not an address of its name: m0.corp.example, m1.corp.example, m2.corp.example and 13 more"
          )
        )
      }), {
      "21.2.0.192.in-addr.arpa": { PTR: Array.from({ length: 17 }, (_, n) => `m${n}.corp.example`) },
      "22.2.0.192.in-addr.arpa": { PTR: Array.from({ length: 16 }, (_, n) => `m${n}.corp.example`) },
      ...Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`m${n}.corp.example`, { A: ["192.0.2.99"] }]))
    }))

  it.live("accepts any name that resolves to the client address if the check has no lists", () =>
    over("", () =>
      Effect.gen(function*() {
        assert.strictEqual(shown(yield* connecting("192.0.2.7")), allowed)
        assert.match(shown(yield* connecting("192.0.2.8")), /^Denied: .* is not an address of its name/)
        assert.match(shown(yield* connecting("192.0.2.99")), /^Denied: .* has no name in the DNS$/)
      })))

  it.live("accepts a name without a look-up if require_forward_confirm is off", () =>
    over(`allow = ["*.corp.example"]\nrequire_forward_confirm = false`, ({ queries }) =>
      Effect.gen(function*() {
        assert.strictEqual(shown(yield* connecting("192.0.2.8")), allowed)
        assert.deepStrictEqual(queries.map(({ type }) => type), ["PTR"])
      })))

  it.live("denies every listed name, confirmed or not, and refuses an address without a name even if the check only denies", () =>
    over(`deny = ["a.corp.example"]`, () =>
      Effect.gen(function*() {
        for (const ip of ["192.0.2.7", "192.0.2.8"]) {
          assert.strictEqual(
            shown(yield* connecting(ip)),
            refused(ip, "has the name a.corp.example, which is denied")
          )
        }
        assert.strictEqual(shown(yield* connecting("192.0.2.99")), refused("192.0.2.99", "has no name in the DNS"))
        assert.strictEqual(shown(yield* connecting("2001:db8::7")), allowed)
      })))

  it.live("is undecided after SERVFAIL and REFUSED", () =>
    over(`allow_regex = [".*\\\\.corp\\\\.example"]`, () =>
      Effect.gen(function*() {
        assert.strictEqual(shown(yield* connecting("192.0.2.9")), "Undecided: 9.2.0.192.in-addr.arpa: ESERVFAIL")
        assert.strictEqual(shown(yield* connecting("192.0.2.10")), "Undecided: broken.corp.example: EREFUSED")
      })))

  it.live("caches addresses for their TTL, and looks them up again afterwards", () =>
    over(`allow = ["*.corp.example"]`, ({ queries }) =>
      Effect.gen(function*() {
        yield* connecting("192.0.2.7")
        const first = queries.length
        yield* connecting("192.0.2.7")
        assert.deepStrictEqual(queries.slice(first).map(({ type }) => type), ["PTR"])
        // The address of six.corp.example has no TTL, so it is not cached.
        yield* connecting("2001:db8::7")
        const third = queries.length
        yield* connecting("2001:db8::7")
        assert.isAbove(queries.length - third, 1)
      })))

  describe("a look-up of only the family of the address", () => {
    const records = { A: ["192.0.2.12"], AAAA: ["2001:db8::12"], ttl: 60 }

    it.live("is undecided if there is no answer about this family", () =>
      over(`allow = ["*.corp.example"]\ntimeout_ms = 700`, ({ zone }) =>
        Effect.gen(function*() {
          zone.set("dual.corp.example", { ...records, drop: ["A"] })
          assert.strictEqual(
            shown(yield* connecting("192.0.2.12")),
            "Undecided: no answer about 192.0.2.12 within 700 ms"
          )
        })))

    it.live("asks nothing about the other family", () =>
      over(`allow = ["*.corp.example"]\ntimeout_ms = 20000`, ({ queries, zone }) =>
        Effect.gen(function*() {
          zone.set("dual.corp.example", { ...records, drop: ["AAAA"] })
          assert.strictEqual(shown(yield* connecting("192.0.2.12")), allowed)
          assert.notInclude(queries.map(({ type }) => type), "AAAA")
        })))
  })

  it.live("does not cache that a name has no address", () =>
    over(`allow = ["*.corp.example"]`, ({ zone }) =>
      Effect.gen(function*() {
        assert.strictEqual(
          shown(yield* connecting("192.0.2.13")),
          refused("192.0.2.13", "is not an address of its name: new.corp.example")
        )
        zone.set("new.corp.example", { A: ["192.0.2.13"], ttl: 60 })
        assert.strictEqual(shown(yield* connecting("192.0.2.13")), allowed)
      })))

  const scripted = (seconds: number, asked: { count: number }) =>
    Layer.effect(
      Resolver,
      Effect.map(Effect.provide(Resolver, Resolver.layerStatic({}, {}, { "192.0.2.7": ["a.example."] })), (resolver) =>
        Resolver.of({
          ...resolver,
          timedAddresses: () =>
            Effect.sync(() => {
              asked.count++
              return { addresses: [], seconds }
            })
        }))
    )

  it.effect.each([[60, 60], [4000, 300]])("caches an address with a TTL of %i for %i s", ([ttl, kept]) => {
    const asked = { count: 0 }
    return Effect.gen(function*() {
      yield* connecting("192.0.2.7")
      yield* TestClock.adjust((kept ?? 0) * 1000 - 1)
      yield* connecting("192.0.2.7")
      assert.strictEqual(asked.count, 1)
      yield* TestClock.adjust(1)
      yield* connecting("192.0.2.7")
      assert.strictEqual(asked.count, 2)
    }).pipe(
      Effect.provide(policiesOf(policyOf(`type = "reverse_dns"\nallow = ["*.example"]`), scripted(ttl ?? 0, asked)))
    )
  })

  it.effect("is undecided if the time limit is exceeded", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(connecting("192.0.2.7"))
      yield* TestClock.adjust(2000)
      assert.strictEqual(shown(yield* Fiber.join(fiber)), "Undecided: no answer about 192.0.2.7 within 2000 ms")
    }).pipe(Effect.provide(policiesOf(
      policyOf(`type = "reverse_dns"\nallow = ["*.example"]`),
      Layer.effect(
        Resolver,
        Effect.map(Effect.provide(Resolver, Resolver.layerStatic({})), (resolver) =>
          Resolver.of({ ...resolver, pointers: () => Effect.never }))
      )
    ))))

  it.effect("ignores a failed look-up of a name if another name is confirmed", () =>
    Effect.map(connecting("192.0.2.7"), (decision) => assert.strictEqual(shown(decision), allowed)).pipe(
      Effect.provide(policiesOf(
        policyOf(`type = "reverse_dns"\nallow = ["*.example"]`),
        Resolver.layerStatic(
          { "a.example": new ResolveFailed({ name: "a.example", code: "ESERVFAIL" }), "b.example": ["192.0.2.7"] },
          {},
          { "192.0.2.7": ["a.example", "b.example"] }
        )
      ))
    ))
})

describe("custom", () => {
  const custom = (body: string, more = "", limit = "timeout_ms = 20000") =>
    policiesOf(policyOf(`type = "custom"\nscript_path = "${shellScript(body)}"\n${limit}\n${more}`))

  it.live("passes if the script ends with 0, whatever the script prints", () =>
    Effect.map(connecting("192.0.2.1"), (decision) => assert.strictEqual(shown(decision), allowed)).pipe(
      Effect.provide(custom("echo no; exit 0"))
    ))

  it.live.each([
    ["exit 1", "refused by a script"],
    ["echo; echo '  not today '; echo more; exit 7", "not today"],
    ["echo 'to stderr' >&2; exit 1", "to stderr"],
    ["echo b >&2; echo a; exit 1", "a"],
    ["printf 'a\\033[31mb\\007\\n'; exit 1", "a [31mb"],
    ["kill -9 $$", "refused by a script"]
  ])(
    "fails after the script %s with the reason %s",
    ([body, reason]) =>
      Effect.map(connecting("192.0.2.1"), (decision) => assert.strictEqual(shown(decision), `Denied: ${reason}`)).pipe(
        Effect.provide(custom(body ?? ""))
      )
  )

  it.live("shortens a long reason", () =>
    Effect.map(connecting("192.0.2.1"), (decision) => assert.strictEqual(shown(decision).length, 508)).pipe(
      Effect.provide(custom("head -c 5000 /dev/zero | tr '\\0' x; exit 1"))
    ))

  it.live("is undecided if the script does not start or exceeds its time", () =>
    Effect.gen(function*() {
      const absent = policiesOf(policyOf(`type = "custom"\nscript_path = "/nowhere/script"`))
      assert.strictEqual(
        shown(yield* Effect.provide(connecting("192.0.2.1"), absent)),
        "Undecided: could not be started: there is no /nowhere/script (ENOENT)"
      )
      const hanging = custom("exec sleep 1000", "", "timeout_ms = 200")
      assert.strictEqual(
        shown(yield* Effect.provide(connecting("192.0.2.1"), hanging)),
        "Undecided: did not end within 200 ms"
      )
    }))

  it.live("is undecided if the names are too long for a variable, so that no script judges a part of them", () =>
    Effect.map(
      ordering("192.0.2.1", Array.from({ length: 600 }, (_, n) => `${n}.${"x".repeat(250)}`)),
      (decision) =>
        assert.strictEqual(
          shown(decision),
          "Undecided: could not be started: its arguments and variables are longer than this system takes (E2BIG)"
        )
    ).pipe(Effect.provide(custom("exit 0"))))

  it.live("gives the script the connection in the environment and the input", () =>
    Effect.gen(function*() {
      const decision = yield* connecting("::ffff:192.0.2.1", "/acct/$(id)")
      assert.strictEqual(
        shown(decision),
        `Denied: connection c 192.0.2.1 POST /acct/$(id) {"hook":"connection","client_ip":"192.0.2.1","method":"POST","path":"/acct/$(id)"}`
      )
      assert.include(shown(yield* connecting("")), `"client_ip":null`)
    }).pipe(Effect.provide(custom(
      "echo $ACME_FILTER_HOOK $ACME_FILTER_CHECK_NAME $ACME_FILTER_CLIENT_IP $ACME_FILTER_METHOD \"$ACME_FILTER_PATH\" $(cat); exit 1"
    ))))

  it.live("gives the script the names in the environment and the input", () =>
    Effect.map(
      ordering("192.0.2.1", ["-n", "b.x", "cn:B x"], { at: "CSR", kind: "mutual" }),
      (decision) =>
        assert.strictEqual(
          shown(decision),
          `Denied: identifiers account-1 CSR mutual -n,b.x,B x {"hook":"identifiers","client_ip":"192.0.2.1","account_id":"account-1","stage":"CSR","certificate_kind":"mutual","identifiers":[{"type":"dns","value":"-n"},{"type":"dns","value":"b.x"},{"type":"cn","value":"B x"}]}`
        )
    ).pipe(Effect.provide(custom(
      "echo $ACME_FILTER_HOOK $ACME_FILTER_ACCOUNT_ID $ACME_FILTER_STAGE $ACME_FILTER_CERTIFICATE_KIND $ACME_FILTER_IDENTIFIERS $(cat); exit 1"
    ))))

  it.live("gives the script each documented value of ACME_FILTER_STAGE", () =>
    Effect.gen(function*() {
      const row = /\| `ACME_FILTER_STAGE` +\| (.*) \|/.exec(text("docs/configure/policy.md"))?.[1] ?? ""
      const words = [...row.matchAll(/`([^`]+)`/g)].map(([, word]) => word)
      assert.deepStrictEqual(words, [...nameRequests])
      for (const at of nameRequests) {
        assert.strictEqual(shown(yield* ordering("::1", ["a"], { at })), `Denied: ${at} ${at}`)
      }
    }).pipe(Effect.provide(custom(
      "echo $ACME_FILTER_STAGE $(sed 's/.*\"stage\":\"\\([^\"]*\\)\".*/\\1/'); exit 1"
    ))))

  it.live("gives the script its arguments unchanged, and an empty input without pass_stdin", () =>
    Effect.map(connecting("::1"), (decision) => assert.strictEqual(shown(decision), "Denied: $x|-y|[]")).pipe(
      Effect.provide(custom("echo \"$1|$2|[$(cat)]\"; exit 1", `pass_stdin = false\nargs = ["$x", "-y"]`))
    ))

  it.effect("runs at most 16 scripts at once", () =>
    Effect.gen(function*() {
      let [running, most] = [0, 0]
      const scripts = Scripts.layerScripted(({ turns }) =>
        (turns ?? makeFairSemaphore(99)).takeWithin(
          60_000,
          Effect.gen(function*() {
            most = Math.max(most, ++running)
            yield* Effect.yieldNow
            running--
            return { exit: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
          }),
          Effect.never
        )
      )
      const { profiles } = policyOf("type = \"custom\"\nscript_path = \"x\"")
      const layer = Policies.layer(profiles).pipe(
        Layer.provide(scripts),
        Layer.provide(Layer.mock(JsonGet, {})),
        Layer.provide(Resolver.layerStatic({})),
        Layer.orDie
      )
      yield* Effect.provide(
        Effect.all(Array.from({ length: 100 }, () => connecting("::1")), { concurrency: "unbounded" }),
        layer
      )
      assert.strictEqual(most, 16)
    }))
})
