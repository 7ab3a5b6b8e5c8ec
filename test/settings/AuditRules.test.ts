import { assert, describe, it } from "vitest"
import { receiversOf } from "../../src/settings/AuditTable.ts"
import { configOf } from "../support/Graph.ts"
import { refusedFor } from "./Samples.ts"

describe("the receivers of the audit trail", () => {
  it("are those whose address or URL is set", () => {
    const named = (toml: string) => receiversOf(configOf(toml).audit)
    const [syslog, http] = ["audit.syslog.address = \"a.example:6514\"", "audit.http.url = \"https://a.example/\""]
    assert.deepStrictEqual(named(""), [])
    assert.deepStrictEqual(named(syslog), ["syslog"])
    assert.deepStrictEqual(named(`${http}\n${syslog}`), ["syslog", "http"])
  })

  it("get a certificate of the service only with its key", () => {
    for (const [alone, other] of [["cert_path", "key_path"], ["key_path", "cert_path"]] as const) {
      const { key, message } = refusedFor({ fileText: `audit.syslog.${alone} = "file.pem"\n[profiles.a]` })
      assert.strictEqual(key, `audit.syslog.${other}`)
      assert.strictEqual(message, `must be set as well while audit.syslog.${alone} is`)
    }
  })

  it("get rows without TLS only on this host", () => {
    for (const host of ["127.0.0.1:80", "[::1]", "localhost"]) {
      assert.deepStrictEqual(receiversOf(configOf(`audit.http.url = "http://${host}/"`).audit), ["http"])
    }
    for (const host of ["192.0.2.1", "logs.example", "localhost.example"]) {
      const { key, message } = refusedFor({ fileText: `audit.http.url = "http://${host}/"\n[profiles.a]` })
      assert.strictEqual(key, "audit.http.url")
      assert.match(message, /^must begin with https:/)
    }
  })
})
