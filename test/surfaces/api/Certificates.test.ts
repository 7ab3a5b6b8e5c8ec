import { Effect } from "effect"
import { assert, describe } from "vitest"
import { readStoredChain } from "../../../src/crypto/x509/Chain.ts"
import type { Caller } from "../../../src/operations/Caller.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import * as crls from "../../../src/store/revocation/Crls.ts"
import { mostRevoked } from "../../../src/surfaces/operator/acts/CertificateActs.ts"
import type { Asking } from "../../support/Api.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import type { Held } from "../../support/Asked.ts"
import { databases } from "../../support/Databases.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  newPrivateKey,
  orderOf,
  orderWith,
  profileOf,
  sql
} from "../../support/Graph.ts"
import { keyboard, startsAt } from "../../support/Operators.ts"
import { selfSigned } from "../../support/Shown.ts"

/* The list of certificates, and the revocation of several of them, over the API. */

const custom = "[signer]\nbackend = \"custom\"\ncustom.script_path = \"sign\"\n"
const day = 86_400

/** A certificate as the API lists it. */
interface Listed {
  readonly identifiers: ReadonlyArray<string>
  readonly orderId?: string
  readonly accountId?: string
  readonly accountLabel?: string
  readonly certSerial?: string
  readonly profile?: string
  readonly replacedBy?: string
  readonly revocationReason?: number
  readonly state?: string
}

describe.each(databases)("the certificates of the API on $name", (backend) => {
  const { config, test } = useApi(backend, custom)
  const octets = (id: string) => {
    const hex = id.replaceAll("-", "")
    return backend.dialect === "sqlite" ? `X'${hex}'` : `'${id}'`
  }
  const caller = (profile = "default") =>
    Effect.suspend(() => callerAt(profileOf(config, profile), accountKeyOf(newPrivateKey())))

  /** Makes a certificate that ends in some days. Its serial number is the number of certificates so far. */
  const issued = Effect.fnUntraced(function*(by: Caller, days: number, name: string, set = "") {
    const { cert } = yield* selfSigned(name, startsAt)
    const [count = "0"] = yield* column("SELECT count(*) FROM orders")
    const serial = (Number(count) + 1).toString(16).padStart(2, "0")
    const id = yield* orderWith(
      by,
      `status = 'valid', certificate = '${cert + cert}', cert_serial = '${serial}',
       cert_not_after = ${startsAt + days * day}, created_at = ${startsAt - 1000 + Number(count)}${set}`,
      name
    )
    return { chain: cert + cert, id, serial }
  })

  const listed = (api: Asking, held: Held, query: string) =>
    Effect.map(api.ask(`/api/certificates${query}`, held), ({ json, status, text }) => {
      assert.strictEqual(status, 200, text)
      const items: ReadonlyArray<Listed> = json.items
      assert.strictEqual(json.total, items.length, query)
      return items
    })
  const names = (api: Asking, held: Held, query: string) =>
    Effect.map(listed(api, held, query), (items) => items.map(({ identifiers }) => identifiers[0]?.split(".")[0] ?? ""))

  test("are listed by state, end and name, and in three orders", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "vera", "viewer")
      const [one, other] = [yield* caller(), yield* caller("other")]
      yield* issued(one, 90, "long.a.example")
      yield* issued(one, 5, "soon.a.example")
      yield* issued(other, -1, "gone.b.example")
      yield* issued(other, 60, "lost.b.example", `, revoked_at = ${startsAt}, revocation_reason = 4`)
      yield* issued(one, 40, "mid.a.example")
      yield* orderOf(one, "open.a.example")
      const cases = {
        "": "mid lost gone soon long",
        "?sort=newest": "mid lost gone soon long",
        "?sort=soonest": "gone soon mid lost long",
        "?sort=latest": "long lost mid soon gone",
        "?state=valid": "mid long",
        "?state=valid&sort=latest": "long mid",
        "?state=valid&sort=newest": "mid long",
        "?state=ending": "soon",
        "?state=ended": "gone",
        "?state=revoked": "lost",
        "?state=revoked&sort=soonest": "lost",
        "?profile=other&sort=soonest": "gone lost",
        "?profile=other&state=ended": "gone",
        "?identifierSuffix=a.example": "mid soon long",
        "?identifierSuffix=a.example&state=valid": "mid long",
        "?identifierContains=O": "lost gone soon long",
        "?identifierContains=o&state=ending": "soon",
        "?identifierContains=o&state=revoked": "lost",
        "?certSerial=03": "gone",
        "?certSerial=03&state=valid": "",
        [`?accountId=${one.accountId}`]: "mid soon long",
        [`?accountId=${one.accountId}&state=valid`]: "mid long",
        "?kind=default&state=ending": "soon",
        [`?endsAfter=${iso(5)}&endsBefore=${iso(60)}`]: "soon mid",
        [`?endsAfter=${iso(6)}&state=ending`]: "",
        [`?endsBefore=${iso(5)}`]: "gone"
      }
      for (const [query, expected] of Object.entries(cases)) {
        assert.strictEqual((yield* names(api, held, query)).join(" "), expected, query)
      }
      const page = yield* api.ask("/api/certificates?sort=soonest&limit=2&offset=1", held)
      assert.deepStrictEqual(page.json.items.map((item: { identifiers: Array<string> }) => item.identifiers[0]), [
        "soon.a.example",
        "mid.a.example"
      ])
      assert.strictEqual(page.json.total, 5)
      const [lost] = yield* listed(api, held, "?state=revoked")
      assert.deepInclude({ ...lost }, { state: "revoked", certSerial: "04", revocationReason: 4, profile: "other" })
    }))

  test("refuse filters and orders that do not fit together", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "vera", "viewer")
      for (
        const [query, code, words] of [
          ["?identifier=a&identifierSuffix=b", "conflicting_identifier_filter", "exclude each other"],
          ["?sort=soonest&identifier=a.example", "bad_request", "sort takes soonest only with profile"],
          ["?sort=latest&kind=default", "bad_request", "not with kind."],
          ["?endsAfter=2031-01-02&endsBefore=2031-01-02", "bad_request", "endsBefore takes a time after"],
          ["?state=expired", "invalid_status", "state takes one of valid, ending, ended, revoked"],
          ["?sort=oldest", "invalid_status", "sort takes one of"],
          ["?kind=none", "invalid_status", "kind takes one of"],
          ["?endsAfter=soon", "bad_request", "endsAfter takes"]
        ] as const
      ) {
        const { json, status } = yield* api.ask(`/api/certificates${query}`, held)
        assert.deepStrictEqual([status, json.error], [400, code], query)
        assert.include(json.message, words)
      }
    }))

  test("name the account by its contact or credential, and say what replaces a certificate", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "vera", "viewer")
      const by = yield* caller()
      const bare = yield* issued(by, 5, "a.example")
      const named = () => Effect.map(listed(api, held, "?certSerial=01"), ([item]) => item)
      const before = yield* named()
      assert.deepInclude({ ...before }, { orderId: bare.id, accountId: by.accountId, state: "ending" })
      assert.notProperty(before, "accountLabel")
      assert.notProperty(before, "replacedBy")
      const { credential: { kid } } = yield* eab.create(keyboard, { label: "Web servers", profile: undefined })
      const bound = backend.dialect === "sqlite" ? octets(kid) : `'\\x${kid.replaceAll("-", "")}'`
      yield* sql(`UPDATE accounts SET eab_kid = ${bound} WHERE id = ${octets(by.accountId)}`)
      assert.strictEqual((yield* named())?.accountLabel, "Web servers")
      yield* sql(`UPDATE accounts SET contact = '["mailto:ops@a.example","mailto:b@a.example"]'`)
      const next = yield* issued(by, 80, "a.example")
      const after = yield* named()
      assert.deepInclude({ ...after }, { accountLabel: "ops@a.example", replacedBy: next.id })
    }))

  const revoke = (api: Asking, held: Held, serials: ReadonlyArray<string>, reason?: string) =>
    api.ask("/api/certificates/revoke", { method: "POST", ...held, body: { serials, reason } })

  test("are revoked together by two operators at once, each certificate by one of them", (api) =>
    Effect.gen(function*() {
      const [olga, otto] = [yield* signedIn(api, "olga", "operator"), yield* signedIn(api, "otto", "operator")]
      const by = yield* caller()
      const made = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (number) => issued(by, 60, `n${number}.example`))
      for (const { chain } of made) {
        const issuer = readStoredChain(chain)?.issuerId ?? ""
        yield* crls.insert({ issuer, number: 1, der: Buffer.from("list"), thisUpdate: 0, nextUpdate: 4_102_444_800 })
      }
      const serials = made.map(({ serial }) => serial)
      const [one, other] = yield* Effect.all([revoke(api, olga, serials, "superseded"), revoke(api, otto, serials)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([one.status, other.status], [200, 200], `${one.text} ${other.text}`)
      const done = [...one.json.items, ...other.json.items]
      assert.sameMembers(done.map(({ serial }) => serial), serials)
      assert.isTrue(done.every(({ status }) => status === "revoked"))
      const refused = [...one.json.refused, ...other.json.refused]
      assert.sameMembers(refused.map(({ serial }) => serial), serials)
      assert.isTrue(refused.every(({ error }) => error === "already_revoked"))
      assert.deepStrictEqual(yield* column("SELECT count(*) FROM orders WHERE revoked_at IS NULL"), ["0"])
    }))

  test("are not revoked if a serial number is unknown or wrong, or if there are too many", (api) =>
    Effect.gen(function*() {
      const held = yield* signedIn(api, "olga", "operator")
      yield* issued(yield* caller(), 60, "a.example")
      const many = Array.from({ length: mostRevoked + 1 }, (_, number) => (number + 1).toString(16).padStart(4, "0"))
      for (
        const [serials, words] of [
          [["01", "ff"], "No certificate was revoked."],
          [["01", "xyz"], "which value 2 is not"],
          [[], "serials takes"],
          [many, `serials takes at most ${mostRevoked} values at once, not ${mostRevoked + 1}.`]
        ] as const
      ) {
        const { json, status } = yield* revoke(api, held, serials)
        assert.deepStrictEqual([status, json.error], [400, "bad_request"])
        assert.include(json.message, words)
      }
      assert.deepStrictEqual(yield* column("SELECT count(*) FROM jobs WHERE kind = 'signer_revoke'"), ["0"])
      const queued = yield* revoke(api, held, ["01"])
      assert.deepInclude(queued.json.items[0], { serial: "01", status: "queued" })
    }))
})

/** Returns the time that is some days after the start of the test. */
const iso = (days: number): string => new Date((startsAt + days * day) * 1000).toISOString().replace(".000", "")
