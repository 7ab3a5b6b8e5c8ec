import { assert, describe, it } from "vitest"
import { otherCaText, retiredIn } from "../../src/settings/OtherCaText.ts"

describe("the table of another CA", () => {
  const waiting = { cert_path: "/a \"b\".pem", state: "waiting", from: "2027-01-01T00:00:00Z" } as const

  it("has the keys of a token or of a Transit engine in a table of its own", () => {
    assert.strictEqual(
      otherCaText("web", "b", { ...waiting, key_source: "pkcs11", pkcs11: { module_path: "/m.so", slot_id: 2 } }),
      [
        "[profiles.web.signer.local_ca.others.b]",
        String.raw`cert_path = "/a \"b\".pem"`,
        "state = \"waiting\"",
        "from = \"2027-01-01T00:00:00Z\"",
        "key_source = \"pkcs11\"",
        "",
        "[profiles.web.signer.local_ca.others.b.pkcs11]",
        "module_path = \"/m.so\"",
        "slot_id = 2"
      ].join("\n")
    )
    assert.include(
      otherCaText("web", "b", { ...waiting, key_source: "transit", transit: { key: "ca2" } }),
      "\n\n[profiles.web.signer.local_ca.others.b.transit]\nkey = \"ca2\""
    )
  })

  it("is changed in the table of the profile, and else in that of all profiles", () => {
    const shared = "[signer.local_ca.others.b]\nstate = 'waiting' # soon\nfrom = \"x\"\n[jobs]\n"
    const own = `[profiles."web".signer.local_ca.others."b"]\nstate = "waiting"\n`
    assert.strictEqual(
      retiredIn(shared, "web", "b"),
      "[signer.local_ca.others.b]\nstate = \"retired\" # soon\n[jobs]\n"
    )
    assert.strictEqual(retiredIn(shared + own, "web", "b"), shared + own.replace("waiting", "retired"))
    for (const text of ["", "[signer.local_ca.others.c]\nstate = \"waiting\"", "[signer.local_ca.others.b]\n"]) {
      assert.isUndefined(retiredIn(text, "web", "b"), text)
    }
  })
})
