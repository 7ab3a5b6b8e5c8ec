import { assert, describe, it } from "vitest"
import { accepted, refused, refusedFor } from "./Samples.ts"

const token = {
  module_path: "\"/usr/lib/module.so\"",
  token_label: "\"ca\"",
  key_label: "\"key\"",
  pin_file: "\"/run/pin\""
}

const fileOf = (pkcs11: object, more = "", at = "profiles.web.") =>
  [
    `[${at}signer.local_ca]`,
    "key_source = \"pkcs11\"",
    more,
    `[${at}signer.local_ca.pkcs11]`,
    ...Object.entries(pkcs11).map(([key, value]) => `${key} = ${value}`),
    at === "" ? "[profiles.web]" : ""
  ].join("\n")

describe("the key of a CA in a token", () => {
  it("needs its module, its token, its key and its PIN", () => {
    accepted({ fileText: fileOf(token) })
    accepted({ fileText: fileOf({ ...token, key_label: "\"\"", key_id: "\"01\"" }) })
    accepted({ fileText: fileOf({ ...token, token_label: "\"\"", slot_id: 0 }) })
    const at = "profiles.web.signer.local_ca"
    for (const key of ["module_path", "pin_file", "token_label", "key_label"]) {
      const fault = refusedFor({ fileText: fileOf({ ...token, [key]: "\"\"" }) })
      assert.strictEqual(fault.key, `${at}.pkcs11.${key}`)
      assert.include(fault.message, `must be set while ${at}.key_source is "pkcs11"`)
    }
    const both = refusedFor({ fileText: fileOf({ ...token, slot_id: 0 }) })
    assert.strictEqual(both.key, `${at}.pkcs11.slot_id`)
    assert.include(both.message, `${at}.pkcs11.token_label`)
  })

  it("is refused beside keys of a file, and a file beside keys of a token, unless another profile has that source", () => {
    const faults = refused({ fileText: fileOf(token, "key_path = \"x.key\"\nkey_passphrase_file = \"x\"", "") })
    assert.deepStrictEqual(
      faults,
      ["key_passphrase_file", "key_path"].map((key) => ({
        key: `signer.local_ca.${key}`,
        message: "has no effect while signer.local_ca.key_source is \"pkcs11\"; remove it"
      }))
    )
    const fault = refusedFor({ fileText: "[profiles.web.signer.local_ca]\npkcs11.pin_file = \"x\"" })
    assert.strictEqual(fault.key, "profiles.web.signer.local_ca.pkcs11.pin_file")
    assert.include(fault.message, "has no effect while signer.local_ca.key_source is \"file\"")
    accepted({ fileText: `signer.local_ca.key_path = "x.key"\n${fileOf(token)}` })
  })

  it("may be the key of several profiles only if everything of their signers is equal", () => {
    const two = (more: string) => `${fileOf(token)}\n${fileOf(token, more, "profiles.api.")}`
    accepted({ fileText: two("") })
    const fault = refusedFor({ fileText: two("leaf_validity_days = 1") })
    assert.strictEqual(fault.key, "profiles.web.signer.local_ca.pkcs11")
    assert.include(fault.message, "names the CA key of profile api")
    const files = "cert_path = \"b.pem\"\ncrl_path = \"b.crl\"\nleaf_validity_days = 1"
    accepted({ fileText: `${fileOf(token)}\n${fileOf({ ...token, key_id: "\"02\"" }, files, "profiles.api.")}` })
    accepted({ fileText: `${fileOf(token)}\n[profiles.api.signer.local_ca]\n${files}` })
  })
})
