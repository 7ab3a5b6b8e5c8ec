import { Effect } from "effect"
import { assert, describe } from "vitest"
import { rollOver, setContact } from "../../../src/operations/operator/UpstreamChanges.ts"
import type { ProfileConfig } from "../../../src/settings/AppConfig.ts"
import { databases } from "../../support/Databases.ts"
import { configOf } from "../../support/Graph.ts"
import { trail } from "../../support/Relayed.ts"
import { refusal, relayOf, relaySettings } from "../../support/ScriptedRelay.ts"
import { ca, directory, payloadAt, upstreamWith } from "../../support/ScriptedUpstream.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Tests what an operator can change about a relay's account at the upstream. */

const operator = { kind: "cli", id: "olga" } as const
const contact = ["mailto:pki@example.org"]
const accountUrl = `${ca}/acct/1`
const paths = {
  "/directory": [{ json: { ...directory, keyChange: `${ca}/change` } }],
  "/change": [{ json: {} }],
  "/account": [{ json: {}, headers: { location: accountUrl } }],
  "/acct/1": [{ json: {} }]
}

const profileOf = (relay: ReturnType<typeof relaySettings>) => ({
  name: "web",
  signer: { ...configOf().profiles[0]?.signer, backend: "relay", relay } as ProfileConfig["signer"]
})

describe.each(databases)("a relay's account on $name", (backend) => {
  const { test } = useWorld(backend)

  test("gets a new key, and the trail names the key and the operator who changed it", () =>
    Effect.gen(function*() {
      const settings = relaySettings()
      yield* relayOf({}, settings)
      const { web } = upstreamWith(paths)
      const done = yield* Effect.provide(rollOver(operator, profileOf(settings)), web)
      assert.deepStrictEqual(yield* trail, [{
        event: "upstream_key_changed",
        reason: null,
        detail: {
          account_url: accountUrl,
          key_fp: done.keyThumbprint,
          previous_key_fp: done.previousKeyThumbprint
        }
      }])
    }))

  test("gets the given contacts or the configured contacts, and the trail lists the contacts", () =>
    Effect.gen(function*() {
      const settings = relaySettings({ contact })
      yield* relayOf({}, settings)
      for (
        const [given, sent] of [[[], contact], [["mailto:a@example.org", "mailto:b@example.org"], undefined]] as const
      ) {
        const { asked, web } = upstreamWith(paths)
        const done = yield* Effect.provide(setContact(operator, profileOf(settings), given), web)
        assert.deepStrictEqual(done, { accountUrl, contact: sent ?? given })
        assert.deepStrictEqual(payloadAt(asked, "/acct/1"), { contact: sent ?? given })
      }
      const rows = yield* trail
      assert.deepStrictEqual(rows.map(({ detail, event }) => [event, detail]), [
        ["upstream_contact_updated", { account_url: accountUrl, contacts: 1, added: contact }],
        ["upstream_contact_updated", {
          account_url: accountUrl,
          contacts: 2,
          added: ["mailto:a@example.org", "mailto:b@example.org"]
        }]
      ])
    }))

  test("leaves no row in the trail if the change is refused or the account does not exist", () =>
    Effect.gen(function*() {
      const settings = relaySettings({ contact })
      const { web } = upstreamWith({ ...paths, "/acct/1": [refusal("invalidContact")] })
      const change = Effect.provide(Effect.flip(setContact(operator, profileOf(settings), [])), web)
      assert.strictEqual((yield* change)._tag, "NotRegistered")
      yield* relayOf({}, settings)
      assert.strictEqual((yield* change)._tag, "UpstreamRefused")
      assert.deepStrictEqual(yield* trail, [])
    }))
})
