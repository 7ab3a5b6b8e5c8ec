import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { parseRoles, rolesText } from "../../src/domain/Role.ts"

const read = (...given: ReadonlyArray<string>) => Result.map(parseRoles(given), rolesText)

describe("roles", () => {
  it("include every role if none is named", () => assert.deepStrictEqual(read(), Result.succeed("acme,admin,worker")))

  it("are listed once each and in a fixed order, however they were given", () => {
    for (const given of [["worker,acme"], ["worker", "acme"], ["acme", "worker,acme"], [" worker , acme "]]) {
      assert.deepStrictEqual(read(...given), Result.succeed("acme,worker"), given.join(" | "))
    }
  })

  it("are refused under any other name", () => {
    for (const [word, ...given] of [["ACME", "ACME"], ["", ""], ["", "acme,"], ["x", "worker", "acme,x"]] as const) {
      assert.deepStrictEqual(parseRoles(given), Result.fail(word), given.join(" | "))
    }
  })
})
