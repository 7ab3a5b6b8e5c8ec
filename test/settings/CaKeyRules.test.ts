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

describe("the key of a CA in a Transit engine", () => {
  const transit = { address: "\"https://bao.example.org:8200\"", key: "\"ca\"", token_file: "\"/run/token\"" }
  const transitOf = (keys: object, more = "", at = "profiles.web.") =>
    fileOf(keys, more, at).replace("key_source = \"pkcs11\"", "key_source = \"transit\"")
      .replace("local_ca.pkcs11]", "local_ca.transit]")

  it("needs its server, its name and a token", () => {
    accepted({ fileText: transitOf(transit) })
    const at = "profiles.web.signer.local_ca"
    for (const key of Object.keys(transit)) {
      const fault = refusedFor({ fileText: transitOf({ ...transit, [key]: "\"\"" }) })
      assert.strictEqual(fault.key, `${at}.transit.${key}`)
      assert.include(fault.message, `must be set while ${at}.key_source is "transit"`)
    }
  })

  it("is refused at a server that is reached in clear over a network", () => {
    accepted({ fileText: transitOf({ ...transit, address: "\"http://127.0.0.1:8200\"" }) })
    const fault = refusedFor({ fileText: transitOf({ ...transit, address: "\"http://bao.example.org\"" }) })
    assert.strictEqual(fault.key, "profiles.web.signer.local_ca.transit.address")
    assert.include(fault.message, "must be an https URL, because the server is not on this machine")
  })

  it("is refused beside keys of another source, and another source beside its keys", () => {
    const fault = refusedFor({ fileText: transitOf(transit, "pkcs11.pin_file = \"x\"") })
    assert.strictEqual(fault.key, "profiles.web.signer.local_ca.pkcs11.pin_file")
    assert.include(fault.message, "has no effect while profiles.web.signer.local_ca.key_source is \"transit\"")
    const foreign = refusedFor({ fileText: "[profiles.web.signer.local_ca]\ntransit.mount = \"other\"" })
    assert.strictEqual(foreign.key, "profiles.web.signer.local_ca.transit.mount")
  })

  it("may be the key of several profiles only if everything of their signers is equal", () => {
    const two = (keys: object, more: string) => `${transitOf(transit)}\n${transitOf(keys, more, "profiles.api.")}`
    accepted({ fileText: two(transit, "") })
    const slash = { ...transit, address: "\"https://bao.example.org:8200/\"" }
    const fault = refusedFor({ fileText: two(slash, "leaf_validity_days = 1") })
    assert.strictEqual(fault.key, "profiles.web.signer.local_ca.transit")
    assert.include(fault.message, "names the CA key of profile api")
    const files = "cert_path = \"b.pem\"\ncrl_path = \"b.crl\""
    accepted({ fileText: two({ ...transit, key: "\"other\"" }, files) })
    accepted({ fileText: two({ ...transit, key_version: 2 }, files) })
  })
})

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
