import { it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { assert, describe } from "vitest"
import type { JobKind } from "../../../src/domain/words/JobKind.ts"
import { decodePayload, jobKinds, kinds } from "../../../src/domain/words/JobKind.ts"
import { text } from "../../support/Documents.ts"

describe("the payload of a job", () => {
  for (const kind of jobKinds) {
    const schema = kinds[kind].payload as unknown as Schema.Codec<{ readonly [member: string]: unknown }>
    const read = Schema.decodeUnknownResult(Schema.fromJsonString(schema))
    const print = Schema.encodeSync(Schema.fromJsonString(schema))
    const payload = Arbitrary.schema(schema)
    // No payload has a member `__proto__`, because an assignment to `__proto__` creates no member. No name of a member
    // contains an escape either, because V8 13.6 may confuse such a name with a name that it has read before at the
    // same place: after `{"\\":1}`, V8 reads the member of `{"\"":1}` as `\`.
    const plain = Arbitrary.filter(
      payload,
      (value) => !/"__proto__":|"[^"\\]*\\(?:[^"\\]|\\.)*":/.test(JSON.stringify(value))
    )

    it.prop(`is read as it was written (${kind})`, [plain], ([value]) => {
      assert.deepStrictEqual(Result.getOrThrow(read(print(value))), JSON.parse(JSON.stringify(value)))
    })

    it.prop(
      `is refused without a member that it needs, or with a member of another type (${kind})`,
      [payload],
      ([value]) => {
        for (const member of Object.keys(value)) {
          const isOptional = Result.isSuccess(read(JSON.stringify({ ...value, [member]: undefined })))
          assert.isTrue(Result.isFailure(read(JSON.stringify({ ...value, [member]: null }))), member)
          assert.isTrue(Result.isFailure(read(JSON.stringify({ ...value, [member]: [7] }))), member)
          assert.strictEqual(
            isOptional,
            ["above", "client_ip", "request_id", "reason", "to", "upstream"].includes(member),
            member
          )
        }
      }
    )
  }

  // Payloads as version 0.1 writes them, without optional members. A new kind adds a line here, but existing lines
  // never change (docs/contribute/decisions/compatibility.md, "Neighbours").
  const first: { readonly [K in JobKind]: object } = {
    challenge_validate: { challenge_id: "c", profile: "p", thumbprint: "t" },
    signer_issue: { order_id: "o", profile: "p", csr: "AA", client: {} },
    signer_issue_restricted: { order_id: "o", profile: "p", csr: "AA", client: {} },
    signer_relay_issue: { order_id: "o", profile: "p" },
    signer_relay_issue_restricted: { order_id: "o", profile: "p" },
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
    audit_chain: {},
    audit_chain_check: {},
    audit_push: { receiver: "syslog" },
    campaign_fill: { campaign_id: "c" },
    campaign_revoke: { campaign_id: "c" },
    campaign_round: {},
    job_retention_sweep: {}
  }

  it.each(Object.entries(first))("is read as the first version wrote it (%s)", (kind, written) => {
    assert.deepStrictEqual(decodePayload(kind as JobKind, JSON.stringify(written)), written)
  })

  it.each(Object.entries(first))("is read with a member that a newer version adds (%s)", (kind, written) => {
    const read = decodePayload(kind as JobKind, JSON.stringify({ ...written, of_later: { more: [1] } }))
    assert.isDefined(read)
    assert.deepInclude({ ...read }, written)
  })

  it("is refused if it is not a JSON object", () => {
    for (const text of ["", "null", "[]", "7", "\"text\"", "{", "{\"order_id\":\"a\""]) {
      assert.isTrue(
        decodePayload("signer_issue", text) === undefined,
        text
      )
    }
  })
})

describe("the kinds of jobs", () => {
  it("are listed with their slots in docs/operate/jobs.md, except sweeps and revocation lists", () => {
    const [, slots = ""] = /^## Slots$(.*?)^## /ms.exec(text("docs/operate/jobs.md")) ?? []
    const listed = [...slots.matchAll(/`([a-z0-9_]+)`/g)].map(([, name]) => name)
    const named = jobKinds.filter((kind) => !kind.endsWith("_sweep") && kind !== "local_ca_crl_regenerate")
    assert.deepStrictEqual(listed.toSorted(), named.toSorted())
  })
})
