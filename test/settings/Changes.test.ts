import { assert, describe, it } from "vitest"
import { changedKeys } from "../../src/settings/Changes.ts"
import { configOf } from "../support/Graph.ts"

describe("the changes of a reload", () => {
  const before = configOf("[order]\nvalidity_seconds = 600\n[signer.relay.eab]\nhmac_key = \"c2VjcmV0\"")

  it("are empty if nothing differs", () => {
    assert.deepStrictEqual(
      changedKeys(before, configOf("[order]\nvalidity_seconds = 600\n[signer.relay.eab]\nhmac_key = \"c2VjcmV0\"")),
      []
    )
  })

  it("are the names of keys, with an inherited key only once and a secret without its value", () => {
    const after = configOf(
      "[order]\nvalidity_seconds = 700\n[signer.relay.eab]\nhmac_key = \"b3RoZXI\"\n[challenge]\nenabled = [\"dns-01\"]"
    )
    assert.sameMembers([...changedKeys(before, after)], [
      "order.validity_seconds",
      "signer.relay.eab.hmac_key",
      "challenge.enabled"
    ])
  })
})
