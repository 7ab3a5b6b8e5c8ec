import { describe, it } from "@effect/vitest"
import { assert } from "vitest"
import { keyPurposes } from "../../src/crypto/x509/KeyPurpose.ts"
import { certificateKinds } from "../../src/settings/CertificateKinds.ts"
import { kindOf } from "../support/Kinds.ts"
import { accepted, refused, refusedFor } from "./Samples.ts"

const profile = "[profiles.p]\n"

/** Returns a file whose profile has a kind `x` with these lines, beside a described kind `default`. */
const withKind = (lines: string, more = "") =>
  `${more}${profile}[profiles.p.certificates.kinds]\ndefault.description = "d"\nx.description = "x"\n${lines}`

const kindsIn = (fileText: string) => {
  const [first] = accepted({ fileText }).config.profiles
  return first === undefined ? assert.fail("no profile") : certificateKinds(first)
}

describe("the kinds of certificates", () => {
  it("are only the kind default if nothing is configured, and it is not offered", () => {
    const { byName, chosen, isOffered } = kindsIn(profile)
    assert.deepStrictEqual([...byName.keys()], ["default"])
    assert.isFalse(isOffered)
    assert.isTrue(chosen.isPlain)
    assert.deepStrictEqual(chosen.content.usages, [keyPurposes.server_auth])
    assert.strictEqual(chosen.validitySeconds, 90 * 86_400)
    assert.strictEqual(chosen.unrequested, "ignore")
  })

  it("have the kind default even if the file does not write it", () => {
    const fileText = `${profile}certificates.kinds.default.description = "d"\ncertificates.kinds.x.description = "x"`
    assert.deepStrictEqual([...kindsIn(fileText).byName.keys()], ["default", "x"])
  })

  it("refuse requests for other usages unless they are the kind default", () => {
    assert.strictEqual(kindOf(withKind(""), "x").unrequested, "refuse")
    assert.strictEqual(kindOf(withKind("x.unrequested = \"ignore\""), "x").unrequested, "ignore")
    assert.strictEqual(kindOf(withKind("default.unrequested = \"refuse_all\"")).unrequested, "refuse_all")
  })

  it.each(
    [
      ["validity = \"6h\"", "validitySeconds", 6 * 3600],
      ["validity = \"3653d\"", "validitySeconds", 3653 * 86_400],
      ["common_name = \"first\"", "commonName", "first"]
    ] as const
  )("take %s", (line, member, value) => {
    assert.strictEqual(kindOf(withKind(`x.${line}`), "x")[member], value)
  })

  it("encode their usages, policies and subject in the configured order", () => {
    const { content } = kindOf(
      withKind(
        "x.usages = [\"client_auth\", \"1.3.6.1.4.1.99999.7\", \"server_auth\"]\nx.policies = [\"2.5.29.32.0\"]\n"
          + "x.subject = { organization = \"Ünique\", country = \"CH\" }"
      ),
      "x"
    )
    assert.deepStrictEqual(content.usages, [keyPurposes.client_auth, "1.3.6.1.4.1.99999.7", keyPurposes.server_auth])
    assert.deepStrictEqual(content.policies, ["2.5.29.32.0"])
    assert.deepStrictEqual(content.subject, [{ type: "2.5.4.6", value: "CH" }, { type: "2.5.4.10", value: "Ünique" }])
  })

  it("are inherited by profiles key by key", () => {
    const fileText = `[certificates.kinds.default]\nvalidity = "7d"\nusages = ["client_auth"]\n${profile}`
      + "certificates.kinds.default.validity = \"1d\"\n"
    const kind = kindOf(fileText)
    assert.strictEqual(kind.validitySeconds, 86_400)
    assert.deepStrictEqual(kind.content.usages, [keyPurposes.client_auth])
    assert.isFalse(kind.isPlain)
  })

  it.each([
    "usages = [\"server_auth\", \"client_auth\"]",
    "validity = \"90d\"",
    "keys = [\"ecdsa-p256\"]",
    "common_name = \"never\"",
    "unrequested = \"refuse\"",
    "policies = [\"1.2.3\"]",
    "subject.locality = \"Bern\""
  ])("are not the plain kind with %s", (line) => {
    assert.isFalse(kindOf(`${profile}certificates.kinds.default.${line}`).isPlain)
  })

  it.each(
    [
      ["usages = []", "must not be empty"],
      ["usages = [\"server_auth\", \"server_auth\"]", "must not name the same word twice"],
      ["usages = [\"serverAuth\"]", "entry 1 must be one of \"server_auth\""],
      ["usages = [\"1.40.3\"]", "or an OID with dots"],
      ["usages = [\"3.1.2\"]", "or an OID with dots"],
      ["usages = [\"1.2.03\"]", "or an OID with dots"],
      ["usages = [\"1\"]", "or an OID with dots"],
      ["usages = [\"1.2.99999999999999999999\"]", "or an OID with dots"],
      ["policies = [\"any\"]", "must be an OID"],
      ["validity = \"0d\"", "such as \"6h\" or \"90d\""],
      ["validity = \"90\"", "such as \"6h\" or \"90d\""],
      ["validity = \"3654d\"", "at most \"3653d\""],
      ["validity = \"30m\"", "such as \"6h\" or \"90d\""],
      ["keys = []", "must name at least one of"],
      ["keys = [\"dsa\"]", "must be one of"],
      ["common_name = \"second\"", "must be one of"],
      ["subject.country = \"CHE\"", "must be two letters"],
      ["subject.organization = \"a\\u0000\"", "no control characters"],
      ["unrequested = \"deny\"", "must be one of"]
    ] as const
  )("refuse %s", (line, message) => {
    const fault = refusedFor({ fileText: withKind(`x.${line}`) })
    assert.strictEqual(fault.key, `profiles.p.certificates.kinds.x.${line.split(" ")[0]}`)
    assert.include(fault.message, message)
  })

  it.each(["X", "a_b", "", "a".repeat(33)])("refuse the name %j", (name) => {
    const fault = refusedFor({ fileText: `${profile}[profiles.p.certificates.kinds."${name}"]\ndescription = "x"` })
    assert.include(fault.message, "cannot name a kind of certificate")
  })

  it("must all be described if there are several", () => {
    const faults = refused({ fileText: `${profile}certificates.kinds.x.validity = "1d"` })
    assert.sameMembers(faults.map(({ key }) => key), [
      "profiles.p.certificates.kinds.default.description",
      "profiles.p.certificates.kinds.x.description"
    ])
    const wide = refused({ fileText: `certificates.kinds.x.validity = "1d"\n${profile}` })
    assert.sameMembers(wide.map(({ key }) => key), [
      "profiles.p.certificates.kinds.default.description",
      "certificates.kinds.x.description"
    ])
  })

  it("must contain the kind that is the default", () => {
    const fault = refusedFor({ fileText: `certificates.default = "y"\n${profile}` })
    assert.strictEqual(fault.key, "certificates.default")
    assert.include(fault.message, "there is no certificates.kinds.y")
  })

  describe("of a signer that decides what certificates contain", () => {
    const custom = "signer.backend = \"custom\"\nsigner.custom.script_path = \"/bin/true\"\n"

    it("may restrict keys", () => {
      assert.deepStrictEqual(kindOf(`${profile}${custom}certificates.kinds.default.keys = ["ed25519"]`).keys, [
        "ed25519"
      ])
    })

    it.each(["usages = [\"client_auth\"]", "validity = \"1d\"", "subject.state = \"x\"", "policies = [\"1.2.3\"]"])(
      "refuse %s",
      (line) => {
        const fault = refusedFor({ fileText: `${profile}${custom}certificates.kinds.default.${line}` })
        assert.strictEqual(fault.key, `profiles.p.certificates.kinds.default.${line.split(" ")[0]}`)
        assert.include(fault.message, "with \"custom\" the signer decides it")
      }
    )

    it("may inherit what only a local CA of another profile obeys", () => {
      const own = "[profiles.q]\n"
      accepted({
        fileText: `certificates.kinds.default.usages = ["client_auth"]\n${profile}${custom}${own}`
      })
      refusedFor({ fileText: `certificates.kinds.default.usages = ["client_auth"]\n${profile}${custom}` })
    })

    it("refuse an upstream profile unless they belong to a relay", () => {
      const fault = refusedFor({ fileText: withKind("x.upstream = \"tlsserver\"") })
      assert.strictEqual(fault.key, "profiles.p.certificates.kinds.x.upstream")
    })
  })
})
