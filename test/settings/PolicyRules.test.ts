import { describe, it } from "@effect/vitest"
import { assert } from "vitest"
import { accepted, minimal, refused, refusedFor, valueAt } from "./Samples.ts"

/* Policies that are refused at startup and at a reload. Each refusal names the key. */

const office = `[filter.check.office]
type = "allowed_ip"
allow = ["10.0.0.0/8"]
`
const rules = `[filter]
rules = ["inside"]
[filter.rule.inside]
when = "office"
then = "allow"
`

const fileOf = (...parts: ReadonlyArray<string>) => `${parts.join("\n")}\n${minimal}`

/** Returns a valid policy with one more check. */
const check = (text: string) => fileOf(rules, office, `[filter.check.x]\n${text}`)
/** Returns a valid policy with one more rule. */
const rule = (text: string) => fileOf(rules, office, `[filter.rule.x]\n${text}`)

describe("a valid policy", () => {
  it("is accepted, and every profile inherits it key by key", () => {
    const fileText = `${fileOf(rules, office)}[profiles.other.filter.rule.inside]\nmode = "warn"\n`
    const resolved = accepted({ fileText })
    assert.deepStrictEqual(
      resolved.config.profiles.map(({ filter, name }) => [name, filter.rules, filter.rule.inside?.mode]),
      [["default", ["inside"], "enforce"], ["other", ["inside"], "warn"]]
    )
    assert.deepStrictEqual(valueAt(resolved, "filter.check"), resolved.config.filter.check)
  })

  it("can be set entirely through environment variables", () => {
    const { config } = accepted({
      env: {
        ACME_SVC_FILTER__RULES: "from-here",
        ACME_SVC_FILTER__RULE__FROM_HERE__WHEN: "the-office",
        ACME_SVC_FILTER__RULE__FROM_HERE__THEN: "allow",
        ACME_SVC_FILTER__CHECK__THE_OFFICE__TYPE: "allowed_ip",
        ACME_SVC_FILTER__CHECK__THE_OFFICE__ALLOW: "10.0.0.0/8, 192.0.2.1"
      }
    })
    assert.deepStrictEqual(config.profiles[0]?.filter.check["the-office"]?.allow, ["10.0.0.0/8", "192.0.2.1"])
  })

  it("may have checks of every type, and checks that no rule uses", () => {
    accepted({
      fileText: fileOf(
        rules,
        office,
        "[eab]\nenabled = true",
        "[ipam]\nbackend = \"custom\"\ncustom.script_path = \"names\"",
        "[filter.check.a]\ntype = \"path\"\ndeny = [\"/keyChange\", \"/acct/*\"]",
        "[filter.check.b]\ntype = \"reverse_dns\"\nallow_regex = [\"h[0-9]+\\\\.example\"]\ntimeout_ms = 1",
        "[filter.check.c]\ntype = \"identifiers\"",
        "[filter.check.d]\ntype = \"eab\"\nkids = [\"x\"]",
        "[filter.check.e]\ntype = \"ipam\"",
        "[filter.check.f]\ntype = \"custom\"\nscript_path = \"./x\"\nstages = [\"connection\"]\npass_stdin = false"
      )
    })
  })
})

describe("a check without lists", () => {
  it("is accepted if its type is reverse_dns or eab", () => {
    accepted({ fileText: check(reverse ?? "") })
    accepted({ fileText: `[eab]\nenabled = true\n${check(`${eab}require_active = true`)}` })
    accepted({ fileText: `[eab]\nenabled = true\n${check(eab ?? "")}` })
  })
})

const custom = "type = \"custom\"\nscript_path = \"x\"\nstages"
const [ip, path, names, reverse, eab] = ["allowed_ip", "path", "identifiers", "reverse_dns", "eab"]
  .map((type) => `type = "${type}"\n`)

describe("a policy is refused for", () => {
  it.each([
    // wrong names
    ["an unknown rule", fileOf(`filter.rules = ["none"]`), "filter.rules", "filter.rule.none"],
    [
      "a rule that is listed twice",
      fileOf(rules.replace(`["inside"]`, `["inside", "inside"]`), office),
      "filter.rules",
      "twice"
    ],
    ["a malformed name in filter.rules", fileOf(`filter.rules = ["In"]`), "filter.rules", "entry 1 must be a name"],
    ["a check with a malformed name", fileOf("[filter.check.A_b]"), "filter.check.A_b", "lower-case letters"],
    ["a rule with a malformed name", fileOf("[filter.rule.\"a b\"]"), "filter.rule.\"a b\"", "lower-case letters"],
    ["a check with a reserved name", fileOf("[filter.check.and]"), "filter.check.and", "operator"],
    ["a rule with a reserved name", fileOf("[filter.rule.not]"), "filter.rule.not", "operator"],
    ["an unknown check", rule(`when = "office and home"\nthen = "allow"`), "filter.rule.x.when", "filter.check.home"],
    [
      "rules that filter.rules does not list",
      fileOf(rules.replace(`["inside"]`, "[]"), office),
      "filter.rules",
      "filter.rule.inside"
    ],
    // wrong conditions
    [
      "a condition that does not parse",
      rule(`when = "office or"\nthen = "deny"`),
      "filter.rule.x.when",
      "of rule x cannot be read at column 10 of \"office or\""
    ],
    ["a rule without a condition", rule(`then = "deny"`), "filter.rule.x.when", "must be set"],
    ["a rule without a verdict", rule(`when = "office"`), "filter.rule.x.then", "must be set"],
    // wrong words
    ["an unsupported verdict", rule(`when = "office"\nthen = "drop"`), "filter.rule.x.then", "\"allow\", \"deny\""],
    ["an unsupported mode", rule(`when = "office"\nthen = "deny"\nmode = "dry"`), "filter.rule.x.mode", "warn"],
    ["an unsupported default", fileOf(`filter.default = "drop"`), "filter.default", "deny"],
    ["an unsupported type", check(`type = "geoip"`), "filter.check.x.type", "allowed_ip"],
    ["a check without a type", check(`deny = ["10.0.0.1"]`), "filter.check.x.type", "must be set"],
    ["an unsupported stage", check(`${ip}allow = ["::1"]\nstages = ["revoke"]`), "filter.check.x.stages", "connection"],
    [
      "a stage that is listed twice",
      check(`${ip}allow = ["::1"]\nstages = ["connection", "connection"]`),
      "filter.check.x.stages",
      "twice"
    ],
    // wrong stages
    [
      "a check of type path at the stage identifiers",
      check(`${path}allow = ["/a"]\nstages = ["identifiers"]`),
      "filter.check.x.stages",
      "identifiers"
    ],
    [
      "a check of type identifiers at the stage connection",
      check(`${names}stages = ["connection"]`),
      "filter.check.x.stages",
      "connection"
    ],
    [
      "a check of type ipam at the stage connection",
      fileOf(
        rules,
        office,
        "[ipam]\nbackend = \"custom\"\ncustom.script_path = \"x\"",
        "[filter.check.x]\ntype = \"ipam\"\nstages = [\"connection\"]"
      ),
      "filter.check.x.stages",
      "ipam"
    ],
    [
      "checks that share no stage",
      fileOf(
        rules,
        office,
        `[filter.check.p]\n${path}allow = ["/a"]`,
        `[filter.check.n]\n${names}`,
        "[filter.rule.x]\nwhen = \"p and not n\"\nthen = \"deny\""
      ),
      "filter.rule.x.when",
      "p (connection) and n (identifiers)"
    ],
    // wrong keys
    [
      "a key that belongs to another type of check",
      check(`${ip}allow = ["::1"]\nkids = ["a"]`),
      "filter.check.x.kids",
      "type eab, and this one is allowed_ip"
    ],
    [
      "a key for scripts in a check that runs no script",
      check(`${names}args = []`),
      "filter.check.x.args",
      "type custom, and this one is identifiers"
    ],
    [
      "a timeout in a check of type allowed_ip",
      check(`${ip}allow = ["::1"]\ntimeout_ms = 5`),
      "filter.check.x.timeout_ms",
      "reverse_dns, custom"
    ],
    [
      "lists in a check of type ipam",
      fileOf(
        "[ipam]\nbackend = \"custom\"\ncustom.script_path = \"x\"",
        "[filter.check.x]\ntype = \"ipam\"\nallow = [\"a\"]"
      ),
      "filter.check.x.allow",
      "ipam"
    ],
    // wrong entries
    ["an invalid CIDR", check(`${ip}allow = ["10.0.0.0/8", "10.0.0.0/33"]`), "filter.check.x.allow", "entry 2"],
    ["a host name for an address", check(`${ip}deny = ["localhost"]`), "filter.check.x.deny", "entry 1"],
    ["an invalid path glob", check(`${path}allow = ["crl"]`), "filter.check.x.allow", "begin with a slash"],
    ["an invalid name glob", check(`${names}deny = ["web*.example"]`), "filter.check.x.deny", "one whole label"],
    ["look-ahead", check(`${names}allow_regex = ["(?=a)b"]`), "filter.check.x.allow_regex", "look-around"],
    ["a back-reference", check(`${reverse}deny_regex = ["(a)\\\\1"]`), "filter.check.x.deny_regex", "back-references"],
    [
      "an unreadable regular expression",
      check(`${names}deny_regex = ["ok", "["]`),
      "filter.check.x.deny_regex",
      "entry 2"
    ],
    // empty values
    ["allowed_ip without lists", check(ip ?? ""), "filter.check.x.allow", "while deny is"],
    ["path without lists", check(path ?? ""), "filter.check.x.allow", "while deny is"],
    ["custom without a script", check(`type = "custom"`), "filter.check.x.script_path", "must be set"],
    ["a script with an unknown stage", check(`${custom} = ["x"]`), "filter.check.x.stages", "identifiers"],
    // mistakes that involve other sections
    [
      "a check of type eab while eab is off",
      check(`${eab}allow = ["a"]`),
      "filter.check.x.type",
      "eab.enabled is false"
    ],
    [
      "a check of type ipam without a backend",
      check("type = \"ipam\""),
      "filter.check.x.type",
      "ipam.backend is empty"
    ],
    [
      "a second ipam check",
      fileOf(
        "[ipam]\nbackend = \"custom\"\ncustom.script_path = \"x\"",
        "[filter.check.a]\ntype = \"ipam\"",
        "[filter.check.b]\ntype = \"ipam\""
      ),
      "filter.check.b.type",
      "filter.check.a"
    ],
    [
      "netbox without a URL",
      fileOf("[ipam]\nbackend = \"netbox\"\nnetbox.token = \"t\""),
      "ipam.netbox.url",
      "must be set"
    ],
    [
      "netbox without a token",
      fileOf("[ipam]\nbackend = \"netbox\"\nnetbox.url = \"https://x\"\nnetbox.token = \" \""),
      "ipam.netbox.token",
      "must be set"
    ],
    [
      "a NetBox token without its second half",
      fileOf("[ipam]\nbackend = \"netbox\"\nnetbox.url = \"https://x\"\nnetbox.token = \"nbt_abc\""),
      "ipam.netbox.token",
      "dot"
    ],
    [
      "the source vip without roles",
      fileOf(
        "[ipam]\nbackend = \"netbox\"\nnetbox.url = \"https://x\"\nnetbox.token = \"t\"\nnetbox.sources = [\"vip\"]\nnetbox.vip_roles = []"
      ),
      "ipam.netbox.vip_roles",
      "vip"
    ],
    [
      "phpipam without a URL",
      fileOf("[ipam]\nbackend = \"phpipam\"\nphpipam.token = \"t\""),
      "ipam.phpipam.url",
      "must be set"
    ],
    [
      "phpipam without a token",
      fileOf("[ipam]\nbackend = \"phpipam\"\nphpipam.url = \"https://x\""),
      "ipam.phpipam.token",
      "must be set"
    ],
    [
      "a source that phpIPAM does not have",
      fileOf("ipam.phpipam.sources = [\"vip\"]"),
      "ipam.phpipam.sources",
      "\"vip\""
    ],
    [
      "a custom inventory without a script",
      fileOf("ipam.backend = \"custom\""),
      "ipam.custom.script_path",
      "must be set"
    ]
  ])("%s", (_, fileText, key, words) => {
    const fault = refusedFor({ fileText })
    assert.strictEqual(fault.key, key)
    assert.include(fault.message, words)
  })

  it("every mistake at once, each by its own key, together with mistakes in other sections", () => {
    const fileText = fileOf(
      "[nonce]\nttl_seconds = 0",
      rules,
      "[filter.check.office]\ntype = \"allowed_ip\"\nallow = [\"x\"]",
      "[filter.rule.other]\nwhen = \"(\"\nthen = \"allow\"",
      "[ipam]\nbackend = \"phpipam\""
    )
    assert.deepStrictEqual(refused({ fileText }).map(({ key }) => key), [
      "filter.check.office.allow",
      "filter.rule.other.when",
      "ipam.phpipam.token",
      "ipam.phpipam.url",
      "nonce.ttl_seconds"
    ])
  })

  it("a mistake in a key that a profile sets, with the name of this key", () => {
    const fileText = `[profiles.web.filter]
rules = ["x"]
[profiles.web.filter.rule.x]
when = "y"
[profiles.web.filter.check.y]
type = "custom"
[profiles.lab]
`
    assert.deepStrictEqual(refused({ fileText }).map(({ key }) => key), [
      "profiles.web.filter.check.y.script_path",
      "profiles.web.filter.rule.x.then"
    ])
  })

  it("a mistake in an inherited rule, once and with the key where the mistake is", () => {
    const fileText = `${rules}${office}[profiles.a]\n[profiles.b]\n[profiles.c.filter.rule.inside]\nwhen = "not"\n`
    assert.strictEqual(refusedFor({ fileText }).key, "profiles.c.filter.rule.inside.when")
    const everywhere = `${rules}[profiles.a]\n[profiles.b]\n`
    assert.strictEqual(refusedFor({ fileText: everywhere }).key, "filter.rule.inside.when")
  })

  it("no mistake in a parked profile, because such a mistake is only reported", () => {
    const fileText = `${minimal}[profiles.parked]\nenabled = false\nfilter.rules = ["x"]\n`
    assert.deepStrictEqual(accepted({ fileText }).ignored.map(({ key }) => key), ["profiles.parked.filter.rules"])
  })

  it("a wrong token, whose text is not repeated", () => {
    const fileText = fileOf(
      "[ipam]\nbackend = \"netbox\"\nnetbox.url = \"https://x\"\nnetbox.token = \"nbt_SWORDFISH\""
    )
    assert.notInclude(JSON.stringify(refused({ fileText })), "SWORDFISH")
    const whole = accepted({ fileText: fileOf("ipam.phpipam.token = \"SWORDFISH\"") })
    assert.notInclude(JSON.stringify(whole.config), "SWORDFISH")
  })
})
