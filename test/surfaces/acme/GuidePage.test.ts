import { Effect } from "effect"
import { createHash, X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { configOf, world } from "../../support/Graph.ts"
import { at, requestOf, surfaceOf } from "../../support/Handle.ts"
import { profilesIn } from "../../support/Issued.ts"
import { madeAt } from "../../support/LocalCa.ts"
import type { Making } from "../../support/UseTests.ts"
import { useStore } from "../../support/UseTests.ts"
import { watched } from "../../support/Watched.ts"

/* The page of a profile for people (docs/reference/protocol.md). */

const browser = { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } }

describe("the page of a profile", () => {
  let directory = ""
  const { test } = useStore(databases[0] ?? assert.fail(), {
    startsAt: madeAt,
    layer: ({ name, records }: Making<unknown>) => {
      directory = freshDirectory()
      return world({ records, seed: name, profiles: profilesIn(directory) })
    },
    around: watched
  })

  test("says as text how to trust the CA and how to ask", () =>
    Effect.gen(function*() {
      const app = yield* surfaceOf(configOf())
      const { body, headers, status } = yield* app.handle(requestOf("GET", at("/")))
      const text = String(body)
      assert.deepStrictEqual([status, headers["content-type"]], [200, "text/plain; charset=utf-8"])
      const root = new X509Certificate(readFileSync(join(directory, "ca.pem")))
      assert.include(text, `grep -F ${root.fingerprint256}`)
      assert.include(
        text,
        "certbot certonly --server http://localhost:3000/profile/default/directory -d host.example.org"
      )
      assert.include(text, "not needed")
      assert.strictEqual((yield* app.handle(requestOf("HEAD", at("/")))).status, 200)
      assert.strictEqual((yield* app.handle(requestOf("POST", at("/")))).status, 415)
      const held = requestOf("GET", at("/"), { headers: { "if-none-match": String(headers["etag"]) } })
      assert.strictEqual((yield* app.handle(held)).status, 304)
    }))

  test("names the credential that is needed, and the kinds that may be asked for", () =>
    Effect.gen(function*() {
      const config = configOf(
        "[eab]\nenabled = true\n[certificates.kinds.default]\ndescription = \"servers <b>\"\n[certificates.kinds.mutual]\ndescription = \"both\"\nusages = [\"client_auth\"]\n"
      )
      const app = yield* surfaceOf(config)
      const text = String((yield* app.handle(requestOf("GET", at("/")))).body)
      assert.include(text, "--eab-kid KID --eab-hmac-key HMAC_KEY")
      assert.match(text, /Kind mutual +both/)
      const page = String((yield* app.handle(requestOf("GET", at("/"), browser))).body)
      assert.include(page, "servers &lt;b&gt;")
      assert.notInclude(page, "<b>")
    }))

  test("is HTML for a browser, and loads nothing", () =>
    Effect.gen(function*() {
      const app = yield* surfaceOf(configOf())
      const { body, headers } = yield* app.handle(requestOf("GET", at("/"), browser))
      const page = String(body)
      assert.strictEqual(headers["content-type"], "text/html; charset=utf-8")
      assert.strictEqual(headers["vary"], "Accept")
      const [, style = ""] = /<style>(.*)<\/style>/.exec(page) ?? []
      const digest = createHash("sha256").update(style).digest("base64")
      assert.include(String(headers["content-security-policy"]), `default-src 'none'; style-src 'sha256-${digest}'`)
      assert.notMatch(page, /<script|<link|<img|src=/)
      assert.match(page, /<h1>The ACME endpoint default<\/h1>/)
    }))

  test("is HTML only for a client that wants HTML more than text", () =>
    Effect.gen(function*() {
      const app = yield* surfaceOf(configOf())
      const typeFor = (accept: string) =>
        Effect.map(app.handle(requestOf("GET", at("/"), { headers: { accept } })), ({ headers }) => {
          assert.notProperty(headers, "x-content-type-options", "the listener sends it")
          return String(headers["content-type"]).replace(/;.*/, "")
        })
      for (
        const accept of [
          "text/html",
          "TEXT/HTML",
          "text/html, */*",
          "text/html;q=0.9,text/plain;q=0.8",
          "*/*;q=0.1 , text/html ; Q=0.2",
          "text/html;level=1, text/*;q=.5"
        ]
      ) assert.strictEqual(yield* typeFor(accept), "text/html", accept)
      for (
        const accept of [
          "",
          "*/*",
          "text/*",
          "text/html;q=0",
          "text/html;q=0, */*",
          "text/plain, text/html;q=0.9",
          "text/html;q=x",
          "application/json",
          "text/htmlx"
        ]
      ) assert.strictEqual(yield* typeFor(accept), "text/plain", accept)
    }))

  test("depends on Accept and on Origin for caches, if scripts of other origins may read it", () =>
    Effect.gen(function*() {
      const app = yield* surfaceOf(configOf("[server]\ncors_origins = [\"https://tool.example\"]\n"))
      for (const headers of [{}, { origin: "https://tool.example" }]) {
        assert.strictEqual(
          (yield* app.handle(requestOf("GET", at("/"), { headers }))).headers["vary"],
          "Accept, Origin"
        )
      }
    }))

  test("leads to no CA if another party signs", () =>
    Effect.gen(function*() {
      const config = configOf("[profiles.relayed.signer]\nbackend = \"custom\"\ncustom.script_path = \"/bin/true\"\n")
      const app = yield* surfaceOf(config)
      const text = String((yield* app.handle(requestOf("GET", "/profile/relayed/"))).body)
      assert.notInclude(text, "Trust the CA")
      assert.include(text, "1. Ask for a certificate")
    }))
})
