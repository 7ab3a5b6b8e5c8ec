import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { generateKeyPairSync, sign } from "node:crypto"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import { shareOfCaller } from "../../../src/operations/Caller.ts"
import * as crl from "../../../src/operations/work/crl/ListPublication.ts"
import * as states from "../../../src/store/ProfileStateRows.ts"
import { algorithms, bitString, csrOf, der, int, openssl, seq, spkiOf } from "../../crypto/Pki.ts"
import type { AcmeKey } from "../../support/AcmeSession.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import {
  accountKeyOf,
  callerAt,
  column,
  configOf,
  count,
  eventsOf,
  newPrivateKey,
  orderOf,
  profileOf,
  sql
} from "../../support/Graph.ts"
import {
  acmeKey,
  at,
  bodyOf,
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
import { issueTo, useOwnCa, work } from "../../support/Issued.ts"
import { daySeconds, foreignCa, madeAt } from "../../support/LocalCa.ts"

/* revokeCert (RFC 8555 section 7.6; docs/reference/protocol.md, "Revocation"), and the attacks on it. */

const config = configOf()
const surface = surfaceOf(config)
const revokeTarget = at("/revokeCert")
const elsewhere = "/profile/other/revokeCert"

/** The way in which a request is signed. */
type Signer = { readonly key: AcmeKey; readonly kid?: string }

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url")

/** Returns the last part of the problem type, or nothing if there is no problem. */
const typeOf = (answer: Answer): string => answer.status === 200 ? "" : bodyOf(answer).type?.split(":").at(-1) ?? ""

const refusal = (answer: Answer) => ({ status: answer.status, type: typeOf(answer), detail: bodyOf(answer).detail })

const absent = { status: 404, type: "malformed", detail: "This profile has issued no such certificate." }

describe.each(databases)("revokeCert on $name", (backend) => {
  const { database, records, test } = useOwnCa(backend)

  /** Makes a new account, and returns it in the form that signed requests need and in the one that operations need. */
  const someone = Effect.fnUntraced(function*(profile = "default") {
    const key = acmeKey()
    const app = yield* surface
    const caller = yield* callerAt(profileOf(config, profile), accountKeyOf(key.privateKey))
    const kid = profile === "default"
      ? yield* register(app, key)
      : urlOf(`/profile/${profile}/acct/${caller.accountId}`)
    return { key, kid, caller }
  })

  /** Makes an account with a certificate, and then empties the log. */
  const holder = Effect.fnUntraced(function*(certificateKey = newPrivateKey()) {
    const account = yield* someone()
    const issued = yield* issueTo(account.caller, ["a.example"], certificateKey)
    records.length = 0
    return { ...account, issued }
  })

  const send = Effect.fnUntraced(function*(signer: Signer, payload: object | string, target = revokeTarget) {
    const app = yield* surface
    const named = signer.kid === undefined ? { jwk: signer.key.jwk } : { kid: signer.kid }
    const header = { ...named, url: urlOf(target), nonce: yield* freshNonce }
    const answer = yield* app.handle(posted(target, signed(signer.key, header, payload)))
    const fresh = headerOf(answer, "replay-nonce")
    assert.strictEqual(yield* count(`SELECT count(*) FROM nonces WHERE value = '${fresh}'`), 1, "a nonce that works")
    if (answer.status !== 200) assert.strictEqual(headerOf(answer, "content-type"), "application/problem+json")
    return answer
  })

  const revoke = (signer: Signer, certificate: Uint8Array, reason?: unknown, target?: string) =>
    send(signer, { certificate: text(certificate), ...(reason === undefined ? {} : { reason }) }, target)

  const stamps = Effect.map(
    sql("SELECT revoked_at, revocation_reason FROM orders WHERE revoked_at IS NOT NULL"),
    (rows) =>
      rows.map(({ revocation_reason, revoked_at }) => [
        Number(revoked_at),
        revocation_reason === null ? undefined : Number(revocation_reason)
      ])
  )

  const rows = Effect.map(
    sql("SELECT serial, revoked_at, reason, not_after FROM revocations ORDER BY serial"),
    (found) =>
      found.map(({ not_after, reason, revoked_at, serial }) => ({
        serial,
        revokedAt: Number(revoked_at),
        reason: reason === null ? undefined : Number(reason),
        notAfter: not_after === null ? undefined : Number(not_after)
      }))
  )

  const liveJobs = count(
    "SELECT count(*) FROM jobs WHERE kind = 'local_ca_crl_regenerate' AND status IN ('ready', 'running')"
  )

  const nothingRevoked = Effect.gen(function*() {
    assert.deepStrictEqual(yield* stamps, [])
    assert.deepStrictEqual(yield* rows, [])
    assert.strictEqual(yield* liveJobs, 0)
  })

  const listText = Effect.gen(function*() {
    const app = yield* surface
    const answer = yield* app.handle(requestOf("GET", at("/crl")))
    assert.strictEqual(answer.status, 200)
    return openssl(["crl", "-inform", "DER", "-noout", "-text"], Buffer.from(answer.body ?? "")).toString()
  })

  const auditRows = Effect.map(
    sql(
      `SELECT event, outcome, actor_kind, actor_id, profile, account_id, order_id, cert_serial, identifiers, client_ip,
      user_agent, request_id, reason, detail FROM audit_log WHERE event LIKE 'certificate_revoke%' ORDER BY id`
    ),
    (found) =>
      found.map((row) => {
        const read = (json: unknown): unknown => typeof json === "string" ? JSON.parse(json) : json
        const shown: { readonly [column: string]: unknown } = {
          ...row,
          identifiers: read(row["identifiers"]),
          detail: read(row["detail"])
        }
        return shown
      })
  )

  describe("authorization", () => {
    test("succeeds with 200 and no body for the account of the order", () =>
      Effect.gen(function*() {
        const { caller, issued, key, kid } = yield* holder()
        const answer = yield* revoke({ key, kid }, issued.der)
        assert.deepStrictEqual([answer.status, answer.body], [200, undefined])
        assert.deepStrictEqual(yield* stamps, [[madeAt, undefined]])
        assert.deepStrictEqual(yield* rows, [{
          serial: issued.serial,
          revokedAt: madeAt,
          reason: undefined,
          notAfter: madeAt + 90 * daySeconds
        }])
        assert.strictEqual(yield* liveJobs, 1)
        const revoked = records.filter(({ event }) => event === "certificate_revoked")
        assert.deepStrictEqual(revoked.map(({ fields, level }) => [level, fields]), [
          ["info", { order_id: issued.orderId, cert_serial: issued.serial, code: undefined }]
        ])
        assert.deepStrictEqual(yield* auditRows, [{
          event: "certificate_revoked",
          outcome: "success",
          actor_kind: "acme",
          actor_id: caller.accountId,
          profile: "default",
          account_id: caller.accountId,
          order_id: issued.orderId,
          cert_serial: issued.serial,
          identifiers: ["a.example"],
          client_ip: "192.0.2.1",
          user_agent: "test/1",
          request_id: "request-1",
          reason: null,
          detail: { authorized_by: "account" }
        }])
        const app = yield* surface
        const again = yield* app.handle(yield* byAccount(key, kid, at(`/certificate/${issued.orderId}`)))
        assert.deepStrictEqual([again.status, again.body], [200, issued.chain], "it can still be downloaded")
      }))

    const keys = [
      ["P-256", () => newPrivateKey()],
      ["RSA", () => generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey],
      ["P-384", () => generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey],
      ["P-521", () => generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey],
      ["Ed25519", () => generateKeyPairSync("ed25519").privateKey]
    ] as const
    for (const [name, make] of keys) {
      test(`succeeds for the certificate's own ${name} key without an account`, () =>
        Effect.gen(function*() {
          const { caller, issued } = yield* holder(make())
          const answer = yield* revoke({ key: acmeKey(issued.key) }, issued.der, 4)
          assert.deepStrictEqual([answer.status, answer.body], [200, undefined])
          assert.deepStrictEqual(yield* stamps, [[madeAt, 4]])
          const [row] = yield* auditRows
          assert.deepInclude(row ?? {}, {
            actor_kind: "acme",
            actor_id: null,
            account_id: caller.accountId,
            order_id: issued.orderId,
            reason: "4",
            detail: { authorized_by: "certificate_key" }
          })
          assert.deepInclude(records.find(({ event }) => event === "certificate_revoked")?.fields ?? {}, { code: 4 })
        }))

      test(`fails with 401 for another ${name} key and for a signature by another key`, () =>
        Effect.gen(function*() {
          const { issued } = yield* holder(make())
          const [own, other] = [acmeKey(issued.key), acmeKey(make())]
          for (const key of [other, { ...own, privateKey: other.privateKey }]) {
            assert.deepInclude(refusal(yield* revoke({ key }, issued.der)), { status: 401, type: "unauthorized" })
          }
          for (const [kind, of] of keys.filter(([kind]) => kind !== name)) {
            assert.strictEqual((yield* revoke({ key: acmeKey(of()) }, issued.der)).status, 401, kind)
            const crossed = { ...own, alg: acmeKey(of()).alg }
            assert.deepInclude(
              refusal(yield* revoke({ key: { ...crossed, privateKey: of() } }, issued.der)),
              { status: 400, type: "badSignatureAlgorithm" },
              kind
            )
          }
          assert.isEmpty(yield* stamps)
          assert.strictEqual((yield* revoke({ key: own }, issued.der)).status, 200)
        }))
    }

    test("succeeds for the certificate's own key with a jwk, even if the key has an account", () =>
      Effect.gen(function*() {
        const { issued } = yield* holder()
        const key = acmeKey(issued.key)
        const kid = yield* register(yield* surface, key)
        assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 401, "as an account it is a stranger")
        assert.strictEqual((yield* revoke({ key }, issued.der)).status, 200)
      }))

    test("succeeds for a deactivated account, even if an operator deactivated it", () =>
      Effect.gen(function*() {
        for (const status of ["deactivated", "revoked"]) {
          const { issued, key, kid } = yield* holder()
          yield* sql(`UPDATE accounts SET status = '${status}'`)
          assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 200, status)
          const app = yield* surface
          assert.strictEqual((yield* app.handle(yield* byAccount(key, kid, at("/newOrder"), {}))).status, 401)
          yield* sql("UPDATE accounts SET status = 'valid'")
        }
      }))

    test("succeeds for an expired certificate", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        yield* TestClock.adjust("91 days")
        assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 200)
      }))

    test("fails for an account key that was rolled over", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        yield* sql(`UPDATE accounts SET pubkey = ${backend.dialect === "sqlite" ? "?" : "$1"}`, [
          accountKeyOf().spki
        ])
        assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 401)
        assert.strictEqual((yield* revoke({ key }, issued.der)).status, 401)
        yield* nothingRevoked
      }))
  })

  describe("attacks", () => {
    test("answers another key and another account with the same 401 unauthorized, whether or not the certificate is revoked", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const stranger = yield* someone()
        const ask = Effect.gen(function*() {
          const answers: Array<ReturnType<typeof refusal>> = []
          for (const signer of [{ key: acmeKey() }, { key: stranger.key }, { key: stranger.key, kid: stranger.kid }]) {
            for (const reason of [undefined, 1, 7, 99]) {
              answers.push(refusal(yield* revoke(signer, issued.der, reason)))
            }
          }
          return answers
        })
        const before = yield* ask
        yield* nothingRevoked
        assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 200)
        const after = yield* ask
        assert.deepStrictEqual(after, before)
        assert.strictEqual(new Set(before.map((one) => JSON.stringify(one))).size, 1)
        assert.deepInclude(before[0] ?? {}, { status: 401, type: "unauthorized" })
        assert.deepStrictEqual(
          [
            ...new Set(
              (yield* auditRows).filter(({ event }) => event !== "certificate_revoked").map(({ detail, reason }) =>
                JSON.stringify([reason, detail])
              )
            )
          ],
          [JSON.stringify(["unauthorized", { cause: "unauthorized" }])]
        )
      }))

    test("answers every certificate that was not issued here with the same 404 malformed", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const changed = Buffer.from(issued.der)
        changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
        // Two certificates from another CA: one with the same names, serial number and key, and one with the same
        // serial number and the attacker's own key.
        const attacker = newPrivateKey()
        const twin = (subjectKey: typeof attacker) => {
          const ca = foreignCa({ name: "Test CA" })
          const date = (day: number) =>
            der(
              0x17,
              Buffer.from(
                `${new Date((madeAt + day * daySeconds) * 1000).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14)}Z`
              )
            )
          const tbs = seq(
            der(0xa0, int(2n)),
            int(BigInt(`0x${issued.serial}`)),
            algorithms.ecdsa,
            seq(),
            seq(date(0), date(90)),
            seq(),
            spkiOf(subjectKey)
          )
          return seq(tbs, algorithms.ecdsa, bitString(sign("sha256", tbs, ca.key)))
        }
        const neverIssued = Buffer.from(
          foreignCa({ name: "Elsewhere" }).certificatePem.replaceAll(/-----[^-]+-----|\s/g, ""),
          "base64"
        )
        const own = { key: acmeKey(issued.key) }
        const cases: ReadonlyArray<readonly [string, Signer, Uint8Array]> = [
          ["same key, another certificate", own, twin(issued.key)],
          ["same serial, the attacker's own key", { key: acmeKey(attacker) }, twin(attacker)],
          ["one byte changed, the account", { key, kid }, changed],
          ["one byte changed, the key", own, changed],
          ["absent, the account", { key, kid }, neverIssued],
          ["absent, a key", { key: acmeKey() }, neverIssued]
        ]
        for (const [name, signer, certificate] of cases) {
          assert.deepStrictEqual(refusal(yield* revoke(signer, certificate)), absent, name)
        }
        yield* nothingRevoked
        const found = yield* auditRows
        assert.strictEqual(found.length, cases.length)
        for (const row of found) {
          assert.deepInclude(row, {
            event: "certificate_revoke_failed",
            outcome: "failure",
            order_id: null,
            identifiers: [],
            reason: "malformed",
            detail: {}
          })
        }
        assert.deepStrictEqual(found[0]?.cert_serial, issued.serial)
      }))

    test("answers a request for another account's certificate with 401 at the same profile and with 404 at another", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const [here, there] = [yield* someone(), yield* someone("other")]
        assert.strictEqual((yield* revoke(here, issued.der)).status, 401)
        assert.deepStrictEqual(refusal(yield* revoke(there, issued.der, undefined, elsewhere)), absent)
        // Even the right key and the right account have no effect at the wrong profile.
        assert.deepStrictEqual(
          refusal(yield* revoke({ key: acmeKey(issued.key) }, issued.der, undefined, elsewhere)),
          absent
        )
        assert.deepInclude(refusal(yield* revoke({ key, kid }, issued.der, undefined, elsewhere)), {
          status: 400,
          type: "accountDoesNotExist"
        })
        assert.deepInclude(refusal(yield* revoke(there, issued.der)), { status: 400, type: "accountDoesNotExist" })
        yield* nothingRevoked
      }))

    test("answers anything but the DER of one certificate with 400 malformed", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const good = text(issued.der)
        const bad: ReadonlyArray<unknown> = [
          text(Buffer.from(issued.leaf.toString())),
          issued.leaf.toString(),
          text(Buffer.concat([issued.der, Buffer.alloc(1)])),
          text(Buffer.concat([issued.der, issued.der])),
          text(issued.der.subarray(0, -1)),
          text(csrOf({})),
          "",
          "AAAA",
          `${good}==`,
          ` ${good}`,
          issued.der.toString("base64"),
          undefined,
          null,
          7,
          [good]
        ]
        for (const certificate of bad) {
          const answer = yield* send({ key, kid }, { certificate })
          assert.deepInclude(refusal(answer), { status: 400, type: "malformed" }, JSON.stringify(certificate))
        }
        yield* nothingRevoked
        assert.deepStrictEqual(yield* auditRows, [])
        assert.deepStrictEqual(
          eventsOf(records).filter((event) => event !== "request_refused"),
          bad.filter((one) => typeof one === "string").map(() => "certificate_revoke_rejected")
        )
      }))

    test("answers an integer that is no reason code with badRevocationReason, and any other value with malformed", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const codes = [-1, 7, 11, 2 ** 31, -(2 ** 31), 255, Number.MAX_SAFE_INTEGER, 1e20]
        for (const code of codes) {
          const said = refusal(yield* revoke({ key, kid }, issued.der, code))
          assert.deepInclude(said, { status: 400, type: "badRevocationReason" })
          assert.include(said.detail, String(code))
        }
        for (const reason of [1.5, "1", " ", true, [1], { code: 1 }]) {
          const said = refusal(yield* revoke({ key, kid }, issued.der, reason))
          assert.deepInclude(said, { status: 400, type: "malformed" }, JSON.stringify(reason))
        }
        yield* nothingRevoked
        const found = yield* auditRows
        assert.strictEqual(found.length, codes.length, "what cannot be read leaves no row")
        for (const row of found) {
          assert.deepInclude(row, {
            order_id: issued.orderId,
            reason: "badRevocationReason",
            detail: { cause: "bad_reason" }
          })
        }
      }))

    for (const [reason, word] of [[0], [8], [undefined], [6, "Certificate Hold"], [10, "AA Compromise"]] as const) {
      test(`writes the reason ${reason ?? "none"} to the CRL as ${word ?? "no reasonCode"}`, () =>
        Effect.gen(function*() {
          const { issued, key, kid } = yield* holder()
          assert.strictEqual((yield* revoke({ key, kid }, issued.der, reason)).status, 200)
          yield* work("local_ca_crl_regenerate")
          assert.deepStrictEqual(yield* stamps, [[madeAt, reason]])
          const said = yield* listText
          assert.include(said.toLowerCase(), `serial number: ${issued.serial}`)
          if (word === undefined) assert.notInclude(said, "Reason Code")
          else assert.include(said, word)
        }))
    }

    test("revokes for only one of 20 simultaneous requests, whose reason the order and the CRL have", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const other = yield* database.another
        const codes = [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]
        const answers = yield* Effect.all(
          [...codes, ...codes].map((code, index) =>
            Effect.map(
              Effect.provideService(
                revoke(index < 10 ? { key, kid } : { key: acmeKey(issued.key) }, issued.der, code),
                Database,
                index % 2 === 0 ? other : database.driver()
              ),
              (answer) => [code, answer] as const
            )
          ),
          { concurrency: "unbounded" }
        )
        const won = answers.filter(([, { status }]) => status === 200)
        assert.strictEqual(won.length, 1)
        assert.strictEqual(answers.filter(([, answer]) => typeOf(answer) === "alreadyRevoked").length, 19)
        const [code] = won[0] ?? []
        assert.deepStrictEqual(yield* stamps, [[madeAt, code]])
        assert.deepStrictEqual((yield* rows).map(({ reason }) => reason), [code])
        const found = yield* auditRows
        assert.deepStrictEqual(
          found.filter(({ event }) => event === "certificate_revoked").map(({ reason }) => reason),
          [String(code)]
        )
        const failed = found.filter(({ event }) => event === "certificate_revoke_failed")
        assert.strictEqual(failed.length, 19)
        for (const row of failed) {
          assert.deepInclude(row, { reason: "alreadyRevoked", detail: { cause: "already_revoked" } })
        }
        assert.strictEqual(eventsOf(records).filter((event) => event === "certificate_revoked").length, 1)
        yield* work("local_ca_crl_regenerate")
        assert.strictEqual((yield* listText).match(/Serial Number/g)?.length, 1)
      }))

    test("answers a request with both `jwk` and `kid`, or with neither, with malformed", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const app = yield* surface
        for (const named of [{ jwk: key.jwk, kid }, {}, { kid: 7 }, { jwk: "key" }]) {
          const nonce = yield* freshNonce
          const body = signed(key, { ...named, url: urlOf(revokeTarget), nonce }, { certificate: text(issued.der) })
          const answer = yield* app.handle(posted(revokeTarget, body))
          assert.deepInclude(refusal(answer), { status: 400, type: "malformed" }, JSON.stringify(named))
          assert.strictEqual(yield* count(`SELECT count(*) FROM nonces WHERE value = '${nonce}'`), 1)
        }
        yield* nothingRevoked
      }))

    test("answers a repeated request with badNonce, or with alreadyRevoked if its nonce is new", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        const app = yield* surface
        const header = { kid, url: urlOf(revokeTarget), nonce: yield* freshNonce }
        const request = posted(revokeTarget, signed(key, header, { certificate: text(issued.der), reason: 1 }))
        assert.strictEqual((yield* app.handle(request)).status, 200)
        assert.strictEqual(typeOf(yield* app.handle(request)), "badNonce")
        assert.deepInclude(refusal(yield* revoke({ key, kid }, issued.der, 1)), {
          status: 400,
          type: "alreadyRevoked"
        })
        assert.deepStrictEqual(yield* stamps, [[madeAt, 1]])
      }))
  })

  test("checks first the authorization, then the reason, and then whether the certificate is already revoked", () =>
    Effect.gen(function*() {
      const { issued, key, kid } = yield* holder()
      const asked = (signer: Signer, reason?: number) => Effect.map(revoke(signer, issued.der, reason), typeOf)
      assert.strictEqual(yield* asked({ key, kid }), "")
      assert.strictEqual(yield* asked({ key: acmeKey() }, 7), "unauthorized")
      assert.strictEqual(yield* asked({ key, kid }, 7), "badRevocationReason")
      assert.strictEqual(yield* asked({ key, kid }, 1), "alreadyRevoked")
      const rejected = records.filter(({ event }) => event === "certificate_revoke_rejected")
      assert.deepStrictEqual(rejected.map(({ fields, level }) => [level, fields]), [
        ["warn", { cert_serial: issued.serial, reason: "unauthorized" }],
        ["warn", { cert_serial: issued.serial, reason: "badRevocationReason" }],
        ["warn", { cert_serial: issued.serial, reason: "alreadyRevoked" }]
      ])
      assert.deepStrictEqual(yield* stamps, [[madeAt, undefined]])
    }))

  test("compares the key of the request with the stored key and not with the one in the certificate", () =>
    Effect.gen(function*() {
      const { issued } = yield* holder()
      const stored = newPrivateKey()
      yield* sql(`UPDATE orders SET cert_pubkey = ${backend.dialect === "sqlite" ? "?" : "$1"}`, [spkiOf(stored)])
      assert.strictEqual((yield* revoke({ key: acmeKey(issued.key) }, issued.der)).status, 401)
      assert.strictEqual((yield* revoke({ key: acmeKey(stored) }, issued.der)).status, 200)
    }))

  test("writes at most ten audit rows a minute about requests of strangers", () =>
    Effect.gen(function*() {
      const { issued, key, kid } = yield* holder()
      const changed = Buffer.from(issued.der)
      changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1
      const outsider = { key: acmeKey() }
      const written = count("SELECT count(*) FROM audit_log WHERE event = 'certificate_revoke_failed'")
      const ask = (times: number) => Effect.replicateEffect(revoke(outsider, changed), times, { discard: true })
      yield* ask(12)
      assert.strictEqual(yield* written, 10)
      assert.strictEqual(eventsOf(records).filter((event) => event === "certificate_revoke_rejected").length, 12)
      yield* TestClock.adjust("59 seconds")
      yield* ask(1)
      assert.strictEqual(yield* written, 10)
      // A request for a stored certificate gets no row either, because any client of its server knows the certificate.
      yield* revoke(outsider, issued.der)
      assert.strictEqual(yield* written, 10)
      // Requests of accounts and of the certificate's key get a row, however many requests outsiders have sent.
      yield* revoke({ key, kid }, changed)
      yield* revoke({ key: acmeKey(issued.key) }, issued.der, 99)
      assert.strictEqual(yield* written, 12)
      yield* TestClock.adjust("1 second")
      yield* ask(12)
      assert.strictEqual(yield* written, 22)
    }))

  test("records 64 digits of a serial number that is too long for a certificate", () =>
    Effect.gen(function*() {
      const { issued } = yield* holder()
      const head = 4
      const inner = issued.der.readUInt16BE(head + 2)
      const signed = issued.der.subarray(2 * head, 2 * head + inner)
      const [version, old] = [signed.subarray(0, 5), 7 + (signed[6] ?? 0)]
      const named = seq(
        seq(version, int(2n ** 32_000n), signed.subarray(old)),
        issued.der.subarray(2 * head + inner)
      )
      assert.strictEqual((yield* revoke({ key: acmeKey() }, named)).status, 404)
      const rows = yield* column("SELECT cert_serial FROM audit_log WHERE event = 'certificate_revoke_failed'")
      assert.deepStrictEqual(rows, [`01${"0".repeat(62)}`])
    }))

  test("makes finalize refuse a key that its holder revoked for compromise, whoever uses it", () =>
    Effect.gen(function*() {
      const { caller, issued, key, kid } = yield* holder()
      const another = yield* someone("other")
      const bring = Effect.fnUntraced(function*(by: typeof caller) {
        const { id } = yield* orderOf(by, "b.example")
        yield* sql("UPDATE authorizations SET status = 'valid'")
        yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
        return yield* Effect.result(
          finalize(by, id, text(makeCsr({ names: ["b.example"], key: issued.key }).csr))
        )
      })
      assert.strictEqual((yield* bring(caller))._tag, "Success", "one key may have several certificates")
      assert.strictEqual((yield* revoke({ key, kid }, issued.der, 1)).status, 200)
      assert.strictEqual((yield* bring(another.caller))._tag, "Success", "an account speaks for itself alone")
      assert.include(JSON.stringify(yield* bring(caller)), "key compromise")
      const again = yield* revoke({ key: acmeKey(issued.key) }, issued.der, 1)
      assert.strictEqual(typeOf(again), "alreadyRevoked", "which its holder may say nevertheless")
      for (const by of [caller, another.caller]) {
        const refused = yield* bring(by)
        assert.deepInclude(refused._tag === "Failure" ? refused.failure : {}, { _tag: "BadCsr" })
        assert.include(JSON.stringify(refused), "key compromise")
      }
    }))

  describe("a key that its holder reports as compromised", () => {
    /** Makes certificates with one key for two accounts in two profiles, and a certificate with another key. */
    const shared = Effect.fnUntraced(function*() {
      const { caller, issued, key, kid } = yield* holder()
      const elsewhere = yield* someone("other")
      const others = [
        yield* issueTo(caller, ["b.example"], issued.key),
        yield* issueTo(elsewhere.caller, ["c.example"], issued.key)
      ]
      const bystander = yield* issueTo(elsewhere.caller, ["d.example"])
      records.length = 0
      return { caller, issued, key, kid, others, bystander }
    })
    const revoked = Effect.map(rows, (found) => found.map(({ reason, serial }) => `${serial} ${reason}`))
    const serialsOf = (...all: ReadonlyArray<{ readonly serial: string }>) =>
      all.map(({ serial }) => `${serial} 1`).sort()

    test("loses all its certificates in every profile, and other keys lose none", () =>
      Effect.gen(function*() {
        const { caller, issued, others } = yield* shared()
        assert.strictEqual((yield* revoke({ key: acmeKey(issued.key) }, issued.der, 1)).status, 200)
        assert.deepStrictEqual(yield* revoked, serialsOf(issued), "the others are a job's")
        assert.deepStrictEqual(
          yield* column("SELECT share FROM jobs WHERE kind = 'key_revoke'"),
          [shareOfCaller(caller)]
        )
        yield* work("key_revoke")
        assert.deepStrictEqual(yield* revoked, serialsOf(issued, ...others))
        const burnt = records.find(({ event }) => event === "key_burnt")
        assert.deepInclude(burnt?.fields, { order_id: issued.orderId, scope: "everybody" })
        const told = records.find(({ event }) => event === "key_certificates_revoked")
        assert.deepInclude(told?.fields, { count: 2 })
        const trail = (yield* auditRows).map(({ cert_serial, detail, reason, request_id }) => ({
          cert_serial,
          detail,
          reason,
          request_id
        }))
        assert.sameDeepMembers(
          trail,
          [issued, ...others].map(({ serial: cert_serial }) => ({
            cert_serial,
            detail: { authorized_by: "certificate_key" },
            reason: "1",
            request_id: "request-1"
          }))
        )
        assert.strictEqual(yield* liveJobs, 1, "one list")
        yield* work()
        const list = (yield* listText).toLowerCase()
        for (const { serial } of [issued, ...others]) assert.include(list, serial)
      }))

    test("loses its other certificates even if the reported certificate was revoked before for another reason", () =>
      Effect.gen(function*() {
        const { issued, key, kid, others } = yield* shared()
        assert.strictEqual((yield* revoke({ key, kid }, issued.der, 4)).status, 200)
        const answer = yield* revoke({ key: acmeKey(issued.key) }, issued.der, 1)
        assert.strictEqual(typeOf(answer), "alreadyRevoked")
        yield* work("key_revoke")
        assert.deepStrictEqual(yield* revoked, [`${issued.serial} 4`, ...serialsOf(...others)].sort())
      }))

    test("loses no other certificate if an account requests the revocation", () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* shared()
        assert.strictEqual((yield* revoke({ key, kid }, issued.der, 1)).status, 200)
        yield* work("key_revoke")
        assert.deepStrictEqual(yield* revoked, serialsOf(issued))
        assert.deepInclude(records.find(({ event }) => event === "key_burnt")?.fields, { scope: "account" })
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE kind = 'key_revoke'"), 0)
      }))

    test("loses no other certificate if the reason is not keyCompromise", () =>
      Effect.gen(function*() {
        const { issued } = yield* shared()
        assert.strictEqual((yield* revoke({ key: acmeKey(issued.key) }, issued.der, 4)).status, 200)
        yield* work("key_revoke")
        assert.deepStrictEqual(yield* revoked, [`${issued.serial} 4`])
        assert.strictEqual(yield* count("SELECT count(*) FROM burnt_keys"), 0)
      }))

    test("keeps its expired certificates", () =>
      Effect.gen(function*() {
        const { issued } = yield* shared()
        yield* TestClock.adjust("91 days")
        assert.strictEqual((yield* revoke({ key: acmeKey(issued.key) }, issued.der, 1)).status, 200)
        yield* work("key_revoke")
        assert.deepStrictEqual(yield* revoked, serialsOf(issued))
      }))
  })

  test("allows a key that was revoked for another reason to be used again", () =>
    Effect.gen(function*() {
      const { caller, issued, key, kid } = yield* holder()
      assert.strictEqual((yield* revoke({ key, kid }, issued.der, 4)).status, 200)
      assert.notStrictEqual((yield* issueTo(caller, ["a.example"], issued.key)).serial, issued.serial)
    }))

  test("makes renewal information say at once that the certificate is to be renewed", () =>
    Effect.gen(function*() {
      const { issued, key, kid } = yield* holder()
      const keyId = openssl(["x509", "-noout", "-ext", "authorityKeyIdentifier"], issued.leaf.toString()).toString()
        .split("\n")[1]?.replaceAll(/[^0-9A-F]/g, "") ?? ""
      const certId = `${text(Buffer.from(keyId, "hex"))}.${text(Buffer.from(issued.serial, "hex"))}`
      const app = yield* surface
      const ask = app.handle(requestOf("GET", at(`/renewalInfo/${certId}`)))
      assert.isAbove(Number(headerOf(yield* ask, "retry-after")), 17_000)
      yield* revoke({ key, kid }, issued.der)
      assert.strictEqual(headerOf(yield* ask, "retry-after"), "60")
    }))

  test("answers 500 serverInternal and revokes nothing if no worker has seen the issuer", () =>
    Effect.gen(function*() {
      const { issued, key, kid } = yield* holder()
      const [issuer = ""] = yield* column("SELECT issuer FROM crls")
      yield* sql("DELETE FROM crls")
      assert.deepInclude(refusal(yield* revoke({ key, kid }, issued.der)), { status: 500, type: "serverInternal" })
      yield* nothingRevoked
      assert.deepStrictEqual(records.find(({ event }) => event === "local_ca_issuer_mismatch")?.fields, {
        order_id: issued.orderId,
        issuer
      })
      const [row] = yield* auditRows
      assert.deepInclude(row ?? {}, { reason: "serverInternal", detail: { cause: "issuer_mismatch" } })
      yield* crl.initialize
      assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 200)
    }))

  /** Lets the only worker report that the CA revokes nothing. */
  const stopped = Effect.gen(function*() {
    const [issuer = ""] = yield* column("SELECT issuer FROM crls")
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
    yield* sql(
      `INSERT INTO workers (owner, roles, version, started_at, last_seen_at) VALUES ('w', 'worker', '1', 0, ${now})`
    )
    yield* states.report({ profile: "default", owner: "w", trouble: "the record", since: now, stoppedIssuer: issuer })
  })

  test("answers 503 serverInternal and revokes nothing while the CA signs no lists", () =>
    Effect.gen(function*() {
      const { issued, key, kid } = yield* holder()
      yield* stopped
      const answer = yield* revoke({ key, kid }, issued.der, 1)
      assert.deepInclude(refusal(answer), { status: 503, type: "serverInternal" })
      assert.match(bodyOf(answer).detail ?? "", /cannot revoke at present, so the certificate is not revoked/)
      assert.strictEqual(headerOf(answer, "retry-after"), "60")
      yield* nothingRevoked
      assert.strictEqual(yield* count("SELECT count(*) FROM burnt_keys"), 0)
      assert.deepInclude((yield* auditRows)[0] ?? {}, { reason: "serverInternal", detail: { cause: "list_stopped" } })
      yield* TestClock.adjust("31 seconds")
      assert.strictEqual((yield* revoke({ key, kid }, issued.der)).status, 200, "no worker has said so lately")
    }))

  test("revokes the other certificates of a compromised key only when the CA signs lists again", () =>
    Effect.gen(function*() {
      const { caller, issued } = yield* holder()
      const other = yield* issueTo(caller, ["b.example"], issued.key)
      const own = acmeKey(issued.key)
      assert.strictEqual((yield* revoke({ key: own }, issued.der, 1)).status, 200)
      yield* stopped
      yield* work("key_revoke")
      const isRevoked = column(`SELECT serial FROM revocations WHERE serial = '${other.serial}'`)
      assert.deepStrictEqual(yield* isRevoked, [])
      const [error = ""] = yield* column("SELECT last_error FROM jobs WHERE kind = 'key_revoke' AND status = 'ready'")
      assert.include(error, "the record")
      yield* TestClock.adjust("1 hour")
      yield* work("key_revoke")
      assert.deepStrictEqual(yield* isRevoked, [other.serial])
    }))

  for (const table of ["jobs", "revocations"]) {
    test(`does not revoke the certificate at all if the row in ${table} cannot be written`, () =>
      Effect.gen(function*() {
        const { issued, key, kid } = yield* holder()
        if (backend.dialect === "sqlite") {
          yield* sql(`CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'planted'); END`)
        } else {
          yield* sql(
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$"
          )
          yield* sql(`CREATE TRIGGER broken BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION broken()`)
        }
        const answer = yield* revoke({ key, kid }, issued.der, 1)
        yield* sql(backend.dialect === "sqlite" ? "DROP TRIGGER broken" : "DROP FUNCTION broken CASCADE")
        assert.deepInclude(refusal(answer), { status: 500, type: "serverInternal" })
        yield* nothingRevoked
        assert.notInclude(eventsOf(records), "certificate_revoked")
        assert.deepStrictEqual(yield* auditRows, [])
        assert.strictEqual((yield* revoke({ key, kid }, issued.der, 1)).status, 200)
      }))
  }

  test("distinguishes two certificates with one serial number by their octets", () =>
    Effect.gen(function*() {
      const one = yield* holder()
      const other = yield* issueTo(one.caller, ["b.example"])
      yield* sql(`UPDATE orders SET cert_serial = '${one.issued.serial}'`)
      assert.strictEqual((yield* revoke(one, one.issued.der)).status, 200)
      assert.deepStrictEqual(
        yield* column("SELECT identifiers FROM orders WHERE revoked_at IS NOT NULL").pipe(
          Effect.map((names) => names.map((name) => name.includes("a.example")))
        ),
        [true]
      )
      assert.notStrictEqual(other.serial, one.issued.serial)
    }))

  test("publishes the revocation list, the trust anchor and the issuer", () =>
    Effect.gen(function*() {
      const app = yield* surface
      const published = [
        ["/crl", "application/pkix-crl"],
        ["/ca.pem", "application/x-pem-file"],
        ["/issuer.cer", "application/pkix-cert"]
      ] as const
      for (const [path, type] of published) {
        assert.strictEqual(app.route(requestOf("GET", at(path))).pattern, path)
        for (const method of ["GET", "HEAD"]) {
          const answer = yield* app.handle(requestOf(method, at(path)))
          assert.deepStrictEqual([answer.status, headerOf(answer, "content-type")], [200, type])
          assert.isUndefined(answer.headers["replay-nonce"])
        }
        const answer = yield* app.handle(posted(at(path), "{}"))
        assert.deepStrictEqual([answer.status, headerOf(answer, "allow")], [405, "GET, HEAD"])
        const tag = headerOf(yield* app.handle(requestOf("GET", at(path))), "etag")
        const again = yield* app.handle(requestOf("GET", at(path), { headers: { "if-none-match": tag } }))
        assert.deepStrictEqual([again.status, again.body], [304, undefined])
      }
      const anchor = yield* app.handle(requestOf("GET", at("/ca.pem")))
      assert.include(openssl(["x509", "-noout", "-subject"], String(anchor.body)).toString(), "Test CA")
    }))
})
