import { it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { flattenedVerify, importJWK } from "jose"
import { createPublicKey } from "node:crypto"
import { assert, describe } from "vitest"
import { Web } from "../../../../src/engine/net/Web.ts"
import * as AcmeClient from "../../../../src/services/signing/relay/AcmeClient.ts"
import type { Said } from "../../../support/ScriptedUpstream.ts"
import {
  accountKey,
  authorization,
  ca,
  challenge,
  directory,
  failureOf,
  honest,
  order,
  payloadAt,
  play,
  privateKey,
  storedAt,
  upstreamWith
} from "../../../support/ScriptedUpstream.ts"

/* Tests orders at an upstream that sends false data, delays or fails (docs/contribute/attacks.md, "Relay"). */

const urn = "urn:ietf:params:acme:error:"

/** The input of an attempt after an attempt that got no answer to newOrder. */
const asked = { wasBegun: true, stored: storedAt(undefined, 1, 0) }

describe("an order at a correct upstream", () => {
  it.effect("goes from newOrder to its certificate, and stores what later attempts need", () =>
    Effect.gen(function*() {
      const { ended, kept, posts } = yield* play({})
      assert.deepInclude(ended, { _tag: "Success", success: "the chain" })
      assert.deepStrictEqual(kept, ["asked 1", `opened ${ca}/order/1 ${ca}/finalize`, `issued ${ca}/cert`])
      assert.deepStrictEqual(posts, [
        "/order",
        "/authz",
        "/chall",
        "/authz",
        "/order/1",
        "/finalize",
        "/order/1",
        "/order/1",
        "/cert"
      ])
    }))

  it.effect("signs every request for its URL, with the account's URL and a new nonce", () =>
    Effect.gen(function*() {
      const { asked } = yield* play({})
      const key = yield* Effect.promise(() => importJWK(createPublicKey(privateKey).export({ format: "jwk" }), "ES256"))
      const nonces = new Set<unknown>()
      for (const { body, headers, method, url } of asked.filter((one) => one.method === "POST")) {
        assert.strictEqual(headers["Content-Type"], "application/jose+json", method)
        const verified = yield* Effect.promise(() => flattenedVerify(JSON.parse(String(body)) as never, key))
        assert.deepInclude(verified.protectedHeader, { alg: "ES256", url: url.href, kid: `${ca}/acct/1` })
        nonces.add(verified.protectedHeader?.["nonce"])
      }
      assert.strictEqual(nonces.size, 9)
    }))

  it.effect("has the dates that the client asked for, and no others", () =>
    Effect.gen(function*() {
      const both = { notBefore: 1_800_000_000, notAfter: 1_800_086_400 }
      for (
        const [validity, dates] of [
          [both, { notBefore: "2027-01-15T08:00:00Z", notAfter: "2027-01-16T08:00:00Z" }],
          [{ ...both, notBefore: undefined }, { notAfter: "2027-01-16T08:00:00Z" }],
          [{ notBefore: undefined, notAfter: undefined }, {}]
        ] as const
      ) {
        const { asked, ended } = yield* play({}, { validity, deadline: 9_000_000 })
        assert.strictEqual(ended._tag, "Success")
        assert.deepStrictEqual(payloadAt(asked, "/order"), {
          identifiers: [{ type: "dns", value: "a.example" }],
          ...dates
        })
      }
    }))

  it.effect("has the latest date that the credential permits, and none if the upstream takes no dates", () =>
    Effect.gen(function*() {
      const wanted = { latest: 1_800_086_400, deadline: 9_000_000 }
      const dated = yield* play({}, wanted)
      assert.deepInclude(payloadAt(dated.asked, "/order"), { notAfter: "2027-01-16T08:00:00Z" })
      const no = { status: 400, json: { type: `${urn}malformed`, detail: "NotBefore and NotAfter are not supported" } }
      const { asked, ended, posts } = yield* play({ "/order": [no, ...honest["/order"] ?? []] }, wanted)
      assert.strictEqual(ended._tag, "Success")
      assert.deepStrictEqual(payloadAt(asked, "/order"), { identifiers: [{ type: "dns", value: "a.example" }] })
      assert.strictEqual(posts.filter((path) => path === "/order").length, 2)
      const other = { status: 400, json: { type: `${urn}malformed`, detail: "no such name" } }
      assert.strictEqual(
        (yield* failureOf({ "/order": [other] }, wanted)).posts.filter((path) => path === "/order").length,
        1
      )
    }))

  it.effect("names the profile that the kind asks for, and none if the kind asks for none", () =>
    Effect.gen(function*() {
      for (const [upstreamProfile, member] of [["shortlived", { profile: "shortlived" }], ["", {}]] as const) {
        const { asked, ended } = yield* play({}, { upstreamProfile, deadline: 9_000_000 })
        assert.strictEqual(ended._tag, "Success")
        assert.deepStrictEqual(payloadAt(asked, "/order"), {
          identifiers: [{ type: "dns", value: "a.example" }],
          ...member
        })
      }
    }))

  it.effect("fails with what the upstream says if the upstream no longer has the profile", () =>
    Effect.gen(function*() {
      const no = { status: 400, json: { type: `${urn}invalidProfile`, detail: "the profile shortlived is gone" } }
      const { failure, posts } = yield* failureOf({ "/order": [no] }, {
        upstreamProfile: "shortlived",
        deadline: 900_000
      })
      assert.deepInclude(failure, { _tag: "UpstreamRefused", type: "invalidProfile" })
      assert.strictEqual(posts.filter((path) => path === "/order").length, 1)
    }))

  const replaced = { certId: "key.serial", orderUrl: `${ca}/order/0` }
  const renewing = { "/directory": [{ json: { ...directory, renewalInfo: `${ca}/renewal` } }] }
  const names = { identifiers: [{ type: "dns", value: "a.example" }] }

  it.effect("names the certificate that it replaces if this upstream issued that certificate and has renewal information", () =>
    Effect.gen(function*() {
      for (
        const [paths, of, replaces] of [
          [renewing, replaced, { replaces: "key.serial" }],
          [{}, replaced, {}],
          [renewing, { ...replaced, orderUrl: "https://former.example/order/0" }, {}],
          [renewing, undefined, {}]
        ] as const
      ) {
        const { asked, ended } = yield* play(paths, { replaced: of, deadline: 9_000_000 })
        assert.strictEqual(ended._tag, "Success")
        assert.deepStrictEqual(payloadAt(asked, "/order"), { ...names, ...replaces })
      }
    }))

  it.effect("is sent again without replaces if the upstream refuses replaces", () =>
    Effect.gen(function*() {
      const no = { status: 409, json: { type: `${urn}alreadyReplaced`, detail: "replaced already" } }
      const { asked, ended, kept, posts } = yield* play(
        { ...renewing, "/order": [no, ...honest["/order"] ?? []] },
        { replaced }
      )
      assert.strictEqual(ended._tag, "Success")
      assert.deepStrictEqual(kept.slice(0, 3), [
        "asked 1",
        "not replaced: replaced already",
        `opened ${ca}/order/1 ${ca}/finalize`
      ])
      assert.deepStrictEqual(payloadAt(asked, "/order"), names)
      assert.strictEqual(posts.filter((path) => path === "/order").length, 2)
      const both = yield* failureOf({ ...renewing, "/order": [no, { status: 403, json: { type: `${urn}caa` } }] }, {
        replaced,
        deadline: 900_000
      })
      assert.deepInclude(both.failure, { _tag: "UpstreamRefused", type: "caa" })
      assert.deepStrictEqual(both.kept, ["asked 1", "asked 0"], "nothing was opened, with or without")
    }))

  it.effect("names the profile again if the upstream refuses replaces", () =>
    Effect.gen(function*() {
      const no = { status: 409, json: { type: `${urn}alreadyReplaced`, detail: "replaced already" } }
      const { asked, posts } = yield* play(
        { ...renewing, "/order": [no, ...honest["/order"] ?? []] },
        { replaced, upstreamProfile: "shortlived" }
      )
      assert.strictEqual(posts.filter((path) => path === "/order").length, 2)
      assert.deepStrictEqual(payloadAt(asked, "/order"), { ...names, profile: "shortlived" })
    }))

  it.effect("is an order in the account's list only if the listed order has no other dates", () =>
    Effect.gen(function*() {
      const validity = { notBefore: undefined, notAfter: 1_800_086_400 }
      for (
        const [shown, opened] of [
          [{ notAfter: "2027-01-16T08:00:01Z" }, 1],
          [{ notAfter: "2027-01-16T10:00:00+02:00", notBefore: "2026-01-16T08:00:00Z" }, 0],
          [{}, 0]
        ] as const
      ) {
        const { posts } = yield* play({
          "/acct/1": [{ json: { orders: `${ca}/orders` } }],
          "/orders": [{ json: { orders: [`${ca}/order/7`] } }],
          "/order/7": [{ json: order("ready", shown) }]
        }, { ...asked, validity, deadline: 900_000 })
        assert.strictEqual(posts.filter((path) => path === "/order").length, opened)
      }
    }))

  it.effect("continues without another newOrder if its URL is known", () =>
    Effect.gen(function*() {
      const stored = storedAt(`${ca}/order/1`)
      const { ended, posts } = yield* play({ "/order/1": [{ json: order("valid", { certificate: `${ca}/cert` }) }] }, {
        stored
      })
      assert.strictEqual(ended._tag, "Success")
      assert.deepStrictEqual(posts, ["/order/1", "/cert"])
    }))

  it.effect("is found in the account's list if a killed attempt opened the order but did not store it", () =>
    Effect.gen(function*() {
      const paths = {
        "/acct/1": [{ json: { orders: `${ca}/orders` } }],
        "/orders": [{ json: { orders: [`${ca}/order/7`, `${ca}/order/8`, `${ca}/order/1`] } }],
        "/order/8": [{ json: order("pending", { identifiers: [{ type: "dns", value: "b.example" }] }) }],
        "/order/1": [{ json: order("ready") }, { json: order("ready") }, {
          json: order("valid", { certificate: `${ca}/cert` })
        }]
      }
      const { kept, posts } = yield* play(paths, { ...asked, claimed: [`${ca}/order/7`] })
      assert.notInclude(posts, "/order")
      assert.strictEqual(kept[0], `opened ${ca}/order/1 ${ca}/finalize`)
    }))

  it.effect("is looked for on every page of the list, up to a limit", () =>
    Effect.gen(function*() {
      const link = (page: number) => ({ link: `<${ca}/index>;rel="index", <${ca}/orders?p=${page}>; rel="next"` })
      const acct = [{ json: { orders: `${ca}/orders` } }]
      const first = { json: { orders: [`${ca}/order/7`] }, headers: link(2) }
      const second = { json: { orders: [`${ca}/order/1`] } }
      const found = yield* play({
        "/acct/1": acct,
        "/orders": [first, second],
        "/order/1": [{ json: order("pending") }, { json: order("valid", { certificate: `${ca}/cert` }) }]
      }, { ...asked, claimed: [`${ca}/order/7`] })
      assert.strictEqual(found.kept[0], `opened ${ca}/order/1 ${ca}/finalize`)
      const endless = yield* play({ "/acct/1": acct, "/orders": [first] }, {
        ...asked,
        claimed: [`${ca}/order/7`],
        deadline: 900_000
      })
      assert.strictEqual(endless.posts.filter((path) => path.startsWith("/orders")).length, 300)
      assert.strictEqual(endless.ended._tag, "Success", "another is opened")
    }))

  it.effect("is not looked for if no order can have been opened", () =>
    Effect.gen(function*() {
      const { ended, posts } = yield* play({}, { wasBegun: true })
      assert.strictEqual(ended._tag, "Success")
      assert.strictEqual(posts[0], "/order")
    }))

  const acct = [{ json: { orders: `${ca}/orders` } }]
  const unlisted: ReadonlyArray<readonly [what: string, paths: { readonly [path: string]: ReadonlyArray<Said> }]> = [
    ["an account that it refuses to show", { "/acct/1": [{ status: 404, json: { detail: "no" } }] }],
    ["an account without a list", { "/acct/1": [{ json: {} }] }],
    ["an account that is null", { "/acct/1": [{ text: "null" }] }],
    ["a list whose URL is empty", { "/acct/1": [{ json: { orders: "" } }] }],
    ["a list that is not implemented", { "/acct/1": acct, "/orders": [{ status: 501 }] }],
    ["a list that is null", { "/acct/1": acct, "/orders": [{ text: "null" }] }],
    ["a list that is an empty object", { "/acct/1": acct, "/orders": [{ json: {} }] }],
    ["a list without URLs", { "/acct/1": acct, "/orders": [{ text: "[7, null]" }] }],
    ["a list that is too long to read", { "/acct/1": acct, "/orders": [{ truncated: true }] }]
  ]
  for (const [what, paths] of unlisted) {
    it.effect(`is replaced at once by a new order if the upstream has ${what}`, () =>
      Effect.gen(function*() {
        const { ended, kept, posts } = yield* play(paths, asked)
        assert.strictEqual(ended._tag, "Success")
        assert.deepStrictEqual(posts.slice(Object.keys(paths).length, 3)[0], "/order")
        assert.strictEqual(kept[0], "asked 2")
      }))
  }

  const list = [{ json: { orders: [`${ca}/order/7`, `${ca}/order/1`] } }]
  const unreadable: ReadonlyArray<readonly [what: string, path: string, said: Said, whole: Said]> = [
    ["the account is cut off", "/acct/1", { text: "{\"orders\":" }, acct[0] ?? {}],
    ["the account is an HTML page", "/acct/1", { text: "<html>" }, acct[0] ?? {}],
    ["the account is answered with 500", "/acct/1", { status: 500 }, acct[0] ?? {}],
    ["the list is answered with 503", "/orders", { status: 503 }, list[0] ?? {}],
    [
      "the list is answered with a failure that is too long to read",
      "/orders",
      { status: 403, truncated: true },
      list[0] ?? {}
    ],
    ["the answer with the list is lost", "/orders", { lost: true }, list[0] ?? {}],
    ["the list is cut off", "/orders", { text: "{\"orders\":[" }, list[0] ?? {}],
    ["an order in the list is cut off", "/order/7", { text: "{" }, { json: order("invalid") }]
  ]
  for (const [what, path, said, whole] of unreadable) {
    it.effect(`is not replaced by a new order while ${what}, unless the failure persists`, () =>
      Effect.gen(function*() {
        const paths = { "/acct/1": acct, "/orders": list, "/order/7": [{ json: order("invalid") }] }
        const passed = yield* play({ ...paths, [path]: [said, said, whole] }, asked)
        assert.strictEqual(passed.ended._tag, "Success")
        assert.notInclude(passed.posts, "/order")
        const stays = yield* play({ ...paths, [path]: [said] }, { ...asked, deadline: 900_000 })
        assert.strictEqual(stays.ended._tag, "Success")
        assert.isAbove(stays.posts.indexOf("/order"), 5)
        assert.strictEqual(stays.kept[0], "asked 2")
      }))
  }

  it.effect("is found in an array without an object, as some upstreams list orders", () =>
    Effect.gen(function*() {
      const { ended, posts } = yield* play({
        "/acct/1": acct,
        "/orders": [{ text: JSON.stringify([`${ca}/order/1`]) }]
      }, asked)
      assert.strictEqual(ended._tag, "Success")
      assert.notInclude(posts, "/order")
    }))

  it.effect("is looked for among a limited number of listed orders, and never at other hosts", () =>
    Effect.gen(function*() {
      const urls = (base: string, count: number) => Array.from({ length: count }, (_, at) => `${base}/order/${at}`)
      const many = yield* play({
        "/acct/1": acct,
        "/orders": [{ json: { orders: urls(ca, 10_000) } }],
        ...Object.fromEntries(urls("", 10_000).map((path) => [path, [{ json: order("valid") }]]))
      }, { ...asked, deadline: 900_000 })
      assert.isBelow(many.posts.indexOf("/order"), 302)
      const elsewhere = yield* play({
        "/acct/1": acct,
        "/orders": [{ json: { orders: urls("https://127.0.0.1", 20) } }]
      }, { ...asked, deadline: 1_500_000 })
      assert.strictEqual(elsewhere.ended._tag, "Success")
      assert.isTrue(elsewhere.asked.every(({ url }) => url.href.startsWith(ca)))
    }))

  it.effect("continues after a refused finalize if the upstream makes progress", () =>
    Effect.gen(function*() {
      const refused = { status: 403, json: { type: "urn:ietf:params:acme:error:orderNotReady", detail: "no" } }
      const { ended, posts } = yield* play({ "/finalize": [refused] })
      assert.strictEqual(ended._tag, "Success")
      assert.strictEqual(posts.filter((path) => path === "/finalize").length, 1)
    }))

  it.effect("is finalized again if it is ready after a refused finalize", () =>
    Effect.gen(function*() {
      const refused = { status: 403, json: { type: `${urn}orderNotReady`, detail: "no" } }
      const { ended, posts } = yield* play({
        "/finalize": [refused, { json: order("processing") }],
        "/order/1": [
          { json: order("ready") },
          { json: order("ready") },
          { json: order("valid", { certificate: `${ca}/cert` }) }
        ]
      })
      assert.strictEqual(ended._tag, "Success")
      assert.deepStrictEqual(posts.slice(4), ["/order/1", "/finalize", "/order/1", "/finalize", "/order/1", "/cert"])
    }))

  it.effect("is abandoned when its time is over if it stays ready and cannot be finalized", () =>
    Effect.gen(function*() {
      const refused = { status: 403, json: { type: `${urn}orderNotReady`, detail: "no" } }
      const { failure, posts } = yield* failureOf({ "/finalize": [refused], "/order/1": [{ json: order("ready") }] })
      assert.strictEqual(
        failure.detail,
        "the upstream did not finish within signer.relay.poll_timeout_secs: its order is ready, and is not finalized"
      )
      // One poll every two seconds leaves time for 150 polls.
      assert.isAtMost(posts.filter((path) => path === "/finalize").length, 151)
    }))

  it.effect("is not read again if the answer to finalize shows that the order is finished", () =>
    Effect.gen(function*() {
      const done = order("valid", { certificate: `${ca}/cert` })
      const { ended, posts } = yield* play({ "/finalize": [{ json: done }] })
      assert.strictEqual(ended._tag, "Success")
      assert.deepStrictEqual(posts.slice(4), ["/order/1", "/finalize", "/cert"])
      const { failure } = yield* failureOf({
        "/finalize": [{ json: order("invalid", { error: { type: `${urn}caa`, detail: "CAA" } }) }]
      }, { deadline: 900_000 })
      assert.deepInclude(failure, { _tag: "UpstreamRefused", type: "caa" })
    }))

  it.effect("is read again if the answer to finalize does not contain the whole state of the order", () =>
    Effect.gen(function*() {
      for (const said of [{ text: "{" }, { json: order("valid") }, { json: {} }, { json: order("ready") }]) {
        const { ended, posts } = yield* play({ "/finalize": [said] }, { deadline: 9_000_000 })
        assert.strictEqual(ended._tag, "Success")
        assert.deepStrictEqual(posts.filter((path) => path === "/finalize"), ["/finalize"])
      }
    }))

  it.effect("uses the directory that was read within the last hour", () =>
    Effect.gen(function*() {
      let read = 0
      const web = Web.layerScripted(() => {
        read++
        return Effect.succeed({
          status: 200,
          headers: {},
          body: Buffer.from(JSON.stringify(directory)),
          truncated: false
        })
      })
      const client = yield* Effect.provide(AcmeClient.make(`${ca}/directory`, yield* accountKey, "web"), web)
      const counts: Array<number> = []
      for (const pause of ["0 minutes", "59 minutes", "1 minute", "59 minutes"] as const) {
        yield* TestClock.adjust(pause)
        yield* client.directory
        counts.push(read)
      }
      assert.deepStrictEqual(counts, [1, 1, 2, 2])
    }))

  for (const revokeCert of [undefined, null]) {
    it.effect(`is issued if the directory has no revokeCert: ${revokeCert}`, () =>
      Effect.gen(function*() {
        const { ended } = yield* play({ "/directory": [{ json: { ...directory, revokeCert } }] })
        assert.deepInclude(ended, { _tag: "Success", success: "the chain" })
      }))
  }

  it.effect("fails with a different error for each fault of the directory", () =>
    Effect.gen(function*() {
      for (
        const [newOrder, detail] of [
          [undefined, "the upstream names no newOrder"],
          [7, "the upstream names a newOrder that is no URL"],
          ["somewhere", "the upstream names a newOrder that is no URL"],
          ["https://127.0.0.1/a", "the upstream names a newOrder that is not a trusted URL: https://127.0.0.1"]
        ] as const
      ) {
        const { failure } = yield* failureOf({ "/directory": [{ json: { ...directory, newOrder } }] })
        assert.strictEqual(failure.detail, detail)
      }
    }))

  it.effect("continues after nonces were refused", () =>
    Effect.gen(function*() {
      const bad = { status: 400, json: { type: "urn:ietf:params:acme:error:badNonce" } }
      const { ended, records } = yield* play({ "/order": [bad, bad, ...honest["/order"] ?? []] })
      assert.strictEqual(ended._tag, "Success")
      assert.strictEqual(records.filter(({ event }) => event === "upstream_bad_nonce_retry").length, 2)
    }))
})

describe("an upstream that sends false data", () => {
  for (
    const url of [
      "http://ca.example/x",
      "ftp://ca.example/x",
      "https://u:p@ca.example/x",
      "https://169.254.169.254/x",
      "https://100.100.100.200/x",
      "https://[fd20:ce::254]/x",
      "https://[::ffff:127.0.0.1]/x",
      "https://[::ffff:0:127.0.0.1]/x",
      "https://[64:ff9b::7f00:1]/x",
      "https://[fe80::1]/x",
      "https://127.0.0.1/x",
      "https://localhost/x",
      "https://0.0.0.0/x",
      "/relative",
      "https://ca.example/\u001b[31mx",
      "https://ca.example/x y",
      "javascript:alert(1)"
    ]
  ) {
    it.effect(`is not followed to ${url}, whichever member has this URL`, () =>
      Effect.gen(function*() {
        const paths: ReadonlyArray<{ readonly [path: string]: ReadonlyArray<Said> }> = [
          { "/directory": [{ json: { ...directory, newOrder: url } }] },
          { "/order": [{ status: 201, json: order("pending"), headers: { location: url } }] },
          {
            "/order": [{
              status: 201,
              json: order("pending", { finalize: url }),
              headers: { location: `${ca}/order/1` }
            }]
          },
          {
            "/order": [{
              status: 201,
              json: order("pending", { authorizations: [url] }),
              headers: { location: `${ca}/order/1` }
            }]
          },
          { "/authz": [{ json: authorization("pending", { challenges: [{ ...challenge, url }] }) }] },
          { "/order/1": [{ json: order("ready", { finalize: url }) }] },
          { "/order/1": [{ json: order("valid", { certificate: url }) }] }
        ]
        for (const path of paths) {
          const { asked, failure } = yield* failureOf(path)
          assert.deepInclude(failure, { _tag: "UpstreamRefused", type: "untrusted" })
          assert.isTrue(asked.every((one) => one.url.href.startsWith(ca)))
        }
      }))
  }

  it.effect("is refused if its order or its authorizations have other names", () =>
    Effect.gen(function*() {
      const other = { identifiers: [{ type: "dns", value: "b.example" }] }
      const wrong = yield* failureOf({
        "/order": [{ status: 201, json: order("pending", other), headers: { location: `${ca}/order/1` } }]
      })
      assert.strictEqual(wrong.failure.detail, "the upstream's order has other names")
      const proof = authorization("pending", { identifier: { type: "dns", value: "b.example" } })
      const { failure, posts } = yield* failureOf({ "/authz": [{ json: proof }] })
      assert.strictEqual(failure.detail, "the upstream wants proof of a name that nobody ordered")
      assert.notInclude(posts, "/chall")
    }))

  it.effect("still gets a trigger with bypass if its challenges are unknown and have no token", () =>
    Effect.gen(function*() {
      const challenges = [{ type: "future-01", url: `${ca}/chall`, status: "pending" }]
      const paths = { "/authz": [{ json: authorization("pending", { challenges }) }, { json: authorization("valid") }] }
      assert.strictEqual((yield* play(paths)).ended._tag, "Success")
    }))

  it.effect("is tried again after a redirect for a POST, an answer without a nonce or a body that is not JSON", () =>
    Effect.gen(function*() {
      for (
        const [paths, says] of [
          [{ "/order": [{ status: 302, headers: { location: `${ca}/elsewhere` } }] }, /^answers 302/],
          [{
            "/nonce": [{ headers: { "replay-nonce": "" } }],
            "/directory": [{ json: directory, headers: { "replay-nonce": "" } }]
          }, /without a nonce$/],
          [
            { "/order": [{ status: 201, json: order("pending") }] },
            /^the upstream answers with an order without a location$/
          ],
          [{ "/order/1": [{ text: "no JSON" }] }, /an order that is no JSON object$/],
          [{ "/authz": [{ text: "no JSON" }] }, /an authorization that is no JSON object$/],
          [{ "/authz": [{ json: authorization("half") }] }, /an authorization of no known status$/],
          [{ "/directory": [{ text: "{" }] }, /^the directory is no JSON object$/],
          [{ "/order": [{ status: 403, text: "<h1>no</h1>" }] }, /^answers 403 without a problem document$/],
          [{ "/order": [{ status: 500, text: "<h1>oops</h1>" }] }, /^answers 500 without a problem document$/],
          [
            { "/order": [{ status: 429, json: { type: "urn:ietf:params:acme:error:rateLimited", detail: "later" } }] },
            /^later$/
          ],
          [
            { "/order/1": [{ json: order("strange\u001b[31m") }] },
            /^the upstream answers with an order that is strange \[31m$/
          ]
        ] as const
      ) {
        const { failure } = yield* failureOf(paths)
        assert.strictEqual(failure._tag, "UpstreamUnavailable")
        assert.match(failure.detail, says)
      }
    }))

  const tooLong = "x".repeat(500_000)
  const problem = "application/problem+json"
  for (
    const [what, said, asks] of [
      ["rateLimited and the status 403", { status: 403, json: { type: `${urn}rateLimited` } }, 0],
      ["serverInternal", { status: 500, json: { type: `${urn}serverInternal` } }, 0],
      ["badNonce every time", { status: 400, json: { type: `${urn}badNonce` } }, 0],
      ["a problem without a type", { status: 500, json: { title: "no" }, headers: { "content-type": problem } }, 0],
      ["a refusal without a type", { status: 403, json: { title: "no" }, headers: { "content-type": problem } }, 0],
      ["a problem of a megabyte", { status: 403, json: { type: tooLong, detail: tooLong } }, 1],
      ["a problem that is too long to read", { status: 403, truncated: true, headers: { "content-type": problem } }, 1],
      ["an HTML page", { status: 500, text: "<h1>oops</h1>", headers: { "content-type": "text/html" } }, 1],
      [
        "an HTML page with the media type of a problem",
        { status: 500, text: "<h1>", headers: { "content-type": problem } },
        1
      ],
      ["JSON from a proxy in between", { status: 403, json: { message: "blocked" } }, 1],
      ["an empty body", { status: 500 }, 1]
    ] as const
  ) {
    it.effect(`${asks === 0 ? "has not opened the order" : "may have opened the order"} if it answers with ${what}`, () =>
      Effect.gen(function*() {
        const { failure, kept } = yield* failureOf({ "/order": [said] })
        assert.deepStrictEqual(kept, asks === 0 ? ["asked 1", "asked 0"] : ["asked 1"])
        assert.isAtMost(failure.detail.length, 2000)
        assert.isAtMost((failure.type ?? "").length, 100)
      }))
  }

  it.effect("can ask for a wait in its answer to a request for a nonce or the directory", () =>
    Effect.gen(function*() {
      const wait = { "retry-after": "200", "replay-nonce": "" }
      const plain = { json: directory, headers: { "replay-nonce": "" } }
      for (
        const paths of [
          { "/directory": [{ status: 503, headers: wait }] },
          { "/directory": [plain], "/nonce": [{ status: 429, headers: wait }] }
        ]
      ) {
        const { failure } = yield* failureOf(paths)
        assert.deepInclude(failure, { _tag: "UpstreamUnavailable", retryAfter: 200 })
      }
    }))

  it.effect("gets eight requests if it refuses every nonce", () =>
    Effect.gen(function*() {
      const { failure, posts } = yield* failureOf({
        "/order": [{ status: 400, json: { type: "urn:ietf:params:acme:error:badNonce", detail: "no" } }]
      })
      assert.deepInclude(failure, { _tag: "UpstreamUnavailable", detail: "no" })
      assert.strictEqual(posts.length, 8)
    }))

  for (
    const [what, retryAfter] of [["a thousand million seconds", "1000000000"], ["a negative number", "-5"], [
      "a date after a year",
      "Fri, 01 Jan 1971 00:00:00 GMT"
    ], ["a word", "soon"]]
  ) {
    it.effect(`is polled within limits if it sends ${what} as Retry-After, and the order is abandoned when its time is over`, () =>
      Effect.gen(function*() {
        const headers = { "retry-after": retryAfter ?? "" }
        const { failure, posts } = yield* failureOf({ "/order/1": [{ json: order("processing"), headers }] })
        assert.strictEqual(
          failure.detail,
          "the upstream did not finish within signer.relay.poll_timeout_secs: its order is processing"
        )
        assert.isAtLeast(posts.length, 10)
        assert.isAtMost(posts.length, 160)
      }))
  }
})

describe("a refusal", () => {
  it.effect("contains the upstream's text without characters that control a terminal, and the names", () =>
    Effect.gen(function*() {
      const { failure } = yield* failureOf({
        "/order": [{
          status: 403,
          json: {
            type: "urn:ietf:params:acme:error:rejectedIdentifier",
            detail: "no \u001b[31m<script>\r\nhere",
            subproblems: [{ detail: "on the list", identifier: { type: "dns", value: "a.example" } }]
          }
        }]
      })
      assert.deepInclude(failure, {
        _tag: "UpstreamRefused",
        type: "rejectedIdentifier",
        status: 403,
        detail: "no [31m<script> here; a.example: on the list"
      })
    }))

  it.effect("is reported with the error of the challenge or of the order", () =>
    Effect.gen(function*() {
      const error = { type: "urn:ietf:params:acme:error:connection", detail: "no route" }
      const failed = authorization("invalid", { challenges: [{ ...challenge, status: "invalid", error }] })
      const one = yield* failureOf({ "/authz": [{ json: authorization("pending") }, { json: failed }] })
      assert.deepInclude(one.failure, { _tag: "UpstreamRefused", type: "connection", detail: "a.example: no route" })
      const two = yield* failureOf({
        "/order/1": [{ json: order("invalid", { error: { type: "urn:ietf:params:acme:error:caa", detail: "CAA" } }) }]
      })
      assert.deepInclude(two.failure, { _tag: "UpstreamRefused", type: "caa", detail: "CAA" })
    }))
})

describe("a URL of the directory that the upstream has moved", () => {
  const moved = { ...directory, newNonce: `${ca}/v2/nonce`, newOrder: `${ca}/v2/order`, revokeCert: `${ca}/v2/revoke` }
  const problem = { "content-type": "application/problem+json" }
  const kid = `${ca}/acct/1`

  it.effect.each<readonly [string, Said]>([
    ["404", { status: 404, json: { type: `${urn}malformed`, detail: "page not found" }, headers: problem }],
    ["404 of a proxy", { status: 404, text: "<h1>Not Found</h1>" }],
    ["405", { status: 405, json: { type: `${urn}malformed`, detail: "no" }, headers: problem }],
    ["301", { status: 301, headers: { location: `${ca}/v2/order` } }],
    ["nobody there", { unsent: true }]
  ])("is read again after %s, so that the next attempt succeeds", ([, said]) =>
    Effect.gen(function*() {
      const { web } = upstreamWith({
        "/directory": [{ json: directory }, { json: moved }],
        "/order": [said],
        "/v2/order": [{ status: 201, json: order("pending"), headers: { location: `${ca}/order/1` } }]
      })
      yield* Effect.gen(function*() {
        const client = yield* AcmeClient.make(`${ca}/directory`, yield* accountKey, "web")
        const ask = Effect.flatMap(
          client.directory,
          ({ newOrder }) => client.post("newOrder", newOrder, { identifiers: [] }, { kid })
        )
        const failure = yield* Effect.flip(ask)
        assert.strictEqual(failure._tag, "UpstreamUnavailable", "the order is tried again")
        assert.strictEqual((yield* ask).location, `${ca}/order/1`)
      }).pipe(Effect.provide(web))
    }))

  it.effect("is read again if nobody gives nonces at the old one", () =>
    Effect.gen(function*() {
      const { asked, web } = upstreamWith({
        "/directory": [{ json: directory, headers: { "replay-nonce": "" } }, {
          json: moved,
          headers: { "replay-nonce": "" }
        }],
        "/nonce": [{ status: 404, headers: { "replay-nonce": "" } }],
        "/v2/nonce": [{}]
      })
      yield* Effect.gen(function*() {
        const client = yield* AcmeClient.make(`${ca}/directory`, yield* accountKey, "web")
        const ask = client.post("account", kid, "", { kid })
        yield* Effect.flip(ask)
        yield* Effect.exit(ask)
        assert.deepStrictEqual(
          asked.map(({ url }) => url.pathname).filter((path) => path !== "/directory"),
          ["/nonce", "/v2/nonce", "/acct/1"]
        )
      }).pipe(Effect.provide(web))
    }))

  it.effect("is still the same after a refusal that is about a certificate, which stays definite", () =>
    Effect.gen(function*() {
      const unknown = {
        status: 404,
        json: { type: `${urn}malformed`, detail: "No such certificate" },
        headers: problem
      }
      const { web } = upstreamWith({ "/revoke": [unknown] })
      yield* Effect.gen(function*() {
        const client = yield* AcmeClient.make(`${ca}/directory`, yield* accountKey, "web")
        yield* client.directory
        const failure = yield* Effect.flip(client.post("revokeCert", `${ca}/revoke`, {}, { kid }))
        assert.deepInclude(failure, { _tag: "UpstreamRefused", detail: "No such certificate" })
      }).pipe(Effect.provide(web))
    }))
})
