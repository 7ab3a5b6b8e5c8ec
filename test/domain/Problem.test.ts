import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import * as Jose from "../../src/crypto/jose/JoseRefused.ts"
import type { AcmeError } from "../../src/domain/AcmeError.ts"
import * as Acme from "../../src/domain/AcmeError.ts"
import { limitedThings } from "../../src/domain/Limit.ts"
import { isAcmeError, problemOf, problemType, retryAfter } from "../../src/domain/Problem.ts"
import type { ProblemDocument } from "../../src/domain/ProblemDocument.ts"
import * as Http from "../../src/engine/http/HttpRefused.ts"
import { problemColumn } from "../../src/store/Columns.ts"
import { prop } from "../support/Property.ts"

const AcmeErrors = { ...Acme, ...Http, ...Jose }

/** The problem types of RFC 8555 section 6.7, with the statuses that this service uses for each type. */
const statuses: { readonly [type: string]: ReadonlyArray<number> } = {
  accountDoesNotExist: [400],
  alreadyReplaced: [409],
  alreadyRevoked: [400],
  badCSR: [400],
  badNonce: [400],
  badPublicKey: [400],
  badRevocationReason: [400],
  badSignatureAlgorithm: [400],
  caa: [403],
  compound: [400, 403],
  connection: [400],
  dns: [400],
  externalAccountRequired: [403],
  incorrectResponse: [403],
  invalidContact: [400],
  invalidProfile: [400],
  malformed: [400, 404, 405, 408, 409, 413],
  orderNotReady: [403],
  rateLimited: [429],
  rejectedIdentifier: [403],
  serverInternal: [500, 503],
  tls: [400],
  unauthorized: [401, 403],
  unsupportedContact: [400],
  unsupportedIdentifier: [400],
  userActionRequired: [403]
}

/** The failures that have no type (docs/contribute/decisions/acme-surface.md, "Problem types"). */
const untyped: { readonly [tag: string]: number } = {
  UnsupportedMediaType: 415,
  ChallengeEnqueueFailed: 500,
  HandlerPanicked: 500,
  Shed: 503
}

const identifier = fc.record({ type: fc.constantFrom("dns", "ip"), value: fc.string() })
const refusals: fc.Arbitrary<Acme.IdentifierRefused> = fc.oneof(
  fc.record({ identifier }).map((given) => new AcmeErrors.UnsupportedIdentifier(given)),
  fc.record({ identifier, detail: fc.string({ minLength: 1 }) }).map((given) =>
    new AcmeErrors.RejectedIdentifier(given)
  ),
  fc.record({ identifier, detail: fc.string({ minLength: 1 }) }).map((given) =>
    new AcmeErrors.MalformedIdentifier(given)
  )
)

/** The members that any failure may have. */
const parts = fc.record({
  detail: fc.string({ minLength: 1 }),
  allow: fc.constantFrom("POST", "GET, HEAD, POST"),
  terms: fc.webUrl(),
  identifier,
  parts: fc.array(refusals, { minLength: 1, maxLength: 8 }),
  retryAfter: fc.integer({ min: 1, max: 3600 }),
  again: fc.nat(),
  since: fc.nat(),
  most: fc.nat(),
  limit: fc.constantFrom(...Object.keys(limitedThings)),
  cause: fc.constant(new Error("planted-cause SELECT at /srv")),
  name: fc.domain(),
  port: fc.integer({ min: 1, max: 65_535 }),
  answers: fc.nat(),
  accountId: fc.uuid(),
  code: fc.integer(),
  algorithms: fc.constant(["ES256"]),
  profile: fc.string(),
  kind: fc.string(),
  offered: fc.array(fc.string())
})

type FailureClass = new(given: object) => AcmeError

const classes = Object.entries(AcmeErrors as { readonly [name: string]: unknown }).filter(
  (entry): entry is [string, FailureClass] => typeof entry[1] === "function" && entry[1].prototype instanceof Error
)

it("there are more than 25 classes of failures to test", () => assert.isAbove(classes.length, 25))

for (const [name, Failure] of classes) {
  describe(name, () => {
    prop(
      "is either a problem of RFC 8555 with a suitable status, or one of the problems without a type",
      [parts],
      ([given]) => {
        const failure = new Failure(given)
        const { status, type } = problemOf(failure)
        assert.isTrue(isAcmeError(failure))
        if (type === undefined) {
          assert.strictEqual(status, untyped[name])
          assert.strictEqual(problemType(failure), "none")
        } else {
          const [, suffix = ""] = /^urn:ietf:params:acme:error:(\w+)$/.exec(type) ?? []
          assert.include(statuses[suffix] ?? [], status, `${type} ${status}`)
          assert.notProperty(untyped, name)
          assert.strictEqual(problemType(failure), suffix)
        }
      }
    )

    prop("has a detail, which does not contain the cause", [parts], ([given]) => {
      const problem = problemOf(new Failure(given))
      assert.isAbove(problem.detail.length, 0)
      assert.notInclude(JSON.stringify(problem), "planted-cause")
    })

    prop("is unchanged after it has been sent or stored", [parts], ([given]) => {
      const problem = problemOf(new Failure(given))
      assert.deepStrictEqual(JSON.parse(JSON.stringify(problem)), problem as unknown)
      const stored = problemColumn
      for (const dialect of ["sqlite", "postgres"] as const) {
        assert.deepStrictEqual(stored.decode(stored.encode(problem, dialect), dialect), problem)
      }
    })

    prop("says when to try again if and only if its status is 429 or 503 and it is not stored", [parts], ([given]) => {
      const failure = new Failure(given)
      const seconds = retryAfter(failure)
      // A problem that is stored with an order has no Retry-After header. Its text says when to try again.
      const isStored = failure._tag === "UpstreamRateLimited"
      assert.strictEqual(seconds !== undefined, !isStored && [429, 503].includes(problemOf(failure).status))
      if (seconds !== undefined) assert.isTrue(Number.isInteger(seconds) && seconds > 0)
    })
  })
}

describe("particular problems", () => {
  it("the problem for a refused algorithm lists the accepted algorithms", () => {
    const { algorithms } = problemOf(
      new AcmeErrors.BadSignatureAlgorithm({ detail: "no", algorithms: ["ES256", "EdDSA"] })
    )
    assert.deepStrictEqual(algorithms, ["ES256", "EdDSA"])
  })

  prop("the problem for one refused identifier contains the identifier as it was sent", [refusals], ([refused]) => {
    assert.deepStrictEqual(problemOf(refused).identifier, refused.identifier)
  })

  prop("the problem for a failed validation names the identifier and contains no received data", [fc.domain()], (
    [name]
  ) => {
    for (
      const failure of [
        new AcmeErrors.ChallengeUnreachable({ name, port: 80 }),
        new AcmeErrors.ChallengeMismatched({ name })
      ]
    ) {
      assert.deepStrictEqual(problemOf(failure).identifier, { type: "dns", value: name })
    }
  })

  it("says where a challenge response may have been missed, whether or not there was a redirect", () => {
    const at = (mayRedirect: boolean) =>
      problemOf(new AcmeErrors.ChallengeUnreachable({ name: "a.example", port: 80, mayRedirect })).detail
    assert.include(at(true), "at port 80 or where this port redirects;")
    assert.include(at(false), "at port 80;")
  })

  prop("the problem for several refusals contains each of them in order, and has the highest of their statuses", [
    fc.array(refusals, { minLength: 1, maxLength: 12 })
  ], ([several]) => {
    const problem: ProblemDocument = problemOf(new AcmeErrors.Compound({ parts: several }))
    const alone = several.map((part) => problemOf(part))
    assert.strictEqual(problem.type, "urn:ietf:params:acme:error:compound")
    assert.isTrue(alone.every(({ status }) => status <= problem.status))
    assert.include(alone.map(({ status }) => status), problem.status)
    assert.deepStrictEqual(
      problem.subproblems?.map((part) => ({ ...part })),
      alone.map(({ detail, type = "" }, index) => ({
        type,
        detail,
        identifier: several[index]?.identifier ?? { type: "", value: "" }
      }))
    )
    assert.notProperty(problem, "identifier")
  })

  it("only the declared failures count as ACME errors", () => {
    for (
      const other of [undefined, null, "Malformed", 7, {}, new Error("x"), { _tag: "StorageFailed" }, { _tag: 7 }, {
        _tag: "toString"
      }]
    ) {
      assert.isFalse(isAcmeError(other))
    }
  })
})
