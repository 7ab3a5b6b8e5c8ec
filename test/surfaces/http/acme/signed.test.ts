import { it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import type { Scope } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { assert, describe } from "vitest"
import type { Database } from "../../../../src/subsystems/db/Database.ts"
import type { Record } from "../../../../src/subsystems/log/EventLog.ts"
import type { Nonces } from "../../../../src/subsystems/nonce/Nonces.ts"
import type { Answer, Request } from "../../../../src/surfaces/http/Message.ts"
import type { AcmeKey, FlattenedJws } from "../../../support/AcmeSession.ts"
import { databases } from "../../../support/Databases.ts"
import type { World } from "../../../support/Graph.ts"
import { configOf, count, eventsOf, sql, useDatabase, world } from "../../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  defaultBase,
  freshNonce,
  headerOf,
  posted,
  register,
  signed,
  surfaceOf,
  urlOf
} from "../../../support/Handle.ts"
import { foreignCa } from "../../../support/LocalCa.ts"

/* The specification's table "JWS checks, in this order". */

const surface = surfaceOf(configOf())

/** A certificate nobody here was issued: a request for its revocation that is right is answered 404. */
const nobodys = foreignCa({ name: "Elsewhere" }).certificatePem.replaceAll(/-----[^-]+-----|[\s=]/g, "")
  .replaceAll("+", "-").replaceAll("/", "_")
const key = acmeKey()
const rsaKey = acmeKey(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey)
const absent = "01890a5d-ac96-774b-bcce-b302099a8057"

/** A request in parts, each of which a row of the table may spoil. */
interface Draft {
  readonly target: string
  readonly contentType: string
  readonly key: AcmeKey
  readonly header: object
  readonly payload: object | string | undefined
  readonly change: (jws: FlattenedJws) => object
}

type Fault = (good: Draft) => Partial<Draft>

/** What a refused request is answered, and what the log says of it: the event and its reason. */
interface Row {
  readonly name: string
  readonly fault: Fault
  readonly status: number
  readonly type: string | undefined
  readonly logged: readonly [event: string, reason?: string]
}

const bodyFor = ({ change, header, key, payload }: Draft): string =>
  JSON.stringify(change(JSON.parse(signed(key, header, payload)) as FlattenedJws))

const requestFor = (draft: Draft): Request =>
  posted(draft.target, bodyFor(draft), { "content-type": draft.contentType })

const targetOf = (url: string): string => url.slice(urlOf("").length)
const withHeader = (members: object): Fault => ({ header }) => ({ header: { ...header, ...members } })
const change = (spoil: Draft["change"]): Fault => () => ({ change: spoil })
const flipped = change((jws) => ({
  ...jws,
  signature: `${jws.signature[0] === "A" ? "B" : "A"}${jws.signature.slice(1)}`
}))

const rejected = (name: string, reason: string, fault: Fault, type = "malformed", status = 400): Row => ({
  name,
  fault,
  status,
  type,
  logged: ["jws_rejected", reason]
})

const algorithms = ["none", "HS256", "ES384", "PS256", "es256", ""]

// Checks 1 to 7 as every signed resource makes them.
const common: ReadonlyArray<Row> = [
  { ...rejected("media type", "content_type", () => ({ contentType: "application/json" }), "", 415), type: undefined },
  rejected("an unprotected header", "undecodable", change((jws) => ({ ...jws, header: {} }))),
  rejected("a signatures member", "undecodable", change((jws) => ({ ...jws, signatures: [] }))),
  rejected("padding", "undecodable", change((jws) => ({ ...jws, payload: `${jws.payload}=` }))),
  rejected("no protected header", "undecodable", change(({ payload, signature }) => ({ payload, signature }))),
  rejected("a protected header that is no object", "undecodable", change((jws) => ({ ...jws, protected: "W10" }))),
  rejected("a nonce that is not base64url", "undecodable", withHeader({ nonce: "no nonce" })),
  rejected("a nonce that is no text", "undecodable", withHeader({ nonce: 1 })),
  rejected("crit", "crit_present", withHeader({ crit: ["exp"] })),
  rejected("crit null", "crit_present", withHeader({ crit: null })),
  rejected("no url", "url_mismatch", withHeader({ url: undefined })),
  rejected("url of another resource", "url_mismatch", withHeader({ url: `${defaultBase}/newNonce` })),
  rejected("url of another profile", "url_mismatch", ({ header, target }) => ({
    header: { ...header, url: urlOf(target.replace("default", "other")) }
  })),
  rejected("url without the query", "url_mismatch", ({ target }) => ({ target: `${target}?a=b` })),
  rejected("jwk and kid", "key_and_kid", withHeader({ jwk: key.jwk, kid: `${defaultBase}/acct/${absent}` })),
  rejected("neither jwk nor kid", "key_or_kid_missing", withHeader({ jwk: undefined, kid: undefined })),
  ...algorithms.map((alg) =>
    rejected(`alg ${alg}`, "algorithm_unsupported", withHeader({ alg }), "badSignatureAlgorithm")
  ),
  rejected("no alg", "algorithm_unsupported", withHeader({ alg: undefined }), "badSignatureAlgorithm"),
  rejected("alg of another key", "algorithm_mismatch", withHeader({ alg: "RS256" }), "badSignatureAlgorithm"),
  { name: "the signature", fault: flipped, status: 401, type: "unauthorized", logged: ["jws_signature_invalid"] },
  {
    name: "the signature of another key",
    fault: () => ({ key: acmeKey() }),
    status: 401,
    type: "unauthorized",
    logged: ["jws_signature_invalid"]
  }
]

const ofKid: ReadonlyArray<Row> = [
  rejected("jwk for kid", "key_not_allowed_here", withHeader({ kid: undefined, jwk: key.jwk })),
  ...["", "1", absent.toUpperCase(), `${absent}/`].map((id) =>
    rejected(`kid with id ${id}`, "kid_foreign", withHeader({ kid: `${defaultBase}/acct/${id}` }))
  ),
  rejected(
    "kid of another profile",
    "kid_foreign",
    withHeader({ kid: `${defaultBase.replace("default", "other")}/acct/${absent}` })
  ),
  rejected(
    "kid of another host",
    "kid_foreign",
    withHeader({ kid: `${defaultBase.replace("host", "hose")}/acct/${absent}` })
  ),
  rejected("kid relative", "kid_foreign", withHeader({ kid: at(`/acct/${absent}`) })),
  {
    name: "kid without an account",
    fault: withHeader({ kid: `${defaultBase}/acct/${absent}` }),
    status: 400,
    type: "accountDoesNotExist",
    logged: [""]
  }
]

const ofJwk: ReadonlyArray<Row> = [
  rejected(
    "kid for jwk",
    "key_not_allowed_here",
    withHeader({ jwk: undefined, kid: `${defaultBase}/acct/${absent}` })
  ),
  rejected(
    "a point off the curve",
    "key_unsupported",
    withHeader({ jwk: { ...key.jwk, y: key.jwk.x } }),
    "badPublicKey"
  ),
  rejected("a key type of no kind", "key_unsupported", withHeader({ jwk: {} }), "badPublicKey"),
  rejected("a jwk of the other type", "algorithm_mismatch", withHeader({ jwk: rsaKey.jwk }), "badSignatureAlgorithm")
]

/** The log of a request without what is said of nonces made and accounts found. */
const saidOf = (records: ReadonlyArray<Record>) =>
  records.map(({ event, fields }) => "reason" in fields ? [event, fields["reason"]] : [event])

describe.each(databases)("signed requests on $name", (backend) => {
  const database = useDatabase(backend)
  const records: Array<Record> = []
  const test = (name: string, body: () => Effect.Effect<void, unknown, Database | World | Scope.Scope>) =>
    it.scoped(name, () =>
      Effect.suspend(() => {
        records.length = 0
        return body()
      }).pipe(Effect.provide(world({ records, seed: name })), (self) => database.use(self)))

  const handle = (request: Request) => Effect.flatMap(surface, (app) => app.handle(request))

  const isStored = (nonce: string) =>
    Effect.map(count(`SELECT count(*) FROM nonces WHERE value = '${nonce}'`), (rows) => rows === 1)

  const registered = Effect.tap(
    Effect.flatMap(surface, (app) => register(app, key)),
    () => Effect.sync(() => records.splice(0))
  )

  /** A request that is right in everything. */
  const draftOf = (target: string, payload: Draft["payload"], header: object): Effect.Effect<Draft, never, Nonces> =>
    Effect.map(freshNonce, (nonce) => ({
      target,
      contentType: "application/jose+json",
      key,
      header: { nonce, url: urlOf(target), ...header },
      payload,
      change: (jws) => jws
    }))

  const nonceIn = ({ header }: Draft): string => "nonce" in header ? String(header.nonce) : ""

  const refused = (answer: Answer, status: number, type: string | undefined) =>
    Effect.gen(function*() {
      assert.strictEqual(answer.status, status, String(answer.body))
      assert.strictEqual(headerOf(answer, "content-type"), "application/problem+json")
      const problem = bodyOf(answer)
      assert.strictEqual(problem.type, type === undefined ? undefined : `urn:ietf:params:acme:error:${type}`)
      assert.strictEqual(problem.status, status)
      assert.deepStrictEqual(
        problem.algorithms,
        type === "badSignatureAlgorithm" ? ["ES256", "RS256"] : undefined
      )
    })

  const atEither = (rows: ReadonlyArray<Row>) => rows.filter(({ logged }) => logged[1] !== "key_not_allowed_here")
  const revokeCert = (header: object) => draftOf(at("/revokeCert"), { certificate: nobodys }, header)

  // What is right in everything is answered with this status.
  describe.each([
    {
      resource: "a kid resource",
      taken: 201,
      rows: [...common, ...ofKid],
      good: Effect.flatMap(
        registered,
        (kid) => draftOf(at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }, { kid })
      )
    },
    {
      resource: "a jwk resource",
      taken: 201,
      rows: [...common, ...ofJwk],
      good: draftOf(at("/newAccount"), { termsOfServiceAgreed: true }, { jwk: key.jwk })
    },
    {
      resource: "revokeCert with a kid",
      taken: 404,
      rows: atEither([...common, ...ofKid]),
      good: Effect.flatMap(registered, (kid) => revokeCert({ kid }))
    },
    {
      resource: "revokeCert with a jwk",
      taken: 404,
      rows: atEither([...common, ...ofJwk]),
      good: revokeCert({ jwk: key.jwk })
    }
  ])("$resource", ({ good, rows, taken }) => {
    test("takes what is right, once", () =>
      Effect.gen(function*() {
        const draft = yield* good
        const answer = yield* handle(requestFor(draft))
        assert.strictEqual(answer.status, taken, String(answer.body))
        assert.isFalse(yield* isStored(nonceIn(draft)))
        records.length = 0
        const again = yield* handle(requestFor(draft))
        yield* refused(again, 400, "badNonce")
        assert.notStrictEqual(headerOf(again, "replay-nonce"), headerOf(answer, "replay-nonce"))
        assert.deepStrictEqual(eventsOf(records), ["nonce_replayed"])
      }))

    for (const { fault, logged, name, status, type } of rows) {
      test(`refuses ${name} and leaves the nonce`, () =>
        Effect.gen(function*() {
          const draft = yield* good
          yield* refused(yield* handle(requestFor({ ...draft, ...fault(draft) })), status, type)
          assert.deepStrictEqual(saidOf(records), logged[0] === "" ? [] : [[...logged]])
          assert.isTrue(yield* isStored(nonceIn(draft)), "the nonce is still there")
        }))
    }

    const nonces = [
      ["missing", undefined, "nonce_rejected", "missing"],
      ["of a form not ours", "AAAA", "nonce_rejected", "unknown"],
      ["unknown", Buffer.alloc(32).toString("base64url"), "nonce_replayed"]
    ] as const
    for (const [name, nonce, ...logged] of nonces) {
      test(`refuses a nonce that is ${name}`, () =>
        Effect.gen(function*() {
          const draft = yield* good
          const header = { ...draft.header, nonce }
          yield* refused(yield* handle(requestFor({ ...draft, header })), 400, "badNonce")
          assert.deepStrictEqual(saidOf(records), [[...logged]])
        }))
    }

    test("refuses an expired nonce", () =>
      Effect.gen(function*() {
        const draft = yield* good
        yield* TestClock.adjust("301 seconds")
        yield* refused(yield* handle(requestFor(draft)), 400, "badNonce")
        assert.deepStrictEqual(saidOf(records), [["nonce_rejected", "expired"]])
      }))

    test("a payload is read last, the nonce being spent by then", () =>
      Effect.gen(function*() {
        for (const payload of ["", "[]", "{", "{\"identifiers\":1,\"contact\":1,\"certificate\":1}"]) {
          const draft = yield* good
          yield* refused(yield* handle(requestFor({ ...draft, payload })), 400, "malformed")
          assert.isFalse(yield* isStored(nonceIn(draft)))
        }
      }))
  })

  // Every fault at once, then one less each time from the front: whatever comes first is what is answered.
  test("the checks are made in the order of the table", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      const draft = yield* draftOf(at("/newOrder"), { identifiers: [] }, { kid })
      const payload: Row = {
        name: "the account, before the payload",
        fault: () => ({ payload: "[" }),
        status: 401,
        type: "unauthorized",
        logged: ["account_request_refused", "deactivated"]
      }
      const nonce: Row = {
        name: "the nonce",
        fault: withHeader({ nonce: "AAAA" }),
        status: 400,
        type: "badNonce",
        logged: ["nonce_rejected", "unknown"]
      }
      const names = [
        "media type",
        "an unprotected header",
        "crit",
        "url of another resource",
        "jwk and kid",
        "kid of another profile",
        "kid without an account",
        "alg ES384",
        "alg of another key",
        "the signature of another key"
      ]
      const order = [
        ...names.map((name) =>
          [...common, ...ofKid].find((row) => row.name === name) ?? assert.fail(`there is no row ${name}`)
        ),
        nonce,
        payload
      ]
      for (const [first, { logged, name, status, type }] of order.entries()) {
        records.length = 0
        const spoilt = order.slice(first).reduceRight((one, { fault }) => ({ ...one, ...fault(one) }), draft)
        const answer = yield* handle(requestFor(spoilt))
        assert.deepStrictEqual([answer.status, bodyOf(answer).type?.split(":").at(-1)], [status, type], name)
        assert.deepStrictEqual(saidOf(records), logged[0] === "" ? [] : [[...logged]], name)
      }
    }))

  test("the nonce is spent before the account is judged", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      for (const status of ["deactivated", "revoked"]) {
        yield* sql(`UPDATE accounts SET status = '${status}'`)
        for (
          const [target, payload, header] of [
            [targetOf(kid), undefined, { kid }],
            [at("/newAccount"), { onlyReturnExisting: true }, { jwk: key.jwk }]
          ] as const
        ) {
          records.length = 0
          const draft = yield* draftOf(target, payload, header)
          yield* refused(yield* handle(requestFor(draft)), 401, "unauthorized")
          assert.isFalse(yield* isStored(nonceIn(draft)))
          assert.deepStrictEqual(saidOf(records), [["account_request_refused", status]])
        }
      }
    }))

  test("POST-as-GET takes no payload, the trigger any object, the account none or an object", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const tryWith = (target: string, payload: Draft["payload"]) =>
        Effect.flatMap(draftOf(target, payload, { kid }), (draft) => handle(requestFor(draft)))
      for (const path of ["/directory", "/newNonce", `/order/${absent}`, `/certificate/${absent}`]) {
        records.length = 0
        yield* refused(yield* tryWith(at(path), "{}"), 400, "malformed")
        assert.deepStrictEqual(saidOf(records), [["jws_rejected", "payload_not_empty"]], path)
      }
      assert.strictEqual((yield* tryWith(at("/directory"), "")).status, 200)
      const nonce = yield* tryWith(at("/newNonce"), undefined)
      assert.strictEqual(nonce.status, 204)
      assert.strictEqual((yield* tryWith(targetOf(kid), undefined)).status, 200)
      assert.strictEqual((yield* tryWith(targetOf(kid), {})).status, 200)
      yield* refused(yield* tryWith(targetOf(kid), "[]"), 400, "malformed")
      yield* refused(yield* tryWith(at(`/chall/${absent}`), "[]"), 400, "malformed")
      yield* refused(yield* tryWith(at(`/chall/${absent}`), { some: "thing" }), 404, "malformed")
      yield* refused(yield* tryWith(at(`/authz/${absent}`), { status: "valid" }), 400, "malformed")
    }))
})
