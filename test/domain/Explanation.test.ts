import { assert, describe, it } from "@effect/vitest"
import * as errors from "../../src/domain/AcmeError.ts"
import type { Evidence } from "../../src/domain/Explanation.ts"
import { explainEnd } from "../../src/domain/Explanation.ts"
import { problemOf } from "../../src/domain/Problem.ts"

const plain = "The service has no simpler explanation for this."

const evidence: Evidence = { orderError: undefined, challengeFailures: [], cause: undefined, requestId: undefined }

const [name, detail] = ["www.example", "its own words"]

const ofOrder = [
  new errors.BadCsr({ detail }),
  new errors.AuthorityWithdrawn({ isCredentialGone: false }),
  new errors.AuthorityWithdrawn({ isCredentialGone: true }),
  new errors.IssuanceAbandoned(),
  new errors.UpstreamRefusedOrder({ detail }),
  new errors.UpstreamRefusedName({ detail }),
  new errors.UpstreamRateLimited({ detail }),
  new errors.UpstreamUnsupportedName({ detail }),
  new errors.UpstreamMalformedOrder({ detail }),
  new errors.UpstreamRefusedNames({ detail }),
  new errors.UpstreamForbiddenByCaa({ detail }),
  new errors.UpstreamRefusedKey({ detail }),
  new errors.UpstreamTooSlow()
]

const ofChallenge = [
  new errors.ChallengeUnreachable({ name, port: 80 }),
  new errors.ChallengeMismatched({ name }),
  new errors.TxtLookupFailed({ name }),
  new errors.TxtMismatched({ name, answers: 1, compared: 1 }),
  new errors.HandshakeFailed({ name, port: 443 }),
  new errors.AlpnCertificateMismatched({ name }),
  new errors.ValidationAbandoned()
]

describe("the explanation of why an order failed", () => {
  it("has a sentence of its own for every failure that is stored with an order", () => {
    for (const error of ofOrder) {
      const found = explainEnd({ ...evidence, orderError: problemOf(error) })
      assert.notStrictEqual(found?.summary ?? plain, plain, error._tag)
    }
    for (const error of ofChallenge) {
      const problem = problemOf(error)
      const found = explainEnd({
        ...evidence,
        orderError: problem,
        challengeFailures: [{ error: problem, cause: undefined }]
      })
      assert.notStrictEqual(found?.summary ?? plain, plain, error._tag)
    }
  })

  it.each([
    ["upstream_refused", new errors.UpstreamRefusedOrder({ detail }), /upstream authority refused the order/],
    ["upstream_refused", new errors.UpstreamRefusedName({ detail }), /refused a name/],
    ["upstream_refused", new errors.UpstreamForbiddenByCaa({ detail }), /CAA record/],
    ["upstream_refused", new errors.UpstreamRefusedKey({ detail }), /does not take the key/],
    ["upstream_refused", new errors.UpstreamRateLimited({ detail }), /limits the requests/],
    ["attempts_exhausted", new errors.UpstreamRateLimited({ detail }), /limits the requests/],
    ["poll_timeout", new errors.UpstreamTooSlow(), /did not issue.*/],
    ["order_expired", new errors.IssuanceAbandoned(), /lifetime ended/],
    ["filter_denied", new errors.BadCsr({ detail }), /policy/],
    ["toString", new errors.IssuanceAbandoned(), /could not be issued here/],
    [undefined, new errors.IssuanceAbandoned(), /could not be issued here/]
  ])("depends on the stored cause %s", (cause, error, words) => {
    const found = explainEnd({ ...evidence, orderError: problemOf(error), cause })
    assert.match(found?.summary ?? "", words)
    assert.match(found?.nextStep ?? "", /\.$/)
  })

  const dialled = problemOf(new errors.ChallengeUnreachable({ name, port: 80 }))

  it.each([
    ["resolve_failed", /could not be looked up/, /ENOTFOUND.*zone/],
    ["no_address", /has no address/, /record/],
    ["address_denied", /must not connect/, /policy of addresses/],
    ["connect_failed", /took a connection/, /open the port/],
    ["timeout", /time limit/, /waited for/]
  ])("names the cause %s of a failed validation", (reason, summary, nextStep) => {
    const failure = { error: dialled, cause: { reason, detail } }
    const found = explainEnd({ ...evidence, orderError: dialled, challengeFailures: [failure] })
    assert.match(found?.summary ?? "", summary)
    assert.match(found?.nextStep ?? "", nextStep)
    assert.strictEqual(
      found?.nextStep.includes("open the port"),
      reason === "connect_failed",
      "a reason that is not true"
    )
  })

  it("uses the problem document if another version wrote a cause that is unknown here", () => {
    for (const reason of ["of_tomorrow", "toString", ""]) {
      const failure = { error: dialled, cause: { reason, detail } }
      const found = explainEnd({ ...evidence, orderError: dialled, challengeFailures: [failure] })
      assert.match(found?.summary ?? "", /could not reach/)
    }
  })

  it("contains the request id and the problem type if the problem type is unknown", () => {
    const orderError = { type: "urn:ietf:params:acme:error:of_tomorrow", status: 400, detail }
    assert.deepStrictEqual(explainEnd({ ...evidence, orderError, requestId: "r" }), {
      summary: plain,
      nextStep: "The problem document is all that is known.",
      problemType: "of_tomorrow",
      requestId: "r"
    })
    assert.isUndefined(explainEnd(evidence))
  })
})
