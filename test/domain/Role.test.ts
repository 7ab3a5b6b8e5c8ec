import { Either } from "effect"
import { assert, describe, it } from "vitest"
import { parseRoles, rolesText } from "../../src/domain/Role.ts"

const read = (...given: ReadonlyArray<string>) => Either.map(parseRoles(given), rolesText)

describe("roles", () => {
  it("are all of them when none is named", () => assert.deepStrictEqual(read(), Either.right("acme,admin,worker")))

  it("are named once each, in one order, however they were given", () => {
    for (const given of [["worker,acme"], ["worker", "acme"], ["acme", "worker,acme"], [" worker , acme "]]) {
      assert.deepStrictEqual(read(...given), Either.right("acme,worker"), given.join(" | "))
    }
  })

  it("no other word is one", () => {
    for (const [word, ...given] of [["ACME", "ACME"], ["", ""], ["", "acme,"], ["x", "worker", "acme,x"]] as const) {
      assert.deepStrictEqual(parseRoles(given), Either.left(word), given.join(" | "))
    }
  })
})
