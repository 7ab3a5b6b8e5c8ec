import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { sign, X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import type { Answer, Request } from "../../../src/engine/http/Message.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { der, makeCsr, oid } from "../../support/Csr.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import type { World } from "../../support/Graph.ts"
import { configOf, newPrivateKey, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  register,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { foreignCa, issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * Correct requests that were changed in some way. Whatever the change was, the answer is a success or a problem of the
 * client's own: never a 500, a defect or a failed statement.
 */

const surface = surfaceOf(configOf("[challenge]\nbypass = true"))
const key = acmeKey()
const csrKey = newPrivateKey()
const goodCertificate = Buffer.from(
  foreignCa({ name: "Elsewhere" }).certificatePem.replaceAll(/-----[^-]+-----/g, ""),
  "base64"
)
const goodCsr = makeCsr({ names: ["a.example"], commonNames: ["a.example"], key: csrKey }).csr

const sample = <A>(arbitrary: fc.Arbitrary<A>, seed: number): ReadonlyArray<A> =>
  fc.sample(arbitrary, { numRuns: runsOf(600), seed: seedOf(seed) })

/** One change of some octets, at a place given as a fraction of their length. */
interface Edit {
  readonly kind: "flip" | "set" | "drop" | "insert" | "cut" | "repeat"
  readonly place: number
  readonly octets: ReadonlyArray<number>
}

const octet = fc.nat({ max: 255 })
const edits: fc.Arbitrary<ReadonlyArray<Edit>> = fc.array(
  fc.record({
    kind: fc.constantFrom("flip", "flip", "set", "drop", "insert", "cut", "repeat"),
    // A bias would favour the beginning.
    place: fc.noBias(fc.nat({ max: 999 })).map((thousandth) => thousandth / 1000),
    octets: fc.oneof(
      fc.array(octet, { minLength: 1, maxLength: 6 }),
      // Octets with a meaning in JSON or DER.
      ...[
        "\0",
        "\"",
        "{\"",
        "[",
        ",",
        "\\u0000",
        "\\",
        "null",
        "\u00ff",
        "\u0030\u0080",
        "\u0084\u00ff\u00ff\u00ff\u00ff"
      ]
        .map((text) => fc.constant([...Buffer.from(text, "latin1")]))
    )
  }),
  { minLength: 1, maxLength: 3 }
)

const edited = (good: Uint8Array, changes: ReadonlyArray<Edit>): Buffer =>
  changes.reduce((bytes, { kind, octets, place }) => {
    const start = Math.floor(place * bytes.length)
    const [before, after] = [bytes.subarray(0, start), bytes.subarray(start)]
    const [first = 0] = octets
    if (kind === "cut") return before
    if (kind === "repeat") return Buffer.concat([bytes, after])
    if (kind === "flip") {
      return Buffer.concat([before, Buffer.from([(after[0] ?? 0) ^ (1 << (first & 7))]), after.subarray(1)])
    }
    return Buffer.concat([
      before,
      kind === "drop" ? Buffer.alloc(0) : Buffer.from(octets),
      kind === "insert" ? after : after.subarray(octets.length)
    ])
  }, Buffer.from(good))

/** A JSON value of another type, or one that is almost correct. */
const anyValue = fc.oneof(
  fc.jsonValue({ depthSize: "small" }),
  fc.fullUnicodeString({ maxLength: 40 }),
  fc.constantFrom<unknown>(
    "",
    "\0",
    "\ud800",
    "a".repeat(20_000),
    "AAAA",
    "*.a.example",
    "mailto:a@b.example",
    "mailto:\0@b.example",
    "dns",
    "9999-12-31T23:59:60Z",
    "2030-02-30T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "2999-01-01T00:00:00+99:99",
    "2999-01-01T00:00:00Z",
    null,
    true,
    -1,
    0.5,
    2 ** 53,
    1e308,
    [],
    {},
    [[]],
    [null],
    [{ type: "dns", value: "\0" }],
    [{ type: "dns", value: "b.example" }, { type: "dns", value: "b.example." }],
    JSON.parse("{\"__proto__\":{\"alg\":\"none\"},\"constructor\":1}")
  )
)

/** Returns the sizes of the header and of the contents of the DER element at `start`. */
const sizeAt = (bytes: Buffer, start: number): readonly [header: number, contents: number] => {
  const first = bytes[start + 1] ?? 0
  return first < 0x80 ? [2, first] : [2 + (first & 0x7f), bytes.readUIntBE(start + 2, first & 0x7f)]
}

/** Signs the changed contents again, so that the checks after the signature are reached. */
const resigned = (csr: Buffer, changes: ReadonlyArray<Edit>): Buffer => {
  const [start] = sizeAt(csr, 0)
  const [header, contents] = sizeAt(csr, start)
  const info = edited(csr.subarray(start, start + header + contents), changes)
  const signature = sign("sha256", info, csrKey)
  return der(0x30, info, der(0x30, oid("1.2.840.10045.4.3.2")), der(0x03, Buffer.from([0]), signature))
}

describe.each(databases)("damaged requests on $name", (backend) => {
  const { records, test } = useWorld(backend)

  const isSound = (answer: Answer, what: string) => {
    const said = `${what}\n${answer.status} ${String(answer.body)}`
    assert.isBelow(answer.status, 500, said)
    assert.deepStrictEqual(records.filter(({ level }) => level === "error"), [], said)
    if (answer.status >= 400) {
      assert.strictEqual(headerOf(answer, "content-type"), "application/problem+json", said)
      const problem: unknown = JSON.parse(String(answer.body))
      assert.nestedInclude(problem, { status: answer.status }, said)
      if (answer.status !== 415) {
        assert.nestedPropertyVal(problem, "detail", (problem as { detail: string }).detail, said)
      }
    } else if (answer.status !== 204) {
      assert.strictEqual(headerOf(answer, "content-type"), "application/json", said)
    }
  }

  /**
   * Handles each request, and returns the statuses that occurred, so that no test passes just because it fails early.
   */
  const tryAll = <A>(
    cases: ReadonlyArray<A>,
    make: (one: A, nonce: string) => Effect.Effect<Request, unknown, Database | World>
  ) =>
    Effect.gen(function*() {
      const app = yield* surface
      let nonce = yield* freshNonce
      const statuses = new Map<number, number>()
      for (const one of cases) {
        records.length = 0
        const request = yield* make(one, nonce)
        const answer = yield* app.handle(request)
        const body = yield* Effect.orElseSucceed(request.body, () => Buffer.alloc(0))
        isSound(
          answer,
          `${JSON.stringify(one).slice(0, 500)}\n${request.target} ${body.toString("base64").slice(0, 4000)}`
        )
        nonce = request.method === "POST" ? headerOf(answer, "replay-nonce") : yield* freshNonce
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      }
      return statuses
    })

  const registered = Effect.flatMap(surface, (app) => register(app, key))
  const newOrder = { identifiers: [{ type: "dns", value: "a.example" }] }

  /** Makes an order that is ready to be finalized, and returns its URLs. */
  const ready = (kid: string) =>
    Effect.gen(function*() {
      const app = yield* surface
      const ask = (url: string, payload?: object) =>
        Effect.flatMap(byAccount(key, kid, url.slice(urlOf("").length), payload), app.handle)
      const placed = yield* ask(urlOf(at("/newOrder")), newOrder)
      const order = JSON.parse(String(placed.body)) as OrderBody
      const authorization = order.authorizations[0] ?? ""
      const { challenges } = JSON.parse(String((yield* ask(authorization)).body)) as AuthorizationBody
      const challenge = challenges[0]?.url ?? ""
      yield* ask(challenge, {})
      return { order: headerOf(placed, "location"), authorization, challenge, finalize: order.finalize }
    })

  test("get a success or a problem if octets of the body were changed", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const statuses = yield* tryAll(sample(edits, 1), (changes, nonce) => {
        const target = at("/newOrder")
        const good = Buffer.from(signed(key, { kid, url: urlOf(target), nonce }, newOrder))
        return Effect.succeed(requestOf("POST", target, {
          headers: { "content-type": "application/jose+json" },
          body: Effect.succeed(edited(good, changes))
        }))
      })
      // The octets of the signature are random, and decide whether one of these leaves a JWS in which only the
      // signature is wrong.
      assert.include([...statuses.keys()], 400)
    }))

  test("get a success or a problem if the signed header has members of any kind", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const cases = fc.tuple(
        fc.constantFrom("alg", "jwk", "kid", "nonce", "url", "crit", "b64", "typ", "__proto__"),
        anyValue,
        fc.boolean()
      )
      const statuses = yield* tryAll(sample(cases, 2), ([member, value, isKid], nonce) => {
        const target = at(isKid ? "/newOrder" : "/newAccount")
        const header = { ...isKid ? { kid } : { jwk: key.jwk }, url: urlOf(target), nonce, [member]: value }
        return Effect.succeed(posted(target, signed(key, header, isKid ? newOrder : {})))
      })
      assert.includeMembers([...statuses.keys()], [200, 201, 400])
    }))

  test("get a success or a problem if the key is of any kind", () =>
    Effect.gen(function*() {
      const member = fc.constantFrom("kty", "crv", "x", "y", "n", "e", "d", "k")
      const text = fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.uint8Array({ minLength: 32, maxLength: 32 }) // This has the length of a coordinate, but belongs to no point.
      ).map((bytes) => Buffer.from(bytes).toString("base64url"))
      const cases = fc.tuple(
        fc.constantFrom("EC", "RSA"),
        fc.dictionary(member, fc.oneof(text, anyValue), { minKeys: 1 })
      )
      const statuses = yield* tryAll(sample(cases, 3), ([kty, members], nonce) => {
        const target = at("/newAccount")
        const jwk = { ...kty === "EC" ? key.jwk : { kty, n: Buffer.alloc(256, 0xc5).toString("base64url"), e: "AQAB" } }
        const header = { jwk: { ...jwk, ...members }, url: urlOf(target), nonce }
        return Effect.succeed(posted(target, signed({ ...key, alg: kty === "EC" ? "ES256" : "RS256" }, header, {})))
      })
      assert.includeMembers([...statuses.keys()], [400, 401])
    }))

  test("get a success or a problem if the payload is of any kind, at every resource", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const urls = yield* ready(kid)
      const resources: ReadonlyArray<readonly [url: string, good: object]> = [
        [urlOf(at("/newAccount")), { contact: ["mailto:a@b.example"], termsOfServiceAgreed: true }],
        [urlOf(at("/newOrder")), newOrder],
        [kid, {}],
        [urls.order, {}],
        [urls.authorization, {}],
        [urls.challenge, {}],
        [urls.finalize, { csr: goodCsr.toString("base64url") }],
        [urlOf(at("/revokeCert")), { certificate: goodCertificate.toString("base64url"), reason: 4 }]
      ]
      const members = ["contact", "termsOfServiceAgreed", "onlyReturnExisting", "externalAccountBinding", "status"]
        .concat("identifiers", "notBefore", "notAfter", "replaces", "csr", "certificate", "reason", "__proto__")
      const cases = fc.tuple(
        fc.nat({ max: resources.length - 1 }),
        fc.oneof(
          fc.dictionary(fc.constantFrom(...members), anyValue, { minKeys: 1, maxKeys: 3 }),
          fc.fullUnicodeString().map((value) => ({ identifiers: [{ type: "dns", value }] })),
          fc.fullUnicodeString().map((value) => ({ contact: [`mailto:${value}@b.example`] })),
          anyValue
        )
      )
      const statuses = yield* tryAll(sample(cases, 4), ([index, value], nonce) => {
        const [url = "", good = {}] = resources[index] ?? []
        const target = url.slice(urlOf("").length)
        const isObject = typeof value === "object" && value !== null && !Array.isArray(value)
        const payload = JSON.stringify(isObject ? { ...good, ...value } : value)
        const header = { ...index === 0 ? { jwk: key.jwk } : { kid }, url, nonce }
        return Effect.succeed(posted(target, signed(key, header, payload)))
      })
      assert.includeMembers([...statuses.keys()], [200, 201, 400, 403, 404])
    }))

  test("get a success or a problem if the path is of any kind", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const cases = fc.tuple(
        fc.oneof(
          fc.webPath().filter((path) => path !== "/"), // the page for people
          fc.fullUnicodeString().map((text) => `/order/${text}`),
          fc.asciiString().map((text) => `/acct/${text}/${text}`)
        ),
        fc.constantFrom("GET", "POST", "HEAD")
      )
      const statuses = yield* tryAll(sample(cases, 5), ([path, method], nonce) => {
        const target = at(path)
        const body = signed(key, { kid, url: urlOf(target), nonce })
        return Effect.succeed(method === "POST" ? posted(target, body) : requestOf(method, target))
      })
      assert.includeMembers([...statuses.keys()], [404])
    }))

  test("get a success or a problem if octets of the certificate to be revoked were changed", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(madeAt * 1000)
      const kid = yield* registered
      yield* ready(kid)
      const { issue } = yield* LocalCa.make(settingsIn(freshDirectory()))
      const { chain, notAfter, serial } = yield* issue(issueRequest(["a.example"]))
      yield* sql(
        `UPDATE orders SET status = 'valid', certificate = '${chain}', cert_serial = '${serial}',
           cert_not_after = ${notAfter}`
      )
      const leaf = new X509Certificate(chain).raw
      const target = at("/revokeCert")
      const cases = sample(edits, 8).filter((changes) => !edited(leaf, changes).equals(leaf))
      const statuses = yield* tryAll(cases, (changes, nonce) => {
        const certificate = edited(leaf, changes).toString("base64url")
        return Effect.succeed(posted(target, signed(key, { kid, url: urlOf(target), nonce }, { certificate })))
      })
      assert.sameMembers([...statuses.keys()], [400, 404])
      assert.deepStrictEqual(yield* sql("SELECT id FROM orders WHERE revoked_at IS NOT NULL"), [])
    }))

  for (const [how, seed, spoil] of [["as it stands", 6, edited], ["and signed again", 7, resigned]] as const) {
    test(`get a success or a problem if octets of the CSR were changed, ${how}`, () =>
      Effect.gen(function*() {
        const kid = yield* registered
        const { finalize } = yield* ready(kid)
        const target = finalize.slice(urlOf("").length)
        const statuses = yield* tryAll([[], ...sample(edits, seed)], (changes, nonce) =>
          Effect.gen(function*() {
            yield* sql("UPDATE orders SET status = 'ready'")
            const csr = changes.length === 0 ? goodCsr : spoil(goodCsr, changes)
            return posted(target, signed(key, { kid, url: urlOf(target), nonce }, { csr: csr.toString("base64url") }))
          }))
        assert.sameMembers([...statuses.keys()], [200, 400])
      }))
  }
})
