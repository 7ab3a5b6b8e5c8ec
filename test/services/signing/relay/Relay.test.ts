import { it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Entropy } from "../../../../src/crypto/Entropy.ts"
import { faultText } from "../../../../src/crypto/x509/Chain.ts"
import { parseCsr } from "../../../../src/crypto/x509/Csr.ts"
import * as LocalCa from "../../../../src/services/signing/LocalCa.ts"
import type { RelaySettings } from "../../../../src/services/signing/relay/RelaySettings.ts"
import type { IssueRequest, Relaying, SigningFailed } from "../../../../src/services/signing/Signer.ts"
import { csrOf, dns, pem, sanOf } from "../../../crypto/Pki.ts"
import { freshDirectory } from "../../../support/Databases.ts"
import { newPrivateKey } from "../../../support/Graph.ts"
import { daySeconds, foreignCa, issueRequest, keyPem, madeAt, settingsIn } from "../../../support/LocalCa.ts"
import { offline } from "../../../support/Offline.ts"
import type { Paths } from "../../../support/ScriptedRelay.ts"
import { refusal, relayOf, relaySettings } from "../../../support/ScriptedRelay.ts"
import type { Json, Said } from "../../../support/ScriptedUpstream.ts"
import { ca, order, payloadAt, postsOf, storedAt } from "../../../support/ScriptedUpstream.ts"
import { sleptThrough } from "../../../support/Watched.ts"

/* Tests what the relay does when an order ends at the upstream (docs/configure/signers.md, "An upstream ACME CA"). */

const request = issueRequest(["a.example"])

const first = (more: Partial<Relaying<never>> = {}): Relaying<never> => ({
  stored: storedAt(undefined),
  spentSeconds: 0,
  wasBegun: false,
  keeper: {
    asked: () => Effect.void,
    opened: () => Effect.succeed(true),
    notReplaced: () => Effect.void,
    issued: () => Effect.void,
    unclaimed: (urls) => Effect.succeed(urls)
  },
  tokens: { put: () => Effect.void, remove: () => Effect.void },
  isTakenOver: Effect.succeed(false),
  lastFailure: Effect.succeed(undefined),
  ...more
})

/** Relays an order, and returns how it ends at an upstream. */
const relayed = (paths: Paths, more: Partial<Relaying<never>> = {}, asked = request) =>
  Effect.gen(function*() {
    yield* TestClock.setTime(madeAt * 1000)
    const relay = yield* relayOf(paths)
    const signer = Result.getOrThrow(relay.made)
    const attempt = Effect.result(Effect.provide(signer.relay(asked, first(more)), relay.world))
    return { ...relay, ended: yield* sleptThrough(attempt) }
  })

const failureOf = (...parameters: Parameters<typeof relayed>) =>
  Effect.map(relayed(...parameters), (all) => {
    if (Result.isSuccess(all.ended)) throw new Error("it was fulfilled")
    return { ...all, failure: all.ended.failure }
  })

describe("an order at the upstream", () => {
  const chainFor = (asked: IssueRequest) =>
    Effect.flatMap(LocalCa.make(settingsIn(freshDirectory())), (ca) => ca.issue(asked)).pipe(
      Effect.provide(Layer.merge(Entropy.layerSeeded("ca"), offline)),
      Effect.map(({ chain }) => chain),
      Effect.orDie
    )
  const another = (names: ReadonlyArray<string>): IssueRequest => {
    const csr = csrOf({ key: newPrivateKey(), extensions: [sanOf(...names.map((name) => dns(name)))] })
    return { ...request, csr: Result.getOrThrow(parseCsr(csr)) }
  }
  const parts = (chain: string) => chain.split(/(?<=-----END CERTIFICATE-----\n)/)

  it.effect("is asked for with the earlier of the dates that the client wants and the credential permits", () =>
    Effect.gen(function*() {
      const day = "2026-01-02T00:00:00Z"
      for (
        const [notAfter, validityBound, sent] of [
          [undefined, daySeconds, day],
          [madeAt + 2 * daySeconds, daySeconds, day],
          [madeAt + daySeconds, 2 * daySeconds, day],
          [madeAt + daySeconds, undefined, day],
          [undefined, undefined, undefined]
        ] as const
      ) {
        const { asked } = yield* relayed({}, {}, { ...request, notAfter, validityBound })
        const { notAfter: said } = payloadAt(asked, "/order") as { readonly notAfter?: string }
        assert.strictEqual(said, sent)
      }
    }))

  it.effect("ends with a chain, which is checked and loses the blanks at its end", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const chain = yield* chainFor(request)
      const { ended } = yield* relayed({ "/cert": [{ text: `${chain}\n \r\n` }] })
      assert.strictEqual(Result.isSuccess(ended) ? ended.success.chain : "", chain)
    }))

  /** Returns a chain, and what follows the leaf in a chain through a certificate that another root gave to the same CA. */
  const crossed = Effect.gen(function*() {
    const directory = freshDirectory()
    const key = newPrivateKey()
    const [one = "", above = ""] = ["One", "Two"].map((name) =>
      foreignCa({ name: "Issuing", key, issuer: foreignCa({ name: `Root ${name}` }) }).certificatePem
    )
    writeFileSync(join(directory, "ca.pem"), one)
    writeFileSync(join(directory, "ca.key"), keyPem(key), { mode: 0o600 })
    const { chain } = yield* Effect.flatMap(LocalCa.make(settingsIn(directory)), (ca) => ca.issue(request)).pipe(
      Effect.provide(Layer.merge(Entropy.layerSeeded("crossed"), offline)),
      Effect.orDie
    )
    return { usual: chain, above, other: (parts(chain)[0] ?? "") + above }
  })

  it.effect("keeps the alternate chains of the certificate that are chains for it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const foreign = yield* chainFor(request)
      const { above, other, usual } = yield* crossed
      const to = (...names: ReadonlyArray<string>) => names.map((name) => `<${ca}/${name}>;rel="alternate"`).join(", ")
      for (
        const [link, expected] of [
          [to("same", "cross"), [above]],
          [to("foreign", "junk", "gone", "cross"), [above]],
          [`<http://127.0.0.1/chain>;rel="alternate", ${to("cross", "cross")}`, [above]],
          [to("junk", "junk", "junk", "junk", "cross"), []],
          [`<${ca}/directory>;rel="index", <${ca}/cross>; rel="alternate"; title="x"`, [above]],
          [`<${ca}/cross>;rel="alternatives"`, []]
        ] as const
      ) {
        const { asked, ended } = yield* relayed({
          "/cert": [{ text: usual, headers: { link } }],
          "/same": [{ text: usual }],
          "/foreign": [{ text: foreign }],
          "/junk": [{ text: "no chain" }],
          "/gone": [refusal("malformed", 404)],
          "/cross": [{ text: `${other}\r\n` }]
        })
        assert.deepStrictEqual(Result.isSuccess(ended) ? ended.success.alternates : undefined, expected, link)
        assert.notInclude(asked.map(({ url }) => url.hostname), "127.0.0.1")
      }
    }))

  it.effect("does not wait for alternate chains if the upstream does not answer", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const { other, usual } = yield* crossed
      const { asked, ended } = yield* relayed({
        "/cert": [{ text: usual, headers: { link: `<${ca}/broken>;rel="alternate", <${ca}/cross>;rel="alternate"` } }],
        "/broken": [{ status: 503 }],
        "/cross": [{ text: other }]
      })
      assert.deepStrictEqual(Result.isSuccess(ended) ? ended.success.alternates : undefined, [])
      assert.notInclude(postsOf(asked), "/cross")
    }))

  for (
    const [what, check, chainOf] of [
      ["no chain at all", "undecodable", () => Effect.succeed("")],
      ["an HTML page", "undecodable", () => Effect.succeed("<html>not today</html>")],
      [
        "a block that is not a certificate",
        "undecodable",
        () => Effect.succeed(pem("CERTIFICATE", Buffer.from("no DER")))
      ],
      [
        "more certificates than any chain has",
        "undecodable",
        () => Effect.map(chainFor(request), (chain) => chain + (parts(chain)[1] ?? "").repeat(120))
      ],
      ["a certificate for another key", "key", () => chainFor(another(request.names))],
      ["a certificate for other names", "names", () => chainFor({ ...request, names: ["b.example"] })],
      ["a certificate for more names", "names", () => chainFor({ ...request, names: ["a.example", "b.example"] })],
      [
        "a certificate that is not valid yet",
        "validity",
        () => chainFor({ ...request, notBefore: madeAt + daySeconds })
      ],
      [
        "a certificate that has expired",
        "validity",
        () => chainFor({ ...request, notBefore: madeAt - 2 * daySeconds, notAfter: madeAt - daySeconds })
      ],
      ["an issuer that did not sign the leaf", "sequence", () =>
        Effect.map(
          Effect.all([chainFor(request), chainFor(request)]),
          ([one, two]) => (parts(one)[0] ?? "") + (parts(two)[1] ?? "")
        )]
    ] as const
  ) {
    it.effect(`fails if it ends with ${what}, and the log names the check`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime((madeAt - (what.includes("expired") ? 3 * daySeconds : 0)) * 1000)
        const text = yield* chainOf()
        const { failure, records } = yield* failureOf({ "/cert": [{ text }] })
        assert.deepInclude(failure, {
          _tag: "SigningFailed",
          cause: "chain_rejected",
          detail: faultText(check, "upstream")
        })
        const [record] = records.filter(({ event }) => event === "order_finalize_chain_rejected")
        assert.deepInclude(record?.fields, { order_id: "order", check })
      }))
  }

  it.effect("fails because of the client if the upstream refuses a validity that the client asked for", () =>
    Effect.gen(function*() {
      const problem = {
        type: "urn:ietf:params:acme:error:malformed",
        detail: "NotBefore and NotAfter are not supported"
      }
      const refused = { "/order": [{ status: 400, json: problem }] }
      const wished = { ...request, notAfter: madeAt + daySeconds }
      for (const [asked, problemType] of [[wished, "malformed"], [request, undefined]] as const) {
        const { failure } = yield* failureOf(refused, {}, asked)
        assert.deepInclude(failure, { _tag: "SigningFailed", cause: "upstream_refused", detail: problem.detail })
        assert.strictEqual((failure as SigningFailed).problemType, problemType)
      }
    }))

  it.effect("fails because of the CSR if the upstream refuses the CSR, and has the upstream's text after any other refusal", () =>
    Effect.gen(function*() {
      const bad = yield* failureOf({ "/finalize": [refusal("badCSR", 400)] })
      assert.deepInclude(bad.failure, { _tag: "CsrRejected", detail: "The upstream authority says: no" })
      for (const type of ["rejectedIdentifier", "unauthorized", "caa"]) {
        const { failure } = yield* failureOf({ "/order": [refusal(type)] })
        assert.deepInclude(failure, {
          _tag: "SigningFailed",
          cause: "upstream_refused",
          detail: "no",
          problemType: type
        })
      }
    }))

  it.effect("counts as the client's fault after a malformed refusal only if the refusal is about a name of the order", () =>
    Effect.gen(function*() {
      const malformed = (more: Json): Said => ({
        status: 400,
        json: { type: "urn:ietf:params:acme:error:malformed", detail: "no", ...more }
      })
      const one = { type: "urn:ietf:params:acme:error:caa", detail: "forbidden" }
      for (
        const [said, isAboutName] of [
          [malformed({ detail: "Domain name \"a.example\" ends in no suffix" }), true],
          [malformed({ identifier: { type: "dns", value: "A.example" } }), true],
          [malformed({ subproblems: [{ ...one, identifier: { type: "dns", value: "a.example" } }] }), true],
          [malformed({ subproblems: [{ ...one, identifier: { type: "dns", value: "b.example" } }] }), false],
          [malformed({ subproblems: [7, null, { identifier: 7 }] }), false],
          [malformed({}), false]
        ] as const
      ) {
        const { failure } = yield* failureOf({ "/order": [said] })
        assert.deepInclude(failure, { _tag: "SigningFailed", cause: "upstream_refused" })
        assert.strictEqual((failure as SigningFailed).problemType, isAboutName ? "malformed" : undefined)
      }
    }))

  it.effect("has at most ten problems, only about its own names, if it is refused for several names", () =>
    Effect.gen(function*() {
      const part = (value: string) => ({
        type: "urn:ietf:params:acme:error:caa",
        detail: "x".repeat(1000),
        identifier: { type: "dns", value }
      })
      const json = {
        type: "urn:ietf:params:acme:error:compound",
        subproblems: [part("b.example"), ...Array.from({ length: 20 }, () => part("a.example"))]
      }
      const { failure } = yield* failureOf({ "/order": [{ status: 403, json }] })
      const { subproblems = [] } = failure as SigningFailed
      assert.lengthOf(subproblems, 9)
      assert.deepStrictEqual(subproblems[0], {
        type: "caa",
        detail: "x".repeat(300),
        identifier: { type: "dns", value: "a.example" }
      })
    }))

  for (const status of ["pending", "processing", "ready"]) {
    it.effect(`is polled until its time is over, and is then abandoned, if it stays ${status} forever`, () =>
      Effect.gen(function*() {
        const { asked, failure } = yield* failureOf({
          "/order/1": [{ json: order(status), headers: { "retry-after": "1000000000" } }]
        })
        assert.deepInclude(failure, {
          _tag: "SigningFailed",
          cause: "poll_timeout",
          detail: `the upstream did not finish within signer.relay.poll_timeout_secs: its order is ${status}`
        })
        assert.isAbove(postsOf(asked).filter((path) => path === "/order/1").length, 5)
      }))
  }

  it.effect("is not polled if its time was over before the attempt", () =>
    Effect.gen(function*() {
      const { asked, failure } = yield* failureOf({}, { spentSeconds: 300 })
      assert.deepInclude(failure, { _tag: "SigningFailed", cause: "poll_timeout" })
      assert.match(
        failure._tag === "SigningFailed" ? failure.detail : "",
        /^signer\.relay\.poll_timeout_secs, 300, had passed/
      )
      assert.deepStrictEqual(postsOf(asked), ["/account"])
    }))

  it.effect("is fetched, however late, if the upstream has finished it, and is abandoned otherwise", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const stored = storedAt(`${ca}/order/1`)
      const late = { spentSeconds: 86_400, stored, wasBegun: true }
      const chain = yield* chainFor(request)
      const valid = order("valid", { certificate: `${ca}/cert` })
      const { ended } = yield* relayed({ "/order/1": [{ json: valid }], "/cert": [{ text: chain }] }, late)
      assert.strictEqual(Result.isSuccess(ended) ? ended.success.chain : "", chain)
      for (const said of [{ json: order("processing") }, { status: 503 }]) {
        const { failure } = yield* failureOf({ "/order/1": [said] }, late)
        assert.deepInclude(failure, { _tag: "SigningFailed", cause: "poll_timeout" })
      }
    }))

  it.effect("may be tried again if the upstream has lost the account, and the error names the file and the command that help", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const settings = relaySettings()
      const gone = refusal("accountDoesNotExist", 400)
      const { asked, made, world } = yield* relayOf({ "/order": [gone], "/revoke": [gone, {}] }, settings)
      const signer = Result.getOrThrow(made)
      const attempt = Effect.provide(Effect.flip(signer.relay(request, first())), world)
      const failure = yield* attempt
      const says = `the upstream does not know the account in ${settings.account_key_path}.kid any more (no); ` +
        "`acme-svc upstream register --profile web` registers its key there again"
      assert.deepInclude(failure, { _tag: "SigningFailed", cause: "signer_failed", detail: says })
      const kidOf = () => {
        const { protected: header } = JSON.parse(String(asked.at(-1)?.body)) as { readonly protected: string }
        return (JSON.parse(Buffer.from(header, "base64url").toString()) as { readonly kid: string }).kid
      }
      assert.strictEqual(kidOf(), `${ca}/acct/1`)
      writeFileSync(`${settings.account_key_path}.kid`, `${ca}/acct/2\n`)
      // The failing attempt learns of the account that was registered meanwhile, and the next attempt uses the account.
      yield* attempt
      yield* attempt
      assert.strictEqual(kidOf(), `${ca}/acct/2`)
      const revoke = Effect.provide(signer.revoke(Buffer.from("leaf"), undefined), world)
      assert.deepInclude(yield* Effect.flip(revoke), { cause: "signer_failed", detail: says })
      yield* revoke
      assert.strictEqual(kidOf(), `${ca}/acct/2`)
    }))

  it.effect("may be tried again until its time is up if the upstream answers 503", () =>
    Effect.gen(function*() {
      for (const [spentSeconds, cause] of [[0, "signer_failed"], [299, "poll_timeout"]] as const) {
        const { failure } = yield* failureOf({ "/order": [{ status: 503 }] }, { spentSeconds })
        assert.deepInclude(failure, {
          _tag: "SigningFailed",
          cause,
          detail: "the upstream: answers 503 without a problem document"
        })
      }
    }))
})

describe("an order after its expiry", () => {
  it.effect("reports how the previous attempt ended if that is known, and otherwise where to look", () =>
    Effect.gen(function*() {
      for (
        const [lastFailure, says] of [
          [
            "signer_failed: the upstream: no answer within 30000 ms.",
            /ended with: signer_failed: .* no answer within 30000 ms$/
          ],
          [undefined, /the log says what delayed the workers$/]
        ] as const
      ) {
        const { failure } = yield* failureOf({}, { spentSeconds: 301, lastFailure: Effect.succeed(lastFailure) })
        assert.deepInclude(failure, { _tag: "SigningFailed", cause: "poll_timeout" })
        assert.match(failure.detail, says)
      }
    }))
})

describe("an upstream that asks for a wait", () => {
  const limited = (seconds: number, status = 429, type = "rateLimited"): Said => ({
    ...refusal(type, status),
    headers: { "retry-after": `${seconds}` }
  })
  const away = (seconds: number): Said => ({ status: 503, headers: { "retry-after": `${seconds}` } })

  for (
    const [what, paths] of [
      ["newOrder", { "/order": [limited(200)] }],
      ["newOrder, with another status", { "/order": [limited(200, 403)] }],
      ["the order", { "/order/1": [away(200)] }],
      ["finalize", { "/finalize": [limited(200, 500, "serverInternal")] }],
      ["the certificate", { "/cert": [limited(200)] }]
    ] as const
  ) {
    it.effect(`is asked again at ${what} only after the wait`, () =>
      Effect.gen(function*() {
        const { failure } = yield* failureOf(paths)
        const { again } = failure as SigningFailed
        assert.deepInclude(failure, { _tag: "SigningFailed", cause: "signer_failed" })
        assert.strictEqual(again?.atLeast, 201)
        assert.isAtLeast(again?.atMost ?? 0, 201)
      }))
  }

  it.effect("ends the order at once if the wait is longer than the remaining time, and the error has the end of the wait", () =>
    Effect.gen(function*() {
      const until = new Date((madeAt + 3601) * 1000).toISOString().replace(".000", "")
      for (const said of [limited(3600), limited(3600, 403)]) {
        const { failure, asked } = yield* failureOf({ "/order": [said] })
        assert.deepInclude(failure, {
          _tag: "SigningFailed",
          cause: "upstream_refused",
          problemType: "rateLimited",
          detail: `the upstream: no; it is not to be asked before ${until}`
        })
        assert.deepInclude(failure, { again: { atLeast: 3601, atMost: 3601 } })
        assert.strictEqual(postsOf(asked).filter((path) => path === "/order").length, 1)
      }
      const { failure } = yield* failureOf({ "/order": [away(3600)] })
      assert.deepInclude(failure, { cause: "poll_timeout" })
      assert.match((failure as SigningFailed).detail, new RegExp(`; it is not to be asked before ${until}$`))
      assert.notProperty(failure, "problemType")
    }))

  it.effect("causes the error rateLimited even if it does not say how long to wait", () =>
    Effect.gen(function*() {
      for (const said of [refusal("rateLimited", 403), { status: 429 }]) {
        const { failure } = yield* failureOf({ "/order": [said] })
        assert.deepInclude(failure, { cause: "signer_failed", problemType: "rateLimited" })
        const late = yield* failureOf({ "/order": [said] }, { spentSeconds: 299 })
        assert.deepInclude(late.failure, { cause: "upstream_refused", problemType: "rateLimited" })
      }
    }))

  it.effect("causes the error rateLimited even if its Retry-After is impossible or in the far future", () =>
    Effect.gen(function*() {
      for (const seconds of ["9".repeat(15), "9".repeat(400), "Fri, 31 Dec 9999 23:59:59 GMT", "later", "-1"]) {
        const { failure } = yield* failureOf({ "/order": [{ ...limited(1), headers: { "retry-after": seconds } }] })
        assert.deepInclude(failure, { problemType: "rateLimited" })
      }
    }))
})

describe("a revocation at the upstream", () => {
  const revoke = (said: Said, reason?: number, settings: Partial<RelaySettings> = {}) =>
    Effect.gen(function*() {
      const { asked, made, world } = yield* relayOf({ "/revoke": [said] }, relaySettings(settings))
      const signer = Result.getOrThrow(made)
      const ended = yield* Effect.result(Effect.provide(signer.revoke(Buffer.from("leaf"), reason), world))
      const { payload } = JSON.parse(String(asked.at(-1)?.body)) as { readonly payload: string }
      return { ended, sent: JSON.parse(Buffer.from(payload, "base64url").toString()) as object }
    })

  it.effect("contains the certificate, and the reason if there is one", () =>
    Effect.gen(function*() {
      const certificate = Buffer.from("leaf").toString("base64url")
      assert.deepStrictEqual((yield* revoke({}, 4)).sent, { certificate, reason: 4 })
      const { ended, sent } = yield* revoke({})
      assert.deepStrictEqual([ended._tag, sent], ["Success", { certificate }])
    }))

  it.effect("contains no reason if the upstream accepts none", () =>
    Effect.gen(function*() {
      const { sent } = yield* revoke({}, 4, { revocation_reasons: false })
      assert.deepStrictEqual(sent, { certificate: Buffer.from("leaf").toString("base64url") })
    }))

  it.effect("counts as done if the certificate was already revoked", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* revoke(refusal("alreadyRevoked", 400))).ended._tag, "Success")
    }))

  const limit: Said = { ...refusal("rateLimited", 429), headers: { "retry-after": "60" } }
  for (
    const [what, said, expected] of [
      ["badRevocationReason", refusal("badRevocationReason", 400), { cause: "upstream_refused" }],
      ["unauthorized", refusal("unauthorized"), { cause: "upstream_refused" }],
      ["malformed", refusal("malformed", 400), { cause: "upstream_refused" }],
      ["badNonce", refusal("badNonce", 400), { cause: "signer_failed" }],
      ["rateLimited", refusal("rateLimited", 403), { cause: "signer_failed" }],
      ["rateLimited for a minute", limit, { cause: "signer_failed", again: { atLeast: 61, atMost: 86_400 } }],
      ["accountDoesNotExist", refusal("accountDoesNotExist", 400), { cause: "signer_failed" }],
      ["an unknown type", refusal("dunno", 400), { cause: "signer_failed" }],
      ["408", { status: 408 }, { cause: "signer_failed" }],
      ["429", { status: 429 }, { cause: "signer_failed" }],
      ["an HTML page", { status: 403, text: "<h1>no</h1>" }, { cause: "signer_failed" }],
      ["500", { status: 500 }, { cause: "signer_failed" }]
    ] as const
  ) {
    it.effect(`${expected.cause === "signer_failed" ? "may be tried again" : "is final"} after a refusal with ${what}`, () =>
      Effect.gen(function*() {
        const { ended } = yield* revoke(said, 4)
        assert.deepInclude(Result.isFailure(ended) ? ended.failure : {}, { _tag: "SigningFailed", ...expected })
      }))
  }
})
