import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { generateKeyPairSync, randomBytes } from "node:crypto"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { Database, transaction } from "../../../src/engine/sql/Database.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import { holdBinding } from "../../../src/operations/acme/Binding.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import * as deletion from "../../../src/operations/operator/EabDeletion.ts"
import type { AcmeKey, DirectoryBody, FlattenedJws } from "../../support/AcmeSession.ts"
import type { Credential } from "../../support/Binding.ts"
import { bindingOf } from "../../support/Binding.ts"
import { databases } from "../../support/Databases.ts"
import { blindOnce } from "../../support/Faults.ts"
import type { World } from "../../support/Graph.ts"
import { column, configOf, count, eventsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  posted,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * External account binding (RFC 8555 section 7.3.4), with every attack on it that docs/contribute/attacks.md lists
 * under "Accounts".
 */

/** Profiles `default` and `other` require a binding; `open` does not, and `strict` also has terms. */
const config = configOf(`
[eab]
enabled = true
[profiles.open.eab]
enabled = false
[profiles.strict.meta]
terms_of_service = "https://terms.example/"
`)
const surface = surfaceOf(config)
const newAccountAt = (profile: string): string => `/profile/${profile}/newAccount`
const operator = { kind: "cli", id: "tester" } as const
const oneText = "The external account binding does not match an accepted credential."
const nobody = "01234567-89ab-7def-8123-456789abcdef"

describe.each(databases)("external account binding on $name", (backend) => {
  const { database, records, test } = useWorld(backend, {
    around: (body) =>
      Effect.suspend(() => {
        answers.length = 0
        secrets.clear()
        return Effect.andThen(body, nothingTold)
      })
  })
  /** Texts that no record and no answer may contain: secrets in every spelling, and every MAC that was sent. */
  const secrets = new Set<string>()
  const answers: Array<Answer> = []

  const nothingTold = Effect.sync(() => {
    const told = JSON.stringify(records) + answers.map(({ body, headers }) => JSON.stringify([headers, String(body)]))
    for (const secret of secrets) assert.notInclude(told, secret)
  })

  const credential = (profile?: string) =>
    Effect.map(eab.create(operator, { label: "a label", profile }), ({ credential, secret }): Credential => {
      for (const form of ["base64url", "base64", "hex"] as const) secrets.add(Buffer.from(secret).toString(form))
      return { kid: credential.kid, secret }
    })

  const handled = Effect.fnUntraced(function*(request: Parameters<Effect.Success<typeof surface>["handle"]>[0]) {
    const answer = yield* (yield* surface).handle(request)
    answers.push(answer)
    return answer
  })

  /** Sends a newAccount request with members in addition to the agreement; `undefined` removes a member. */
  const newAccount = (key: AcmeKey, payload: object, profile = "default") =>
    Effect.flatMap(freshNonce, (nonce) => {
      const target = newAccountAt(profile)
      const header = { jwk: key.jwk, url: urlOf(target), nonce }
      return handled(posted(target, signed(key, header, { termsOfServiceAgreed: true, ...payload })))
    })

  const correct = (to: Credential, key: AcmeKey, more: Parameters<typeof bindingOf>[3] = {}, profile = "default") => {
    const binding = bindingOf(to, key.jwk, urlOf(newAccountAt(profile)), more)
    secrets.add(binding.signature)
    return binding
  }

  const bound = (to: Credential, key: AcmeKey, profile = "default") =>
    newAccount(key, { externalAccountBinding: correct(to, key, {}, profile) }, profile)

  const kidsOf = Effect.suspend(() =>
    column(
      `SELECT ${backend.dialect === "sqlite" ? "lower(hex(eab_kid))" : "encode(eab_kid, 'hex')"} FROM accounts
       ORDER BY id`
    )
  )
  const stored = ({ kid }: Credential): string => kid.replaceAll("-", "")

  const of = (event: Record["event"]) => records.filter((record) => record.event === event)

  /** Checks that a request is refused for a reason: the answer has a nonce that works, and no account is created. */
  const refused = Effect.fnUntraced(function*(
    answer: Answer,
    [status, type]: readonly [number, string],
    told: { readonly reason: string; readonly kid?: string | undefined }
  ) {
    assert.deepStrictEqual(
      [answer.status, bodyOf(answer).type],
      [status, `urn:ietf:params:acme:error:${type}`],
      String(answer.body)
    )
    const [rejection, ...more] = of("eab_rejected")
    assert.isEmpty(more)
    assert.strictEqual(rejection?.level, "warn")
    assert.deepStrictEqual(rejection?.fields, { kid: undefined, ...told })
    assert.isEmpty(of("eab_verified"))
    // A look-up needs no binding, so it shows only whether the nonce works.
    const [key, target] = [acmeKey(), newAccountAt("default")]
    const nonce = headerOf(answer, "replay-nonce")
    const next = yield* handled(
      posted(target, signed(key, { jwk: key.jwk, url: urlOf(target), nonce }, { onlyReturnExisting: true }))
    )
    assert.strictEqual(bodyOf(next).type, "urn:ietf:params:acme:error:accountDoesNotExist")
  })

  /** Checks that a refusal of newAccount stores no account, and no audit event except `eab_*`. */
  const nothingWritten = Effect.gen(function*() {
    assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
    assert.isEmpty((yield* column("SELECT event FROM audit_log")).filter((event) => !event.startsWith("eab_")))
  })

  interface Attempt {
    readonly to: Credential
    readonly key: AcmeKey
    readonly binding: FlattenedJws
  }
  const flipped = (text: string): string => {
    const bytes = Buffer.from(text, "base64url")
    bytes[31] = (bytes[31] ?? 0) ^ 1
    return bytes.toString("base64url")
  }

  const unauthorized: ReadonlyArray<
    readonly [
      name: string,
      reason: string,
      make: (attempt: Attempt) => Effect.Effect<unknown, unknown, Database | World>,
      kid?: (attempt: Attempt) => string | undefined
    ]
  > = [
    [
      "the MAC of another secret",
      "mac_mismatch",
      ({ key, to }) => Effect.succeed(correct(to, key, { secret: randomBytes(32) }))
    ],
    ...(["HS384", "HS512"] as const).flatMap((
      alg
    ): ReadonlyArray<readonly [string, string, (attempt: Attempt) => Effect.Effect<unknown>]> => [
      [
        `a MAC of HS256 that says ${alg}`,
        "mac_mismatch",
        ({ key, to }) => Effect.succeed(correct(to, key, { header: { alg } }))
      ],
      [
        `a MAC of ${alg} that says HS256`,
        "mac_mismatch",
        ({ key, to }) => Effect.succeed(correct(to, key, { digest: alg === "HS384" ? "sha384" : "sha512" }))
      ]
    ]),
    [
      "a MAC with one changed bit",
      "mac_mismatch",
      ({ binding }) => Effect.succeed({ ...binding, signature: flipped(binding.signature) })
    ],
    [
      "a MAC without its last octet",
      "mac_mismatch",
      ({ binding }) =>
        Effect.succeed({
          ...binding,
          signature: Buffer.from(binding.signature, "base64url").subarray(0, 31).toString("base64url")
        })
    ],
    ["no MAC", "mac_mismatch", ({ binding }) => Effect.succeed({ ...binding, signature: "" })],
    [
      "an unknown kid",
      "unknown_kid",
      ({ key, to }) => Effect.succeed(correct({ ...to, kid: nobody }, key)),
      () => nobody
    ],
    [
      "an unknown kid, with the MAC of 32 zero octets",
      "unknown_kid",
      ({ key }) => Effect.succeed(correct({ kid: nobody, secret: new Uint8Array(32) }, key)),
      () => nobody
    ],
    [
      "the kid in upper case",
      "unknown_kid",
      ({ key, to }) => Effect.succeed(correct(to, key, { header: { kid: to.kid.toUpperCase() } })),
      () => undefined
    ],
    [
      "the secret in place of the kid",
      "unknown_kid",
      ({ key, to }) => {
        const kid = Buffer.from(to.secret).toString("base64url")
        return Effect.succeed(correct(to, key, { header: { kid } }))
      },
      () => undefined
    ],
    [
      "a revoked credential",
      "revoked",
      ({ binding, to }) => Effect.as(eab.revoke(operator, to.kid), binding)
    ],
    [
      "a wrong MAC for a revoked credential",
      "mac_mismatch",
      ({ key, to }) => Effect.as(eab.revoke(operator, to.kid), correct(to, key, { secret: randomBytes(32) }))
    ],
    [
      "a deleted credential",
      "unknown_kid",
      ({ binding, to }) => Effect.as(deletion.remove(operator, to.kid, "keep"), binding)
    ]
  ]
  for (const [name, reason, make, kid = ({ to }: Attempt) => to.kid] of unauthorized) {
    test(`refuses ${name} as unauthorized, with a text that does not reveal the fault`, () =>
      Effect.gen(function*() {
        const [to, key] = [yield* credential(), acmeKey()]
        const attempt = { to, key, binding: correct(to, key) }
        const answer = yield* newAccount(key, { externalAccountBinding: yield* make(attempt) })
        yield* refused(answer, [401, "unauthorized"], { reason, kid: kid(attempt) })
        assert.strictEqual(bodyOf(answer).detail, oneText)
        yield* nothingWritten
      }))
  }

  test("accepts a credential of one profile only at that profile", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential("other"), acmeKey()]
      const answer = yield* bound(to, key)
      yield* refused(answer, [401, "unauthorized"], { reason: "other_profile", kid: to.kid })
      assert.strictEqual(bodyOf(answer).detail, oneText)
      yield* nothingWritten
      assert.strictEqual((yield* bound(to, key, "other")).status, 201)
      assert.deepStrictEqual(yield* column("SELECT profile FROM accounts"), ["other"])
    }))

  const malformed: ReadonlyArray<readonly [string, (attempt: Attempt) => unknown]> = [
    ["alg RS256", ({ key, to }) => correct(to, key, { header: { alg: "RS256" } })],
    ["alg HS1", ({ key, to }) => correct(to, key, { header: { alg: "HS1" } })],
    ["alg hs256", ({ key, to }) => correct(to, key, { header: { alg: "hs256" } })],
    ["alg __proto__", ({ key, to }) => correct(to, key, { header: { alg: "__proto__" } })],
    ["alg none", ({ key, to }) => ({ ...correct(to, key, { header: { alg: "none" } }), signature: "" })],
    ["no alg", ({ key, to }) => correct(to, key, { header: { alg: undefined } })],
    ["the url of newOrder", ({ key, to }) => correct(to, key, { header: { url: urlOf("/profile/default/newOrder") } })],
    ["the url of another profile", ({ key, to }) => correct(to, key, {}, "other")],
    ["no url", ({ key, to }) => correct(to, key, { header: { url: undefined } })],
    ["the key of another account as its payload", ({ key, to }) => {
      const payload = JSON.stringify(acmeKey().jwk)
      return correct(to, key, { payload })
    }],
    ["a binding captured from another key's newAccount", ({ to }) => correct(to, acmeKey())],
    ["a payload that is not a key", ({ key, to }) => correct(to, key, { payload: "{}" })],
    ["a payload that is a symmetric key", ({ key, to }) => correct(to, key, { payload: `{"kty":"oct","k":"AAAA"}` })],
    ["a payload that is not JSON", ({ key, to }) => correct(to, key, { payload: "key" })],
    ["a payload that is an array", ({ key, to }) => correct(to, key, { payload: JSON.stringify([key.jwk]) })],
    ["an empty payload", ({ key, to }) => correct(to, key, { payload: "" })],
    ["a nonce", ({ key, to }) => correct(to, key, { header: { nonce: "AAAA" } })],
    ["a crit", ({ key, to }) => correct(to, key, { header: { crit: ["exp"], exp: 1 } })],
    ["a jwk beside the kid", ({ key, to }) => correct(to, key, { header: { jwk: key.jwk } })],
    ["a jwk in place of the kid", ({ key, to }) => correct(to, key, { header: { jwk: key.jwk, kid: undefined } })],
    ["no kid", ({ key, to }) => correct(to, key, { header: { kid: undefined } })],
    ["a kid that is a number", ({ key, to }) => correct(to, key, { header: { kid: 1 } })],
    ["an empty kid", ({ key, to }) => correct(to, key, { header: { kid: "" } })],
    ["a kid that is null", ({ key, to }) => correct(to, key, { header: { kid: null } })],
    ["a header that is not JSON", ({ key, to }) => correct(to, key, { protectedText: "header" })],
    ["an unprotected header", ({ binding }) => ({ ...binding, header: {} })],
    ["the general form", ({ binding: { payload, ...rest } }) => ({ payload, signatures: [rest] })],
    ["padding", ({ binding }) => ({ ...binding, signature: `${binding.signature}=` })],
    ["no signature", ({ binding: { payload, protected: header } }) => ({ payload, protected: header })],
    ["text", ({ binding }) => `${binding.protected}.${binding.payload}.${binding.signature}`],
    ["true", () => true],
    ["a number", () => 1],
    ["an array", ({ binding }) => [binding]],
    ["an empty object", () => ({})]
  ]
  for (const [name, make] of malformed) {
    test(`refuses ${name} as malformed`, () =>
      Effect.gen(function*() {
        const [to, key] = [yield* credential(), acmeKey()]
        const answer = yield* newAccount(key, { externalAccountBinding: make({ to, key, binding: correct(to, key) }) })
        yield* refused(answer, [400, "malformed"], { reason: "malformed" })
        assert.match(String(bodyOf(answer).detail), /^externalAccountBinding: [a-z]/)
        yield* nothingWritten
      }))
  }

  const rsa = () => acmeKey(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey)
  const accepted: ReadonlyArray<
    readonly [string, (key: AcmeKey) => NonNullable<Parameters<typeof bindingOf>[3]>, (() => AcmeKey)?]
  > = [
    ["a plain payload", () => ({})],
    ["a plain payload of an RSA key", () => ({}), rsa],
    ["a MAC of HS384", () => ({ header: { alg: "HS384" }, digest: "sha384" })],
    ["a MAC of HS512", () => ({ header: { alg: "HS512" }, digest: "sha512" })],
    ["a payload key with extra members", ({ jwk }) => ({
      payload: JSON.stringify({ use: "sig", kid: "mine", ...jwk, alg: "ES256", ext: true, key_ops: ["verify"] })
    })],
    ["a payload key with its members in another order", ({ jwk }) => ({
      payload: JSON.stringify(Object.fromEntries(Object.entries(jwk).toReversed()))
    })],
    ["an RSA payload key with its members in another order", ({ jwk }) => ({
      payload: JSON.stringify(Object.fromEntries(Object.entries(jwk).toReversed()))
    }), rsa],
    ["a payload key with white space", ({ jwk }) => ({ payload: ` ${JSON.stringify(jwk, undefined, 2)}\n` })],
    ["a header with a typ", () => ({ header: { typ: "JWT" } })]
  ]
  for (const [name, more, make = acmeKey] of accepted) {
    test(`accepts ${name} and binds the account`, () =>
      Effect.gen(function*() {
        const [to, key] = [yield* credential(), make()]
        const answer = yield* newAccount(key, { externalAccountBinding: correct(to, key, more(key)) })
        assert.strictEqual(answer.status, 201, String(answer.body))
        assert.deepStrictEqual(yield* kidsOf, [stored(to)])
        assert.notProperty(bodyOf(answer), "externalAccountBinding", "some clients cannot update such an account")
        assert.deepStrictEqual(eventsOf(records).filter((event) => /^(?:eab|account)_/.test(event)), [
          "eab_verified",
          "account_created"
        ])
        const [verified] = of("eab_verified")
        const [id] = yield* column("SELECT id FROM accounts ORDER BY id")
        assert.strictEqual(verified?.level, "info")
        assert.strictEqual(verified?.fields["kid"], to.kid)
        assert.include(headerOf(answer, "location"), String(verified?.fields["account_id"]))
        if (backend.dialect === "postgres") assert.strictEqual(verified?.fields["account_id"], id)
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event <> 'eab_created'"), 0)
      }))
  }

  test("answers a newAccount without a required binding with externalAccountRequired, even if the key has an account", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential(), acmeKey()]
      for (const none of [{}, { externalAccountBinding: null }, { externalAccountBinding: "" }]) {
        records.length = 0
        yield* refused(yield* newAccount(key, none), [403, "externalAccountRequired"], { reason: "missing" })
        yield* nothingWritten
      }
      assert.strictEqual((yield* bound(to, key)).status, 201)
      records.length = 0
      yield* refused(yield* newAccount(key, {}), [403, "externalAccountRequired"], { reason: "missing" })
      assert.notInclude(eventsOf(records), "account_found")
    }))

  test("is not required for onlyReturnExisting", () =>
    Effect.gen(function*() {
      const [to, key, stranger] = [yield* credential(), acmeKey(), acmeKey()]
      const location = headerOf(yield* bound(to, key), "location")
      records.length = 0
      for (const more of [{}, { externalAccountBinding: null }, { externalAccountBinding: correct(to, stranger) }]) {
        const found = yield* newAccount(key, { onlyReturnExisting: true, ...more })
        assert.deepStrictEqual([found.status, headerOf(found, "location")], [200, location])
        const absent = yield* newAccount(stranger, { onlyReturnExisting: true, ...more })
        assert.deepStrictEqual(
          [absent.status, bodyOf(absent).type],
          [400, "urn:ietf:params:acme:error:accountDoesNotExist"]
        )
      }
      assert.notIncludeMembers([...eventsOf(records)], ["eab_verified", "eab_rejected"])
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 1)
    }))

  test("ignores every binding at a profile where it is off", () =>
    Effect.gen(function*() {
      const to = yield* credential()
      const whatever: ReadonlyArray<(key: AcmeKey) => unknown> = [
        () => null,
        () => "text",
        () => [1],
        () => ({}),
        (key) => correct(to, key, { header: { alg: "none" } }, "open"),
        (key) => correct(to, key, { secret: randomBytes(32) }, "open"),
        (key) => correct(to, key, {}, "open")
      ]
      for (const make of whatever) {
        const key = acmeKey()
        const answer = yield* newAccount(key, { externalAccountBinding: make(key) }, "open")
        assert.strictEqual(answer.status, 201, String(answer.body))
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts WHERE eab_kid IS NULL"), whatever.length)
      assert.notIncludeMembers([...eventsOf(records)], ["eab_verified", "eab_rejected"])
    }))

  test("is announced in the directory if it is required", () =>
    Effect.gen(function*() {
      const metaOf = (profile: string) =>
        Effect.map(
          handled(requestOf("GET", `/profile/${profile}/directory`)),
          ({ body }) => (JSON.parse(String(body)) as DirectoryBody).meta
        )
      assert.deepStrictEqual(yield* metaOf("default"), { externalAccountRequired: true })
      assert.deepStrictEqual(yield* metaOf("strict"), {
        externalAccountRequired: true,
        termsOfService: "https://terms.example/"
      })
      assert.deepStrictEqual(yield* metaOf("open"), {})
    }))

  test("binds any number of accounts, at every profile, to one credential", () =>
    Effect.gen(function*() {
      const to = yield* credential()
      for (const profile of ["default", "default", "default", "other"]) {
        assert.strictEqual((yield* bound(to, acmeKey(), profile)).status, 201)
      }
      assert.deepStrictEqual(yield* kidsOf, Array<string>(4).fill(stored(to)))
      assert.strictEqual((yield* eab.find(to.kid)).accounts, 4)
      assert.strictEqual((yield* eab.find(to.kid)).status, "active")
    }))

  test("keeps the first binding of a key that has an account, whichever credential the key sends later", () =>
    Effect.gen(function*() {
      const [first, second, key] = [yield* credential(), yield* credential(), acmeKey()]
      const location = headerOf(yield* bound(first, key), "location")
      yield* sql("UPDATE accounts SET terms_of_service_agreed = NULL")
      records.length = 0
      const contact = ["mailto:changed@corp.example"]
      const externalAccountBinding = correct(second, key)
      const again = yield* newAccount(key, { contact, externalAccountBinding })
      assert.deepStrictEqual([again.status, headerOf(again, "location")], [200, location])
      assert.deepStrictEqual(yield* kidsOf, [stored(first)])
      assert.deepStrictEqual(yield* column("SELECT contact FROM accounts"), ["[]"])
      assert.strictEqual(
        yield* count("SELECT count(*) FROM accounts WHERE terms_of_service_agreed"),
        1,
        "an agreement is recorded all the same"
      )
      const [verified] = of("eab_verified")
      assert.deepStrictEqual(verified?.fields, { kid: second.kid, account_id: location.split("/").at(-1) })
    }))

  test("leaves an account without a credential if the account was created while bindings were off", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential(), acmeKey()]
      assert.strictEqual((yield* newAccount(key, {}, "open")).status, 201)
      yield* sql("UPDATE accounts SET profile = 'default'")
      assert.strictEqual((yield* bound(to, key)).status, 200)
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts WHERE eab_kid IS NULL"), 1)
    }))

  test("leaves bound accounts unchanged when their credential is revoked or deleted", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential(), acmeKey()]
      const kid = headerOf(yield* bound(to, key), "location")
      const order = Effect.flatMap(
        byAccount(key, kid, "/profile/default/newOrder", { identifiers: [{ type: "dns", value: "a.example" }] }),
        handled
      )
      yield* eab.revoke(operator, to.kid)
      assert.strictEqual((yield* order).status, 201)
      records.length = 0
      yield* refused(yield* bound(to, acmeKey()), [401, "unauthorized"], { reason: "revoked", kid: to.kid })
      yield* deletion.remove(operator, to.kid, "keep")
      assert.strictEqual((yield* order).status, 201)
      assert.deepStrictEqual(yield* kidsOf, [stored(to)])
    }))

  test("binds no account to a credential that is revoked after it was checked", () =>
    Effect.gen(function*() {
      const to = yield* credential()
      const entropy = yield* Entropy
      // The id of the account is generated after the binding has been verified.
      const database = yield* Database
      const revoked = Effect.orDie(Effect.provideService(eab.revoke(operator, to.kid), Database, database))
      const uuid = Effect.andThen(revoked, entropy.uuid)
      const answer = yield* Effect.provideService(bound(to, acmeKey()), Entropy, { ...entropy, uuid })
      yield* refused(answer, [401, "unauthorized"], { reason: "revoked", kid: to.kid })
      assert.strictEqual(yield* count("SELECT count(*) FROM accounts"), 0)
    }))

  test("is checked after the terms and the contacts", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential(), acmeKey()]
      const wrong = { contact: ["tel:1"], externalAccountBinding: {}, termsOfServiceAgreed: false }
      const typeOf = (answer: Answer) => [answer.status, bodyOf(answer).type?.split(":").at(-1)]
      const unagreed = yield* newAccount(key, wrong, "strict")
      assert.deepStrictEqual(typeOf(unagreed), [403, "userActionRequired"])
      assert.match(String(bodyOf(unagreed).instance), /^https:/)
      const agreed = { ...wrong, termsOfServiceAgreed: true }
      assert.deepStrictEqual(typeOf(yield* newAccount(key, agreed, "strict")), [400, "unsupportedContact"])
      assert.isEmpty(of("eab_rejected"), "a binding is not looked at before its turn")
      const reachable = { ...agreed, contact: ["mailto:ops@corp.example"] }
      assert.deepStrictEqual(typeOf(yield* newAccount(key, reachable, "strict")), [400, "malformed"])
      assert.strictEqual((yield* bound(to, key, "strict")).status, 201)
    }))

  test("is not checked for a deactivated account, which is refused first", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential(), acmeKey()]
      yield* bound(to, key)
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      records.length = 0
      for (const binding of [correct(to, key), null]) {
        const answer = yield* newAccount(key, { externalAccountBinding: binding })
        assert.deepStrictEqual([answer.status, bodyOf(answer).detail], [401, "The account is deactivated."])
      }
      assert.notIncludeMembers([...eventsOf(records)], ["eab_verified", "eab_rejected"])
    }))

  test("refuses a binding of the old key after the key was rolled over", () =>
    Effect.gen(function*() {
      const [to, key, next] = [yield* credential(), acmeKey(), acmeKey()]
      const kid = headerOf(yield* bound(to, key), "location")
      const target = "/profile/default/keyChange"
      const inner = signed(next, { jwk: next.jwk, url: urlOf(target) }, { account: kid, oldKey: key.jwk })
      assert.strictEqual((yield* Effect.flatMap(byAccount(key, kid, target, inner), handled)).status, 200)
      records.length = 0
      const answer = yield* newAccount(next, { externalAccountBinding: correct(to, key) })
      yield* refused(answer, [400, "malformed"], { reason: "malformed" })
      assert.deepStrictEqual(yield* kidsOf, [stored(to)])
    }))

  test("creates and binds one account when many newAccount requests with one key come at once", () =>
    Effect.gen(function*() {
      const [to, key] = [yield* credential(), acmeKey()]
      const fibers = yield* Effect.forEach(Array.from({ length: 10 }), () => Effect.forkChild(bound(to, key)))
      const statuses = yield* Effect.forEach(fibers, (fiber) => Effect.map(Fiber.join(fiber), ({ status }) => status))
      assert.sameMembers([...statuses], [201, ...Array<number>(9).fill(200)])
      assert.deepStrictEqual(yield* kidsOf, [stored(to)])
      assert.strictEqual(of("eab_verified").length, 10)
    }))

  test("logs the credential of the losing request if two requests insert the same account", () =>
    Effect.gen(function*() {
      const [winning, losing, key] = [yield* credential(), yield* credential(), acmeKey()]
      const location = headerOf(yield* bound(winning, key), "location")
      records.length = 0
      const racing = blindOnce(database.driver(), "FROM accounts WHERE profile")
      const answer = yield* Effect.provideService(bound(losing, key), Database, racing.driver)
      assert.isTrue(racing.wasBlind())
      assert.deepStrictEqual([answer.status, headerOf(answer, "location")], [200, location])
      assert.deepStrictEqual(yield* kidsOf, [stored(winning)])
      assert.deepStrictEqual(of("eab_verified").map(({ fields }) => fields["kid"]), [losing.kid])
    }))

  for (const old of ["team-1", "01890a5d-ac96-774b-bcce-b302099a8057"]) {
    test(`accepts a credential of another server by its old identifier ${old}`, () =>
      Effect.gen(function*() {
        const external = { kid: old, secret: Buffer.alloc(32, 7) }
        const { credential } = yield* eab.create(operator, { label: "moved", profile: undefined, external })
        const answer = yield* bound({ kid: old, secret: external.secret }, acmeKey())
        assert.strictEqual(answer.status, 201, String(answer.body))
        assert.deepStrictEqual(yield* kidsOf, [stored({ kid: credential.kid, secret: external.secret })])
      }))
  }

  test("refuses an identifier that no database can store", () =>
    Effect.gen(function*() {
      for (const kid of ["\u0000", "a".repeat(100_000)]) {
        records.length = 0
        const answer = yield* bound({ kid, secret: Buffer.alloc(32, 7) }, acmeKey())
        yield* refused(answer, [401, "unauthorized"], { reason: "unknown_kid" })
      }
    }))

  if (backend.dialect === "postgres") {
    test("binds no account while another registration may use up what the credential allows", () =>
      Effect.gen(function*() {
        const to = yield* credential()
        yield* eab.setScope(operator, to.kid, { changes: { maxAccounts: 1 }, cleared: [] })
        assert.strictEqual((yield* newAccount(acmeKey(), {}, "open")).status, 201)
        const [held, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const context = yield* Effect.context<World>()
        const first = Effect.gen(function*() {
          assert.isTrue(yield* holdBinding(to.kid, 0))
          yield* Deferred.succeed(held, undefined)
          yield* Deferred.await(go)
          yield* sql(`UPDATE accounts SET eab_kid = '\\x${stored(to)}'`)
        })
        const binding = yield* Effect.forkChild(
          Effect.provideService(Effect.provide(transaction(first), context), Database, yield* database.another)
        )
        yield* Deferred.await(held)
        const second = yield* Effect.forkChild(bound(to, acmeKey()))
        const waiting = count(
          "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        yield* Effect.raceFirst(Effect.repeat(waiting, { until: (found) => found > 0 }), Fiber.await(second))
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(binding)
        assert.strictEqual((yield* Fiber.join(second)).status, 401)
      }))
  }

  test("binds no more accounts than a credential allows, and none after its end, but finds the bound ones", () =>
    Effect.gen(function*() {
      const to = yield* credential()
      yield* eab.setScope(operator, to.kid, { changes: { maxAccounts: 1 }, cleared: [] })
      const key = acmeKey()
      assert.strictEqual((yield* bound(to, key)).status, 201)
      records.length = 0
      const more = yield* bound(to, acmeKey())
      assert.strictEqual(more.status, 401)
      assert.deepStrictEqual(of("eab_rejected").map(({ fields }) => fields["reason"]), ["accounts_exhausted"])
      assert.strictEqual((yield* bound(to, key)).status, 200)
      const end = (yield* currentSeconds) + 60
      yield* eab.setScope(operator, to.kid, { changes: { expiresAt: end }, cleared: ["maxAccounts"] })
      yield* TestClock.adjust("1 minute")
      records.length = 0
      assert.strictEqual((yield* bound(to, acmeKey())).status, 401)
      assert.deepStrictEqual(of("eab_rejected").map(({ fields }) => fields["reason"]), ["expired"])
    }))
})
