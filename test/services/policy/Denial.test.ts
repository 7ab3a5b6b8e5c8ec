import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Decision } from "../../../src/services/policy/Policy.ts"
import { configOf } from "../../support/Graph.ts"
import { connecting, ordering, policiesOf } from "../../support/Policies.ts"

/* Tests which check a refusal quotes, and which names the refusal lists. */

interface Written {
  readonly rules: ReadonlyArray<string>
  readonly otherwise?: "allow" | "deny"
}

/** Makes a policy from rules such as `allow CONDITION`, with an optional message after a bar. */
const policy = ({ otherwise = "deny", rules }: Written) =>
  policiesOf(configOf(`[filter]
rules = ${JSON.stringify(rules.map((_, index) => `r${index + 1}`))}
default = "${otherwise}"
check.paths = { type = "path", allow = ["/crl"] }
check.office = { type = "allowed_ip", allow = ["192.0.2.0/24"], stages = ["connection"] }
check.vpn = { type = "allowed_ip", allow = ["198.51.100.0/24"], stages = ["identifiers"] }
check.print = { type = "identifiers", allow = ["*.print.example"] }
check.web = { type = "identifiers", allow = ["*.web.example"] }
check.short = { type = "identifiers", allow_regex = ["[a-z]\\\\..*"] }
check.eab = { type = "eab", allow = ["team"] }
${
    rules.map((rule, index) => {
      const [, then, when, message = "", warn = ""] = /^(\S+) ([^|!]+)(?:\|([^!]*))?(!)?$/.exec(rule) ?? []
      const mode = warn === "" ? "enforce" : "warn"
      return `rule.r${index + 1} = ${
        ["{ when = ", `, then = `, `, message = `, `, mode = `].map((key, at) =>
          `${key}${JSON.stringify([when?.trim(), then, message, mode][at])}`
        ).join("")
      } }`
    }).join("\n")
  }
[eab]
enabled = true`))

const told = (decision: Decision) =>
  decision._tag === "Denied"
    ? {
      rule: decision.rule,
      check: decision.check,
      detail: decision.detail,
      names: decision.identifiers.map((identifier) => [identifier.value, decision.detailOf(identifier)])
    }
    : decision._tag

const asked = (names: ReadonlyArray<string>, written: Written) =>
  Effect.map(ordering("203.0.113.9", names), told).pipe(Effect.provide(policy(written)))

const reached = (written: Written, ip = "203.0.113.9") =>
  Effect.map(connecting(ip), told).pipe(Effect.provide(policy(written)))

const refusing = (check: string | undefined, detail: string, ...names: ReadonlyArray<string>) => ({
  rule: undefined,
  check,
  detail,
  names: names.map((name) => [name, `not allowed: ${name}`])
})

describe("a request that no rule allows", () => {
  const teams = { rules: ["allow print", "allow web"] }

  it.effect("is explained by the last rule that could have allowed it, with the names that no rule allows", () =>
    Effect.gen(function*() {
      const refused = refusing("web", "not allowed: x.other", "x.other")
      assert.deepStrictEqual(yield* asked(["a.web.example", "x.other"], teams), refused)
      assert.deepStrictEqual(yield* asked(["a.print.example", "x.other"], teams), refused)
      assert.deepStrictEqual(
        yield* asked(["x.other", "a.web.example", "y.other"], teams),
        refusing("web", "not allowed: x.other, y.other", "x.other", "y.other")
      )
      assert.deepStrictEqual(
        yield* reached({ rules: ["allow paths", "allow office"] }),
        refusing("office", "the client address 203.0.113.9 is not among those allowed")
      )
    }))

  it.effect("is explained without a name that any rule allows, not only the first or the last rule", () =>
    Effect.map(
      asked(["a.web.example", "x.other"], { rules: ["allow print", "allow web", "allow print and short"] }),
      (told) => assert.deepStrictEqual(told, refusing("print", "not allowed: x.other", "x.other"))
    ))

  it.effect("has no refused name if each of its names is allowed by some rule", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* asked(["a.print.example", "a.web.example"], teams),
        refusing("web", "no rule allows these names together: a.web.example, a.print.example")
      )
    }))

  it.effect("is explained by the part of a condition that decided the result", () =>
    Effect.gen(function*() {
      const names = ["a.print.example", "x.other"]
      const only = refusing("web", "not allowed: x.other", "x.other")
      assert.deepStrictEqual(yield* asked(names, { rules: ["allow print or web"] }), only)
      assert.deepStrictEqual(
        yield* asked(["ab.print.example", "x.other"], { rules: ["allow short and print"] }),
        refusing("short", "not allowed: ab.print.example", "ab.print.example")
      )
      // A rule that fails for another reason allows none of the names.
      assert.deepStrictEqual(
        yield* asked(names, { rules: ["allow vpn and print", "allow web"] }),
        refusing("web", "not allowed: a.print.example, x.other", "a.print.example", "x.other")
      )
      assert.deepStrictEqual(
        yield* asked(names, { rules: ["allow print", "allow eab"] }),
        refusing("eab", "the account has no external account binding")
      )
    }))

  it.effect("is not explained by rules without a failed check, by rules that deny, or by rules that only warn", () =>
    Effect.gen(function*() {
      const only = refusing("print", "not allowed: x.other", "x.other")
      const names = ["a.print.example", "x.other"]
      assert.deepStrictEqual(yield* asked(names, { rules: ["allow print", "allow not short"] }), only)
      assert.deepStrictEqual(yield* asked(names, { rules: ["allow print", "deny web"] }), only)
      assert.deepStrictEqual(yield* asked(names, { rules: ["allow print", "allow web|!"] }), only)
      assert.deepStrictEqual(
        yield* asked(names, { rules: ["deny web"] }),
        refusing(undefined, "request refused by policy")
      )
    }))
})

describe("a request that a rule denies", () => {
  it.effect("is explained with the name of the rule, and only with a failed check of this rule", () =>
    Effect.gen(function*() {
      const said = { rule: "r2", check: undefined, detail: "refused by rule r2", names: [] }
      assert.deepStrictEqual(yield* reached({ rules: ["allow paths", "deny office"] }, "192.0.2.1"), said)
      assert.deepStrictEqual(yield* reached({ rules: ["allow paths", "deny not office"] }), {
        ...said,
        check: "office",
        detail: "refused by rule r2: the client address 203.0.113.9 is not among those allowed"
      })
    }))

  it.effect("has the names that the check of the rule refused and that no earlier rule allows", () =>
    Effect.gen(function*() {
      const rules = ["allow print", "deny not web"]
      assert.deepStrictEqual(yield* asked(["a.print.example", "x.other"], { rules, otherwise: "allow" }), {
        rule: "r2",
        check: "web",
        detail: "refused by rule r2: not allowed: x.other",
        names: [["x.other", "refused by rule r2: not allowed: x.other"]]
      })
    }))

  it.effect("is explained only with the message of the rule, if the rule has one", () =>
    Effect.gen(function*() {
      const message = "ask the owner"
      assert.deepStrictEqual(yield* asked(["x.other"], { rules: [`deny not web|${message}`] }), {
        rule: "r1",
        check: "web",
        detail: message,
        names: [["x.other", message]]
      })
    }))
})
