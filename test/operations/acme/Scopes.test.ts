import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import type { CredentialScope } from "../../../src/domain/CredentialScope.ts"
import { noScope } from "../../../src/domain/CredentialScope.ts"
import { AuthorizationId } from "../../../src/domain/Id.ts"
import { problemOf } from "../../../src/domain/Problem.ts"
import { clocks } from "../../../src/engine/queue/Clocks.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import * as acmeAuthorizations from "../../../src/operations/acme/Authorizations.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import { datesOf } from "../../../src/operations/acme/Validity.ts"
import type { Caller } from "../../../src/operations/Caller.ts"
import { knownWords } from "../../../src/operations/OlderProcesses.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import * as deletion from "../../../src/operations/operator/EabDeletion.ts"
import { orderDetailObject } from "../../../src/operations/operator/Objects.ts"
import { detail } from "../../../src/operations/operator/OrderRecords.ts"
import * as eabKeys from "../../../src/store/eab/EabKeys.ts"
import * as certificates from "../../../src/store/orders/CertificateRows.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, column, configOf, count, eventsOf, profileOf, sql } from "../../support/Graph.ts"
import { useOwnCa, workUnder } from "../../support/Issued.ts"
import { renewalIdOf } from "../../support/Openssl.ts"

const config = configOf(`
challenge.enabled = ["http-01", "dns-01"]
[certificates.kinds]
default.description = "d"
mutual.description = "m"
mutual.usages = ["server_auth", "client_auth"]
`)

const operator = { id: undefined, kind: "cli", username: "root", surface: "cli" } as const

describe.each(databases)("what a credential may ask for on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

  const make = (scope: Partial<CredentialScope>) =>
    Effect.map(
      eab.create(operator, { label: "team", profile: undefined, scope: { ...noScope, ...scope } }),
      ({ credential }) => credential.kid
    )

  /** Returns an account that was bound with a credential. */
  const boundWith = (kid: string) =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      const literal = backend.dialect === "sqlite" ? `x'${kid.replaceAll("-", "")}'` : `'\\x${kid.replaceAll("-", "")}'`
      yield* sql(`UPDATE accounts SET eab_kid = ${literal} WHERE eab_kid IS NULL`)
      return { ...caller, eabKid: kid } satisfies Caller
    })

  const order = (caller: Caller, names: ReadonlyArray<string>, kind?: string) =>
    orders.create(caller, {
      identifiers: names.map((value) => ({ type: "dns", value })),
      notBefore: undefined,
      notAfter: undefined,
      certificateProfile: kind
    })

  const refusalOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.flip(effect), (error) => problemOf(error as Parameters<typeof problemOf>[0]))

  const authorizationIds = Effect.map(
    column(`SELECT ${backend.dialect === "sqlite" ? "lower(hex(id))" : "id::text"} FROM authorizations ORDER BY id`),
    (ids) => ids.map((id) => id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"))
  )

  const csrOf = (...names: ReadonlyArray<string>) => makeCsr({ names }).csr.toString("base64url")

  test("refuses each name that it does not cover, and takes the others", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ names: ["**.corp.example"] }))
      yield* order(caller, ["a.corp.example", "b.a.corp.example"])
      const one = yield* refusalOf(order(caller, ["a.corp.example", "a.example"]))
      assert.strictEqual(one.type, "urn:ietf:params:acme:error:rejectedIdentifier")
      assert.include(one.detail, "The credential of this account does not cover it")
      const two = yield* refusalOf(order(caller, ["corp.example", "a.example"]))
      assert.deepStrictEqual(two.subproblems?.map(({ identifier }) => identifier?.value), ["corp.example", "a.example"])
    }))

  test("refuses a wildcard whose names it covers, unless it permits wildcards", () =>
    Effect.gen(function*() {
      const kid = yield* make({ names: ["**.corp.example"] })
      const caller = yield* boundWith(kid)
      yield* refusalOf(order(caller, ["*.corp.example"]))
      yield* eab.setScope(operator, kid, { changes: { wildcards: true }, cleared: [] })
      yield* order(caller, ["*.corp.example"])
    }))

  test("chooses a kind that it permits, and refuses every other", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ kinds: ["mutual"] }))
      assert.strictEqual((yield* order(caller, ["a.example"])).kind, "mutual")
      const refused = yield* refusalOf(order(caller, ["a.example"], "default"))
      assert.strictEqual(refused.type, "urn:ietf:params:acme:error:invalidProfile")
      assert.include(refused.detail, "mutual is.")
    }))

  test("refuses every order if none of its kinds exists", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ kinds: ["gone"] }))
      assert.include((yield* refusalOf(order(caller, ["a.example"]))).type, "invalidProfile")
    }))

  test("shortens certificates to its validity", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ names: ["a.example"], prevalidated: true, validitySeconds: 7200 }))
      const { id } = yield* order(caller, ["a.example"])
      yield* finalize(caller, id, csrOf("a.example"))
      yield* workUnder(config, "signer_issue_restricted")
      const row = yield* certificates.certificate({ id, profile: "default", accountId: caller.accountId })
      const leaf = new X509Certificate(row?.certificate ?? assert.fail("no certificate"))
      assert.strictEqual(leaf.validToDate.getTime() / 1000, (yield* currentSeconds) + 7200)
    }))

  test("makes orders ready at once, without challenges, if it is prevalidated", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ names: ["**.corp.example"], prevalidated: true }))
      const { id, status } = yield* order(caller, ["a.corp.example", "b.corp.example"])
      assert.strictEqual(status, "ready")
      assert.strictEqual(yield* count("SELECT count(*) FROM challenges"), 0)
      assert.deepStrictEqual(yield* column("SELECT DISTINCT status FROM authorizations"), ["valid"])
      yield* finalize(caller, id, csrOf("a.corp.example", "b.corp.example"))
      yield* workUnder(config, "signer_issue", "signer_issue_restricted")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"])
      const [authz = ""] = yield* authorizationIds
      const view = yield* acmeAuthorizations.find(caller, AuthorizationId(authz))
      assert.deepInclude(view, { status: "valid", challenges: [] })
      const [row = ""] = yield* column("SELECT detail FROM audit_log WHERE event = 'certificate_issued'")
      assert.include(JSON.parse(row), { proved_by: "credential" })
      const { authorizations } = orderDetailObject(config, yield* detail(config, id), 0)
      assert.deepStrictEqual<unknown>(
        authorizations.map(({ challenges, identifier, provedBy }) => [identifier.value, provedBy, challenges]),
        [["a.corp.example", "credential", []], ["b.corp.example", "credential", []]]
      )
    }))

  test("does not make orders ready without names, which no command can store", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ names: ["**.example"], prevalidated: true }))
      yield* sql("UPDATE eab_keys SET names = NULL")
      assert.strictEqual((yield* order(caller, ["a.example"])).status, "pending")
    }))

  test("refuses dates that its lifetime does not permit", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ validitySeconds: 86_400 }))
      const now = yield* currentSeconds
      const far = { notBefore: now + 7 * 86_400, notAfter: now + 8 * 86_400 }
      const identifiers = [{ type: "dns", value: "a.example" }]
      const refused = yield* refusalOf(orders.create(caller, { identifiers, ...far }))
      assert.include(refused.detail, "No certificate can have the validity")
    }))

  test("does not count orders that replace a certificate, but only so many may replace one", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ names: ["**.example"], prevalidated: true, ordersPerDay: 1 }))
      const { id } = yield* order(caller, ["a.example"])
      yield* finalize(caller, id, csrOf("a.example"))
      yield* workUnder(config, "signer_issue_restricted")
      const row = yield* Effect.flatMap(
        certificates.certificate({ id, profile: "default", accountId: caller.accountId }),
        Effect.fromNullishOr
      )
      const replaces = renewalIdOf(row.certificate)
      const renewal = {
        identifiers: [{ type: "dns", value: "a.example" }],
        notBefore: undefined,
        notAfter: undefined,
        replaces
      }
      const limited = { ...caller, profile: profileOf(configOf("limits.orders_per_replacement = 1")) }
      yield* orders.create(limited, renewal)
      yield* sql("UPDATE orders SET status = 'invalid' WHERE replaces IS NOT NULL")
      const refused = yield* Effect.flip(orders.create(limited, renewal))
      assert.deepInclude(refused, { _tag: "RateLimited", limit: "orders_per_replacement" })
    }))

  test("limits the orders of a day over all its accounts, and says when the next is possible", () =>
    Effect.gen(function*() {
      const kid = yield* make({ ordersPerDay: 2 })
      const [one, other] = [yield* boundWith(kid), yield* boundWith(kid)]
      yield* order(one, ["a.example"])
      yield* order(other, ["b.example"])
      const error = yield* Effect.flip(order(one, ["c.example"]))
      assert.deepInclude(error, { _tag: "RateLimited", limit: "orders_per_day", most: 2, retryAfter: 86_400 })
      assert.include(problemOf(error as Parameters<typeof problemOf>[0]).detail, "new orders with this credential")
    }))

  test("is judged again at finalize, which leaves the order as it is", () =>
    Effect.gen(function*() {
      const kid = yield* make({ names: ["**.example"], prevalidated: true })
      const caller = yield* boundWith(kid)
      const { id } = yield* order(caller, ["a.example"])
      yield* eab.setScope(operator, kid, { changes: { names: ["b.example"] }, cleared: [] })
      const refused = yield* refusalOf(finalize(caller, id, csrOf("a.example")))
      assert.strictEqual(refused.type, "urn:ietf:params:acme:error:rejectedIdentifier")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["ready"])
      assert.deepStrictEqual(
        yield* column("SELECT reason FROM audit_log WHERE event = 'certificate_issue_failed'"),
        ["rejectedIdentifier"]
      )
      yield* eab.setScope(operator, kid, { changes: { names: ["**.example"], kinds: ["mutual"] }, cleared: [] })
      assert.include((yield* refusalOf(finalize(caller, id, csrOf("a.example")))).type, "invalidProfile")
    }))

  test("finalizes no order without challenges after it stopped to make challenges unnecessary", () =>
    Effect.gen(function*() {
      const kid = yield* make({ names: ["**.example"], prevalidated: true })
      const caller = yield* boundWith(kid)
      const { id } = yield* order(caller, ["a.example"])
      yield* eab.setScope(operator, kid, { changes: {}, cleared: ["prevalidated"] })
      const refused = yield* refusalOf(finalize(caller, id, csrOf("a.example")))
      assert.strictEqual(refused.type, "urn:ietf:params:acme:error:unauthorized")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["ready"])
      assert.deepStrictEqual(
        yield* column("SELECT reason FROM audit_log WHERE event = 'certificate_issue_failed'"),
        ["unauthorized"]
      )
      const challenged = yield* order(caller, ["b.example"])
      yield* sql("UPDATE authorizations SET status = 'valid' WHERE status = 'pending'")
      yield* sql("UPDATE orders SET status = 'ready' WHERE status = 'pending'")
      // A challenge proved this order, so the credential does not matter.
      assert.strictEqual((yield* finalize(caller, challenged.id, csrOf("b.example"))).status, "processing")
      yield* eab.setScope(operator, kid, { changes: { prevalidated: true }, cleared: [] })
      assert.strictEqual((yield* finalize(caller, id, csrOf("a.example"))).status, "processing")
    }))

  test("is still observed by the accounts of a deleted credential: they may order nothing", () =>
    Effect.gen(function*() {
      const kid = yield* make({ names: ["**.example"] })
      const caller = yield* boundWith(kid)
      yield* deletion.remove(operator, kid, "keep")
      const [lost] = yield* column("SELECT scope_lost FROM accounts")
      assert.strictEqual(Number(lost), yield* currentSeconds)
      yield* refusalOf(order(caller, ["a.example"]))
    }))

  test("keeps an order from being signed if the credential is deleted after finalize", () =>
    Effect.gen(function*() {
      const kid = yield* make({ names: ["**.example"], prevalidated: true })
      const caller = yield* boundWith(kid)
      const { id } = yield* order(caller, ["a.example"])
      yield* finalize(caller, id, csrOf("a.example"))
      yield* deletion.remove(operator, kid, "keep")
      yield* workUnder(config, "signer_issue_restricted")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["invalid"])
      assert.notInclude(eventsOf(records), "local_ca_leaf_issued")
    }))

  test("does not restrict the accounts of a deleted credential that had no names", () =>
    Effect.gen(function*() {
      const kid = yield* make({ ordersPerDay: 1 })
      const caller = yield* boundWith(kid)
      yield* deletion.remove(operator, kid, "keep")
      yield* order(caller, ["a.example"])
    }))

  test("covers no name if it cannot be read", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(yield* make({ names: ["**.example"] }))
      yield* sql("UPDATE eab_keys SET names = '{'")
      yield* refusalOf(order(caller, ["a.example"]))
    }))

  test("is not set while a process of an older version runs", () =>
    Effect.gen(function*() {
      const { later: now } = yield* clocks
      yield* workers.present({ owner: "elsewhere:1:b", roles: "acme", version: "1", startedAt: now, now })
      const refused = yield* Effect.flip(make({ names: ["a.example"] }))
      assert.include("detail" in refused ? refused.detail : "", "elsewhere:1:b runs an older version")
      yield* make({})
    }))

  test("keeps a process of an older version from starting", () =>
    Effect.gen(function*() {
      const { later: now } = yield* clocks
      const older = workers.present({ owner: "elsewhere:1:b", roles: "acme", version: "1", startedAt: now, now })
      yield* make({})
      yield* older
      yield* sql("DELETE FROM workers")
      const kid = yield* make({ maxAccounts: 3 })
      const refused = yield* Effect.flip(older)
      assert.include(refused.message, "a credential has a scope, which this version of acme-svc does not know")
      yield* workers.present({
        owner: "here:1:c",
        roles: "acme",
        version: "2",
        startedAt: now,
        now,
        knows: knownWords.join(" ")
      })
      yield* eab.setScope(operator, kid, { changes: {}, cleared: ["maxAccounts"] })
      yield* older
    }))

  test("keeps a process of an older version from starting after its credential is gone", () =>
    Effect.gen(function*() {
      const { later: now } = yield* clocks
      const kid = yield* make({ names: ["a.example"] })
      yield* boundWith(kid)
      yield* deletion.remove(operator, kid, "keep")
      const refused = yield* Effect.flip(
        workers.present({ owner: "elsewhere:1:b", roles: "acme", version: "1", startedAt: now, now })
      )
      assert.include(refused.message, "a credential has a scope")
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      yield* workers.present({ owner: "elsewhere:1:b", roles: "acme", version: "1", startedAt: now, now })
    }))

  test("is in the dates that an order shows before its certificate exists", () =>
    Effect.gen(function*() {
      const caller = yield* boundWith(
        yield* make({ validitySeconds: 86_400, names: ["**.example"], prevalidated: true })
      )
      const now = yield* currentSeconds
      const made = yield* orders.create(caller, {
        identifiers: [{ type: "dns", value: "a.example" }],
        notBefore: now,
        notAfter: undefined
      })
      const shown = yield* datesOf(caller, { ...made, notAfter: now + 3 * 86_400 }, now)
      assert.isAtMost(shown.notAfter ?? Infinity, now + 86_400)
    }))

  test("needs names to be prevalidated", () =>
    Effect.gen(function*() {
      const refused = yield* Effect.flip(make({ prevalidated: true }))
      assert.deepInclude(refused, { _tag: "BadRequest", member: "prevalidated" })
    }))

  test("belongs to a credential of another server too, which clients name by its old identifier", () =>
    Effect.gen(function*() {
      const external = { kid: "old-1", secret: Buffer.alloc(32, 7) }
      const { credential } = yield* eab.create(operator, { external, label: "moved", profile: undefined })
      const found = yield* eabKeys.secretOfExternal("old-1", "default")
      assert.deepInclude(found, { kid: credential.kid, status: "active" })
      assert.deepStrictEqual(Buffer.from(found?.secret ?? []), external.secret)
      assert.isUndefined(yield* eabKeys.secretOfExternal("old-2", "default"))
      const taken = yield* Effect.flip(eab.create(operator, { external, label: "again", profile: "other" }))
      assert.deepInclude(taken, { _tag: "BadRequest", member: "externalKid" })
      const foreign = { external: { ...external, kid: "schl\u00fcssel" }, label: "moved", profile: undefined }
      const refused = yield* Effect.flip(eab.create(operator, foreign))
      assert.deepInclude(refused, { _tag: "BadRequest", member: "externalKid" })
    }))

  test("is recorded in the audit trail with its old and its new values", () =>
    Effect.gen(function*() {
      const kid = yield* make({ names: ["a.example"], ordersPerDay: 5 })
      yield* eab.setScope(operator, kid, { changes: { maxAccounts: 1 }, cleared: ["ordersPerDay"] })
      const [detail = ""] = yield* column("SELECT detail FROM audit_log WHERE event = 'eab_scope_changed'")
      const { after, before } = JSON.parse(detail) as { readonly after: object; readonly before: object }
      assert.deepStrictEqual(before, { names: ["a.example"], ordersPerDay: 5 })
      assert.deepStrictEqual(after, { names: ["a.example"], maxAccounts: 1 })
    }))
})
