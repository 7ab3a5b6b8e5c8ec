import { Effect } from "effect"
import { assert, describe } from "vitest"
import { mostRevoked } from "../../../src/surfaces/operator/acts/CertificateActs.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, orderOf, orderWith, profileOf, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"
import { selfSigned } from "../../support/Shown.ts"

/* The pages of certificates (docs/start/panel.md). */

const custom = "[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\"\n"
const plain = (html: string) => html.replaceAll("&#x2f;", "/").replaceAll("&amp;", "&")

describe.each(databases)("the pages of certificates on $name", (backend) => {
  const { config, test } = usePanel(backend, custom)
  const caller = Effect.suspend(() => callerAt(profileOf(config)))

  const issued = Effect.fnUntraced(function*(serial: string, days: number, ...names: ReadonlyArray<string>) {
    const { cert } = yield* selfSigned("a.example", startsAt)
    return yield* orderWith(
      yield* caller,
      `status = 'valid', certificate = '${cert + cert}', cert_serial = '${serial}',
       cert_not_after = ${startsAt + days * 86_400}`,
      ...names
    )
  })

  test("list certificates with names first, and link to both directions of their ends", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      assert.include((yield* ask("/ui/certificates", held)).text, "No certificate has been issued yet.")
      const id = yield* issued("01", 90, "long.example")
      yield* issued("02", 5, "soon.example")
      yield* orderOf(yield* caller, "open.example")
      const { text } = yield* ask("/ui/certificates?sort=soonest", held)
      assert.isBelow(text.indexOf("soon.example"), text.indexOf("long.example"))
      assert.notInclude(text, "open.example")
      assert.match(plain(text), new RegExp(`<td><a href="/ui/orders/${id}"><bdi>long.example</bdi></a>`))
      assert.include(plain(text), `<th aria-sort="ascending"><a href="/ui/certificates?sort=latest">Ends</a>`)
      assert.include(text, `<b class="wait">ending</b>`)
      assert.notInclude(text, "ticking", "a viewer revokes nothing")
      const latest = yield* ask("/ui/certificates?sort=latest&state=valid", held)
      assert.include(plain(latest.text), "href=\"/ui/certificates?state=valid&sort=soonest\">Ends</a>")
      const named = yield* ask("/ui/certificates?identifierSuffix=example&state=ending", held)
      assert.notInclude(plain(named.text), "sort=", "no index has this order")
      assert.include(named.text, "soon.example")
      const refused = yield* ask("/ui/certificates?identifier=a.example&sort=soonest", held)
      assert.strictEqual(refused.status, 400)
      assert.include(refused.text, "sort takes soonest only with profile, state, endsAfter and endsBefore")
    }))

  test("keep the order and the filters on the next page", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (let made = 0; made < 51; made++) yield* issued(`a${made + 100}`, 31 + made, `host-${made}.example`)
      const told = yield* ask("/ui/certificates?state=valid&sort=latest", held)
      assert.include(plain(told.text), "href=\"/ui/certificates?state=valid&sort=latest&page=2\"")
      const second = yield* ask("/ui/certificates?state=valid&sort=latest&page=2", held)
      assert.include(second.text, "host-0.example")
      assert.include(second.text, "51–51 of 51")
    }))

  test("list what will be revoked, and say afterwards what became of each", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      assert.include((yield* ask("/ui/certificates", held)).text, "No certificate has been issued yet.")
      assert.include((yield* ask("/ui/certificates/revoke", held)).text, "No certificate is ticked.")
      const ids = [
        yield* issued("01", 90, "a.example"),
        yield* issued("02", 90, "b.example"),
        yield* issued("03", 9, "c.example")
      ]
      assert.include((yield* ask("/ui/certificates", held)).text, "class=\"ticking\"")
      yield* sql(`UPDATE orders SET revoked_at = ${startsAt} WHERE cert_serial = '02'`)
      const path = `/ui/certificates/revoke?${ids.map((id) => `order=${id}`).join("&")}`
      const page = yield* ask(path, held)
      assert.include(wordsOf(page), "Revoke 2 certificates")
      assert.include(wordsOf(page), "1 certificate of these is revoked already.")
      const [, serials] = /<textarea name="serials" hidden>([^<]*)</.exec(page.text) ?? []
      assert.strictEqual(serials, "01\n03")
      yield* sql(`UPDATE orders SET revoked_at = ${startsAt} WHERE cert_serial = '03'`)
      const told = yield* send({ ask }, held, "/ui/certificates/revoke", { serials: serials ?? "", reason: "4" })
      assert.strictEqual(told.status, 200)
      assert.include(wordsOf(told), "The signer is asked to revoke 1 certificate.")
      assert.include(wordsOf(told), "1 certificate was revoked already, by somebody else in the meantime: 03")
      for (
        const [fields, code] of [
          [{ serials: "" }, "bad_request"],
          [{ serials: "01\nxyz" }, "bad_request"],
          [{ serials: "01\nff" }, "bad_request"],
          [{ serials: "01", reason: "7" }, "bad_request"]
        ] as const
      ) {
        assert.isTrue(
          isBeside(yield* send({ ask }, held, "/ui/certificates/revoke", fields), 400, code),
          fields.serials
        )
      }
      const open = yield* orderOf(yield* caller, "open.example")
      for (
        const [query, status] of [[`order=${open.id}`, 404], ["order=x", 404], [
          Array.from({ length: mostRevoked + 1 }, (_, number) => `order=${number}`).join("&"),
          400
        ]] as const
      ) assert.strictEqual((yield* ask(`/ui/certificates/revoke?${query}`, held)).status, status)
      const viewer = yield* entered({ ask }, "vera", "viewer")
      assert.strictEqual((yield* ask(path, viewer)).status, 403)
      assert.strictEqual((yield* send({ ask }, viewer, "/ui/certificates/revoke", { serials: "01" })).status, 403)
    }))

  test("cut long names in the middle, count the others, and isolate what runs from right to left", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "otto", "operator")
      const longest = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(61)}.example`
      assert.lengthOf(longest, 252)
      const id = yield* issued("01", 90, ...Array.from({ length: 100 }, (_, number) => `n${number}.example`))
      const literal = backend.dialect === "sqlite" ? "?" : "$1"
      const identifiers = [longest, "שלום.example", "e\u0301".repeat(40), ...Array.from({ length: 97 }, () => "x")]
      yield* sql(`UPDATE orders SET identifiers = ${literal}`, [
        JSON.stringify(identifiers.map((value) => ({ type: "dns", value })))
      ])
      const { text } = yield* ask("/ui/certificates", held)
      const [, cut = ""] = /<bdi title="a[^"]*example">([^<]*)</.exec(text) ?? []
      assert.match(cut, /^a{18}…d{9}\.example$/)
      assert.include(text, `title="${longest}"`)
      assert.include(text, "<bdi>שלום.example</bdi>")
      assert.include(text, `>${"e\u0301".repeat(18)}…${"e\u0301".repeat(17)}</bdi>`)
      assert.include(wordsOf({ ...(yield* ask("/ui/certificates", held)) }), "and 97 more")
      const order = yield* ask(`/ui/orders/${id}`, held)
      assert.include(order.text, `<bdi>${longest}</bdi>`, "the page of the order has the whole name")
      assert.match(order.text, /<h1><bdi title="a/)
      assert.include(wordsOf(order), "and 99 more")
      yield* sql(`UPDATE accounts SET contact = ${literal}`, [JSON.stringify([hostile])])
      for (const path of ["/ui/certificates", `/ui/certificates/revoke?order=${id}`]) {
        assertHarmless((yield* ask(path, held)).text)
      }
    }))
})
