import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as upstreamOrders from "../../../src/store/upstream/UpstreamOrderRows.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { callerAt, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { entered, usePanel } from "../../support/Panel.ts"

/* The pages of orders at an upstream (docs/contribute/decisions/panel.md). */

const nobody = "01890a5d-ac96-774b-bcce-b302099a8057"
const fragment = { headers: { "hx-request": "true" } }
const plain = (html: string) => html.replaceAll("&#x2f;", "/").replaceAll("&amp;", "&")
const now = 1_800_000_000

describe.each(databases)("the pages of upstream orders on $name", (backend) => {
  const { config, test } = usePanel(backend)

  const relayed = Effect.fnUntraced(function*(name: string) {
    const { id } = yield* orderOf(yield* callerAt(profileOf(config)), name)
    const client = { ip: "192.0.2.9", ptr: "client.example", user_agent: "certbot/4", request_id: "request/ 7" }
    yield* upstreamOrders.insert({ orderId: id, csr: Uint8Array.of(1), client, now })
    return id
  })

  test("say that no profile uses an upstream", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/upstream-orders", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "No profile relays.")
    }))

  test("list both statuses side by side", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (let made = 0; made < 51; made++) yield* relayed(`host-${made}.example`)
      const told = yield* ask("/ui/upstream-orders?status=processing&profile=default", held)
      assert.match(told.text, /wait">pending<\/b><td><b class="wait">processing/)
      assert.include(plain(told.text), "href=\"/ui/upstream-orders?profile=default&status=processing&page=2\"")
      const second = yield* ask("/ui/upstream-orders?status=processing&page=2", { ...held, ...fragment })
      assert.include(second.text, "host-0.example")
      assert.notInclude(second.text, "<html")
      assert.include((yield* ask("/ui/upstream-orders?status=valid", held)).text, "No upstream order matches.")
      assert.strictEqual((yield* ask("/ui/upstream-orders?status=lost", held)).status, 400)
    }))

  test("show a relayed order while it progresses, without a link to another site", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const id = yield* relayed("a.example")
      const url = "https://ca.example/order/1"
      yield* upstreamOrders.opened({ orderId: id, orderUrl: url, finalizeUrl: undefined, now })
      const told = yield* ask(`/ui/upstream-orders/${id}`, held)
      assert.include(plain(told.text), url)
      assert.notInclude(plain(told.text), `href="${url}`)
      for (const part of ["192.0.2.9", "client.example", "certbot/4", "data-poll"]) {
        assert.include(plain(told.text), part)
      }
      assert.include(plain(told.text), "/ui/audit?requestId=request%2F%207")
      assert.include(plain(told.text), `href="/ui/orders/${id}"`)
      yield* upstreamOrders.end({ orderId: id, status: "invalid", error: "rejected", now })
      for (const [at, status] of ["ready", "running", "done"].entries()) {
        const key = `${nobody.slice(0, -1)}${at}`
        yield* sql(
          `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
           VALUES (${idLiteral(backend.dialect, key)}, 'signer_relay_issue', '${id}', '{}', '${status}', 1, 1, 3, 1, 1)`
        )
        const shown = yield* ask(`/ui/upstream-orders/${id}`, held)
        assert.include(plain(shown.text), `/ui/jobs/${key}`)
        assert.strictEqual(shown.text.includes("data-poll"), status !== "done", status)
        yield* sql("DELETE FROM jobs")
      }
      const ended = yield* ask(`/ui/upstream-orders/${id}`, { ...held, ...fragment })
      assert.include(ended.text, "rejected")
      assert.notInclude(ended.text, "data-poll")
      assert.notInclude(ended.text, "<html")
      assert.strictEqual((yield* ask(`/ui/upstream-orders/${nobody}`, held)).status, 404)
    }))

  test("escape the texts of an upstream", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const id = yield* relayed("a.example")
      yield* upstreamOrders.opened({
        orderId: id,
        orderUrl: `https://ca.example/${hostile}`,
        finalizeUrl: undefined,
        now
      })
      yield* upstreamOrders.end({ orderId: id, status: "invalid", error: hostile, now })
      assertHarmless((yield* ask("/ui/upstream-orders", held)).text)
      const told = yield* ask(`/ui/upstream-orders/${id}`, held)
      assertHarmless(told.text.replace(/ data-copy="[^"]*"/g, ""))
      assert.notMatch(told.text, /<script(?![^>]*\ssrc=)|<img src=x|\u202E/)
    }))
})

describe("the page of upstream orders if a profile uses an upstream", () => {
  const { test } = usePanel(
    sqlite,
    "[profiles.off]\nenabled = false\n[profiles.off.signer]\nbackend = \"relay\"\n" +
      "[profiles.off.signer.relay]\ndirectory_url = \"https://ca.example/dir\"\n" +
      "[profiles.far.signer]\nbackend = \"relay\"\n[profiles.far.signer.relay]\ndirectory_url = \"https://ca.example/dir\"\n"
  )

  test("names that profile", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/upstream-orders", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "These profiles relay: far.")
    }))
})
