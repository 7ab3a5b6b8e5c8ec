import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { declaredKeys } from "../../src/engine/config/Key.ts"
import { configKeyObject, profileObjects } from "../../src/operations/operator/objects/SettingObjects.ts"
import { effectiveKeys } from "../../src/settings/Effective.ts"
import { resolveConfig } from "../../src/settings/Resolve.ts"
import { table } from "../../src/settings/Table.ts"

const resolved = (fileText: string, env: { readonly [name: string]: string } = {}) =>
  Result.getOrThrowWith(resolveConfig({ fileText, env }), ({ message }) => new Error(message))

const file = `
[database]
url = "postgres://acme:hunter2@db.example/acme"
read_url = "postgres://reads:hunter2@db1.example,db2.example/acme?target_session_attrs=standby"
[order]
max_identifiers = 7
[challenge]
enabled = ["dns-01", "http-01"]
[signer.relay.eab]
hmac_key = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
[notify.webhook.chat]
url = "https://chat.example/secret?secret"
[notify.custom.told]
script_path = "/opt/told"
args = ["--password", "hunter2", "--token=hunter2"]
[ipam.custom]
args = ["hunter2"]
[filter.check.asked]
type = "custom"
script_path = "/opt/asked"
args = ["-phunter2"]
[admin.filter.check.asked]
type = "custom"
script_path = "/opt/asked"
args = ["-phunter2"]
[signer.custom]
args = ["-k", "hunter2"]
[signer.relay]
directory_url = "https://user:hunter2@ca.example:14000/dir?key=hunter2"
[profiles.web]
[profiles.web.order]
validity_seconds = 60
[profiles.web.notify.webhook.other]
url = "http://[2001:db8::1]:8080/secret"
[profiles.lab]
[profiles.parked]
enabled = false
`

describe("the keys in use", () => {
  const found = resolved(file, {
    ACME_SVC_PROXY__HTTP_URL: "http://user:hunter2@proxy.example:3128",
    ACME_SVC_NONCE__TTL_SECONDS: "9"
  })
  const objects = (profile?: string) =>
    new Map((effectiveKeys(found, profile) ?? []).map(configKeyObject).map((one) => [one.key, one]))

  it("are those of the process, each with its value and its source", () => {
    const keys = objects()
    assert.deepStrictEqual(keys.get("order.max_identifiers"), {
      key: "order.max_identifiers",
      value: 7,
      source: "file"
    })
    assert.deepStrictEqual(keys.get("nonce.ttl_seconds"), { key: "nonce.ttl_seconds", value: 9, source: "env" })
    assert.deepStrictEqual(keys.get("server.bind_address"), {
      key: "server.bind_address",
      value: "[::]:3000",
      source: "default"
    })
    assert.deepStrictEqual(keys.get("challenge.enabled")?.value, ["dns-01", "http-01"])
    const wide = declaredKeys(table).filter(({ path }) => !path.includes("<name>")).map(({ path }) => path.join("."))
    assert.includeMembers([...keys.keys()], wide)
    assert.isEmpty([...keys.keys()].filter((key) => key.startsWith("profiles.")))
  })

  it("are, for a profile, its own keys and those that it inherits", () => {
    const keys = objects("web")
    const hostOf = (name: string) => keys.get(`profiles.web.notify.webhook.${name}.url`)?.value
    assert.deepStrictEqual([hostOf("chat"), hostOf("other")], ["chat.example", "[2001:db8::1]:8080"])
    const key = "profiles.web.order.validity_seconds"
    assert.deepStrictEqual(keys.get(key), { key, value: 60, source: "file" })
    const inherited = "profiles.web.order.max_identifiers"
    assert.deepStrictEqual(keys.get(inherited), { key: inherited, value: 7, source: "file" })
    assert.isTrue([...keys.keys()].every((name) => name.startsWith("profiles.web.")))
    assert.isUndefined(effectiveKeys(found, "nobody"))
  })

  it("contain no secret", () => {
    const keys = objects()
    assert.deepStrictEqual(keys.get("database.url"), {
      key: "database.url",
      value: "postgres://acme:***@db.example/acme",
      source: "file",
      secret: true
    })
    assert.strictEqual(
      keys.get("database.read_url")?.value,
      "postgres://reads:***@db1.example,db2.example/acme?target_session_attrs=standby"
    )
    assert.deepInclude(keys.get("database.listen_url"), { value: "", source: "default", secret: true })
    assert.deepInclude(keys.get("proxy.http_url"), { value: "***", source: "env", secret: true })
    assert.deepInclude(keys.get("proxy.https_url"), { value: "", source: "default", secret: true })
    for (const profile of [undefined, "web", "lab"]) {
      const text = JSON.stringify([...objects(profile).values()])
      assert.notInclude(text, "hunter2")
      assert.notInclude(text, "c2VjcmV0")
    }
    assert.deepInclude(objects("web").get("profiles.web.signer.relay.eab.hmac_key"), { value: "***", secret: true })
    // The arguments of a program may contain a password, in an unknown place.
    const args = { value: ["***", "***", "***"], secret: true }
    assert.deepInclude(objects("web").get("profiles.web.notify.custom.told.args"), args)
    assert.strictEqual(
      objects("web").get("profiles.web.signer.relay.directory_url")?.value,
      "https://***@ca.example:14000/dir?***"
    )
  })
})

describe("the endpoints", () => {
  it("are the served profiles, each with the other profiles that share its signer", () => {
    const { config } = resolved(`
      [eab]
      enabled = true
      [meta]
      terms_of_service = "https://pki.example/terms"
      [profiles.a]
      [profiles.b]
      [profiles.c.signer.local_ca]
      cert_path = "other.pem"
      key_path = "other.key"
      crl_path = "other.crl"
      [profiles.c.eab]
      enabled = false
      [profiles.c.challenge]
      bypass = true
      [profiles.d]
      enabled = false
    `)
    const shared = {
      backend: "local_ca" as const,
      challenges: ["http-01" as const],
      challengeBypass: false,
      eabEnabled: true,
      filterActive: false,
      termsOfService: "https://pki.example/terms"
    }
    const directory = (name: string) => `http://localhost:3000/profile/${name}/directory`
    assert.deepStrictEqual(profileObjects(config), [
      { name: "a", directory: directory("a"), ...shared, signerShared: ["b"] },
      { name: "b", directory: directory("b"), ...shared, signerShared: ["a"] },
      { name: "c", directory: directory("c"), ...shared, challengeBypass: true, eabEnabled: false, signerShared: [] }
    ])
  })
})
