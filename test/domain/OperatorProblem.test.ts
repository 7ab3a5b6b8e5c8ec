import { assert, describe, it } from "vitest"
import { Busy, LiveCertificates, NoSuch, RateLimited, UnknownWord } from "../../src/domain/OperatorError.ts"
import { isOperatorError, operatorCodes, operatorProblemOf } from "../../src/domain/OperatorProblem.ts"

/*
 * Scripts read the codes to decide what to do (docs/contribute/decisions/admin.md, "Errors"), so a change here breaks
 * the API.
 */
const decided: ReadonlyArray<readonly [number, ReadonlyArray<string>]> = [
  [400, [
    "bad_request",
    "conflicting_identifier_filter",
    "export_too_large",
    "invalid_code",
    "invalid_status",
    "weak_password"
  ]],
  [401, [
    "invalid_credentials",
    "mfa_pending",
    "session_expired",
    "session_idle",
    "session_invalid"
  ]],
  [403, ["access_denied", "csrf_failed", "insufficient_role", "step_up_failed"]],
  [404, ["not_found"]],
  [405, ["method_not_allowed"]],
  [409, [
    "account_state",
    "already_revoked",
    "campaign_state",
    "issuer_stopped",
    "issuer_unknown",
    "job_not_cancellable",
    "job_not_runnable",
    "last_admin",
    "live_certificates",
    "mfa_not_enrolled",
    "mfa_not_pending",
    "mfa_required",
    "name_taken",
    "number_not_above",
    "order_not_issued",
    "profile_not_mounted",
    "self_target",
    "too_many_campaigns"
  ]],
  [413, ["body_too_large"]],
  [415, ["unsupported_media_type"]],
  [429, ["rate_limited"]],
  [500, ["internal"]],
  [502, ["signer_failed"]],
  [503, ["busy"]]
]

describe("operatorProblemOf", () => {
  it.each(decided)("has exactly the listed codes for status %i", (status, codes) => {
    const found = operatorCodes.filter((row) => row.status === status).map(({ code }) => code)
    assert.deepStrictEqual([...new Set(found)].sort(), codes)
  })

  it("has no code for any other status", () => {
    const statuses = new Set(operatorCodes.map(({ status }) => status))
    assert.deepStrictEqual([...statuses].sort((one, other) => one - other), decided.map(([status]) => status))
  })

  it("says how many certificates can still be used, and what the operator can do", () => {
    const told = (noun: "account" | "credential" | "order", count: number) =>
      operatorProblemOf(new LiveCertificates({ noun, id: "x", count })).message
    assert.strictEqual(told("order", 1), "Order x has 1 certificate that can still be used; revoke it first.")
    assert.strictEqual(
      told("account", 2),
      "Account x has 2 certificates that can still be used; revoke them first, or deactivate the account, whose certificates stay."
    )
    assert.match(told("credential", 2), /^The accounts of credential x have 2 .*--deactivate-accounts/)
  })

  it("names the record that does not exist, or the word that is not accepted", () => {
    assert.deepStrictEqual(operatorProblemOf(new NoSuch({ noun: "order", id: "x" })), {
      status: 404,
      code: "not_found",
      message: "There is no order x."
    })
    const { message } = operatorProblemOf(new UnknownWord({ name: "status", word: "a\"b", known: ["ready", "done"] }))
    assert.strictEqual(message, "status takes one of ready, done, not \"a\\\"b\".")
  })

  it("says when to try again if a limit is reached or the service is busy", () => {
    assert.strictEqual(operatorProblemOf(new RateLimited({ retryAfter: 7 })).retryAfter, 7)
    assert.strictEqual(operatorProblemOf(new Busy({ retryAfter: 5 })).retryAfter, 5)
  })

  it("recognises its own errors", () => {
    assert.isTrue(isOperatorError(new Busy({ retryAfter: 5 })))
    assert.isFalse(isOperatorError({ _tag: "toString" }))
  })
})
