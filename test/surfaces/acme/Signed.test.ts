import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { generateKeyPairSync } from "node:crypto"
import { assert, describe } from "vitest"
import type { Answer, Request } from "../../../src/engine/http/Message.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import type { Nonces } from "../../../src/services/nonce/Nonces.ts"
import type { AcmeKey, FlattenedJws } from "../../support/AcmeSession.ts"
import { signJws } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, count, eventsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  defaultBase,
  freshNonce,
  headerOf,
  posted,
  register,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { foreignCa } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* docs/contribute/decisions/acme-surface.md, "Order of the checks". */

const surface = surfaceOf(configOf())

/** A certificate that was not issued here. A correct request to revoke it is answered 404. */
const nobodys = foreignCa({ name: "Elsewhere" }).certificatePem.replaceAll(/-----[^-]+-----|[\s=]/g, "")
  .replaceAll("+", "-").replaceAll("/", "_")
const key = acmeKey()
const rsaKey = acmeKey(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey)
const absent = "01890a5d-ac96-774b-bcce-b302099a8057"

/** A request in parts. A row of the table may damage any of them. */
interface Draft {
  readonly target: string
  readonly contentType: string
  readonly key: AcmeKey
  readonly header: object
  readonly payload: object | string | undefined
  readonly change: (jws: FlattenedJws) => object
}

type Fault = (good: Draft) => Partial<Draft>

/** The answer to a refused request, and its log record: the event and its reason. */
interface Row {
  readonly name: string
  readonly fault: Fault
  readonly status: number
  readonly type: string | undefined
  readonly logged: readonly [event: string, reason?: string]
  readonly detail?: string
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

// Checks 1 to 7, as every signed resource makes them.
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
    logged: ["jws_signature_invalid"],
    detail: "The signature does not verify."
  },
  {
    name: "a signature with a part of it too short",
    fault: change((jws) => ({
      ...jws,
      signature: Buffer.from(jws.signature, "base64url").subarray(1).toString("base64url")
    })),
    status: 401,
    type: "unauthorized",
    logged: ["jws_signature_invalid"],
    detail: "The signature has 63 octets, and one of ES256 has 64."
  }
]

const ofKid: ReadonlyArray<Row> = [
  rejected("jwk for kid", "key_not_allowed_here", withHeader({ kid: undefined, jwk: key.jwk })),
  ...["", "1", absent.toUpperCase(), `${absent}/`].map((id) =>
    rejected(
      `kid with id ${id}`,
      "kid_foreign",
      withHeader({ kid: `${defaultBase}/acct/${id}` }),
      "accountDoesNotExist"
    )
  ),
  rejected(
    "kid of another profile",
    "kid_foreign",
    withHeader({ kid: `${defaultBase.replace("default", "other")}/acct/${absent}` }),
    "accountDoesNotExist"
  ),
  rejected(
    "kid of another host",
    "kid_foreign",
    withHeader({ kid: `${defaultBase.replace("host", "hose")}/acct/${absent}` }),
    "accountDoesNotExist"
  ),
  ...[at(`/acct/${absent}`), absent, " "].map((kid) =>
    rejected(`kid that is no URL, ${kid}`, "kid_foreign", withHeader({ kid }))
  ),
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

/** Signatures that newAccount refuses and revokeCert does not. */
const ofNewAccount: ReadonlyArray<Row> = [
  // The alg shows that the key cannot sign here. The answer lists the algorithms that are accepted.
  ...([["ES384", "P-384"], ["ES512", "P-521"]] as const).map(([alg, namedCurve]) => {
    const { jwk } = acmeKey(generateKeyPairSync("ec", { namedCurve }).privateKey)
    return rejected(`a ${namedCurve} key`, "algorithm_unsupported", withHeader({ alg, jwk }), "badSignatureAlgorithm")
  }),
  rejected(
    "an Ed25519 key",
    "algorithm_unsupported",
    withHeader({ alg: "EdDSA", jwk: generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }) }),
    "badSignatureAlgorithm"
  ),
  rejected(
    "a P-384 key under another alg",
    "key_unsupported",
    withHeader({ jwk: acmeKey(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey).jwk }),
    "badPublicKey"
  )
]

/** Returns the log of a request without the records about new nonces and found accounts. */
const saidOf = (records: ReadonlyArray<Record>) =>
  // Each refusal also has a record request_refused (Refusals.test.ts).
  records.filter(({ event }) => event !== "request_refused").map(({ event, fields }) =>
    "reason" in fields ? [event, fields["reason"]] : [event]
  )

describe.each(databases)("signed requests on $name", (backend) => {
  const { records, test } = useWorld(backend)

  const handle = (request: Request) => Effect.flatMap(surface, (app) => app.handle(request))

  const isStored = (nonce: string) =>
    Effect.map(count(`SELECT count(*) FROM nonces WHERE value = '${nonce}'`), (rows) => rows === 1)

  const registered = Effect.tap(
    Effect.flatMap(surface, (app) => register(app, key)),
    () => Effect.sync(() => records.splice(0))
  )

  /** Makes a request that is correct in every part. */
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

  const ofAccounts = ["ES256", "RS256"]
  /** The algorithms that revokeCert accepts with a jwk: those of every key that may get certificates. */
  const ofCertificates = ["ES256", "RS256", "ES384", "ES512", "EdDSA", "ML-DSA-44", "ML-DSA-65", "ML-DSA-87"]

  const refused = (answer: Answer, status: number, type: string | undefined, taken = ofAccounts) =>
    Effect.gen(function*() {
      assert.strictEqual(answer.status, status, String(answer.body))
      assert.strictEqual(headerOf(answer, "content-type"), "application/problem+json")
      const problem = bodyOf(answer)
      assert.strictEqual(problem.type, type === undefined ? undefined : `urn:ietf:params:acme:error:${type}`)
      assert.strictEqual(problem.status, status)
      assert.deepStrictEqual(
        problem.algorithms,
        type === "badSignatureAlgorithm" ? taken : undefined
      )
    })

  const atEither = (rows: ReadonlyArray<Row>) => rows.filter(({ logged }) => logged[1] !== "key_not_allowed_here")
  /** At newNonce, the row "url of another resource" has no fault, because its url is that of newNonce. */
  const isFaultAt = (path: string) => ({ name }: Row) => path !== "/newNonce" || name !== "url of another resource"
  const revokeCert = (header: object) => draftOf(at("/revokeCert"), { certificate: nobodys }, header)

  // `taken` is the status of the answer to a correct request.
  describe.each([
    {
      resource: "a kid resource",
      algorithms: ofAccounts,
      taken: 201,
      rows: [...common, ...ofKid],
      good: Effect.flatMap(
        registered,
        (kid) => draftOf(at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }, { kid })
      )
    },
    {
      resource: "a jwk resource",
      algorithms: ofAccounts,
      taken: 201,
      rows: [...common, ...ofJwk, ...ofNewAccount],
      good: draftOf(at("/newAccount"), { termsOfServiceAgreed: true }, { jwk: key.jwk })
    },
    {
      resource: "revokeCert with a kid",
      algorithms: ofAccounts,
      taken: 404,
      rows: atEither([...common, ...ofKid]),
      good: Effect.flatMap(registered, (kid) => revokeCert({ kid }))
    },
    {
      resource: "revokeCert with a jwk",
      taken: 404,
      algorithms: ofCertificates,
      rows: atEither([...common.filter(({ name }) => name !== "alg ES384"), ...ofJwk]),
      good: revokeCert({ jwk: key.jwk })
    },
    ...["/directory", "/newNonce"].flatMap((path) => [
      {
        resource: `${path} with a kid`,
        algorithms: ofAccounts,
        taken: path === "/directory" ? 200 : 204,
        rows: atEither([...common, ...ofKid]).filter(isFaultAt(path)),
        good: Effect.flatMap(registered, (kid) => draftOf(at(path), "", { kid }))
      },
      {
        resource: `${path} with a jwk`,
        algorithms: ofAccounts,
        taken: path === "/directory" ? 200 : 204,
        rows: atEither([...common, ...ofJwk]).filter(isFaultAt(path)),
        good: draftOf(at(path), "", { jwk: key.jwk })
      }
    ])
  ])("$resource", ({ algorithms, good, rows, taken }) => {
    test("accepts a correct request once", () =>
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

    for (const { detail, fault, logged, name, status, type } of rows) {
      test(`refuses ${name} and does not use up the nonce`, () =>
        Effect.gen(function*() {
          const draft = yield* good
          const answer = yield* handle(requestFor({ ...draft, ...fault(draft) }))
          yield* refused(answer, status, type, algorithms)
          assert.deepStrictEqual(saidOf(records), logged[0] === "" ? [] : [[...logged]])
          if (detail !== undefined) assert.strictEqual(bodyOf(answer).detail, detail)
          assert.isTrue(yield* isStored(nonceIn(draft)), "the nonce is still there")
        }))
    }

    const nonces = [
      ["missing", undefined, "nonce_rejected", "missing"],
      ["too short", "AAAA", "nonce_rejected", "unknown"],
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

    test("checks the payload last, when the nonce is already used up", () =>
      Effect.gen(function*() {
        for (const payload of ["", "[]", "{", "{\"identifiers\":1,\"contact\":1,\"certificate\":1}"]) {
          const draft = yield* good
          if (payload === draft.payload) continue // This is a POST-as-GET.
          yield* refused(yield* handle(requestFor({ ...draft, payload })), 400, "malformed")
          assert.isFalse(yield* isStored(nonceIn(draft)))
        }
      }))
  })

  // The request has all faults at first, and then one fewer each time, in the order of the table. The first fault that
  // remains decides the answer.
  test("are checked in the order of the table", () =>
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

  test("cannot use an account at another profile, even with a nonce that the account uses at the same time", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const sent = (target: string, nonce: string) => {
        const header = { kid: kid.replace("default", target.split("/")[2] ?? ""), url: urlOf(target), nonce }
        return handle(posted(target, signed(key, header, { identifiers: [{ type: "dns", value: "a.example" }] })))
      }
      yield* sent(at("/newOrder"), yield* freshNonce) // From here on, this process knows the key.
      const shared = yield* freshNonce
      // The second and the third request come while the nonce of the first is being used up, so they form one batch.
      const answers = yield* Effect.all([
        sent(at("/newOrder"), yield* freshNonce),
        sent("/profile/other/newOrder", shared),
        sent(at("/newOrder"), shared)
      ], { concurrency: "unbounded" })
      const foreign = answers[1]
      assert.strictEqual(bodyOf(foreign).type?.split(":").at(-1), "accountDoesNotExist", String(foreign.body))
      assert.deepStrictEqual(answers.map(({ status }) => status), [201, 400, 201])
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE profile = 'other'"), 0)
    }))

  test("may use a nonce that was made for another profile", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const nonce = headerOf(yield* app.handle(requestOf("HEAD", at("/newNonce"))), "replay-nonce")
      const target = "/profile/other/newAccount"
      const header = { jwk: key.jwk, url: urlOf(target), nonce }
      assert.strictEqual((yield* handle(posted(target, signed(key, header, {})))).status, 201)
    }))

  test("may have a member twice in the header or the payload, and the last one counts", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const target = targetOf(kid)
      const send = (members: string, payload: string) =>
        Effect.flatMap(freshNonce, (nonce) => {
          const header = `{"alg":"none",${members}"nonce":"${nonce}","url":"${urlOf(target)}","alg":"ES256"}`
          return handle(posted(target, JSON.stringify(signJws(key, header, payload))))
        })
      const good = `"kid":"${defaultBase}/acct/${absent}","kid":"${kid}",`
      assert.strictEqual((yield* send(good, `{"contact":["tel:1"],"contact":["mailto:a@b.example"]}`)).status, 200)
      yield* refused(
        yield* send(good, `{"contact":["mailto:c@d.example"],"contact":["tel:1"]}`),
        400,
        "unsupportedContact"
      )
      assert.strictEqual((yield* send(good, `{"status":"deactivated","status":"valid"}`)).status, 200)
      yield* refused(yield* send(good, `{"status":"valid","status":"revoked"}`), 400, "malformed")
      const bad = `"kid":"${kid}","kid":"${defaultBase}/acct/${absent}",`
      yield* refused(yield* send(bad, ""), 400, "accountDoesNotExist")
      const rows = yield* sql("SELECT status, contact FROM accounts")
      assert.deepStrictEqual(rows.map(({ status }) => status), ["valid"])
      assert.include(JSON.stringify(rows), "mailto:a@b.example")
    }))

  test("may have private members in the jwk, which are neither stored nor logged", () =>
    Effect.gen(function*() {
      for (const { privateKey, ...one } of [key, rsaKey]) {
        const { d = "", kty, p, ...rest } = privateKey.export({ format: "jwk" })
        const jwk = { use: "sig", d, ...rest, ...(p === undefined ? {} : { p }), kid: "mine", kty }
        const draft = yield* draftOf(at("/newAccount"), {}, { jwk })
        const answer = yield* handle(requestFor({ ...draft, key: { privateKey, ...one } }))
        assert.strictEqual(answer.status, 201, String(answer.body))
        const stored = JSON.stringify([yield* sql("SELECT * FROM accounts"), records])
        for (const secret of [d, p ?? d]) {
          assert.notInclude(stored, secret)
          assert.notInclude(stored, JSON.stringify([...Buffer.from(secret, "base64url")]).slice(1, -1))
          assert.notInclude(String(answer.body), secret)
        }
        const plain = yield* draftOf(at("/newAccount"), {}, { jwk: one.jwk })
        const again = yield* handle(requestFor({ ...plain, key: { privateKey, ...one } }))
        assert.strictEqual(headerOf(again, "location"), headerOf(answer, "location"))
      }
    }))

  test("are refused if the url is another spelling of the same URL, whatever the Host header says", () =>
    Effect.gen(function*() {
      const app = yield* surfaceOf(configOf(`[server]\nbase_url = "https://acme.example"`))
      const path = at("/newAccount")
      const send = (url: string, headers = {}) =>
        Effect.flatMap(
          freshNonce,
          (nonce) =>
            Effect.flatMap(
              app.handle(posted(path, signed(key, { jwk: key.jwk, url, nonce }, {}), headers)),
              (answer) => Effect.map(isStored(nonce), (unspent) => ({ answer, unspent }))
            )
        )
      const others = [
        `http://acme.example${path}`,
        `HTTPS://acme.example${path}`,
        `https://ACME.example${path}`,
        `https://acme.example:443${path}`,
        `https://acme.example.${path}`,
        `https://user@acme.example${path}`,
        `https://acme.example/${path}`,
        `https://acme.example${path}/`,
        `https://acme.example${path}?`,
        `https://acme.example${path}#`
      ]
      for (const url of others) {
        const { answer, unspent } = yield* send(url)
        yield* refused(answer, 400, "malformed")
        assert.isTrue(unspent, url)
      }
      const forged = { "host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil.example" }
      yield* refused((yield* send(`https://evil.example${path}`, forged)).answer, 400, "malformed")
      assert.strictEqual((yield* send(`https://acme.example${path}`, forged)).answer.status, 201)
    }))

  test("are unauthorized at every URL after the account was deactivated", () =>
    Effect.gen(function*() {
      const kid = yield* registered
      const app = yield* surface
      const placed = yield* draftOf(at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }, { kid })
      const order = targetOf(headerOf(yield* app.handle(requestFor(placed)), "location"))
      const gone = yield* draftOf(targetOf(kid), { status: "deactivated" }, { kid })
      assert.strictEqual((yield* handle(requestFor(gone))).status, 200)
      const wanted: ReadonlyArray<readonly [target: string, payload?: object]> = [
        [at("/directory")],
        [at("/newNonce")],
        [at("/newOrder"), { identifiers: [{ type: "dns", value: "a.example" }] }],
        [at("/keyChange"), {}],
        [targetOf(kid)],
        [targetOf(kid), { contact: [] }],
        [targetOf(kid), { status: "deactivated" }],
        [`${targetOf(kid)}/orders`],
        [order],
        [`${order}/finalize`, { csr: "" }],
        [order.replace("/order/", "/certificate/")],
        [at(`/authz/${absent}`)],
        [at(`/chall/${absent}`), {}]
      ]
      for (const [target, payload] of wanted) {
        const answer = yield* handle(requestFor(yield* draftOf(target, payload, { kid })))
        yield* refused(answer, 401, "unauthorized")
      }
      for (const payload of [{}, { onlyReturnExisting: true }]) {
        const again = yield* draftOf(at("/newAccount"), payload, { jwk: key.jwk })
        yield* refused(yield* handle(requestFor(again)), 401, "unauthorized")
      }
      // A deactivated account may still revoke, because the certificate alone decides this request.
      const revoking = yield* draftOf(at("/revokeCert"), { certificate: "AAAA" }, { kid })
      yield* refused(yield* handle(requestFor(revoking)), 400, "malformed")
    }))

  test("use up the nonce before the account is checked", () =>
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

  test("are refused if the resource does not allow their kind of payload", () =>
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
