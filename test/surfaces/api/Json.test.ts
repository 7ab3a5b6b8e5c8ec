import { Result } from "effect"
import { assert, describe, it } from "vitest"
import { readJson } from "../../../src/surfaces/operator/Json.ts"

const read = (text: string) => readJson(Buffer.from(text))
const largest = 65_536

describe("a body of the API", () => {
  it("is read as JSON, even if names and values contain brackets, quotes and commas", () => {
    const value = { "a:{[": "}]\"\\", b: [{ a: 1 }, { a: 2 }], "": null }
    assert.deepStrictEqual(read(JSON.stringify(value)), Result.succeed(value))
  })

  it.each([
    ["{\"a\":1,\"b\":2,\"a\":3}", "a"],
    ["{\"a\":1,\"\\u0061\":2}", "a"],
    ["{\"a\":{\"x\":1},\"b\":[{\"y\":1,\"y\":2}]}", "y"],
    ["{\"a\":{\"x\":1},\"a\":2}", "a"],
    ["{\"a\":[{}],\"a\":2}", "a"],
    [`{"${"n".repeat(300)}":1,"${"n".repeat(300)}":2}`, "n".repeat(64)]
  ])("is refused if it has a member twice: %s", (text, name) => {
    assert.deepStrictEqual(read(text), Result.fail(`The member ${name} was given twice.`))
  })

  it("may contain the same name in two objects", () => {
    for (const text of ["[{\"a\":{\"a\":1}},{\"a\":2}]", "{\"a\":{\"b\":1},\"b\":2}", "{\"a\":[{\"b\":1}],\"b\":2}"]) {
      assert.isTrue(Result.isSuccess(read(text)), text)
    }
  })

  it("is refused when it is nested too deeply, is not JSON, or is not text", () => {
    assert.deepStrictEqual(read("[".repeat(33) + "]".repeat(33)), Result.fail("The body is nested too deeply."))
    assert.isTrue(Result.isSuccess(read("[".repeat(32) + "]".repeat(32))))
    assert.isTrue(Result.isSuccess(read(`[${"[],{},".repeat(32)}0]`)), "beside each other is not within each other")
    assert.deepStrictEqual(read("{\"a\":}"), Result.fail("The body is not JSON."))
    assert.deepStrictEqual(readJson(Buffer.from([0xff])), Result.fail("The body is not UTF-8 text."))
  })

  // A search for the end of every string in this text would take a second, and the process would serve no other request
  // meanwhile.
  it("is refused as not JSON before its nesting is checked", () => {
    assert.deepStrictEqual(read("[".repeat(40)), Result.fail("The body is not JSON."))
    assert.deepStrictEqual(read(`"${"\\\"".repeat(largest / 2)}`), Result.fail("The body is not JSON."))
  })
})
