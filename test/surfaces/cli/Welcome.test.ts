import { Redacted, Result } from "effect"
import { assert, describe, it } from "vitest"
import { renderInitialConfig } from "../../../src/settings/Example.ts"
import { resolveConfig } from "../../../src/settings/Resolve.ts"
import type { SignInState, Welcome } from "../../../src/surfaces/cli/Welcome.ts"
import { renderWelcome } from "../../../src/surfaces/cli/Welcome.ts"

const configOf = (fileText: string) => Result.getOrThrow(resolveConfig({ fileText, env: {} })).config

const shown = (toml: string, more: Partial<Welcome> = {}): string =>
  renderWelcome(configOf(toml), {
    servesClients: true,
    servesPanel: true,
    signIn: { _tag: "somebody" },
    program: "acme-svc",
    absolute: (path) => `/srv/${path}`,
    ...more
  })

describe("the text of a start", () => {
  const initial = renderInitialConfig()

  it("names the directory, the CA, the panel, two commands and the page for other machines", () => {
    const text = shown(initial)
    assert.include(text, "  Directory       http://localhost:3000/profile/default/directory\n")
    assert.include(text, "  CA certificate  /srv/ca.pem\n  Panel           http://localhost:3001/ui/\n")
    assert.match(text, /^ {2}certbot certonly .* --http-01-port 5002 .* -d demo\.localhost$/m)
    assert.match(text, /^ {2}lego .* --http\.port :5002 --domains demo\.localhost run$/m)
    assert.match(text, /\n {2}http:\/\/localhost:3000\/profile\/default\/\n\n$/)
    assert.notInclude(text, "admin user")
  })

  it.each([
    ["the port needs root", initial.replace("port = 5002", "port = 80")],
    ["validations may not connect to this machine", initial.replace("allow_loopback = true", "")],
    ["accounts need a credential", `${initial}[eab]\nenabled = true\n`],
    ["http-01 is not offered", initial.replace("[challenge]", "[challenge]\nenabled = [\"dns-01\"]")]
  ])("has no commands for demo.localhost if %s", (_, toml) => {
    const text = shown(toml)
    assert.notInclude(text, "demo.localhost")
    assert.include(text, "  http://localhost:3000/profile/default/\n")
  })

  it.each<readonly [SignInState["_tag"], SignInState, string]>([
    ["nobody", { _tag: "nobody" }, "  bin/acme admin user create NAME\n"],
    ["needsLink", { _tag: "needsLink", username: "admin" }, "  bin/acme admin user link admin\n"],
    ["link", { _tag: "link", username: "admin", url: Redacted.make("http://localhost:3001/ui/link#x") }, "/ui/link#x\n"]
  ])("says how to get into the panel: %s", (_, signIn, line) => {
    assert.include(shown(initial, { signIn, program: "bin/acme" }), line)
  })

  it("says nothing about what the process does not serve", () => {
    assert.notInclude(shown(initial, { servesPanel: false, signIn: undefined }), "Panel")
    const panel = shown(initial, { servesClients: false })
    assert.include(panel, "  Panel           http://localhost:3001/ui/\n")
    assert.notMatch(panel, /Directory|certbot|profile/)
    assert.strictEqual(shown(initial, { servesClients: false, servesPanel: false }), "")
  })
})
