import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { isApiToken, printApiToken } from "../../src/domain/ApiToken.ts"
import { prop } from "../support/Property.ts"

describe("a token", () => {
  const drawn = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((octets) =>
    Buffer.from(octets).toString("base64url")
  )

  prop("is recognised by its form", [drawn], ([text]) => {
    const token = printApiToken(text)
    assert.match(token, /^acme_svc_[A-Za-z0-9_-]{43}_[a-z2-7]{6}$/)
    assert.isTrue(isApiToken(token))
  })

  prop(
    "is not recognised if one character has changed",
    [drawn, fc.nat(42), fc.constantFrom("A", "b", "3", "_", "-")],
    ([text, at, other]) => {
      const changed = text.slice(0, at) + other + text.slice(at + 1)
      const token = printApiToken(text)
      if (changed !== text) assert.isFalse(isApiToken(token.replace(text, changed)))
    }
  )

  it("is not recognised in any other form", () => {
    const token = printApiToken("A".repeat(43))
    for (
      const text of [
        "",
        "acme_svc_",
        ` ${token}`,
        `${token}\n`,
        token.toUpperCase(),
        token.slice(1),
        token.slice(0, -1)
      ]
    ) {
      assert.isFalse(isApiToken(text), text)
    }
  })
})
