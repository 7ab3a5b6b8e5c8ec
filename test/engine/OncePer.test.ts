import { assert, it } from "vitest"
import { oncePer } from "../../src/engine/OncePer.ts"

it("a value is made once for each object, even if it is undefined", () => {
  const keys: Array<object> = []
  const valueOf = oncePer((key: object) => void keys.push(key))
  const [one, other] = [{}, {}]
  for (const key of [one, other, one, other]) assert.isUndefined(valueOf(key))
  assert.deepStrictEqual(keys, [one, other])
  assert.strictEqual(keys[0], one)
})
