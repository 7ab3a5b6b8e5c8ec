import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { AuditEvent, AuditRow } from "../../src/domain/Audit.ts"
import { bounded, outcomeOf } from "../../src/domain/Audit.ts"
import { prop } from "../support/Property.ts"

const events = [
  "certificate_issued",
  "certificate_issue_failed",
  "account_contact_updated",
  "account_deactivated"
] as const satisfies ReadonlyArray<AuditEvent>

const optionalText = fc.option(
  fc.tuple(fc.string(), fc.nat(600)).map(([text, more]) => text + "é".repeat(more)),
  { nil: undefined }
)

const row = fc.record({
  event: fc.constant("certificate_issue_failed" as const),
  actorKind: fc.constantFrom("acme", "admin", "system"),
  profile: optionalText,
  identifiers: fc.option(fc.nat(250).map((count) => Array.from({ length: count }, (_, index) => `n${index}.example`)), {
    nil: undefined
  }),
  clientIp: optionalText,
  clientPtr: optionalText,
  userAgent: optionalText,
  requestId: optionalText,
  reason: optionalText,
  detail: fc.record({ cause: fc.constantFrom("bad_csr", "lint_failed"), error: fc.string() })
}) as fc.Arbitrary<AuditRow>

describe("audit rows", () => {
  it("count as failures if and only if the name of the event ends with _failed", () => {
    for (const event of events) assert.strictEqual(outcomeOf(event) === "failure", event.endsWith("_failed"), event)
  })

  prop("are cut to the size of their columns, and do not change if they are cut again", [row], ([full]) => {
    const cut = bounded(full)
    for (
      const [name, limit] of [["clientPtr", 253], ["userAgent", 256], ["requestId", 128], ["identifiers", 100]] as const
    ) {
      const [before, after] = [full[name], cut[name]]
      assert.strictEqual(after === undefined, before === undefined, name)
      assert.strictEqual(after?.length, before === undefined ? undefined : Math.min(before.length, limit), name)
      assert.deepStrictEqual(after, before?.slice(0, after?.length), name)
    }
    assert.deepStrictEqual(bounded(cut), cut)
  })

  prop("keep all other members unchanged", [row], ([full]) => {
    const { clientPtr: _p, identifiers: _i, requestId: _r, userAgent: _u, ...rest } = full
    const { clientPtr: _q, identifiers: _j, requestId: _s, userAgent: _v, ...kept } = bounded(full)
    assert.deepStrictEqual(kept, rest)
  })
})
