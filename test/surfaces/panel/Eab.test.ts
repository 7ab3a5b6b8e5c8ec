import { Effect } from "effect"
import { assert, describe } from "vitest"
import { noScope } from "../../../src/domain/CredentialScope.ts"
import { clientLines, unknownKey } from "../../../src/operations/ClientLines.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { callerAt, configOf, count, handmadeChain, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { entered, form, usePanel } from "../../support/Panel.ts"

/* The pages of EAB credentials (docs/contribute/decisions/panel.md). */

/** A configuration with which clients register without a credential. The tests add the binding afterwards. */
const withoutEab = configOf()
const cli = { kind: "cli", id: "x" } as const
const nobody = "01890a5d-ac96-774b-bcce-b302099a8057"
const fragment = { headers: { "hx-request": "true" } }
const plain = (html: string) => html.replaceAll("&#x2f;", "/").replaceAll("&quot;", "\"").replaceAll("&amp;", "&")

describe.each(databases)("the pages of EAB credentials on $name", (backend) => {
  const { config, test } = usePanel(backend, "[eab]\nenabled = true\n")

  const minted = (label: string) =>
    Effect.map(eab.create(cli, { label, profile: undefined }), ({ credential }) => credential.kid)

  test("let operators make the first credential", ({ ask }) =>
    Effect.gen(function*() {
      const viewer = yield* ask("/ui/eab", yield* entered({ ask }, "vera", "viewer"))
      assert.include(viewer.text, "Clients cannot register until one exists.")
      assert.notInclude(viewer.text, "Make a credential")
      const held = yield* entered({ ask }, "otto", "operator")
      assert.include((yield* ask("/ui/eab", held)).text, "Make a credential")
      const body = form({ label: "shop", profile: "other" })
      const told = yield* ask("/ui/eab", { method: "POST", ...held, body, ...fragment })
      assert.strictEqual(told.status, 200)
      const [, kid = ""] = /--eab-kid (\S+)/.exec(told.text) ?? []
      const [, key = ""] = /--eab-hmac-key ([\w-]{43})/.exec(told.text) ?? []
      const directory = `${config.server.base_url}/profile/other/directory`
      const lines = clientLines({ directory, credential: { kid, hmacKey: key }, names: undefined })
      for (const { text } of lines) assert.include(plain(told.text), `data-copy="${text}"`)
      assert.notInclude(told.text, "<html")
      for (const path of ["/ui/eab", `/ui/eab/${kid}`]) assert.notInclude((yield* ask(path, held)).text, key)
      assert.deepInclude(yield* eab.find(kid), { label: "shop", profile: "other" })
    }))

  test("let operators make a credential that may ask only for some names", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      assert.include((yield* ask("/ui/eab", held)).text, "What it may ask for")
      const send = (fields: { readonly [name: string]: string }) =>
        ask("/ui/eab", { method: "POST", ...held, body: form({ label: "shop", ...fields }), ...fragment })
      const scope = { names: "**.shop.example\nshop.example", wildcards: "", ordersPerDay: "5", prevalidated: "true" }
      const told = yield* send(scope)
      assert.strictEqual(told.status, 200)
      const [, kid = ""] = /--eab-kid (\S+)/.exec(told.text) ?? []
      assert.include(plain(told.text), " -d host.shop.example\"")
      assert.deepInclude(yield* eab.find(kid), {
        names: ["**.shop.example", "shop.example"],
        wildcards: undefined,
        ordersPerDay: 5,
        prevalidated: true
      })
      const refused = yield* send({ prevalidated: "true" })
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "needs names")
    }))

  test("say what each client needs, without the secret, and only as long as the credential is active", ({ ask }) =>
    Effect.gen(function*() {
      const { credential, secret } = yield* eab.create(cli, { label: "shop", profile: "other" })
      const external = { kid: "it's \"theirs\"", secret: Buffer.from("x".repeat(32)) }
      const imported = yield* eab.create(cli, { label: "old", profile: undefined, external })
      const held = yield* entered({ ask }, "vera", "viewer")
      for (const { externalKid, kid, profile = "default" } of [credential, imported.credential]) {
        const told = plain((yield* ask(`/ui/eab/${kid}`, held)).text)
        const directory = `${config.server.base_url}/profile/${profile}/directory`
        const lines = clientLines({
          directory,
          credential: { kid: externalKid ?? kid, hmacKey: unknownKey },
          names: undefined
        })
        for (const { text } of lines) assert.include(told.replaceAll("&#x27;", "'"), `data-copy="${text}"`)
        assert.strictEqual(told.includes("Kid of the other server"), externalKid !== undefined)
        assert.notInclude(told, Buffer.from(secret).toString("base64url"))
      }
      yield* eab.revoke(cli, credential.kid)
      assert.notInclude((yield* ask(`/ui/eab/${credential.kid}`, held)).text, "For clients")
    }))

  test("name no other profile for a credential whose only profile is not served any more", ({ ask }) =>
    Effect.gen(function*() {
      const { credential } = yield* eab.create(cli, { label: "shop", profile: "gone" })
      const told = yield* ask(`/ui/eab/${credential.kid}`, yield* entered({ ask }, "vera", "viewer"))
      assert.include(told.text, "the profile gone is not served")
      assert.notInclude(plain(told.text), "/directory")
    }))

  test("count the orders of the last 24 hours, without renewals, and the accounts beside their limits", ({ ask }) =>
    Effect.gen(function*() {
      const scope = { ...noScope, ordersPerDay: 1000, maxAccounts: 7 }
      const kid = (yield* eab.create(cli, { label: "shop", profile: undefined, scope })).credential.kid
      const held = yield* entered({ ask }, "vera", "viewer")
      const shown = Effect.map(ask(`/ui/eab/${kid}`, held), ({ text }) => text)
      assert.include(yield* shown, "0 in the last 24 hours; at most 1\u202f000")
      const caller = yield* callerAt(profileOf(withoutEab))
      yield* sql("UPDATE accounts SET eab_kid = (SELECT kid FROM eab_keys)")
      const made = yield* Effect.forEach(["a", "b", "c", "d"], (host) => orderOf(caller, `${host}.example`))
      assert.lengthOf(made, 4)
      const change = (host: string, change: string) =>
        sql(`UPDATE orders SET ${change} WHERE identifiers LIKE '%"${host}.example"%'`)
      yield* change("a", "replaces = 'x'")
      yield* change("b", "failed_replaces = 'x'")
      yield* change("c", "created_at = created_at - 86400")
      assert.include(yield* shown, "1 in the last 24 hours")
      assert.include(yield* shown, "1 until now; at most 7")
    }))

  test("refuse to make a credential that nobody could use", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const send = (fields: { readonly [name: string]: string }) =>
        ask("/ui/eab", { method: "POST", ...held, body: form(fields), ...fragment })
      for (
        const bad of [{ label: " " }, { label: "x".repeat(257) }, { label: "a", profile: "none" }, { label: "\u0000" }]
      ) {
        const refused = yield* send(bad)
        assert.strictEqual(refused.status, 400)
        assert.strictEqual(refused.headers["hx-retarget"], "find .refusal")
      }
      const viewer = yield* entered({ ask }, "vera", "viewer")
      assert.strictEqual((yield* ask("/ui/eab", { method: "POST", ...viewer, body: form({ label: "a" }) })).status, 403)
      assert.strictEqual(yield* count("SELECT count(*) FROM eab_keys"), 0)
    }))

  test("list and export credentials by status", ({ ask }) =>
    Effect.gen(function*() {
      for (let made = 0; made < 51; made++) yield* minted(`label-${made}.`)
      const revoked = yield* minted("gone")
      yield* eab.revoke(cli, revoked)
      const held = yield* entered({ ask }, "ann", "viewer")
      const told = yield* ask("/ui/eab?status=active", held)
      assert.include(plain(told.text), "href=\"/ui/eab?status=active&page=2\"")
      assert.notInclude(told.text, revoked)
      const second = yield* ask("/ui/eab?status=active&page=2", { ...held, ...fragment })
      assert.include(second.text, "label-0.")
      assert.notInclude(second.text, "label-1.")
      assert.notInclude(second.text, "<html")
      const file = yield* ask("/ui/eab/export?status=revoked&format=json", held)
      assert.deepStrictEqual(file.json.items.map(({ kid }: { readonly kid: string }) => kid), [revoked])
      assert.strictEqual((yield* ask("/ui/eab?status=none", held)).status, 400)
    }))

  test("show a credential with its accounts, and revoke it once", ({ ask }) =>
    Effect.gen(function*() {
      const kid = yield* minted("shop")
      const caller = yield* callerAt(profileOf(withoutEab))
      yield* orderOf(caller, "a.example")
      yield* sql(`UPDATE accounts SET eab_kid = (SELECT kid FROM eab_keys)`)
      const held = yield* entered({ ask }, "otto", "operator")
      const page = yield* ask(`/ui/eab/${kid}`, held)
      assert.include(plain(page.text), `href="/ui/accounts?eabKid=${kid}">1</a>`)
      assert.include(page.text, "1 account that it bound stays and goes on ordering")
      const viewer = yield* ask(`/ui/eab/${kid}`, yield* entered({ ask }, "vera", "viewer"))
      assert.notInclude(viewer.text, "Actions")
      const done = yield* ask(`/ui/eab/${kid}/revoke`, { method: "POST", ...held, ...fragment })
      assert.strictEqual(done.headers["hx-redirect"], `/ui/eab/${kid}?done=revoked`)
      const after = yield* ask(`/ui/eab/${kid}?done=revoked`, held)
      assert.include(after.text, "it binds nobody from now on")
      assert.include(after.text, "The credential is revoked already.")
      for (const path of [`/ui/eab/${nobody}`, "/ui/eab/nonsense"]) {
        assert.strictEqual((yield* ask(path, held)).status, 404)
      }
      assert.strictEqual((yield* ask(`/ui/eab/${nobody}/revoke`, { method: "POST", ...held })).status, 404)
    }))

  test("delete a credential in three ways, one of which is refused while a certificate can be used", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const remove = (kid: string, accounts: string) =>
        ask(`/ui/eab/${kid}/delete`, { method: "POST", ...held, body: form({ accounts }), ...fragment })
      const bound = Effect.gen(function*() {
        const kid = yield* minted("shop")
        yield* orderOf(yield* callerAt(profileOf(withoutEab)), "a.example")
        yield* sql("UPDATE accounts SET eab_kid = (SELECT kid FROM eab_keys)")
        return kid
      })
      const first = yield* bound
      yield* sql(`UPDATE orders SET status = 'valid', certificate = '${handmadeChain}', cert_not_after = 4000000000`)
      assert.include((yield* ask(`/ui/eab/${first}`, held)).text, "Not while 1 live certificate can be used")
      const refused = yield* remove(first, "delete")
      assert.strictEqual(refused.status, 409)
      assert.include(refused.text, "live_certificates")
      const unknown = yield* remove(first, `burn${"x".repeat(100)}`)
      assert.strictEqual(unknown.status, 400)
      assert.include(unknown.text, `burn${"x".repeat(60)}`)
      assert.notInclude(unknown.text, "x".repeat(61))
      assert.strictEqual((yield* remove(first, "keep")).headers["hx-redirect"], "/ui/eab?done=deleted")
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts WHERE status = 'valid'"), 1)
      yield* sql("UPDATE orders SET revoked_at = 1")
      const second = yield* bound
      assert.strictEqual(
        (yield* remove(second, "deactivate")).headers["hx-redirect"],
        "/ui/eab?done=deleted-deactivated"
      )
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts WHERE status = 'valid'"), 0)
      const third = yield* bound
      assert.include((yield* ask(`/ui/eab/${third}`, held)).text, "are deleted with 3 orders. None holds")
      assert.strictEqual((yield* remove(third, "delete")).headers["hx-redirect"], "/ui/eab?done=deleted-all")
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
      assert.include((yield* ask("/ui/eab?done=deleted-all", held)).text, "with its accounts and their orders")
      const last = yield* minted("unused")
      assert.include((yield* ask(`/ui/eab/${last}`, held)).text, "It has bound no account.")
      const plainly = yield* ask(`/ui/eab/${last}/delete`, { method: "POST", ...held, body: form({}), ...fragment })
      assert.strictEqual(plainly.headers["hx-redirect"], "/ui/eab?done=deleted")
    }))

  test("escape a label", ({ ask }) =>
    Effect.gen(function*() {
      const kid = yield* minted(hostile)
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const path of ["/ui/eab", `/ui/eab/${kid}`]) assertHarmless((yield* ask(path, held)).text)
    }))
})

describe("the pages of EAB credentials if no profile requires one", () => {
  const { test } = usePanel(sqlite)

  test("name the setting that requires credentials", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/eab", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "eab.enabled")
      assert.include(told.text, "There is no credential.")
      assert.notInclude(told.text, "Clients cannot register")
    }))
})

describe("the pages of EAB credentials if some profiles require one", () => {
  const alone = "[profiles.alone]\n"
  const off = "[profiles.a-off]\nenabled = false\neab.enabled = true\n"
  const asking = "[profiles.asking]\neab.enabled = true\n"
  const notice = "No profile asks clients for a credential."

  for (
    const [toml, isOn, name] of [
      [`${off}${alone}${asking}`, true, "asking"],
      [`${off}${alone}`, false, "alone"]
    ] as const
  ) {
    const { config, test } = usePanel(sqlite, toml)
    test(`name the directory of the served profile ${name}`, ({ ask }) =>
      Effect.gen(function*() {
        const held = yield* entered({ ask }, "otto", "operator")
        assert.strictEqual((yield* ask("/ui/eab", held)).text.includes(notice), !isOn)
        const told = yield* ask("/ui/eab", { method: "POST", ...held, body: form({ label: "shop" }), ...fragment })
        assert.include(plain(told.text), `--server ${config.server.base_url}/profile/${name}/directory `)
      }))
  }
})
