import { assert, describe, it } from "vitest"
import { casOf } from "../../src/services/signing/ConfiguredCas.ts"
import { accepted, refused, refusedFor } from "./Samples.ts"

const section = "profiles.web.signer.local_ca.others"
const good = { cert_path: "\"old.pem\"", key_path: "\"old.key\"" }

const fileOf = (others: { readonly [name: string]: { readonly [key: string]: string } }, more = "") =>
  [
    "[profiles.web.signer.local_ca]",
    more,
    ...Object.entries(others).flatMap(([name, keys]) => [
      `[${section}.${name}]`,
      ...Object.entries(keys).map(([key, value]) => `${key} = ${value}`)
    ])
  ].join("\n")

describe("several CAs of a profile", () => {
  it("have the files and the times that their states need", () => {
    const { config } = accepted({
      fileText: fileOf({
        old: good,
        next: {
          cert_path: "\"next.pem\"",
          key_path: "\"next.key\"",
          state: "\"waiting\"",
          from: "\"2027-01-31T06:00:00+01:00\"",
          crl_path: "\"lists/n.crl\""
        }
      })
    })
    const [web] = config.profiles
    assert.deepStrictEqual(
      web && casOf(web.signer.local_ca).map(({ from, name, settings: { crl_path } }) => [name, from, crl_path]),
      [
        [undefined, Number.NEGATIVE_INFINITY, "ca.crl"],
        ["next", Date.UTC(2027, 0, 31, 5) / 1000, "lists/n.crl"],
        ["old", undefined, "ca-old.crl"]
      ]
    )
  })

  it("are refused without what they need, or with what has no effect", () => {
    const cases: ReadonlyArray<readonly [keys: { readonly [key: string]: string }, key: string, message: string]> = [
      [{ key_path: "\"old.key\"" }, "cert_path", "must be set"],
      [{ cert_path: "\"old.pem\"" }, "key_path", `must be set while ${section}.old.key_source is "file"`],
      [{ ...good, state: "\"waiting\"" }, "from", "must be set while the state is \"waiting\""],
      [{ ...good, from: "\"2027-01-31T05:00:00Z\"" }, "from", "must be empty while the state is \"retired\""],
      [{ ...good, from: "\"tomorrow\"" }, "from", "must be an RFC 3339 time"],
      [{ ...good, state: "\"issuing\"" }, "state", "must be one of \"retired\", \"waiting\""],
      [{ cert_path: "\"ca.pem\"", key_path: "\"old.key\"" }, "cert_path", "is the certificate of"],
      [{ cert_path: "\"old.pem\"", key_path: "\"./ca.key\"" }, "key_path", "is the key of"],
      [{ ...good, crl_path: "\"ca.crl\"" }, "crl_path", "is the file of"],
      [{ ...good, pkcs11: "{ pin_file = \"x\" }" }, "pkcs11.pin_file", "has no effect"]
    ]
    for (const [keys, key, message] of cases) {
      const fault = refusedFor({ fileText: fileOf({ old: keys }) })
      assert.strictEqual(fault.key, `${section}.old.${key}`)
      assert.include(fault.message, message)
    }
  })

  it("are refused with one time or one key for two of them", () => {
    const waiting = { state: "\"waiting\"", from: "\"2027-01-31T05:00:00Z\"" }
    const times = refusedFor({
      fileText: fileOf({
        a: { ...good, ...waiting },
        b: { cert_path: "\"b.pem\"", key_path: "\"b.key\"", ...waiting, from: "\"2027-01-31T06:00:00+01:00\"" }
      })
    })
    assert.strictEqual(times.key, `${section}.b.from`)
    assert.include(times.message, `is the time of ${section}.a.from too`)
    const same = refused({ fileText: fileOf({ a: good, b: good }) })
    assert.deepStrictEqual(same.map(({ key }) => key).sort(), [`${section}.b.cert_path`, `${section}.b.key_path`])
  })

  it("have names of lower-case letters, digits and hyphens", () => {
    assert.include(refusedFor({ fileText: fileOf({ Old: good }) }).message, "lower-case")
  })

  it("have at most four cross-certificates each", () => {
    const paths = (count: number) => `[${Array.from({ length: count }, (_, at) => `"cross${at}.pem"`).join(", ")}]`
    accepted({ fileText: fileOf({ a: { ...good, cross_cert_paths: paths(4) } }, `cross_cert_paths = ${paths(4)}`) })
    const other = refusedFor({ fileText: fileOf({ a: { ...good, cross_cert_paths: paths(5) } }) })
    assert.strictEqual(other.key, `${section}.a.cross_cert_paths`)
    assert.include(other.message, "more than 4 files")
    assert.include(
      refusedFor({ fileText: fileOf({}, `cross_cert_paths = ${paths(5)}`) }).key,
      "local_ca.cross_cert_paths"
    )
  })

  it("may put the id of the CA that signs into URLs", () => {
    const urls = "[\"https://acme.example/profile/web/crl/{issuer}\"]"
    accepted({ fileText: fileOf({}, `crl_distribution_points = ${urls}\nca_issuer_urls = ${urls}`) })
    const fault = refusedFor({ fileText: fileOf({}, "ca_issuer_urls = [\"https://acme.example/{name}\"]") })
    assert.include(fault.message, "%7Bname%7D")
  })
})
