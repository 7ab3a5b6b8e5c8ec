import { Context, Effect, Schema } from "effect"
import { generateKeyPairSync } from "node:crypto"
import tr46 from "tr46"
import { assert, describe, it } from "vitest"
import { importJwk } from "../../../src/crypto/jose/Jwk.ts"
import { parseJws, parseObject } from "../../../src/crypto/jose/Jws.ts"
import { rsaWeakness } from "../../../src/crypto/keys/WeakKey.ts"
import { parseCertId } from "../../../src/crypto/x509/CertId.ts"
import { readCertificate } from "../../../src/crypto/x509/Certificate.ts"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import { checkContacts } from "../../../src/domain/Account.ts"
import { AccountId } from "../../../src/domain/Id.ts"
import { create } from "../../../src/operations/acme/Orders.ts"
import { Issuers } from "../../../src/services/signing/Issuers.ts"
import { NewOrder } from "../../../src/surfaces/acme/handlers/AcmeOrders.ts"
import { der, makeCsr } from "../../support/Csr.ts"
import { configOf, profileOf } from "../../support/Graph.ts"
import { issuersOf } from "../../support/KnownIssuers.ts"
import { callsOf } from "../../support/Work.ts"

/*
 * Tests that one request causes only a bounded amount of work, whatever it contains. The work is the number of function
 * calls in the code that reads what clients send. The inputs are as long as server.max_body_bytes allows.
 */

const longest = 131_072
const mostCalls = 200_000
/** The limit for programs that check xn-- labels, because each of their calls takes much longer. */
const mostCallsOverLabels = 30_000

const profile = profileOf(configOf())
const caller = {
  profile,
  accountId: AccountId("00000000-0000-7000-8000-000000000000"),
  thumbprint: "",
  pubkey: new Uint8Array(),
  client: {}
}

type Needs = Effect.Services<ReturnType<typeof create>>

/** Runs newOrder up to the check of names. The names are refused, so that nothing is needed for later steps. */
const orders = (names: ReadonlyArray<string>) =>
  Effect.runSync(Effect.flip(Effect.provide(
    create(caller, {
      identifiers: names.map((value) => ({ type: "dns", value })),
      notBefore: undefined,
      notAfter: undefined
    }),
    Context.makeUnsafe<Needs>(
      new Map([[Issuers.key, issuersOf(() => undefined)]])
    )
  )))

const partsOf = (refusal: ReturnType<typeof orders>) => refusal._tag === "Compound" ? refusal.parts : []

/** Different xn-- labels, so short that 29 of them fit into a name. */
const labels: ReadonlyArray<string> = Array.from(
  { length: 3100 },
  (_, at) => tr46.toASCII(String.fromCodePoint(0x4e00 + at)) ?? ""
)
const names = (ending: string) =>
  Array.from({ length: 100 }, (_, at) => [...labels.slice(at * 28, at * 28 + 28), ending].join("."))

const base64url = (text: string) => Buffer.from(text).toString("base64url")
const nulls = (count: number) => Array.from({ length: count }, () => Buffer.of(5, 0))
const junk = der(0x30, ...nulls(longest / 2))
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
const { csr: ofManyNames } = makeCsr({
  names: Array.from({ length: 20_000 }, (_, at) => at.toString(36)),
  key: privateKey
})

const within = (what: string, program: () => unknown, most = mostCalls) =>
  it(`${what} is at most ${most} calls`, () => assert.isAtMost(callsOf(program), most))

describe("the cost of", () => {
  within(
    "an order of 100 names with 28 xn-- labels each, all refused",
    () => orders(names("xn--a")),
    mostCallsOverLabels
  )
  within(
    "an order of names with correct labels, except for the last name",
    () => orders([...names("example").slice(1), "."])
  )
  within("an order of 100 names that are malformed", () => orders(Array.from({ length: 100 }, () => "-.".repeat(600))))
  within("a newOrder with as many members as possible", () =>
    Schema.decodeUnknownResult(NewOrder)({
      identifiers: Array.from({ length: longest / 24 }, () => ({ type: "", value: "" }))
    }))
  within("a body that consists of brackets", () => parseObject(Buffer.from(`{"a":[${"[],".repeat(longest / 3)}[]]}`)))
  within("a JWS with the longest possible header", () =>
    parseJws(Buffer.from(JSON.stringify({
      protected: base64url(JSON.stringify({ x: Array.from({ length: longest / 4 }, () => 1) })),
      payload: "",
      signature: ""
    }))))
  within(
    "a jwk with the longest possible modulus and exponent",
    () => importJwk({ kty: "RSA", n: "_".repeat(longest / 2), e: "_".repeat(longest / 2) })
  )
  within("a CSR with as many elements as possible", () => parseCsr(junk))
  within("a CSR of 20 000 names", () => parseCsr(ofManyNames))
  within("a certificate with as many elements as possible", () => readCertificate(junk))
  within(
    "a certID of the greatest possible length",
    () => parseCertId(`${"A".repeat(longest / 2)}.${"A".repeat(longest / 2)}`)
  )
  within(
    "as many and as long contacts as possible",
    () => checkContacts(Array.from({ length: 32 }, () => `mailto:${"%61".repeat(longest / 96)}@a`))
  )
  within("an RSA modulus of 8192 bits", () => rsaWeakness(new Uint8Array(1024).fill(0xff)))
})

describe("a newOrder request", () => {
  it("lists ten of its names in the answer if all of them are refused", () => {
    assert.strictEqual(partsOf(orders(names("-"))).length, 10)
  })

  it("is refused for having too many different xn-- labels each time that it is sent", () => {
    for (const _ of [1, 2]) {
      const [first] = partsOf(orders(names("example")))
      assert.match(first !== undefined && "detail" in first ? first.detail : "", /more than 256 different xn-- labels/)
    }
  })

  it("is not refused for its xn-- labels if its names share them", () => {
    const shared = labels.slice(0, 28).join(".")
    const refusal = orders([...Array.from({ length: 99 }, (_, at) => `a${at}.${shared}`), "."])
    assert.strictEqual(refusal._tag, "MalformedIdentifier")
  })
})

describe("the cache of labels", () => {
  it("makes a second check of the same names cheap", () => {
    const some = Array.from({ length: 7 }, (_, at) => labels.slice(2900 + at * 28, 2928 + at * 28).join("."))
    const ask = () => orders([...some, "."])
    const [first, second] = [callsOf(ask), callsOf(ask)]
    assert.isAtMost(second * 3, first)
  })
})
