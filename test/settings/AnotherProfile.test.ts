import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { anotherProfile } from "../../src/settings/AnotherProfile.ts"
import { effectiveKeys } from "../../src/settings/Effective.ts"
import { resolveConfig } from "../../src/settings/Resolve.ts"

const resolved = (fileText: string) =>
  Result.getOrThrowWith(resolveConfig({ fileText, env: {} }), ({ message }) => new Error(message))

const file = `
[order]
max_identifiers = 7
[profiles.web]
challenge.enabled = ["dns-01", "http-01"]
[profiles.web.order]
validity_seconds = 60
[profiles.web.signer]
backend = "custom"
[profiles.web.signer.custom]
script_path = "/opt/sign \\"here\\""
args = ["-k", "hunter2"]
[profiles.web.notify.webhook.chat]
url = "https://chat.example/hunter2?hunter2"
[profiles.web.signer.relay]
directory_url = "https://user:hunter2@ca.example:14000/dir?key=hunter2"
[profiles.web.filter]
rules = ["office"]
[profiles.web.filter.check.net]
type = "allowed_ip"
allow = ["192.0.2.0/24"]
[profiles.web.filter.rule.office]
when = "net"
then = "allow"
[profiles.plain]
`

describe("the table of another profile", () => {
  const found = resolved(file)

  it("makes a profile with the same settings, except for secrets", () => {
    const text = anotherProfile(found, "web") ?? ""
    assert.match(text, /^\[profiles\.NAME\]\n/)
    assert.notInclude(text, "hunter2")
    for (const key of ["signer.custom.args", "notify.webhook.chat.url", "signer.relay.directory_url"]) {
      assert.include(text, `# ${key} is a secret: write it yourself.`)
    }
    // The service reads the text once the secrets are there.
    const whole = resolved(`${text.replace("NAME", "copy")}
notify.webhook.chat.url = "https://chat.example/hunter2?hunter2"
signer.custom.args = ["-k", "hunter2"]
signer.relay.directory_url = "https://user:hunter2@ca.example:14000/dir?key=hunter2"
`)
    const values = (of: typeof found, profile: string) =>
      (effectiveKeys(of, profile) ?? []).map(({ key, value }) => [key.slice(`profiles.${profile}.`.length), value])
    assert.deepStrictEqual(values(whole, "copy"), values(found, "web"))
  })

  it("has no more than its name if everything is at its default", () => {
    assert.strictEqual(anotherProfile(resolved("[profiles.plain]\n"), "plain"), "[profiles.NAME]")
  })

  it("is absent for a profile that does not exist", () => {
    assert.isUndefined(anotherProfile(found, "none"))
  })
})
