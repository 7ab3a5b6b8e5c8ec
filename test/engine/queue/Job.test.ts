import { it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { JobKind } from "../../../src/engine/queue/Job.ts"
import { backoffSeconds, payloads } from "../../../src/engine/queue/Job.ts"
import { decodePayload } from "../../../src/engine/queue/Queue.ts"
import { prop } from "../../support/Property.ts"

const policy = fc.tuple(fc.integer({ min: 1, max: 3600 }), fc.integer({ min: 1, max: 86_400 }))
  .map(([base, more]) => ({ retry_base_seconds: base, retry_max_seconds: base + more - 1 }))
const attempts = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 31 }))
/** Uniform in [0, 1), as chance gives it. */
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe("the wait before the next attempt", () => {
  prop("is never under a second nor over the ceiling, however many there were", [attempts, policy, chance], (
    [count, given, random]
  ) => {
    const wait = backoffSeconds(count, given, random)
    assert.isTrue(Number.isSafeInteger(wait))
    assert.isAtLeast(wait, 1)
    assert.isAtMost(wait, given.retry_max_seconds)
  })

  prop("doubles from the base up to the ceiling", [attempts, policy], ([count, given]) => {
    assert.strictEqual(backoffSeconds(1, given, 0), given.retry_base_seconds)
    assert.strictEqual(
      backoffSeconds(count + 1, given, 0),
      Math.min(given.retry_max_seconds, 2 * backoffSeconds(count, given, 0))
    )
  })

  prop("is shortened by chance, by a quarter at most", [attempts, policy, chance], ([count, given, random]) => {
    const [full, wait] = [backoffSeconds(count, given, 0), backoffSeconds(count, given, random)]
    assert.isAtMost(wait, full)
    assert.isAtLeast(wait, Math.floor(full * 0.75))
  })

  prop("uses the whole quarter, so that those who failed together come back apart", [
    fc.integer({ min: 40, max: 3600 })
  ], ([base]) => {
    const given = { retry_base_seconds: base, retry_max_seconds: base }
    const waits = Array.from({ length: 100 }, (_, index) => backoffSeconds(1, given, index / 100))
    assert.isAtLeast(new Set(waits).size, Math.floor(Math.min(100, base / 4)))
    assert.isAtMost(Math.min(...waits), Math.ceil(base * 0.76))
  })

  prop("never shrinks from one attempt to the next below the ceiling, whatever chance does", [
    fc.integer({ min: 1, max: 6 }),
    policy,
    chance,
    chance
  ], ([count, given, one, other]) => {
    fc.pre(backoffSeconds(count + 1, given, 0) === 2 * backoffSeconds(count, given, 0))
    assert.isAtLeast(backoffSeconds(count + 1, given, other), backoffSeconds(count, given, one))
  })
})

describe("payloads", () => {
  for (const kind of Object.keys(payloads) as ReadonlyArray<JobKind>) {
    const schema = payloads[kind] as unknown as Schema.Codec<{ readonly [member: string]: unknown }>
    const read = Schema.decodeUnknownResult(Schema.fromJsonString(schema))
    const print = Schema.encodeSync(Schema.fromJsonString(schema))
    const payload = Arbitrary.schema(schema)
    // No event has a member of this name, and assigning to it makes none. Nor has one a name with an escape: V8 13.6 may
    // read it as another one it has seen in that place (`{"\"":1}` after `{"\\":1}` has the member `\`).
    const plain = Arbitrary.filter(
      payload,
      (value) => !/"__proto__":|"[^"\\]*\\(?:[^"\\]|\\.)*":/.test(JSON.stringify(value))
    )

    it.prop(`of ${kind} are read as they were written`, [plain], ([value]) => {
      assert.deepStrictEqual(Result.getOrThrow(read(print(value))), JSON.parse(JSON.stringify(value)))
    })

    it.prop(`of ${kind} are refused without a member they need, or with one of another type`, [payload], ([value]) => {
      for (const member of Object.keys(value)) {
        const isOptional = Result.isSuccess(read(JSON.stringify({ ...value, [member]: undefined })))
        assert.isTrue(Result.isFailure(read(JSON.stringify({ ...value, [member]: null }))), member)
        assert.isTrue(Result.isFailure(read(JSON.stringify({ ...value, [member]: [7] }))), member)
        assert.strictEqual(isOptional, ["client_ip", "request_id", "reason", "upstream"].includes(member), member)
      }
    })
  }

  // As version 0.1 writes them, with nothing that may be absent. Lines are added for new kinds, and none is changed
  // (docs/decisions/compatibility.md, "Neighbours").
  const first: { readonly [K in JobKind]: object } = {
    challenge_validate: { challenge_id: "c", profile: "p", thumbprint: "t" },
    signer_issue: { order_id: "o", profile: "p", csr: "AA", client: {} },
    signer_relay_issue: { order_id: "o", profile: "p" },
    signer_revoke: { order_id: "o", profile: "p", actor: { kind: "acme" }, client: {} },
    orphan_revoke: { order_id: "o", profile: "p" },
    key_revoke: { pubkey: "AA", client: {} },
    notify_deliver: {
      scope: "p",
      backend: "webhook",
      entry: "chat",
      event: "certificate_issued",
      fields: { hook: "certificate_issued", profile: "p", at: 1, delivery_id: "d" }
    },
    notify_expiry_digest: { profile: "p" },
    notify_expiry_reminders: { profile: "p" },
    authority_expiry: {},
    upstream_renewals: {},
    local_ca_crl_regenerate: { issuer: "i" },
    local_ca_crl_sweep: {},
    http01_token_sweep: {},
    nonce_sweep: {},
    admin_session_sweep: {},
    order_sweep: {},
    audit_sweep: {},
    job_retention_sweep: {}
  }

  it.each(Object.entries(first))("of the first version are read: %s", (kind, written) => {
    assert.deepStrictEqual(decodePayload(kind as JobKind, JSON.stringify(written)), written)
  })

  it.each(Object.entries(first))("of %s are read with a member that a newer version adds", (kind, written) => {
    const read = decodePayload(kind as JobKind, JSON.stringify({ ...written, of_later: { more: [1] } }))
    assert.isDefined(read)
    assert.deepInclude({ ...read }, written)
  })

  it("that are no JSON object are refused", () => {
    for (const text of ["", "null", "[]", "7", "\"text\"", "{", "{\"order_id\":\"a\""]) {
      assert.isTrue(
        Result.isFailure(Schema.decodeUnknownResult(Schema.fromJsonString(payloads.signer_issue))(text)),
        text
      )
    }
  })
})
