import { Effect, Result } from "effect"
import { TestClock } from "effect/testing"
import { X509Certificate } from "node:crypto"
import { assert, describe } from "vitest"
import { parseCsr } from "../../../src/crypto/x509/Csr.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import * as accounts from "../../../src/operations/acme/Accounts.ts"
import { finalize } from "../../../src/operations/acme/Finalize.ts"
import * as orders from "../../../src/operations/acme/Orders.ts"
import { shareOfCaller } from "../../../src/operations/Caller.ts"
import * as accountRecords from "../../../src/operations/operator/AccountRecords.ts"
import * as jobs from "../../../src/operations/operator/Jobs.ts"
import * as removal from "../../../src/operations/operator/OrderRemoval.ts"
import { list } from "../../../src/operations/operator/OrphanRecords.ts"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import { accept } from "../../../src/services/signing/ForeignChain.ts"
import type { Issued, IssueRequest, Signers } from "../../../src/services/signing/Signer.ts"
import { SigningFailed } from "../../../src/services/signing/Signer.ts"
import * as stored from "../../../src/store/AccountRows.ts"
import * as jobSearch from "../../../src/store/jobs/JobSearch.ts"
import { handlers } from "../../../src/surfaces/jobs/JobHandlers.ts"
import { wakened, wakenedUntil } from "../../support/Asleep.ts"
import { makeCsr } from "../../support/Csr.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import type { World } from "../../support/Graph.ts"
import {
  callerAt,
  column,
  configOf,
  count,
  eventsOf,
  fieldsOf,
  orderOf,
  profileOf,
  sql,
  world
} from "../../support/Graph.ts"
import { work } from "../../support/Issued.ts"
import { usualKind } from "../../support/Kinds.ts"
import { finalized, relay, relaying, relaysBy, signsByCa, useRelays } from "../../support/Relayed.ts"
import { useWorld } from "../../support/UseWorld.ts"
import { watched } from "../../support/Watched.ts"

/*
 * Tests what happens to a certificate that a program or an upstream issued for an order that has ended
 * (docs/contribute/decisions/orphaned-certificates.md).
 */

const config = configOf()
const profile = profileOf(config)
const operator = { kind: "cli", id: "tester" } as const
const revokes = work("orphan_revoke")

const rows = Effect.map(
  sql("SELECT serial, cause, status, error FROM orphaned_certificates ORDER BY found_at"),
  (found) => found.map(({ cause, error, serial, status }) => ({ cause, error, serial, status }))
)

const trail = Effect.map(
  sql("SELECT event, cert_serial FROM audit_log WHERE event LIKE 'certificate_orphan%' ORDER BY id"),
  (found) => found.map(({ cert_serial, event }) => [event, cert_serial])
)

/** Signs like a program or an upstream, so the certificate exists outside the service before it is stored. */
const signsElsewhere = (request: IssueRequest) =>
  Effect.map(signsByCa(request), ({ chain, notAfter, serial }) => ({ chain, notAfter, serial }))

const serialOf = (leaf: Uint8Array | undefined) => leaf === undefined ? "" : new X509Certificate(leaf).serialNumber

describe.each(databases)("a certificate for an order that has ended, on $name", (backend) => {
  describe("signed by a program", () => {
    const { records, test } = useWorld(backend)
    const meanwhile: { run: Effect.Effect<void> } = { run: Effect.void }
    const interrupts: { run: Effect.Effect<void> } = { run: Effect.void }
    const revoked: Array<Uint8Array> = []
    const script = {
      issue: (request: IssueRequest) => Effect.andThen(Effect.suspend(() => meanwhile.run), signsElsewhere(request)),
      revoke: (leaf: Uint8Array) =>
        Effect.sync(() => {
          revoked.push(leaf)
        })
    }

    const readyOrder = Effect.gen(function*() {
      revoked.length = 0
      const caller = yield* callerAt(profile)
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      yield* finalize(caller, id, makeCsr({ names: ["a.example"] }).csr.toString("base64url"))
      return { caller, id }
    })

    type Ready = Effect.Success<typeof readyOrder>
    const ends: { readonly [how: string]: (of: Ready) => Effect.Effect<unknown, unknown, Database | World> } = {
      "its client deactivates the account": ({ caller }) =>
        stored.find("default", caller.accountId).pipe(
          Effect.flatMap(Effect.fromNullishOr),
          Effect.flatMap((account) => accounts.deactivate(caller, account))
        ),
      "an operator deactivates the account": ({ caller }) => accountRecords.deactivate(operator, caller.accountId),
      "an operator deletes the order": ({ id }) => removal.remove(operator, id),
      "an operator deletes the account": ({ caller }) => accountRecords.remove(operator, caller.accountId),
      "an authorization is deactivated": () => sql("UPDATE authorizations SET status = 'deactivated'"),
      "its order expires": () => TestClock.adjust(`${profile.order.validity_seconds} seconds`)
    }
    for (const [how, end] of Object.entries(ends)) {
      test(`is recorded and revoked if ${how} while the program signs`, () =>
        Effect.gen(function*() {
          const of = yield* readyOrder
          const context = yield* Effect.context<Database | World>()
          meanwhile.run = Effect.orDie(Effect.provide(end(of), context)).pipe(Effect.asVoid)
          yield* work("signer_issue")
          const [row] = yield* rows
          assert.deepInclude(row, { cause: "order_ended", status: "waiting" })
          assert.strictEqual(fieldsOf(records, "certificate_orphaned")[0]?.["cert_serial"], row?.serial)
          assert.deepStrictEqual(revoked, [])
          yield* TestClock.adjust("2 minutes")
          yield* revokes
          assert.deepStrictEqual(revoked.map(serialOf), [String(row?.serial).toUpperCase()])
          assert.deepStrictEqual((yield* rows).map(({ status }) => status), ["revoked"])
          assert.deepStrictEqual(yield* trail, [
            ["certificate_orphaned", row?.serial],
            ["certificate_orphan_revoked", row?.serial]
          ])
          assert.strictEqual(yield* count("SELECT count(*) FROM orders WHERE certificate IS NOT NULL"), 0)
        }), script)
    }

    const finalizedOrder = Effect.tap(
      readyOrder,
      Effect.sync(() => {
        meanwhile.run = Effect.void
      })
    )

    test(
      "is revoked if its chain was refused and the order has therefore ended",
      () =>
        Effect.gen(function*() {
          const { caller, id } = yield* finalizedOrder
          yield* work("signer_issue")
          assert.strictEqual((yield* orders.find(caller, id)).status, "invalid")
          assert.deepStrictEqual((yield* rows).map(({ cause }) => cause), ["chain_rejected"])
          assert.deepStrictEqual(
            yield* column("SELECT share FROM jobs WHERE kind = 'orphan_revoke'"),
            [shareOfCaller(caller)]
          )
          yield* revokes
          assert.lengthOf(revoked, 1)
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs WHERE kind = 'orphan_revoke'"), ["done"])
        }),
      {
        ...script,
        issue: (request: IssueRequest) =>
          Effect.flatMap(signsElsewhere(request), ({ chain }) => accept(`Signed:\n${chain}`, request, "program"))
      }
    )

    test("is not revoked if its program failed after signing but a later attempt stores the certificate", () => {
      let made: Issued | undefined
      return Effect.provide(
        Effect.gen(function*() {
          const { caller, id } = yield* finalizedOrder
          yield* work("signer_issue")
          assert.deepInclude((yield* rows)[0], { cause: "signer_failed", status: "waiting" })
          // The order has not ended yet, so nothing is revoked.
          yield* revokes
          assert.deepStrictEqual(revoked, [])
          yield* TestClock.adjust("5 minutes")
          yield* work("signer_issue")
          assert.strictEqual((yield* orders.find(caller, id)).status, "valid")
          yield* TestClock.adjust("5 minutes")
          yield* revokes
          assert.deepStrictEqual(revoked, [])
          assert.deepStrictEqual((yield* rows).map(({ status }) => status), ["stored"])
          assert.include(eventsOf(records), "certificate_orphan_stored")
        }),
        world({
          ...script,
          records,
          issue: (request) => {
            const first = made
            if (first !== undefined) return Effect.succeed(first)
            return Effect.flatMap(signsElsewhere(request), (signed) => {
              made = signed
              const leaf = new X509Certificate(signed.chain).raw
              return new SigningFailed({ cause: "script_failed", detail: "it failed after it signed", made: leaf })
            })
          }
        })
      )
    })

    test(
      "is recorded as soon as the database works again if its settlement could not be written",
      () =>
        watched(Effect.gen(function*() {
          yield* finalizedOrder
          yield* breakWrites(backend.dialect, { table: "orders", operation: "UPDATE" })
          const signing = yield* Effect.forkChild(work("signer_issue"))
          yield* wakenedUntil(() => eventsOf(records).includes("certificate_orphaned"))
          yield* mend(backend.dialect)
          assert.lengthOf(yield* rows, 1)
          yield* wakened(signing)
        })),
      script
    )

    test(
      "is sent to a failing signer for a week to be revoked, and is then kept so that operators see it",
      () =>
        Effect.gen(function*() {
          const { caller } = yield* readyOrder
          const context = yield* Effect.context<Database | World>()
          const end = accountRecords.deactivate(operator, caller.accountId)
          meanwhile.run = Effect.orDie(Effect.provide(end, context)).pipe(Effect.asVoid)
          yield* work("signer_issue")
          let hours = 0
          for (; hours < 24 * 9 && (yield* rows)[0]?.status === "waiting"; hours++) {
            yield* TestClock.adjust("1 hour")
            yield* revokes
          }
          assert.isAtLeast(hours, 24 * 7 - 1)
          assert.isBelow(fieldsOf(records, "certificate_orphan_revoke_failed").length, 60)
          assert.deepInclude((yield* rows)[0], { status: "kept", error: "script_failed: no such hook" })
          assert.deepStrictEqual((yield* trail).map(([event]) => event), [
            "certificate_orphaned",
            "certificate_orphan_kept"
          ])
          const { items, total } = yield* list({ status: "kept" }, { limit: 10, offset: 0 })
          assert.deepStrictEqual([items.length, total], [1, 1])
        }),
      {
        ...script,
        revoke: () => new SigningFailed({ cause: "script_failed", detail: "no such hook" })
      }
    )

    test(
      "is not given up while the signer never answers, even if there are several for one order",
      () =>
        Effect.gen(function*() {
          const { caller } = yield* readyOrder
          const context = yield* Effect.context<Database | World>()
          const end = accountRecords.deactivate(operator, caller.accountId)
          meanwhile.run = Effect.orDie(Effect.provide(end, context)).pipe(Effect.asVoid)
          yield* work("signer_issue")
          const same = "order_id, profile, leaf, not_after, cause, status, found_at, updated_at"
          for (const other of ["0a", "0b"]) {
            yield* sql(
              `INSERT INTO orphaned_certificates (${same}, serial, fingerprint) SELECT ${same}, '${other}', '${other}'
               FROM orphaned_certificates WHERE serial NOT IN ('0a', '0b')`
            )
          }
          const known = (yield* handlers(config)).filter(({ kind }) => kind === "orphan_revoke")
          const { idle, interruptOverdue, pass } = yield* Runner.make({ ...config.jobs, owner: "host:1:a" }, known)
          interrupts.run = Effect.orDie(Effect.provide(interruptOverdue, context))
          for (let hour = 0; hour < 24; hour++) {
            yield* TestClock.adjust("1 hour")
            yield* pass
            yield* Effect.orDie(idle)
          }
          assert.deepStrictEqual((yield* rows).map(({ status }) => status), ["waiting", "waiting", "waiting"])
          assert.deepStrictEqual(yield* column("SELECT status FROM jobs WHERE kind = 'orphan_revoke'"), ["ready"])
        }),
      {
        ...script,
        revoke: () =>
          Effect.andThen(
            Effect.andThen(TestClock.adjust("30 seconds"), Effect.suspend(() => interrupts.run)),
            new SigningFailed({ cause: "signer_failed", detail: "no answer within 30000 ms" })
          )
      }
    )

    test("is listed until thirty days after its expiry", () =>
      Effect.gen(function*() {
        const { caller } = yield* readyOrder
        const context = yield* Effect.context<Database | World>()
        const end = accountRecords.deactivate(operator, caller.accountId)
        meanwhile.run = Effect.orDie(Effect.provide(end, context)).pipe(Effect.asVoid)
        yield* work("signer_issue")
        const notAfter = yield* count("SELECT not_after FROM orphaned_certificates")
        yield* TestClock.setTime((notAfter + 30 * 86_400) * 1000)
        yield* sweeps.sweepOrders(config)
        assert.lengthOf(yield* rows, 1)
        yield* revokes
        assert.deepStrictEqual((yield* rows).map(({ status }) => status), ["expired"])
        assert.deepStrictEqual(revoked, [])
        yield* TestClock.adjust("2 hours")
        yield* sweeps.sweepOrders(config)
        assert.lengthOf(yield* rows, 0)
      }), script)
  })

  describe("issued by an upstream", () => {
    const { leave, play, records, revokeBy, revoked, test } = useRelays(backend)
    const away = new SigningFailed({ cause: "signer_failed", detail: "no route to the upstream" })
    const url = "https://ca.example/order/1"

    /** Runs an attempt that opens the order at the upstream and then gets no answer. */
    const opened = Effect.gen(function*() {
      const of = yield* finalized()
      play(({ keeper }) => Effect.andThen(keeper.opened(url, undefined), away))
      yield* relay
      const chain = yield* Effect.map(
        signsByCa({
          orderId: of.id,
          csr: Result.getOrThrow(parseCsr(of.csr)),
          names: ["a.example"],
          kind: usualKind,
          validityBound: undefined,
          notBefore: undefined,
          notAfter: undefined,
          orderedAt: 0
        }),
        ({ chain }) => chain
      )
      leave((asked) => {
        assert.strictEqual(asked, url)
        return Effect.succeed(chain)
      })
      return { ...of, serial: new X509Certificate(chain).serialNumber }
    })

    const ends: {
      readonly [how: string]: (
        of: Effect.Success<typeof opened>
      ) => Effect.Effect<unknown, unknown, Database | World | Signers>
    } = {
      "its account was deactivated": () => Effect.andThen(sql("UPDATE accounts SET status = 'deactivated'"), later),
      "its order ended": () => Effect.andThen(sql("UPDATE orders SET status = 'invalid'"), later),
      "an operator cancelled its job": () =>
        Effect.flatMap(
          column("SELECT id FROM jobs WHERE kind = 'signer_relay_issue'"),
          () =>
            Effect.flatMap(jobSearch.search({ kind: "signer_relay_issue" }, { limit: 1, offset: 0 }), ([job]) =>
              jobs.cancel(operator, job?.id ?? ""))
        ),
      "the attempts of its job were used up": () => Effect.repeat(later, { times: 6 }),
      "its order expired": () => Effect.andThen(TestClock.adjust(`${profile.order.validity_seconds} seconds`), relay),
      "an operator deleted the order": ({ id }) => removal.remove(operator, id),
      "an operator deleted the account": ({ caller }) => accountRecords.remove(operator, caller.accountId),
      "its job was gone after a crash": () =>
        Effect.andThen(
          sql("DELETE FROM jobs"),
          Effect.andThen(TestClock.adjust("5 minutes"), sweeps.recover(relaying))
        )
    }
    const later = Effect.andThen(TestClock.adjust("2 hours"), relay)
    for (const [how, end] of Object.entries(ends)) {
      test(`is found at the upstream, recorded and revoked after ${how}`, () =>
        Effect.gen(function*() {
          const of = yield* opened
          yield* end(of)
          yield* revokes
          assert.deepStrictEqual(revoked.map(serialOf), [of.serial])
          assert.deepStrictEqual((yield* rows).map(({ cause, status }) => [cause, status]), [[
            "order_ended",
            "revoked"
          ]])
        }))
    }

    test("is looked for again while the upstream's order is processing, but not after that order has ended without a certificate", () =>
      Effect.gen(function*() {
        yield* opened
        yield* sql("UPDATE orders SET status = 'invalid'")
        yield* later
        leave(() => new SigningFailed({ cause: "signer_failed", detail: "its order is still processing" }))
        yield* revokes
        assert.deepStrictEqual(fieldsOf(records, "certificate_orphan_search_failed").map(({ error }) => error), [
          "its order is still processing"
        ])
        leave(() => Effect.succeed(undefined))
        yield* TestClock.adjust("2 hours")
        yield* revokes
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs WHERE kind = 'orphan_revoke'"), ["done"])
        assert.deepStrictEqual(yield* rows, [])
      }))

    test("is not revoked if the order at the upstream now belongs to another order here", () =>
      Effect.gen(function*() {
        const { caller } = yield* opened
        yield* sql("UPDATE orders SET status = 'invalid'")
        yield* later
        // The certificate exists at the upstream, but is not stored here.
        yield* finalized("default", ["a.example"])
        yield* sql("UPDATE upstream_orders SET upstream_order_url = NULL WHERE upstream_order_url IS NOT NULL")
        yield* sql(`UPDATE upstream_orders SET upstream_order_url = '${url}' WHERE status = 'processing'`)
        yield* revokes
        assert.deepStrictEqual([revoked, yield* rows], [[], []], caller.accountId)
      }))

    test("is looked for no longer than a week if its profile is no longer served", () =>
      Effect.gen(function*() {
        yield* opened
        yield* sql("UPDATE orders SET status = 'invalid'")
        yield* later
        const nobody = relaysBy(() => Effect.die("asked"), [])
        for (let days = 0; days < 9; days++) {
          yield* Effect.provide(revokes, nobody)
          yield* TestClock.adjust("1 day")
        }
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs WHERE kind = 'orphan_revoke'"), ["failed"])
      }))

    test("is kept if its upstream refuses to revoke it", () =>
      Effect.gen(function*() {
        yield* opened
        yield* sql("UPDATE orders SET status = 'invalid'")
        yield* later
        revokeBy(() => new SigningFailed({ cause: "upstream_refused", detail: "no", problemType: "unauthorized" }))
        yield* revokes
        assert.deepInclude((yield* rows)[0], { status: "kept", error: "upstream_refused: no" })
      }))

    test("is not looked for if the upstream has already refused the order", () =>
      Effect.gen(function*() {
        yield* finalized()
        play(({ keeper }) =>
          Effect.andThen(
            keeper.opened(url, undefined),
            new SigningFailed({ cause: "upstream_refused", detail: "no", problemType: "rejectedIdentifier" })
          )
        )
        yield* relay
        assert.deepStrictEqual(yield* column("SELECT kind FROM jobs WHERE kind = 'orphan_revoke'"), [])
      }))
  })
})
