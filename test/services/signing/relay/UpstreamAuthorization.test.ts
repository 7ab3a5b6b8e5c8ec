import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Proof, Strategy } from "../../../../src/services/signing/relay/Strategy.ts"
import { bypass } from "../../../../src/services/signing/relay/Strategy.ts"
import type { Said } from "../../../support/ScriptedUpstream.ts"
import {
  authorization,
  ca,
  challenge,
  failureOf,
  honest,
  order,
  play,
  storedAt
} from "../../../support/ScriptedUpstream.ts"

/** Makes a strategy that records what it does. */
const watched = (did: Array<string>): Strategy => {
  const note = (what: string, { name, token }: Proof) => Effect.sync(() => void did.push(`${what} ${name} ${token}`))
  return {
    choose: bypass.choose,
    prepare: (proof) => Effect.andThen(Effect.addFinalizer(() => note("takes away", proof)), note("puts", proof)),
    clear: (proof) => note("clears", proof)
  }
}

const stored = storedAt(`${ca}/order/1`)
const valid = order("valid", { certificate: `${ca}/cert` })

describe("the names of an order", () => {
  it.effect("are proved ten at a time", () =>
    Effect.gen(function*() {
      const names = Array.from({ length: 12 }, (_, index) => `n${index}.example`)
      const identifiers = names.map((value) => ({ type: "dns", value }))
      const ordered = { identifiers, authorizations: names.map((name) => `${ca}/authz/${name}`) }
      const pending = order("pending", ordered)
      const authorizations: { readonly [path: string]: ReadonlyArray<Said> } = Object.fromEntries(
        names.map((value) => {
          const about = {
            identifier: { type: "dns", value },
            challenges: [{ ...challenge, url: `${ca}/chall/${value}` }]
          }
          const [before, after] = [authorization("pending", about), authorization("valid", about)]
          return [`/authz/${value}`, [{ json: before }, { json: before }, { json: after }]] as const
        })
      )
      const challenges = Object.fromEntries(names.map((name) => [`/chall/${name}`, [{ json: challenge }]] as const))
      const { ended, posts } = yield* play({
        ...authorizations,
        ...challenges,
        "/order": [{ status: 201, json: pending, headers: { location: `${ca}/order/1` } }],
        "/order/1": [{ json: pending }, { json: valid }]
      }, { names })
      assert.strictEqual(ended._tag, "Success")
      const third = posts.findIndex((path, index) => posts.slice(0, index).filter((one) => one === path).length === 2)
      const begun = posts.slice(0, third).filter((path) => path.startsWith("/chall/"))
      assert.strictEqual(begun.length, 10, "before the first of them is valid")
    }))

  it.effect("have their proofs removed, whether the proofs succeed or not", () =>
    Effect.gen(function*() {
      for (const status of ["valid", "invalid"]) {
        const did: Array<string> = []
        yield* play({ "/authz": [{ json: authorization("pending") }, { json: authorization(status) }] }, {
          strategy: watched(did)
        })
        assert.deepStrictEqual(did, ["puts a.example token", "takes away a.example token"])
      }
    }))

  it.effect("are not tried if they were already refused", () =>
    Effect.gen(function*() {
      const { failure, posts } = yield* failureOf({ "/authz": [{ json: authorization("deactivated") }] })
      assert.strictEqual(failure.detail, "a.example: the authorization is deactivated")
      assert.notInclude(posts, "/chall")
    }))
})

describe("a refused trigger", () => {
  const refused = {
    "/chall": [{ status: 400, json: { type: "urn:ietf:params:acme:error:malformed", detail: "it is valid already" } }]
  }

  it.effect("does not end the order if the previous trigger had arrived", () =>
    Effect.gen(function*() {
      const begun = authorization("pending", { challenges: [{ ...challenge, status: "processing" }] })
      for (const between of [[], [{ json: begun }]]) {
        const authz = [{ json: authorization("pending") }, ...between, { json: authorization("valid") }]
        const { ended } = yield* play({ ...refused, "/authz": authz }, { deadline: 900_000 })
        assert.strictEqual(ended._tag, "Success")
      }
    }))

  it.effect("counts as the upstream's refusal if the challenge is unchanged", () =>
    Effect.gen(function*() {
      const { failure } = yield* failureOf({ ...refused, "/authz": [{ json: authorization("pending") }] })
      assert.deepInclude(failure, { _tag: "UpstreamRefused", detail: "it is valid already" })
    }))
})

describe("the attempt after a killed attempt", () => {
  it.effect("removes the proofs that the killed attempt published, whatever the state of the order is", () =>
    Effect.gen(function*() {
      const settled: ReadonlyArray<{ readonly [path: string]: ReadonlyArray<Said> }> = [
        { "/authz": [{ json: authorization("valid") }] },
        { "/authz": [{ json: authorization("valid") }], "/order/1": [{ json: order("ready") }, { json: valid }] },
        { "/authz": [{ json: authorization("valid") }], "/order/1": [{ json: { ...valid, ...order("valid") } }] },
        { "/authz": [{ json: authorization("invalid") }], "/order/1": [{ json: order("invalid") }] }
      ]
      for (const paths of settled) {
        const did: Array<string> = []
        yield* play(paths, { stored, wasBegun: true, strategy: watched(did) })
        assert.deepStrictEqual(did, ["clears a.example token"])
      }
      const did: Array<string> = []
      const { posts } = yield* play({ "/order/1": [{ json: order("pending") }, ...honest["/order/1"] ?? []] }, {
        stored,
        wasBegun: true,
        strategy: watched(did)
      })
      assert.deepStrictEqual(did, ["puts a.example token", "takes away a.example token"], "put there again")
      assert.notInclude(posts, "/order")
    }))

  it.effect("removes no proof for an authorization of another name", () =>
    Effect.gen(function*() {
      const did: Array<string> = []
      const other = authorization("valid", { identifier: { type: "dns", value: "b.example" } })
      yield* play({ "/authz": [{ json: other }], "/order/1": [{ json: valid }] }, {
        stored,
        wasBegun: true,
        strategy: watched(did)
      })
      assert.deepStrictEqual(did, [])
    }))

  it.effect("completes the order even if the authorization no longer exists at the upstream", () =>
    Effect.gen(function*() {
      const paths = { "/authz": [{ status: 404, json: { detail: "gone" } }], "/order/1": [{ json: valid }] }
      const { ended } = yield* play(paths, { stored, wasBegun: true, strategy: watched([]) })
      assert.strictEqual(ended._tag, "Success")
    }))
})

describe("an upstream order that belongs to two orders", () => {
  it.effect("is used by only one of the orders, and the other order is tried again", () =>
    Effect.gen(function*() {
      const { failure, kept, posts } = yield* failureOf({}, { claimed: [`${ca}/order/1`] })
      assert.deepInclude(failure, {
        _tag: "UpstreamUnavailable",
        detail: "the upstream answers with an order that another one here has already"
      })
      assert.deepStrictEqual(posts, ["/order"])
      assert.strictEqual(kept.at(-1), "asked 0", "the answer was not lost")
    }))
})
