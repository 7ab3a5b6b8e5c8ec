import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { AcmeKey } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { configOf } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  freshNonce,
  headerOf,
  posted,
  requestOf,
  signed,
  surfaceOf
} from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The spellings of `server.base_url`. Clients that parse URLs write them in normal form before they sign them. */

const configured = "https://ACME.example:443/pki"
const normal = "https://acme.example/pki"
const surface = surfaceOf(configOf(`[server]\nbase_url = "${configured}"\n`))

describe.each(databases)("a base URL that is not in normal form, on $name", (backend) => {
  const { test } = useWorld(backend)

  /** Sends a request whose URLs begin with `base`. */
  const ask = (base: string, key: AcmeKey, path: string, member: object, payload?: object) =>
    Effect.gen(function*() {
      const app = yield* surface
      const header = { ...member, url: `${base}${at(path)}`, nonce: yield* freshNonce }
      return yield* app.handle(posted(at(path), signed(key, header, payload)))
    })

  test("is written in normal form in every URL that clients get", () =>
    Effect.gen(function*() {
      const key = acmeKey()
      const directory = yield* Effect.flatMap(surface, (app) => app.handle(requestOf("GET", at("/directory"))))
      const { meta, ...urls } = JSON.parse(String(directory.body)) as { readonly [member: string]: unknown }
      assert.deepStrictEqual(meta, {})
      for (const url of Object.values(urls)) assert.isTrue(String(url).startsWith(`${normal}${at("/")}`), String(url))
      const registered = yield* ask(normal, key, "/newAccount", { jwk: key.jwk }, {})
      assert.strictEqual(registered.status, 201, String(registered.body))
      assert.isTrue(headerOf(registered, "location").startsWith(`${normal}${at("/acct/")}`))
    }))

  test("may be signed and stored as it is configured or in normal form, and in no other spelling", () =>
    Effect.gen(function*() {
      const key = acmeKey()
      const kid = headerOf(yield* ask(configured, key, "/newAccount", { jwk: key.jwk }, {}), "location")
      const stored = kid.replace(normal, configured)
      const order = { identifiers: [{ type: "dns", value: "a.example" }] }
      for (const base of [normal, configured]) {
        for (const named of [kid, stored]) {
          const made = yield* ask(base, key, "/newOrder", { kid: named }, order)
          assert.strictEqual(made.status, 201, String(made.body))
        }
      }
      for (const base of ["https://Acme.example/pki", "https://acme.example:443/pki", "https://acme.example"]) {
        const refused = yield* ask(base, key, "/newOrder", { kid }, order)
        assert.strictEqual(bodyOf(refused).type, "urn:ietf:params:acme:error:malformed", base)
        const other = yield* ask(normal, key, "/newOrder", { kid: kid.replace(normal, base) }, order)
        assert.strictEqual(bodyOf(other).type, "urn:ietf:params:acme:error:accountDoesNotExist", base)
      }
      const next = acmeKey()
      const inner = signed(next, { jwk: next.jwk, url: `${configured}${at("/keyChange")}` }, {
        account: stored,
        oldKey: key.jwk
      })
      const changed = yield* ask(configured, key, "/keyChange", { kid: stored }, JSON.parse(inner) as object)
      assert.strictEqual(changed.status, 200, String(changed.body))
    }))
})
