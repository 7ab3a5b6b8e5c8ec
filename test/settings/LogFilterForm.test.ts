import { assert, describe, it } from "vitest"
import { events } from "../../src/domain/words/Log.ts"
import { targetOf } from "../../src/engine/telemetry/LogFilter.ts"
import { isKnownTarget, targets } from "../../src/settings/LogFilterForm.ts"

describe("the targets that a filter may name", () => {
  it("consist of acme_svc and the first word of an event's name", () => {
    for (const event of Object.keys(events)) {
      const [name = ""] = event.split("_")
      assert.strictEqual(targetOf(event), `acme_svc.${name}`)
      assert.notStrictEqual(name, "", event)
      assert.include(targets, targetOf(event))
      assert.isTrue(isKnownTarget(targetOf(event)) && isKnownTarget("acme_svc"))
      assert.isFalse(isKnownTarget(`${targetOf(event)}.more`) || isKnownTarget(name))
    }
  })
})
