import { Effect, Result } from "effect"
import { assert, describe, it } from "vitest"
import type { Request } from "../../../src/engine/http/Message.ts"
import type { Guard, Sender } from "../../../src/surfaces/operator/gate/OperatorChecks.ts"
import { csrfFits, roleFits, stateFits } from "../../../src/surfaces/operator/gate/OperatorChecks.ts"

/*
 * Each check is tested alone. The entrance stops at the first check that refuses, which could hide that a later check
 * wrongly passes.
 */

const guard = (access: Guard["access"], more: Partial<Guard> = {}): Guard => ({
  access,
  isWithoutCsrf: false,
  isStepUp: false,
  ...more
})
const proven = { userId: "u", username: "ann" } as const
const facts = { tokenHash: "h", csrfToken: "right", createdAt: 0, expiresAt: 1 } as const
const viewer: Sender = { kind: "session", role: "viewer", totpEnabled: false, ...proven, ...facts }
const half: Sender = { kind: "half", userId: "u", username: "ann", step: "verify", ...facts }
const program: Sender = { kind: "token", role: "viewer", id: "t", name: "t", ...proven }
const cookie = { kind: "session", token: "" } as const
const bearer = { kind: "token", token: "" } as const

const post = (headers: Request["headers"] = {}): Request => ({
  id: "1",
  method: "POST",
  target: "/",
  path: "/",
  headers,
  clientIp: "192.0.2.1",
  userAgent: undefined,
  body: Effect.succeed(Buffer.alloc(0))
})

const tagOf = (fits: Result.Result<void, { readonly _tag: string }>): string =>
  Result.match(fits, { onFailure: ({ _tag }) => _tag, onSuccess: () => "passes" })

describe("a check of the entrance", () => {
  it.each(
    [
      ["public", undefined, "passes"],
      ["own", undefined, "SessionInvalid"],
      ["half", undefined, "SessionInvalid"],
      ["viewer", undefined, "SessionInvalid"],
      ["half", half, "passes"],
      ["own", half, "MfaPending"],
      ["viewer", half, "MfaPending"],
      ["half", viewer, "SessionInvalid"],
      ["half", program, "passes"],
      ["viewer", viewer, "passes"]
    ] as const
  )("judges the state of the session on a route for %s", (access, sender, told) => {
    assert.strictEqual(tagOf(stateFits(guard(access), sender)), told)
  })

  it("requires the CSRF token of the session, and only for a change", () => {
    const route = guard("own")
    const fits = (headers: Request["headers"], sender: Sender = viewer, of = route) =>
      tagOf(csrfFits(post(headers), of, sender))
    assert.strictEqual(fits({ "x-csrf-token": "right" }), "passes")
    for (
      const headers of [{}, { "x-csrf-token": "" }, { "x-csrf-token": "wrong" }, { "x-csrf-token": ["right", "right"] }]
    ) {
      assert.strictEqual(fits(headers), "CsrfFailed")
      assert.strictEqual(fits(headers, half), "CsrfFailed")
      assert.strictEqual(fits(headers, program), "passes")
      assert.strictEqual(fits(headers, viewer, guard("own", { isWithoutCsrf: true })), "passes")
      for (const method of ["GET", "HEAD"]) {
        assert.strictEqual(tagOf(csrfFits({ ...post(headers), method }, route, viewer)), "passes")
      }
      assert.strictEqual(tagOf(csrfFits(post(headers), route, undefined)), "passes", "who is nobody is refused as that")
    }
  })

  it.each(
    [
      [guard("viewer"), undefined, cookie, "SessionInvalid"],
      [guard("viewer"), half, cookie, "SessionInvalid"],
      [guard("viewer"), viewer, cookie, "passes"],
      [guard("operator"), viewer, cookie, "InsufficientRole"],
      [guard("own"), viewer, cookie, "passes"],
      [guard("own"), program, bearer, "InsufficientRole"],
      [guard("half"), program, bearer, "InsufficientRole"],
      [guard("viewer"), program, bearer, "passes"],
      [guard("viewer", { isStepUp: true }), program, bearer, "InsufficientRole"],
      [guard("public", { isWithoutCsrf: true }), undefined, bearer, "InsufficientRole"],
      [guard("viewer", { isForPeople: true }), program, bearer, "InsufficientRole"],
      [guard("public"), undefined, bearer, "passes"]
    ] as const
  )("judges the role of the caller on the route %o", (route, sender, shown, told) => {
    assert.strictEqual(tagOf(roleFits(route, sender, shown)), told)
  })
})
