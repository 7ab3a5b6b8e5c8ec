import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import { makeCsr } from "../../support/Csr.ts"
import { sqlite } from "../../support/Databases.ts"
import { callerAt, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { dnsConstraints, issuersOf, someIssuer } from "../../support/KnownIssuers.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"
import { selfSigned } from "../../support/Shown.ts"

/* The page of the kinds of certificates of a profile, and the kinds in lists of orders. */

const toml = `[certificates.kinds]
default.description = "<b>Servers</b>"
mutual.description = "Both"
mutual.validity = "6h"
mutual.usages = ["server_auth", "client_auth"]
mutual.subject = { organization = "Example, Inc." }
mutual.policies = ["1.3.6.1.4.1.99999.1"]
`

/** Provides a CA that is valid for eleven days, and may not issue for some names. */
const withCa = <A, E, R>(self: Effect.Effect<A, E, R>, ...excluded: ReadonlyArray<string>) =>
  Effect.flatMap(
    selfSigned("ca.example", startsAt),
    ({ cert }) =>
      Effect.provideService(
        self,
        Issuers,
        issuersOf(() => ({
          ...someIssuer,
          certificate: new X509Certificate(cert).raw,
          nameConstraints: dnsConstraints({ excluded }),
          notAfter: startsAt + 1_000_000,
          firstToEnd: { notAfter: startsAt + 1_000_000, subject: "CN=CA" }
        }))
      )
  )

describe("the page of the kinds of certificates", () => {
  const { config, test } = usePanel(sqlite, toml)
  const path = "/ui/profiles/default/kinds"

  test("shows what each kind contains, and lets only operators try a CSR", (panel) =>
    Effect.gen(function*() {
      const page = yield* panel.ask(path, yield* entered(panel, "vic", "viewer"))
      const words = wordsOf(page)
      assert.include(words, "6h; server_auth, client_auth; common name: request")
      assert.include(words, "organization Example, Inc.")
      assert.include(words, "policies 1.3.6.1.4.1.99999.1")
      assert.include(page.text, "&lt;b&gt;Servers&lt;/b&gt;")
      assert.notInclude(page.text, "kinds/try")
      const held = yield* entered(panel, "olga", "operator")
      assert.include((yield* panel.ask(path, held)).text, `action="${path}/try"`)
      for (const name of ["none", "%00"]) {
        assert.strictEqual((yield* panel.ask(`/ui/profiles/${name}/kinds`, held)).status, 404, name)
      }
    }))

  test("shows which certificate a CSR would become, or the refusal of a client", (panel) =>
    withCa(Effect.gen(function*() {
      const held = yield* entered(panel, "olga", "operator")
      const csr = makeCsr({ names: ["a.example", "b.example"] }).csr.toString("base64")
      const tried = wordsOf(
        yield* send(panel, held, `${path}/try`, { csr, kind: "mutual", names: "a.example\nb.example" })
      )
      assert.include(tried, "The CSR as mutual")
      assert.include(tried, "Subject O=Example\\, Inc.")
      assert.include(tried, "Names a.example b.example Valid")
      assert.include(tried, "serverAuth, clientAuth")
      const usual = wordsOf(yield* send(panel, held, `${path}/try`, { csr, names: "a.example\nb.example" }))
      assert.include(usual, "Names a.example b.example critical")
      const refused = yield* send(panel, held, `${path}/try`, { csr, names: "a.example" })
      assert.strictEqual(refused.status, 200)
      assert.include(wordsOf(refused), "The CSR asks for b.example, which the order lacks.")
      const wrong = yield* send(panel, held, `${path}/try`, { csr: "-", names: "a.example" })
      assert.isTrue(isBeside(wrong, 400, "bad_request"), wrong.text)
      const bogus = yield* send(panel, held, `${path}/try`, { csr, kind: "bogus", names: "a.example" })
      assert.isTrue(isBeside(bogus, 400, "invalid_status"), bogus.text)
    })))

  test("shows an end that is not after that of the CA, and refuses names that the CA may not certify", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "olga", "operator")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64")
      const tries = send(panel, held, `${path}/try`, { csr, names: "a.example" })
      const end = new Date((startsAt + 1_000_000) * 1000).toISOString().slice(0, 10)
      assert.match(wordsOf(yield* withCa(tries)), new RegExp(`Valid \\S.* to ${end} `))
      assert.include(wordsOf(yield* withCa(tries, "a.example")), "a.example: The CA may not issue for this name")
    }))

  test("says that nothing can be issued while the CA cannot be read", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "olga", "operator")
      const csr = makeCsr({ names: ["a.example"] }).csr.toString("base64")
      const tried = wordsOf(yield* send(panel, held, `${path}/try`, { csr, names: "a.example" }))
      assert.include(tried, "refused 503")
    }))

  test("is where orders find their kind, in lists, by a filter and on their own page", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE orders SET kind = 'mutual'")
      yield* orderOf(caller, "b.example")
      const list = (query: string) => Effect.map(panel.ask(`/ui/orders${query}`, held), wordsOf)
      assert.match(yield* list(""), /b\.example pending default default .*a\.example pending default mutual/)
      assert.notInclude(yield* list("?kind=mutual"), "b.example")
      assert.notInclude(yield* list("?kind=default"), "a.example")
      const refused = yield* panel.ask("/ui/orders?kind=bogus", held)
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "invalid_status")
      assert.include(yield* list(`/${id}`), "Kind mutual")
      const { text } = yield* panel.ask("/ui/orders/export?format=csv&kind=mutual", held)
      assert.match(text, /^id,profile,accountId,status,identifiers,kind,.*\r\n.*,a\.example,mutual,.*\r\n$/)
    }))
})

describe("the pages of orders of a service with the kind default alone", () => {
  const { config, test } = usePanel(sqlite)

  test("say nothing about kinds", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "a.example")
      assert.notInclude((yield* panel.ask("/ui/orders", held)).text, "name=\"kind\"")
      assert.notInclude(wordsOf(yield* panel.ask(`/ui/orders/${id}`, held)), "Kind default")
    }))
})
