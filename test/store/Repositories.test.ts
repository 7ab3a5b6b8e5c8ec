import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Entropy } from "../../src/crypto/Entropy.ts"
import type { AccountId, AuthorizationId, ChallengeId } from "../../src/domain/Id.ts"
import * as Id from "../../src/domain/Id.ts"
import { orderMoves } from "../../src/domain/Order.ts"
import * as jobs from "../../src/engine/queue/Job.ts"
import { JobId } from "../../src/engine/queue/Job.ts"
import * as workers from "../../src/engine/queue/Workers.ts"
import { transaction } from "../../src/engine/sql/Database.ts"
import * as accounts from "../../src/store/AccountRows.ts"
import * as audit from "../../src/store/AuditRows.ts"
import * as authorizations from "../../src/store/AuthorizationRows.ts"
import * as nonces from "../../src/store/NonceRows.ts"
import * as certificates from "../../src/store/orders/CertificateRows.ts"
import * as storing from "../../src/store/orders/CertificateStoring.ts"
import type { StoredCertificate } from "../../src/store/orders/CertificateStoring.ts"
import * as expiredOrders from "../../src/store/orders/ExpiredOrders.ts"
import * as orderCreation from "../../src/store/orders/OrderCreation.ts"
import * as orders from "../../src/store/orders/OrderRows.ts"
import * as proofs from "../../src/store/ProofRows.ts"
import * as burntKeys from "../../src/store/revocation/BurntKeys.ts"
import { databases } from "../support/Databases.ts"
import { column, count, idLiteral, sql } from "../support/Graph.ts"
import { useStore } from "../support/UseTests.ts"

const uuid = Effect.flatMap(Entropy, ({ uuid }) => uuid)
const dns = (value: string) => ({ type: "dns" as const, value })

const accountStatuses = ["valid", "deactivated", "revoked"] as const
const orderStatuses = ["pending", "ready", "processing", "valid", "invalid"] as const
const authorizationStatuses = ["pending", "valid", "invalid", "deactivated", "expired", "revoked"] as const
const challengeStatuses = ["pending", "processing", "valid", "invalid"] as const

describe.each(databases)("repositories on $name", (backend) => {
  const { dialect } = backend
  const { database, test } = useStore(backend)

  let keys = 0
  const addAccount = (profile = "p", pubkey: Uint8Array = Buffer.from(`key ${keys++}`)) =>
    Effect.gen(function*() {
      const id = Id.AccountId(yield* uuid)
      const inserted = yield* accounts.insert({
        id,
        profile,
        pubkey,
        contact: ["mailto:a@example.com"],
        termsOfServiceAgreed: undefined,
        eabKid: undefined,
        now: 100,
        ip: "192.0.2.1",
        network: undefined,
        ptr: undefined
      })
      assert.deepStrictEqual(inserted, { id })
      return id
    })

  const issue = (certificate: StoredCertificate) =>
    storing.issue(certificate, {
      event: "certificate_issued",
      actorKind: "acme",
      orderId: certificate.id,
      detail: { key_type: "EC", not_after: "later" }
    })

  const addOrder = (
    accountId: AccountId,
    names: ReadonlyArray<string> = ["a.example"],
    now = 100,
    profile = "p",
    kind: string | undefined = undefined
  ) =>
    Effect.gen(function*() {
      const id = Id.OrderId(yield* uuid)
      const authz: Array<AuthorizationId> = []
      const chall: Array<ChallengeId> = []
      for (const _ of names) {
        authz.push(Id.AuthorizationId(yield* uuid))
        chall.push(Id.ChallengeId(yield* uuid))
      }
      yield* orderCreation.create({
        id,
        profile,
        accountId,
        identifiers: names.map(dns),
        notBefore: undefined,
        notAfter: 9_000_000_000,
        replaces: undefined,
        now,
        expiresAt: now + 1000,
        kind,
        isProved: false,
        ip: undefined,
        ptr: undefined,
        names: names.map((name) => [name, [...name].toReversed().join("")]),
        authorizations: names.map((name, at) => ({
          id: authz[at] ?? Id.AuthorizationId(""),
          identifier: dns(name)
        })),
        challenges: names.map((name, at) => ({
          id: chall[at] ?? Id.ChallengeId(""),
          authzId: authz[at] ?? Id.AuthorizationId(""),
          type: "http-01",
          position: 0,
          token: `token ${name}`
        }))
      })
      return {
        id,
        authz,
        chall,
        authzId: authz[0] ?? Id.AuthorizationId(""),
        challengeId: chall[0] ?? Id.ChallengeId("")
      }
    })

  const blob = (id: string) => dialect === "sqlite" ? `X'${id.replaceAll("-", "")}'` : `'${id}'::uuid`
  const set = (table: string, id: string, status: string) =>
    sql(`UPDATE ${table} SET status = '${status}' WHERE id = ${blob(id)}`)
  const statusOf = (table: string, id: string) =>
    Effect.map(column(`SELECT status FROM ${table} WHERE id = ${blob(id)}`), ([status]) => status)
  const orderAt = (
    status: (typeof orderStatuses)[number],
    authzStatus: (typeof authorizationStatuses)[number] = "valid"
  ) =>
    Effect.gen(function*() {
      const accountId = yield* addAccount()
      const order = yield* addOrder(accountId)
      yield* set("orders", order.id, status)
      yield* set("authorizations", order.authzId, authzStatus)
      return { accountId, ...order }
    })
  const cause = { reason: "status", detail: "status 404" }
  const problem = { type: "urn:ietf:params:acme:error:serverInternal", status: 500, detail: "x" }

  describe("accounts", () => {
    test("are found by id or by key only within their profile", () =>
      Effect.gen(function*() {
        const pubkey = Buffer.from("one key")
        const id = yield* addAccount("p", pubkey)
        const expected = {
          id,
          profile: "p",
          status: "valid",
          contact: ["mailto:a@example.com"],
          termsOfServiceAgreed: undefined,
          lastSeenAt: 100,
          lastSeenIp: "192.0.2.1"
        }
        assert.deepInclude((yield* accounts.find("p", id)) ?? {}, expected)
        assert.deepInclude((yield* accounts.findByKey("p", pubkey)) ?? {}, expected)
        assert.isUndefined(yield* accounts.find("q", id))
        assert.isUndefined(yield* accounts.findByKey("q", pubkey))
        assert.isUndefined(yield* accounts.findByKey("p", Buffer.from("other key")))
        assert.isUndefined(yield* accounts.find("p", Id.AccountId(yield* uuid)))
      }))

    test("are not inserted if the key already has an account in the same profile", () =>
      Effect.gen(function*() {
        const pubkey = Buffer.from("one key")
        yield* addAccount("p", pubkey)
        const again = {
          id: Id.AccountId(yield* uuid),
          profile: "p",
          pubkey,
          contact: [],
          termsOfServiceAgreed: true,
          eabKid: undefined,
          now: 200,
          ip: undefined,
          network: undefined,
          ptr: undefined
        }
        assert.isUndefined(yield* accounts.insert(again))
        assert.deepInclude((yield* accounts.findByKey("p", pubkey)) ?? {}, {
          contact: ["mailto:a@example.com"],
          lastSeenAt: 100
        })
        assert.isDefined(yield* accounts.insert({ ...again, profile: "q" }))
      }))

    test("change their contacts, agreement and status only if they are valid and belong to the profile", () =>
      Effect.gen(function*() {
        for (const status of accountStatuses) {
          for (const profile of ["p", "q"]) {
            const id = yield* addAccount()
            yield* set("accounts", id, status)
            const isTaken = status === "valid" && profile === "p"
            yield* accounts.recordAgreement(profile, id)
            assert.strictEqual((yield* accounts.find("p", id))?.termsOfServiceAgreed, isTaken ? true : undefined)
            assert.deepStrictEqual((yield* accounts.updateContact(profile, id, []))?.contact, isTaken ? [] : undefined)
            assert.strictEqual((yield* accounts.deactivate(profile, id))?.status, isTaken ? "deactivated" : undefined)
            assert.strictEqual(yield* statusOf("accounts", id), isTaken ? "deactivated" : status)
          }
        }
      }))

    test("store the time when they were last seen", () =>
      Effect.gen(function*() {
        const id = yield* addAccount()
        yield* accounts.recordSeen(id, 777, { ip: "2001:db8::1", ptr: "host.example" })
        assert.strictEqual((yield* accounts.find("p", id))?.lastSeenAt, 777)
        assert.deepStrictEqual(yield* column("SELECT last_seen_ip FROM accounts"), ["2001:db8::1"])
        assert.deepStrictEqual(yield* column("SELECT last_seen_ptr FROM accounts"), ["host.example"])
      }))
  })

  describe("orders", () => {
    test("are found by id, profile and account together, with their authorizations in the order of the names", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        const other = yield* addAccount()
        const order = yield* addOrder(accountId, ["b.example", "*.a.example", "a.example"])
        const found = yield* orders.find({ id: order.id, profile: "p", accountId })
        assert.deepStrictEqual(found, {
          id: order.id,
          profile: "p",
          accountId,
          status: "pending",
          identifiers: [dns("b.example"), dns("*.a.example"), dns("a.example")],
          notBefore: undefined,
          notAfter: 9_000_000_000,
          replaces: undefined,
          error: undefined,
          createdAt: 100,
          expiresAt: 1100,
          kind: undefined,
          restricted: undefined,
          authorizationIds: order.authz
        })
        assert.isUndefined(yield* orders.find({ id: order.id, profile: "q", accountId }))
        assert.isUndefined(yield* orders.find({ id: order.id, profile: "p", accountId: other }))
        assert.sameMembers(
          [...yield* column("SELECT name_rev FROM order_identifiers")],
          ["elpmaxe.b", "elpmaxe.a.*", "elpmaxe.a"]
        )
      }))

    test("are promoted only if they are pending and all of their authorizations are valid", () =>
      Effect.gen(function*() {
        for (const status of orderStatuses) {
          for (const authz of authorizationStatuses) {
            const { id } = yield* orderAt(status, authz)
            const moves = status === "pending" && authz === "valid"
            assert.strictEqual((yield* orders.promote(id)) !== undefined, moves, `${status} ${authz}`)
            assert.strictEqual(yield* statusOf("orders", id), moves ? "ready" : status)
          }
        }
        const accountId = yield* addAccount()
        const two = yield* addOrder(accountId, ["a.example", "b.example"])
        yield* set("authorizations", two.authzId, "valid")
        assert.isUndefined(yield* orders.promote(two.id), "one of two")
      }))

    test("are not promoted, claimed or issued if one of their authorizations is missing", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        for (const status of ["pending", "ready", "processing"] as const) {
          for (const lost of ["one", "both", "none"] as const) {
            const { authz, id } = yield* addOrder(accountId, ["a.example", "b.example"])
            for (const one of authz) yield* set("authorizations", one, "valid")
            yield* set("orders", id, status)
            for (const one of lost === "none" ? [] : authz.slice(0, lost === "one" ? 1 : 2)) {
              yield* sql(`DELETE FROM authorizations WHERE id = ${idLiteral(backend.dialect, one)}`)
            }
            const isWhole = lost === "none"
            const unproved = { none: 0, one: 1, both: 2 }[lost]
            assert.strictEqual((yield* orders.findForIssuance("p", id))?.unproved, unproved)
            const said = `${status}, ${lost} lost`
            const done = status === "pending"
              ? yield* orders.promote(id)
              : status === "ready"
              ? yield* orders.claim({
                id,
                profile: "p",
                accountId,
                certPubkey: Buffer.from([1]),
                restricted: undefined,
                validityBound: undefined,
                now: 1099,
                validity: 0
              })
              : yield* issue({
                id,
                chain: "PEM",
                certSerial: "0a",
                certPubkey: Buffer.from([1]),
                certNotAfter: 1
              })
            assert.strictEqual(done !== undefined, isWhole, said)
          }
        }
        const { id } = yield* addOrder(accountId, ["a.example"])
        yield* sql(`UPDATE orders SET identifiers = 'spoilt' WHERE id = ${idLiteral(backend.dialect, id)}`)
        yield* sql(`DELETE FROM authorizations WHERE order_id = ${idLiteral(backend.dialect, id)}`)
        assert.isUndefined(yield* orders.promote(id), "names that cannot be read")
      }))

    test("are demoted only if they are ready", () =>
      Effect.gen(function*() {
        for (const status of orderStatuses) {
          const { id } = yield* orderAt(status)
          assert.strictEqual(
            (yield* orders.demote(id, { status: 403, detail: "why" })) !== undefined,
            status === "ready"
          )
          assert.strictEqual(yield* statusOf("orders", id), status === "ready" ? "pending" : status)
        }
      }))

    test("are claimed only by their account, while they are ready and not expired, if all of their authorizations are valid", () =>
      Effect.gen(function*() {
        const other = yield* addAccount()
        for (const status of orderStatuses) {
          for (const authz of authorizationStatuses) {
            const { accountId, id } = yield* orderAt(status, authz)
            const certPubkey = Buffer.from("key of the CSR")
            const claim = (deviation: object) =>
              orders.claim({
                id,
                profile: "p",
                accountId,
                certPubkey,
                restricted: 1,
                validityBound: 60,
                now: 1099,
                validity: 0,
                ...deviation
              })
            assert.isUndefined(yield* claim({ profile: "q" }))
            assert.isUndefined(yield* claim({ accountId: other }))
            assert.isUndefined(yield* claim({ now: 1100, validity: 5000 }), "expired")
            const moves = status === "ready" && authz === "valid"
            yield* burntKeys.insert({ pubkey: certPubkey, accountId, now: 1 })
            assert.isUndefined(yield* claim({}), "burnt")
            yield* sql("DELETE FROM burnt_keys")
            assert.strictEqual((yield* claim({})) !== undefined, moves)
            assert.isUndefined(yield* claim({}), "once")
            assert.strictEqual(yield* statusOf("orders", id), moves ? "processing" : status)
          }
        }
      }))

    test("are issued only while they are processing, if the account and every authorization are still valid", () =>
      Effect.gen(function*() {
        const certificate = {
          chain: "PEM",
          certSerial: "0a",
          certPubkey: Buffer.from([1]),
          certNotAfter: 4_102_444_800
        }
        for (const status of orderStatuses) {
          for (const authz of authorizationStatuses) {
            for (const account of accountStatuses) {
              const { accountId, id } = yield* orderAt(status, authz)
              yield* set("accounts", accountId, account)
              const moves = status === "processing" && authz === "valid" && account === "valid"
              const name = `${status} ${authz} ${account}`
              assert.strictEqual((yield* issue({ id, ...certificate })) !== undefined, moves, name)
              assert.strictEqual(yield* statusOf("orders", id), moves ? "valid" : status, name)
              assert.deepStrictEqual(
                yield* column(`SELECT event FROM audit_log WHERE order_id = '${id}'`),
                moves ? ["certificate_issued"] : [],
                name
              )
              const found = yield* certificates.certificate({ id, profile: "p", accountId })
              assert.strictEqual(found?.certificate, moves ? "PEM" : undefined, name)
            }
          }
        }
      }))

    test("fail only while they are unfinished, and fail by failIssuance only while they are processing", () =>
      Effect.gen(function*() {
        for (const status of orderStatuses) {
          const first = yield* orderAt(status)
          const unfinished = (orderMoves.fail.from as ReadonlyArray<string>).includes(status)
          assert.strictEqual((yield* orders.fail(first.id, problem)) !== undefined, unfinished, status)
          assert.strictEqual(yield* statusOf("orders", first.id), unfinished ? "invalid" : status)
          const found = yield* orders.find({ id: first.id, profile: "p", accountId: first.accountId })
          assert.deepStrictEqual(found?.error, unfinished ? problem : undefined)
          const second = yield* orderAt(status)
          assert.strictEqual((yield* orders.failIssuance(second.id, problem)) !== undefined, status === "processing")
          assert.strictEqual(yield* statusOf("orders", second.id), status === "processing" ? "invalid" : status)
        }
      }))

    test("show their certificate only while they are valid, to their own account and profile", () =>
      Effect.gen(function*() {
        const { accountId, id } = yield* orderAt("processing")
        const other = yield* addAccount()
        yield* issue({ id, chain: "PEM", certSerial: "0a", certPubkey: Buffer.from([1]), certNotAfter: 1 })
        const shown = { certificate: "PEM", alternates: undefined }
        assert.deepStrictEqual(yield* certificates.certificate({ id, profile: "p", accountId }), shown)
        assert.isUndefined(yield* certificates.certificate({ id, profile: "q", accountId }))
        assert.isUndefined(yield* certificates.certificate({ id, profile: "p", accountId: other }))
        yield* set("orders", id, "invalid")
        assert.isUndefined(yield* certificates.certificate({ id, profile: "p", accountId }))
      }))

    test("return the status of their account and the number of their authorizations that are not valid", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        const order = yield* addOrder(accountId, ["a.example", "b.example", "c.example"])
        yield* set("authorizations", order.authzId, "valid")
        yield* set("accounts", accountId, "deactivated")
        assert.deepInclude((yield* orders.findForIssuance("p", order.id)) ?? {}, {
          accountStatus: "deactivated",
          unproved: 2
        })
        assert.isUndefined(yield* orders.findForIssuance("q", order.id))
      }))

    test("get no certificate for a key that is blocked for everybody or for their account", () =>
      Effect.gen(function*() {
        const longest = Buffer.alloc(1100, 7) // as long as an RSA key of 8192 bits
        const { accountId, id } = yield* orderAt("processing")
        const another = yield* addAccount()
        assert.isFalse(yield* burntKeys.isBurnt(longest, accountId))
        yield* burntKeys.insert({ pubkey: longest, accountId: another, now: 1 })
        yield* burntKeys.insert({ pubkey: longest, accountId: another, now: 2 })
        assert.isTrue(yield* burntKeys.isBurnt(longest, another))
        assert.isFalse(yield* burntKeys.isBurnt(longest, accountId))
        assert.isFalse(yield* burntKeys.isBurnt(longest))
        const stored = (certPubkey: Buffer) =>
          issue({ id, chain: "PEM", certSerial: "0a", certPubkey, certNotAfter: 1 })
        for (const who of [accountId, burntKeys.everybody]) {
          yield* burntKeys.insert({ pubkey: longest, accountId: who, now: 1 })
          assert.isTrue(yield* burntKeys.isBurnt(longest, accountId))
          assert.isUndefined(yield* stored(longest))
          yield* sql(`DELETE FROM burnt_keys WHERE burnt_at = 1`)
        }
        assert.isDefined(yield* stored(longest))
      }))

    test("count as stuck if they have been processing for long enough and have no active signing job", () =>
      Effect.gen(function*() {
        const { id } = yield* orderAt("processing")
        yield* orderAt("ready")
        assert.deepStrictEqual((yield* orders.findStuck(101, 10)).map((one) => one.id), [id])
        assert.deepStrictEqual(yield* orders.findStuck(100, 10), [], "young")
        assert.deepStrictEqual(yield* orders.findStuck(101, 0), [])
        const jobId = JobId(yield* uuid)
        yield* jobs.insert({
          id: jobId,
          kind: "signer_issue",
          dedupKey: id,
          payload: "{}",
          runAt: 0,
          maxAttempts: 3,
          deadline: undefined,
          now: 0
        })
        assert.deepStrictEqual(yield* orders.findStuck(101, 10), [], "its job lives")
        yield* set("jobs", jobId, "running")
        assert.deepStrictEqual(yield* orders.findStuck(101, 10), [])
        yield* set("jobs", jobId, "failed")
        assert.deepStrictEqual((yield* orders.findStuck(101, 10)).map((one) => one.id), [id])
      }))

    test("are deleted in batches by the sweep if they are old and unfinished or failed, but never if they are valid", () =>
      Effect.gen(function*() {
        const accounts = { p: yield* addAccount("p"), q: yield* addAccount("q") }
        for (const status of orderStatuses) {
          for (const [now, profile] of [[10, "p"], [50, "p"], [10, "q"]] as const) {
            const order = yield* addOrder(accounts[profile], ["a.example"], now, profile)
            yield* set("orders", order.id, status)
          }
        }
        // An order is kept until the expiry that its client was told.
        assert.strictEqual(yield* expiredOrders.sweep("p", { createdBefore: 50, expiredBefore: 1010, limit: 3 }), 0)
        assert.strictEqual(yield* expiredOrders.sweep("p", { createdBefore: 50, expiredBefore: 2000, limit: 3 }), 3)
        assert.strictEqual(yield* expiredOrders.sweep("p", { createdBefore: 50, expiredBefore: 2000, limit: 3 }), 1)
        assert.strictEqual(yield* expiredOrders.sweep("p", { createdBefore: 50, expiredBefore: 2000, limit: 3 }), 0)
        assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE profile = 'p' AND created_at = 50"), 5)
        assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE profile = 'q'"), 5)
        assert.deepStrictEqual(yield* column("SELECT status FROM orders WHERE profile = 'p' AND created_at = 10"), [
          "valid"
        ])
        assert.strictEqual(yield* count("SELECT count(*) FROM authorizations"), 11)
      }))

    test("list every profile that has an account", () =>
      Effect.gen(function*() {
        yield* addAccount("p")
        yield* addAccount("p")
        yield* addAccount("q")
        assert.sameDeepMembers([...yield* orders.profiles], [{ profile: "p" }, { profile: "q" }])
      }))

    test("are locked without an error whether or not they exist", () =>
      transaction(Effect.gen(function*() {
        yield* orders.lock(Id.OrderId(yield* uuid))
        yield* accounts.lock(Id.AccountId(yield* uuid))
      })))
  })

  describe("authorizations and challenges", () => {
    if (dialect === "postgres") {
      test("are read and locked together while the challenge is pending, with the account or without it", () =>
        Effect.gen(function*() {
          const elsewhere = yield* database.another
          const free = Effect.forEach(["accounts", "orders"], (table) =>
            Effect.map(
              elsewhere.exclusive((connection) =>
                connection.execute(`SELECT id::text AS id FROM ${table} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`, [])
              ),
              (rows) => rows.map(({ id }) => id)
            ))
          const [accountId, other] = [yield* addAccount(), yield* addAccount()]
          const { challengeId: id, ...order } = yield* addOrder(accountId)
          const ours = { profile: "p", accountId }
          const whole: Array<Array<unknown>> = [[accountId, other].sort(), [order.id]]
          const held = (scope: { readonly profile: string; readonly accountId: AccountId }, withAccount: boolean) =>
            transaction(Effect.orDie(Effect.zip(authorizations.holdPending(id, scope, { withAccount }), free)))
          for (const withAccount of [false, true]) {
            const [challenge, rest] = yield* held(ours, withAccount)
            assert.strictEqual(challenge?.orderId, order.id)
            assert.deepStrictEqual<unknown>(rest, [withAccount ? [other] : whole[0], []])
            assert.deepStrictEqual(yield* held({ ...ours, accountId: other }, withAccount), [undefined, whole])
            assert.deepStrictEqual(yield* held({ ...ours, profile: "q" }, withAccount), [undefined, whole])
          }
          yield* set("challenges", id, "processing")
          assert.deepStrictEqual(yield* held(ours, true), [undefined, whole])
        }))
    }

    test("are found by id, profile and account together", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        const other = yield* addAccount()
        const order = yield* addOrder(accountId, ["a.example"])
        const dnsId = Id.ChallengeId(yield* uuid)
        yield* sql(
          `INSERT INTO challenges (id, authz_id, type, position, token, status, created_at)
           VALUES (${blob(dnsId)}, ${blob(order.authzId)}, 'dns-01', 1, 't2', 'pending', 100)`
        )
        const expected = {
          id: order.challengeId,
          type: "http-01" as const,
          token: "token a.example",
          status: "pending" as const,
          validatedAt: undefined,
          error: undefined,
          authzId: order.authzId,
          authzStatus: "pending" as const,
          identifier: dns("a.example"),
          createdAt: 100,
          expiresAt: 1100,
          orderId: order.id,
          orderStatus: "pending" as const
        }
        const rows = yield* authorizations.find(order.authzId, { profile: "p", accountId })
        assert.deepStrictEqual(rows[0], expected)
        assert.deepStrictEqual(rows.map(({ id }) => id), [order.challengeId, dnsId], "in the order offered")
        assert.deepStrictEqual(
          yield* authorizations.findChallenge(order.challengeId, { profile: "p", accountId }),
          expected
        )
        assert.deepStrictEqual(yield* authorizations.findForValidation(order.challengeId, "p"), {
          ...expected,
          accountId
        })
        for (const scope of [{ profile: "q", accountId }, { profile: "p", accountId: other }]) {
          assert.deepStrictEqual(yield* authorizations.find(order.authzId, scope), [])
          assert.isUndefined(yield* authorizations.findChallenge(order.challengeId, scope))
        }
        assert.isUndefined(yield* authorizations.findForValidation(order.challengeId, "q"))
      }))

    test("become valid by an accepted proof, which also makes the order ready, each only if its status permits the change", () =>
      Effect.gen(function*() {
        for (const challenge of challengeStatuses) {
          for (const authz of authorizationStatuses) {
            for (const order of orderStatuses) {
              const row = yield* orderAt(order, authz)
              yield* set("challenges", row.challengeId, challenge)
              const subject = { id: row.challengeId, authzId: row.authzId, orderId: row.id }
              const said = `${challenge} ${authz} ${order}`
              const [accepts, proves] = [challenge === "processing", challenge === "processing" && authz === "pending"]
              assert.strictEqual((yield* transaction(proofs.accept(subject, 555))) !== undefined, accepts, said)
              assert.strictEqual(yield* statusOf("challenges", row.challengeId), accepts ? "valid" : challenge, said)
              assert.strictEqual(yield* statusOf("authorizations", row.authzId), proves ? "valid" : authz, said)
              const after = proves && order === "pending" ? "ready" : order
              assert.strictEqual(yield* statusOf("orders", row.id), after, said)
              if (accepts) {
                assert.strictEqual((yield* authorizations.findForValidation(row.challengeId, "p"))?.validatedAt, 555)
              }
            }
          }
        }
        const accountId = yield* addAccount()
        const two = yield* addOrder(accountId, ["a.example", "b.example"])
        const subjects = two.chall.map((id, at) => ({
          id,
          authzId: two.authz[at] ?? Id.AuthorizationId(""),
          orderId: two.id
        }))
        for (const [at, status] of ["pending", "ready"].entries()) {
          yield* set("challenges", two.chall[at] ?? "", "processing")
          yield* transaction(
            proofs.accept(subjects[at] ?? { id: Id.ChallengeId(""), authzId: two.authzId, orderId: two.id }, 1)
          )
          assert.strictEqual(yield* statusOf("orders", two.id), status)
        }
      }))

    test("are claimed only if the challenge, its authorization and its order are pending and not expired", () =>
      Effect.gen(function*() {
        for (const status of challengeStatuses) {
          for (const authz of authorizationStatuses) {
            for (const order of orderStatuses) {
              const row = yield* orderAt(order, authz)
              yield* set("challenges", row.challengeId, status)
              const claim = (now: number) =>
                authorizations.claim({ id: row.challengeId, accountId: row.accountId, cap: 32, now, validity: 0 })
              assert.isUndefined(yield* claim(1100), "expired")
              const moves = status === "pending" && authz === "pending" && order === "pending"
              assert.strictEqual((yield* claim(1099)) !== undefined, moves, `${status} ${authz} ${order}`)
              assert.strictEqual(yield* statusOf("challenges", row.challengeId), moves ? "processing" : status)
            }
          }
        }
      }))

    test("are claimed only while the account has fewer processing challenges than the limit, where 0 means no limit", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        const another = yield* orderAt("pending", "pending")
        yield* set("challenges", another.challengeId, "processing")
        const placed = yield* Effect.replicateEffect(addOrder(accountId), 4)
        const claim = (index: number, cap: number) =>
          authorizations.claim({
            id: placed[index]?.challengeId ?? Id.ChallengeId(""),
            accountId,
            cap,
            now: 0,
            validity: 0
          })
        assert.isDefined(yield* claim(0, 2))
        assert.isDefined(yield* claim(1, 2))
        assert.isUndefined(yield* claim(2, 2))
        assert.strictEqual(yield* authorizations.countInFlight(accountId), 2)
        assert.isDefined(yield* claim(2, 0), "no cap")
        assert.isUndefined(yield* claim(3, 3))
        yield* authorizations.accept(placed[0]?.challengeId ?? Id.ChallengeId(""), 100)
        assert.isDefined(yield* claim(3, 3), "a place came free")
      }))

    test("are accepted or refused only while the challenge is processing", () =>
      Effect.gen(function*() {
        for (const status of challengeStatuses) {
          const [one, two] = [yield* orderAt("pending", "pending"), yield* orderAt("pending", "pending")]
          yield* set("challenges", one.challengeId, status)
          yield* set("challenges", two.challengeId, status)
          const moves = status === "processing"
          assert.strictEqual((yield* authorizations.accept(one.challengeId, 555)) !== undefined, moves)
          assert.strictEqual((yield* authorizations.refuse(two.challengeId, problem, cause)) !== undefined, moves)
          const [accepted, refused] = [
            yield* authorizations.findForValidation(one.challengeId, "p"),
            yield* authorizations.findForValidation(two.challengeId, "p")
          ]
          assert.deepInclude(
            accepted ?? {},
            moves ? { status: "valid", validatedAt: 555 } : { status, validatedAt: undefined }
          )
          assert.strictEqual(refused?.status, moves ? "invalid" : status)
          assert.deepStrictEqual(refused?.error, moves ? problem : undefined)
        }
      }))

    const moves = {
      accept: [["pending"], "valid"],
      refuse: [["pending"], "invalid"],
      expire: [["pending"], "expired"],
      deactivate: [["pending", "valid"], "deactivated"]
    } as const
    for (const [name, [from, to]] of Object.entries(moves)) {
      test(`change by ${name} only if the authorization is ${from.join(" or ")}`, () =>
        Effect.gen(function*() {
          for (const status of authorizationStatuses) {
            const { authzId } = yield* orderAt("pending", status)
            const moved = (from as ReadonlyArray<string>).includes(status)
            assert.strictEqual(
              (yield* authorizations.transition(name as keyof typeof moves, authzId)) !== undefined,
              moved
            )
            assert.strictEqual(yield* statusOf("authorizations", authzId), moved ? to : status)
          }
        }))
    }

    test("expire only in the given orders, and only if the authorization is pending", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        const [one, other] = yield* Effect.replicateEffect(addOrder(accountId, ["a.example", "b.example"]), 2)
        const unnamed = yield* addOrder(accountId)
        if (one === undefined || other === undefined) return assert.fail()
        yield* set("authorizations", one.authzId, "valid")
        for (const { id } of [one, other]) yield* authorizations.expire(id)
        assert.deepStrictEqual(yield* sql("SELECT status, count(*) AS n FROM authorizations GROUP BY 1 ORDER BY 1"), [
          { status: "expired", n: 3 },
          { status: "pending", n: 1 },
          { status: "valid", n: 1 }
        ])
        assert.strictEqual(yield* statusOf("authorizations", unnamed.authzId), "pending")
      }))

    test("count as orphaned if the challenge has been processing for long enough and has no active job", () =>
      Effect.gen(function*() {
        const pubkey = Buffer.from("the key")
        const accountId = yield* addAccount("p", pubkey)
        const order = yield* addOrder(accountId)
        yield* addOrder(accountId)
        yield* set("challenges", order.challengeId, "processing")
        const found = yield* authorizations.findOrphaned(101, 10)
        assert.strictEqual(found.length, 1)
        assert.deepInclude(found[0] ?? {}, { id: order.challengeId, profile: "p", orderId: order.id })
        assert.deepStrictEqual(Buffer.from(found[0]?.pubkey ?? []), pubkey)
        assert.deepStrictEqual(yield* authorizations.findOrphaned(100, 10), [], "young")
        yield* jobs.insert({
          id: JobId(yield* uuid),
          kind: "challenge_validate",
          dedupKey: order.challengeId,
          payload: "{}",
          runAt: 0,
          maxAttempts: 3,
          deadline: undefined,
          now: 0
        })
        assert.deepStrictEqual(yield* authorizations.findOrphaned(101, 10), [])
        yield* sql("UPDATE jobs SET status = 'done'")
        assert.strictEqual((yield* authorizations.findOrphaned(101, 10)).length, 1)
      }))

    test("are inserted for all hundred names of an order or for none", () =>
      Effect.gen(function*() {
        const accountId = yield* addAccount()
        const names = Array.from({ length: 100 }, (_, index) => `n${index}.example`)
        const { authz, id } = yield* addOrder(accountId, names)
        assert.deepStrictEqual((yield* orders.find({ id, profile: "p", accountId }))?.authorizationIds, authz)
        const rows = Effect.all(
          ["orders", "order_identifiers", "authorizations", "challenges"].map((table) =>
            count(`SELECT count(*) FROM ${table}`)
          )
        )
        assert.deepStrictEqual(yield* rows, [1, 100, 100, 100])
        yield* addOrder(accountId, ["a.example"], 100, "q")
        assert.deepStrictEqual(yield* rows, [1, 100, 100, 100], "the account has another profile")
        yield* set("accounts", accountId, "deactivated")
        yield* addOrder(accountId)
        yield* addOrder(Id.AccountId(yield* uuid))
        assert.deepStrictEqual(yield* rows, [1, 100, 100, 100], "the account has ended, or there is none")
      }))
  })

  describe("nonces", () => {
    test("are used only once, one at a time or several together, and are swept by age", () =>
      Effect.gen(function*() {
        yield* nonces.insert(["a", "b", "c"], 100_001)
        yield* nonces.insert(["d"], 200_000)
        assert.deepStrictEqual(yield* nonces.consume(["a"]), new Map([["a", 100_001]]))
        assert.deepStrictEqual(yield* nonces.consume(["a"]), new Map())
        assert.deepStrictEqual(yield* nonces.consume(["a", "b", "x", "b"]), new Map([["b", 100_001]]))
        assert.strictEqual(yield* nonces.sweep(100, 10), 0, "not before its time")
        yield* nonces.insert(["e", "f"], 100_999)
        assert.strictEqual(yield* nonces.sweep(101, 2), 2)
        assert.strictEqual(yield* nonces.sweep(101, 2), 1)
        assert.deepStrictEqual(yield* column("SELECT value FROM nonces"), ["d"])
      }))
  })

  describe("workers", () => {
    test("are found only by their exact host and role, and only if they were seen in the given time", () =>
      Effect.gen(function*() {
        const row = { owner: "host:1:u", roles: "acme,worker", version: "1", startedAt: 100 }
        yield* workers.present({ ...row, now: 100 })
        yield* workers.present({ ...row, startedAt: 999, now: 150 })
        assert.deepStrictEqual(
          yield* sql("SELECT started_at AS s, last_seen_at AS l FROM workers").pipe(
            Effect.map((rows) => rows.map(({ l, s }) => [Number(s), Number(l)]))
          ),
          [[100, 150]]
        )
        assert.isTrue(yield* workers.wasSeen("host", "worker", 150, 200))
        assert.isFalse(yield* workers.wasSeen("host", "worker", 0, 149), "by a clock that was wrong")
        assert.isFalse(yield* workers.wasSeen("host", "worker", 151, 200))
        assert.isFalse(yield* workers.wasSeen("hos", "worker", 0, 200))
        assert.isFalse(yield* workers.wasSeen("other", "worker", 0, 200))
        assert.isFalse(yield* workers.wasSeen("host", "work", 0, 200))
        assert.isFalse(yield* workers.wasSeen("host", "admin", 0, 200))
        yield* workers.present({ ...row, owner: "h%st:2:u", now: 10 })
        assert.isFalse(yield* workers.wasSeen("hxst", "worker", 0, 200), "no pattern")
        assert.strictEqual(yield* workers.sweep(11, 200), 1)
        yield* workers.present({ ...row, owner: "host:3:u", now: 201 })
        assert.strictEqual(yield* workers.sweep(11, 200), 1, "seen later than now")
        yield* workers.remove("host:1:u")
        assert.strictEqual(yield* count("SELECT count(*) FROM workers"), 0)
      }))
  })

  describe("audit rows", () => {
    test("are written with the outcome of their event, and their texts are cut to the size of the columns", () =>
      Effect.gen(function*() {
        yield* audit.insert({
          event: "certificate_issue_failed",
          actorKind: "acme",
          actorId: "a",
          identifiers: Array.from({ length: 150 }, (_, index) => `${index}`),
          userAgent: "x".repeat(300),
          requestId: "r".repeat(300),
          reason: "badCSR",
          detail: { cause: "bad_csr" }
        })
        const [row] = yield* sql("SELECT * FROM audit_log")
        assert.deepInclude(row ?? {}, {
          event: "certificate_issue_failed",
          outcome: "failure",
          actor_kind: "acme",
          reason: "badCSR",
          detail: `{"cause":"bad_csr"}`,
          profile: null,
          client_ip: null,
          user_agent: "x".repeat(256),
          request_id: "r".repeat(128)
        })
        assert.strictEqual((JSON.parse(String(row?.identifiers)) as ReadonlyArray<string>).length, 100)
      }))

    test("do not make record fail if they cannot be written", () =>
      Effect.gen(function*() {
        const row = { event: "account_deactivated", actorKind: "nobody" as "acme", detail: { via: "account" } } as const
        yield* audit.record(row)
        assert.strictEqual((yield* Effect.exit(audit.insert(row)))._tag, "Failure")
        assert.strictEqual(yield* count("SELECT count(*) FROM audit_log"), 0)
      }))
  })
})
