import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import * as LocalCa from "../../../src/services/signing/LocalCa.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { runsOf, seedOf } from "../../support/Fuzz.ts"
import type { World } from "../../support/Graph.ts"
import { column, configOf, count, eventsOf, sql } from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
  byAccount,
  freshNonce,
  headerOf,
  newClient,
  posted,
  requestOf,
  signed,
  surfaceOf,
  urlOf
} from "../../support/Handle.ts"
import { daySeconds, issueRequest, madeAt, settingsIn } from "../../support/LocalCa.ts"
import { useWorld } from "../../support/UseWorld.ts"

/*
 * Renewal information and `replaces` (RFC 9773), with the attacks of docs/contribute/attacks.md, "Renewal information".
 */

const surface = surfaceOf(configOf())
const validity = 604_800

const nobodys = "names no certificate of this account"
const ownSerial = "has the serial of a certificate of this account, but not its authority key identifier"

const base64url = (hex: string): string => Buffer.from(hex, "hex").toString("base64url")

describe.each(databases)("renewal on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: madeAt })

  const literal = (url: string) => {
    const id = url.split("/").at(-1) ?? ""
    return backend.dialect === "sqlite" ? `x'${id.replaceAll("-", "")}'` : `'${id}'`
  }

  const clientAt = (place: typeof surface) =>
    Effect.gen(function*() {
      const { key, kid, send } = yield* Effect.flatMap(place, (app) => newClient(app))
      const order = (names: ReadonlyArray<string>, replaces?: unknown) =>
        send(at("/newOrder"), {
          identifiers: names.map((value) => ({ type: "dns", value })),
          ...(replaces === undefined ? {} : { replaces })
        })
      /** Makes a valid order with a leaf of a separate CA, and returns the leaf and its certID. */
      const certified = Effect.fnUntraced(function*(...names: ReadonlyArray<string>) {
        const url = headerOf(yield* order(names), "location")
        const { issue } = yield* LocalCa.make(settingsIn(freshDirectory()))
        const { chain, notAfter, serial } = yield* issue(issueRequest(names))
        yield* sql(
          `UPDATE orders SET status = 'valid', certificate = '${chain}', cert_serial = '${serial}',
           cert_not_after = ${notAfter} WHERE id = ${literal(url)}`
        )
        // The subjectKeyIdentifier of the issuer: the OID, and an OCTET STRING that contains another one of 20 octets.
        const issuer = new X509Certificate(chain.slice(chain.lastIndexOf("-----BEGIN"))).raw.toString("hex")
        const [, identifier = ""] = /0603551d0e04160414([0-9a-f]{40})/.exec(issuer) ?? []
        return {
          url,
          serial,
          identifier,
          leaf: new X509Certificate(chain),
          certId: `${base64url(identifier)}.${base64url(serial)}`
        }
      })
      return { kid, key, order, certified, send }
    })
  const someone = clientAt(surface)

  const info = (certId: string, profile = "default"): Effect.Effect<Answer, never, Database | World> =>
    Effect.flatMap(surface, (app) => app.handle(requestOf("GET", `/profile/${profile}/renewalInfo/${certId}`)))
  const window = (answer: Answer) => {
    const said = JSON.parse(String(answer.body)) as {
      readonly suggestedWindow: { readonly start: string; readonly end: string }
    }
    const { end, start } = said.suggestedWindow
    return { start: Date.parse(start) / 1000, end: Date.parse(end) / 1000 }
  }

  test("suggests to renew between two thirds and three quarters of a certificate's lifetime", () =>
    Effect.gen(function*() {
      const { certId, leaf } = yield* (yield* someone).certified("a.example")
      const answer = yield* info(certId)
      assert.strictEqual(answer.status, 200)
      const [from, to] = [Date.parse(leaf.validFrom) / 1000, Date.parse(leaf.validTo) / 1000]
      assert.deepStrictEqual(window(answer), {
        start: from + Math.floor((to - from) * 2 / 3),
        end: from + Math.floor((to - from) * 3 / 4)
      })
    }))

  test("tells clients to ask again after about six hours, each at a different time", () =>
    Effect.gen(function*() {
      const { certId } = yield* (yield* someone).certified("a.example")
      const waits = yield* Effect.forEach(Array.from({ length: 200 }), () =>
        Effect.map(info(certId), (answer) => Number(headerOf(answer, "retry-after"))))
      assert.isAtLeast(Math.min(...waits), 17_280)
      assert.isAtMost(Math.max(...waits), 25_920)
      assert.isAbove(Math.max(...waits) - Math.min(...waits), 6000)
    }))

  test("tells clients to ask again when their window begins, if that is sooner than the usual time", () =>
    Effect.gen(function*() {
      const { certId } = yield* (yield* someone).certified("a.example")
      const { start } = window(yield* info(certId))
      yield* TestClock.adjust(`${start - madeAt - 1200} seconds`)
      assert.strictEqual(headerOf(yield* info(certId), "retry-after"), "1200")
      yield* TestClock.adjust("1200 seconds")
      assert.isAtLeast(Number(headerOf(yield* info(certId), "retry-after")), 17_280)
    }))

  test("tells clients to ask again when the window of a campaign begins, with the page that explains it", () =>
    Effect.gen(function*() {
      const { certId, url } = yield* (yield* someone).certified("a.example")
      const noOrder = literal("00000000-0000-0000-0000-000000000000")
      const campaign = literal("01890a5d-ac96-774b-bcce-b302099a8057")
      const inserted = (begunAt: number) =>
        sql(
          `INSERT INTO campaigns (id, state, filter, reason, explanation_url, created_at, actor_kind, revoked_to, filled_to,
             looked_to, filled_at, begun_at, span_seconds)
           VALUES (${campaign}, 'running', '{"key":"rsa"}', 'x', 'https://status.example/', 1, 'cli', ${noOrder}, ${noOrder},
             ${noOrder}, 1, ${begunAt}, 3600)`
        )
      yield* inserted(madeAt + 7200)
      yield* sql(
        `INSERT INTO campaign_certificates (order_id, campaign_id) VALUES (${literal(url)}, ${campaign})`
      )
      const answer = yield* info(certId)
      assert.strictEqual(headerOf(answer, "retry-after"), "7200")
      assert.deepStrictEqual(window(answer), { start: madeAt + 7200, end: madeAt + 10_800 })
      assert.strictEqual(
        (JSON.parse(String(answer.body)) as { readonly explanationURL?: string }).explanationURL,
        "https://status.example/"
      )
      yield* TestClock.adjust("7190 seconds")
      assert.strictEqual(headerOf(yield* info(certId), "retry-after"), "60")
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(Number(headerOf(yield* info(certId), "retry-after")), 17_280)
    }))

  test("suggests a window in the past once a certificate is revoked, so that clients renew at once", () =>
    Effect.gen(function*() {
      const { certId, url } = yield* (yield* someone).certified("a.example")
      yield* sql(`UPDATE orders SET revoked_at = ${madeAt} WHERE id = ${literal(url)}`)
      const answer = yield* info(certId)
      assert.strictEqual(headerOf(answer, "retry-after"), "60")
      assert.deepStrictEqual(window(answer), { start: madeAt - daySeconds, end: madeAt })
    }))

  test("finds a certificate by its serial number with additional leading zeros", () =>
    Effect.gen(function*() {
      const { identifier, serial } = yield* (yield* someone).certified("a.example")
      assert.strictEqual((yield* info(`${base64url(identifier)}.${base64url(`0000${serial}`)}`)).status, 200)
    }))

  test("answers a malformed certID with 400, and an unknown certID with 404", () =>
    Effect.gen(function*() {
      const { certId, identifier, serial } = yield* (yield* someone).certified("a.example")
      const odd = [
        "x",
        ".",
        "a.b.c",
        `${certId}=`,
        `${certId}.`,
        `.${base64url(serial)}`,
        `${base64url(identifier)}.`,
        "a+b.cd"
      ]
      for (const bad of odd) {
        const answer = yield* info(bad)
        assert.deepStrictEqual([answer.status, bodyOf(answer).type], [400, "urn:ietf:params:acme:error:malformed"], bad)
      }
      const missing = [
        [`${base64url(identifier)}.${base64url("4242")}`, "default"],
        [`${base64url("00".repeat(20))}.${base64url(serial)}`, "default"],
        [certId, "other"]
      ] as const
      const answers = yield* Effect.forEach(missing, ([id, profile]) => info(id, profile))
      assert.deepStrictEqual(answers.map(({ status }) => status), [404, 404, 404])
      const details = answers.map((answer) => bodyOf(answer).detail)
      const none = "This profile has issued no such certificate"
      assert.deepStrictEqual(
        details,
        [`${none}.`, `${none}: one with this serial has another authority key identifier.`, `${none}.`]
      )
      const told = records.filter(({ event }) => event === "renewal_info_rejected").map(({ fields }) =>
        fields["reason"]
      )
      assert.deepStrictEqual([...new Set(told)], ["malformed", "unknown", "key_id_mismatch"])
      assert.strictEqual(told.length, odd.length + missing.length)
    }))

  test("gives its information only for GET and HEAD", () =>
    Effect.gen(function*() {
      const { certified, key, kid } = yield* someone
      const { certId } = yield* certified("a.example")
      const app = yield* surface
      const answer = yield* Effect.flatMap(byAccount(key, kid, at(`/renewalInfo/${certId}`)), app.handle)
      assert.deepStrictEqual([answer.status, headerOf(answer, "allow")], [405, "GET, HEAD"])
      assert.strictEqual((yield* app.handle(requestOf("HEAD", at(`/renewalInfo/${certId}`)))).status, 200)
    }))

  test("shows in an order which certificate it replaces, in the canonical spelling", () =>
    Effect.gen(function*() {
      const { certified, order } = yield* someone
      const { certId, identifier, serial } = yield* certified("a.example", "b.example")
      const answer = yield* order(["b.example", "c.example"], `${base64url(identifier)}.${base64url(`00${serial}`)}`)
      assert.strictEqual(answer.status, 201, String(answer.body))
      assert.strictEqual((JSON.parse(String(answer.body)) as { readonly replaces: string }).replaces, certId)
      assert.deepStrictEqual(yield* column("SELECT replaces FROM orders WHERE replaces IS NOT NULL"), [certId])
      const told = records.find(({ event }) => event === "order_replaces_accepted")
      assert.strictEqual(told?.fields["cert_serial"], serial)
    }))

  test("requires that `replaces` name a certificate of the same account that shares a name with the order", () =>
    Effect.gen(function*() {
      const [mine, other] = [yield* someone, yield* someone]
      const { certId, identifier } = yield* mine.certified("a.example")
      const theirs = yield* other.certified("a.example")
      const cases = [
        ["no certID", ["a.example"], "malformed"],
        [`${base64url(identifier)}.${base64url("4242")}`, ["a.example"], "unknown"],
        [`${base64url("11".repeat(20))}.${certId.split(".")[1]}`, ["a.example"], "key_id_mismatch"],
        [`${base64url("11".repeat(20))}.${theirs.certId.split(".")[1]}`, ["a.example"], "key_id_mismatch"],
        [theirs.certId, ["a.example"], "other_account"],
        [certId, ["b.example"], "no_shared_identifier"]
      ] as const
      const before = yield* count("SELECT count(*) FROM orders")
      const faults = ["is no certID: two base64url texts with a dot between them", nobodys, ownSerial, nobodys, nobodys]
      const said: Array<string | undefined> = []
      for (const [replaces, names, reason] of cases) {
        records.length = 0
        const answer = yield* mine.order(names, replaces)
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [400, "urn:ietf:params:acme:error:malformed"],
          reason
        )
        const told = records.find(({ event }) => event === "order_replaces_rejected")
        assert.strictEqual(told?.fields["reason"], reason)
        said.push(bodyOf(answer).detail)
      }
      assert.deepStrictEqual(said.slice(0, faults.length), faults.map((fault) => `The member replaces ${fault}.`))
      assert.strictEqual((yield* mine.order(["a.example"], 7)).status, 400, "a number")
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), before)
    }))

  test("finds the right certificate or none for any certID, both in renewalInfo and in replaces", () =>
    Effect.gen(function*() {
      const { certified, order } = yield* someone
      const { certId, identifier, serial } = yield* certified("a.example")
      const piece = fc.constantFrom("", ".", "=", "AA", "A", "-", "_", "+", "/", "%", "\0", "é", "?", "#", " ")
      const cut = fc.nat({ max: certId.length })
      const cases = fc.sample(
        fc.oneof(
          fc.tuple(cut, cut, piece).map(([from, to, more]) => certId.slice(0, from) + more + certId.slice(to)),
          fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ maxLength: 40 })).map((
            parts
          ) => parts.map((octets) => Buffer.from(octets).toString("base64url")).join(".")),
          fc.nat({ max: 30 }).map((zeros) => `${base64url(identifier)}.${base64url("00".repeat(zeros) + serial)}`),
          fc.fullUnicodeString(),
          fc.nat({ max: 20_000 }).map((length) => `${certId}${"A".repeat(length)}`)
        ),
        { numRuns: runsOf(300), seed: seedOf(9773) }
      )
      const isThis = (text: string): boolean => {
        const [first = "", second = "", ...more] = text.split(".")
        return more.length === 0 && first === base64url(identifier) && /^[\w-]+$/.test(second) &&
          Buffer.from(second, "base64url").toString("base64url") === second &&
          Buffer.from(second, "base64url").toString("hex").replace(/^(?:00)+(?=..)/, "") === serial
      }
      const seen = new Set<string>()
      for (const text of cases) {
        const right = isThis(text)
        const found = yield* info(text)
        const replaced = yield* order(["a.example"], text)
        const said = `${JSON.stringify(text).slice(0, 300)}: ${found.status} ${String(replaced.body)}`
        // In a URL, a question mark ends the certID.
        assert.include(isThis(text.split("?", 1).join("")) ? [200] : [400, 404], found.status, said)
        // An empty member counts as absent.
        assert.include(right ? [201, 409] : text === "" ? [201] : [400], replaced.status, said)
        if (text !== "") seen.add(`${found.status} ${replaced.status}`)
      }
      assert.includeMembers([...seen], ["200 201", "200 409", "400 400", "404 400"])
      assert.deepStrictEqual(records.filter(({ level }) => level === "error"), [])
    }))

  test("accepts only one of 20 simultaneous orders that replace the same certificate", () =>
    Effect.gen(function*() {
      const { certified, order } = yield* someone
      const { certId } = yield* certified("a.example")
      const answers = yield* Effect.all(Array.from({ length: 20 }, () => order(["a.example"], certId)), {
        concurrency: "unbounded"
      })
      const refused = answers.filter(({ status }) => status !== 201)
      assert.strictEqual(refused.length, 19)
      for (const answer of refused) {
        assert.deepStrictEqual(
          [answer.status, bodyOf(answer).type],
          [409, "urn:ietf:params:acme:error:alreadyReplaced"]
        )
      }
      assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE replaces IS NOT NULL"), 1)
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 2, "nothing is left of the rest")
      assert.isFalse(eventsOf(records).includes("db_statement_failed"))
    }))

  test("allows a certificate to be replaced again once the order that was to replace it has failed or expired", () =>
    Effect.gen(function*() {
      const { certified, order, send } = yield* someone
      const { certId } = yield* certified("a.example")
      const first = headerOf(yield* order(["a.example"], certId), "location")
      assert.strictEqual((yield* order(["a.example"], certId)).status, 409)
      yield* sql(`UPDATE orders SET status = 'invalid' WHERE id = ${literal(first)}`)
      const second = headerOf(yield* order(["a.example"], certId), "location")
      yield* TestClock.adjust(validity * 1000)
      assert.strictEqual((yield* order(["a.example"], certId)).status, 201)
      assert.deepStrictEqual(yield* column(`SELECT status FROM orders WHERE id = ${literal(second)}`), ["invalid"])
      for (const failed of [first, second]) {
        const shown = JSON.parse(String((yield* send(failed)).body)) as {
          readonly status: string
          readonly replaces: string
        }
        assert.deepStrictEqual([shown.status, shown.replaces], ["invalid", certId])
      }
    }))

  test("is exempt from the limits up to five times for each certificate", () =>
    Effect.gen(function*() {
      const keys = ["orders_per_account = 2", "names_per_account = 2", "pending_authorizations_per_account = 2"]
      for (const key of keys) {
        const { certified, order } = yield* clientAt(surfaceOf(configOf(`[limits]\n${key}\n`)))
        const [one, other] = [yield* certified("a.example"), yield* certified("b.example")]
        yield* sql("UPDATE authorizations SET status = 'valid'")
        if (key.startsWith("pending")) { for (const name of ["c", "d"]) yield* order([`${name}.example`]) }
        assert.strictEqual((yield* order(["e.example"])).status, 429, key)
        for (let time = 1; time <= 5; time++) {
          assert.strictEqual((yield* order(["a.example"], one.certId)).status, 201, `${key} ${time}`)
          assert.strictEqual((yield* order(["a.example"], one.certId)).status, time < 5 ? 409 : 429)
          yield* sql("UPDATE orders SET status = 'invalid' WHERE replaces IS NOT NULL")
        }
        const refused = yield* order(["a.example"], one.certId)
        assert.include(String(refused.body), "At most 5 orders that replace this certificate are allowed within 3600 s")
        assert.strictEqual((yield* order(["b.example"], other.certId)).status, 201)
        yield* TestClock.adjust("1 hour")
        for (let time = 1; time <= 2; time++) {
          assert.strictEqual((yield* order(["a.example"], one.certId)).status, 201, "the window has passed")
          yield* sql("UPDATE orders SET status = 'invalid' WHERE replaces IS NOT NULL")
        }
        if (key.startsWith("pending")) {
          yield* sql("UPDATE authorizations SET status = 'valid' WHERE identifier LIKE '%c.example%'")
        }
        assert.strictEqual((yield* order(["f.example"])).status, 201, "room that renewals did not take")
        yield* TestClock.adjust("1 hour")
        yield* sql("UPDATE authorizations SET status = 'valid'")
      }
    }))

  test("refuses `replaces` at a profile that did not issue the certificate", () =>
    Effect.gen(function*() {
      const { certified, order } = yield* someone
      const { certId } = yield* certified("a.example")
      const app = yield* surface
      const key = acmeKey()
      const elsewhere = "/profile/other/newAccount"
      const header = { jwk: key.jwk, url: urlOf(elsewhere), nonce: yield* freshNonce }
      const kid = headerOf(yield* app.handle(posted(elsewhere, signed(key, header, {}))), "location")
      const target = "/profile/other/newOrder"
      const payload = { identifiers: [{ type: "dns", value: "a.example" }], replaces: certId }
      assert.strictEqual((yield* Effect.flatMap(byAccount(key, kid, target, payload), app.handle)).status, 400)
      assert.strictEqual((yield* order(["a.example"], certId)).status, 201)
    }))
})
