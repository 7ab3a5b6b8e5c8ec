import { Effect } from "effect"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import type { FlattenedJws } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, count, profileOf } from "../../support/Graph.ts"
import { acmeKey, at, bodyOf, freshNonce, newClient, posted, signed, surfaceOf, urlOf } from "../../support/Handle.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * Some encoders write an optional member without a value as null or as an empty text instead of leaving it out. These
 * tests send such members, and also wrong values of the same members.
 */

const none: ReadonlyArray<unknown> = [
  null,
  "",
  "0001-01-01T00:00:00Z",
  "0001-01-01T00:00:00.000Z",
  "0001-01-01T00:00:00",
  "0001-01-01T01:00:00+01:00",
  "0000-12-31T18:09:24-05:50"
]

/** Values that no encoder writes for an absent member. */
const wrong: ReadonlyArray<unknown> = [" ", "0001-01-01", "null", 0, false, {}, [null]]

const config = configOf()
const surface = surfaceOf(config)
const identifiers = [{ type: "dns", value: "a.example" }]
const newOrder = urlOf(at("/newOrder"))

const objectOf = ({ body }: Answer): object => JSON.parse(String(body)) as object
const detailOf = (answer: Answer): string => bodyOf(answer).detail ?? ""
const shown = (value: unknown): string => JSON.stringify(value)

describe.each(databases)("members of requests, on $name", (backend) => {
  const { test } = useWorld(backend, {
    first: () => Effect.flatMap(surface, newClient)
  })

  const newAccount = Effect.fnUntraced(function*(payload: object, header: object = {}, key = acmeKey()) {
    const target = at("/newAccount")
    const members = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce, ...header }
    return yield* (yield* surface).handle(posted(target, signed(key, members, payload)))
  })

  test("of newAccount count as absent if they are null or empty", () =>
    Effect.gen(function*() {
      for (const member of ["contact", "termsOfServiceAgreed", "onlyReturnExisting", "externalAccountBinding"]) {
        for (const value of none) {
          const answer = yield* newAccount({ [member]: value })
          assert.strictEqual(answer.status, 201, `${member} ${shown(value)}: ${String(answer.body)}`)
          assert.notProperty(bodyOf(answer), "contact")
        }
      }
    }))

  test("of an account update leave the account unchanged if they are null or empty", ({ kid, send }) =>
    Effect.gen(function*() {
      const contact = ["mailto:a@b.example"]
      assert.deepInclude(objectOf(yield* send(kid, { contact })), { contact })
      for (const value of none) {
        for (const payload of [{ contact: value }, { status: value }, { contact: value, status: value }]) {
          const answer = yield* send(kid, payload)
          assert.deepInclude(objectOf(answer), { status: "valid", contact }, shown(payload))
        }
      }
      assert.notProperty(bodyOf(yield* send(kid, { contact: [], status: null })), "contact")
    }))

  test("of newOrder count as absent if they are null or empty", ({ send }) =>
    Effect.gen(function*() {
      const members = ["notBefore", "notAfter", "replaces", "profile"]
      for (const value of none) {
        for (const set of [...members.map((one) => [one]), members]) {
          const payload = { identifiers, ...Object.fromEntries(set.map((member) => [member, value])) }
          const answer = yield* send(newOrder, payload)
          assert.strictEqual(answer.status, 201, `${shown(payload)}: ${String(answer.body)}`)
          assert.doesNotHaveAnyKeys(bodyOf(answer), members)
        }
      }
    }))

  test("with wrong values are named in the detail of the refusal", ({ kid, send }) =>
    Effect.gen(function*() {
      const orders = count("SELECT count(*) FROM orders")
      const before = yield* orders
      const places: ReadonlyArray<readonly [url: string, payload: object, members: ReadonlyArray<string>]> = [
        [kid, {}, ["contact", "status"]],
        [newOrder, { identifiers }, ["notBefore", "notAfter", "replaces", "profile"]],
        [urlOf(at("/revokeCert")), { certificate: "" }, ["reason"]]
      ]
      for (const [url, payload, members] of places) {
        for (const member of members) {
          for (const value of wrong) {
            // 0 is a valid reason, and an array is a valid list of contacts, whose entries are checked.
            if (member === "reason" && value === 0) continue
            const answer = yield* send(url, { ...payload, [member]: value })
            const what = `${member} ${shown(value)}: ${String(answer.body)}`
            assert.strictEqual(answer.status, 400, what)
            assert.include(detailOf(answer), member, what)
          }
        }
      }
      assert.strictEqual(yield* orders, before)
    }))

  test("that are required are reported as missing if they are null or empty", ({ send }) =>
    Effect.gen(function*() {
      const placed = bodyOf(yield* send(newOrder, { identifiers })) as unknown as { authorizations: Array<string> }
      const [authz = ""] = placed.authorizations
      for (const value of [null, ""]) {
        const cases: ReadonlyArray<readonly [url: string, payload: object, member: string]> = [
          [newOrder, { identifiers: value }, "identifiers"],
          [newOrder, { identifiers: [{ type: "dns", value: null }] }, "identifiers[0].value"],
          [newOrder, { identifiers: [{ type: value, value: null }] }, "identifiers[0]"],
          [authz, { status: value }, "status"],
          [urlOf(at("/revokeCert")), { certificate: null, reason: value }, "certificate"]
        ]
        for (const [url, payload, member] of cases) {
          const answer = yield* send(url, payload)
          assert.deepStrictEqual([answer.status, bodyOf(answer).type?.split(":").at(-1)], [400, "malformed"])
          assert.include(detailOf(answer), member, shown(payload))
        }
      }
    }))

  test("of a header count as absent if they are null or empty, except crit", () =>
    Effect.gen(function*() {
      for (const kid of [null, ""]) {
        assert.strictEqual((yield* newAccount({}, { kid })).status, 201, shown(kid))
        assert.strictEqual(bodyOf(yield* newAccount({}, { nonce: kid })).type?.split(":").at(-1), "badNonce")
      }
      for (const crit of [...none, []]) {
        assert.include(detailOf(yield* newAccount({}, { crit })), "crit", shown(crit))
      }
      const key = acmeKey()
      const target = at("/newAccount")
      const header = { jwk: key.jwk, url: urlOf(target), nonce: yield* freshNonce }
      const jws = JSON.parse(signed(key, header, {})) as FlattenedJws
      const body = JSON.stringify({ ...jws, header: null, signatures: null })
      assert.strictEqual((yield* (yield* surface).handle(posted(target, body))).status, 201)
    }))

  test("with a contact are accepted without the blanks around its scheme and address", () =>
    Effect.gen(function*() {
      const contact = ["mailto:ops@example.org"]
      for (const given of ["mailto: ops@example.org", "mailto:ops@example.org ", "  MAILTO:  ops@example.org  "]) {
        const answer = yield* newAccount({ contact: [given] })
        assert.deepInclude(
          objectOf(answer),
          { contact: contact.map((one) => given.includes("M") ? one.replace("mailto", "MAILTO") : one) },
          given
        )
      }
      for (const given of ["mailto:ops@example.org\n", "mailto:\tops@example.org", "mailto:", "mailto: ", " ", ""]) {
        const answer = yield* newAccount({ contact: [given] })
        assert.strictEqual(answer.status, 400, given)
        assert.include(detailOf(answer), "contact[0]", given)
      }
    }))
})

describe.each(databases)("the reason of a revocation, on $name", (backend) => {
  const { test } = useOwnCa(backend)

  test("counts as absent if it is null or empty", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const { key, kid, send } = yield* newClient(app)
      assert.isNotEmpty(kid)
      const caller = yield* callerAt(profileOf(config), accountKeyOf(key.privateKey))
      for (const reason of [null, ""]) {
        const { der } = yield* issueTo(caller, [reason === null ? "a.example" : "b.example"])
        const certificate = Buffer.from(der).toString("base64url")
        const answer = yield* send(urlOf(at("/revokeCert")), { certificate, reason })
        assert.strictEqual(answer.status, 200, String(answer.body))
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revoked_at IS NOT NULL"), 2)
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE revocation_reason IS NOT NULL"), 0)
    }))
})
