import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as relayTokens from "../../../src/operations/acme/RelayTokens.ts"
import * as http01Tokens from "../../../src/store/upstream/Http01Tokens.ts"
import { databases } from "../../support/Databases.ts"
import { column } from "../../support/Graph.ts"
import { useStore } from "../../support/UseTests.ts"

/* The key authorizations that the relay's http01 strategy stores for the processes that serve them. */

describe.each(databases)("tokens of the relay on $name", (backend) => {
  const { test } = useStore(backend)

  const put = (token: string, expiresAt: number, keyAuthorization = `${token}.thumbprint`) =>
    http01Tokens.put({ token, keyAuthorization, now: 100, expiresAt })
  const left = column("SELECT token FROM http01_tokens ORDER BY token")

  test("are found by their exact text, until they expire", () =>
    Effect.gen(function*() {
      yield* put("token", 200)
      assert.strictEqual(yield* http01Tokens.find("token", 100), "token.thumbprint")
      assert.strictEqual(yield* http01Tokens.find("token", 199), "token.thumbprint")
      assert.isUndefined(yield* http01Tokens.find("token", 200))
      for (const other of ["Token", "toke", "token ", "toke_", "%", ""]) {
        assert.isUndefined(yield* http01Tokens.find(other, 100), other)
      }
    }))

  test("get the new expiry and the new value if they are stored again", () =>
    Effect.gen(function*() {
      yield* put("token", 200)
      yield* put("token", 300, "token.other")
      assert.strictEqual(yield* http01Tokens.find("token", 250), "token.other")
      assert.deepStrictEqual(yield* left, ["token"])
    }))

  test("are deleted one by one", () =>
    Effect.gen(function*() {
      yield* put("a", 200)
      yield* put("b", 200)
      yield* http01Tokens.remove("a")
      yield* http01Tokens.remove("absent")
      assert.deepStrictEqual(yield* left, ["b"])
    }))

  test("are swept after their expiry, oldest first and a limited number at once", () =>
    Effect.gen(function*() {
      for (const [token, expiresAt] of [["a", 130], ["b", 110], ["c", 120], ["d", 131]] as const) {
        yield* put(token, expiresAt)
      }
      assert.strictEqual(yield* http01Tokens.sweep(109, 10), 0)
      assert.strictEqual(yield* http01Tokens.sweep(130, 2), 2)
      assert.deepStrictEqual(yield* left, ["a", "d"])
      assert.strictEqual(yield* http01Tokens.sweep(130, 2), 1)
      assert.deepStrictEqual(yield* left, ["d"])
      assert.strictEqual(yield* http01Tokens.sweep(130, 2), 0)
    }))

  test("are found for a request only if they have at most 512 characters, all of them of base64url", () =>
    Effect.gen(function*() {
      const longest = "x".repeat(512)
      for (const token of ["a-_Z0", longest, `${longest}x`, "a.b", "a b", "é"]) yield* put(token, 200)
      assert.strictEqual(yield* relayTokens.keyAuthorization("a-_Z0"), "a-_Z0.thumbprint")
      assert.strictEqual(yield* relayTokens.keyAuthorization(longest), `${longest}.thumbprint`)
      for (const token of [`${longest}x`, "a.b", "a b", "é", "", "../a-_Z0", "absent"]) {
        assert.isUndefined(yield* relayTokens.keyAuthorization(token), token)
      }
    }))
})
