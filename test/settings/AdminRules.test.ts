import { assert, describe, it } from "vitest"
import { accepted, minimal, refused, refusedFor } from "./Samples.ts"

const check = (type: string) =>
  `${minimal}[admin]
enabled = true
[admin.filter]
rules = ["first"]
[admin.filter.check.one]
type = "${type}"
allow = ["10.0.0.0/8"]
script_path = "/bin/true"
[admin.filter.rule.first]
when = "one"
then = "allow"
`

describe("the [admin] section", () => {
  it.each(["0.0.0.0:3001", "[::]:3001", "192.0.2.1:3001", "panel.example.org:3001"])(
    "refuses to listen at %s without TLS, and accepts the address with TLS",
    (address) => {
      const bind = `[admin]\nenabled = true\nbind_address = "${address}"\n`
      assert.strictEqual(refusedFor({ fileText: `${bind}${minimal}` }).key, "admin.bind_address")
      accepted({ fileText: `${bind}tls.enabled = true\n${minimal}` })
    }
  )

  it.each(["127.0.0.1:3001", "127.9.9.9:1", "[::1]:3001", "localhost:3001"])(
    "may listen at %s without TLS",
    (address) => {
      accepted({ fileText: `[admin]\nenabled = true\nbind_address = "${address}"\n${minimal}` })
    }
  )

  it.each(["identifiers", "eab", "ipam"])("refuses a check of type %s, which needs an order", (type) => {
    const keys = refused({ fileText: check(type).replace("allow = [\"10.0.0.0/8\"]\n", "") }).map(({ key }) => key)
    assert.include(keys, "admin.filter.check.one.type")
  })

  it("refuses a rule that the listener would never evaluate", () => {
    const bare = check("allowed_ip").replace("script_path = \"/bin/true\"\n", "")
    const staged = (stages: string) => bare.replace("type = \"allowed_ip\"", `type = "allowed_ip"\nstages = ${stages}`)
    accepted({ fileText: staged(`["connection", "identifiers"]`) })
    const fault = refusedFor({ fileText: staged(`["identifiers"]`) })
    assert.strictEqual(fault.key, "admin.filter.rule.first.when")
    assert.strictEqual(
      fault.message,
      "of rule first is never asked: it names one (identifiers), and here there is the stage connection alone"
    )
    const both = `${staged(`["identifiers"]`).replace("when = \"one\"", "when = \"one and two\"")}
[admin.filter.check.two]
type = "allowed_ip"
allow = ["192.0.2.0/24"]
`
    assert.strictEqual(refusedFor({ fileText: both }).key, "admin.filter.rule.first.when")
    // The policy of a profile may have both stages.
    accepted({ fileText: staged(`["identifiers"]`).replaceAll("admin.filter", "filter") })
  })

  it("inherits no filter from the ACME listener", () => {
    const fileText = check("allowed_ip").replace("script_path = \"/bin/true\"\n", "")
    assert.deepStrictEqual(accepted({ fileText }).config.filter.rules, [])
    const elsewhere = accepted({ fileText: fileText.replaceAll("admin.filter", "filter") })
    assert.deepStrictEqual(elsewhere.config.admin.filter.rules, [])
  })

  it("names the full path of a key that a rule lacks", () => {
    const fileText = check("allowed_ip").replace("script_path = \"/bin/true\"\n", "").replace("then = \"allow\"\n", "")
    assert.strictEqual(refusedFor({ fileText }).key, "admin.filter.rule.first.then")
  })

  it("refuses the same file for its TLS certificate and its TLS key", () => {
    const fileText =
      `[admin]\nenabled = true\ntls.enabled = true\ntls.cert_path = "x.pem"\ntls.key_path = "./x.pem"\n${minimal}`
    assert.include(refused({ fileText }).map(({ key }) => key), "admin.tls.key_path")
  })
})
