import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { finalize } from "../../src/operations/acme/Finalize.ts"
import * as eab from "../../src/operations/operator/Eab.ts"
import * as deletion from "../../src/operations/operator/EabDeletion.ts"
import * as admin from "../../src/operations/operator/OrderRecords.ts"
import { makeCsr } from "../support/Csr.ts"
import { databases } from "../support/Databases.ts"
import { callerAt, column, configOf, eventsOf, newPrivateKey, orderOf, profileOf, sql } from "../support/Graph.ts"
import { issueTo, useOwnCa, work } from "../support/Issued.ts"

/* A change and its row in the audit trail belong together, so neither exists without the other. */

const config = configOf()
const operator = { kind: "cli", id: "olga" } as const

describe.each(databases)("the audit trail on $name", (backend) => {
  const { records, test } = useOwnCa(backend)

  /** Runs an effect while no row can be written to the trail. */
  const withoutRows = <A, E, R>(body: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      sql(
        backend.dialect === "sqlite"
          ? "CREATE TRIGGER planted BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'planted'); END"
          : "ALTER TABLE audit_log ADD CONSTRAINT planted CHECK (FALSE) NOT VALID"
      ),
      () => body,
      () => sql(backend.dialect === "sqlite" ? "DROP TRIGGER planted" : "ALTER TABLE audit_log DROP CONSTRAINT planted")
    )

  const events = column("SELECT event FROM audit_log ORDER BY id")
  const here = Effect.suspend(() => callerAt(profileOf(config)))

  test("gets the row of a certificate in the transaction that stores the certificate", () =>
    Effect.gen(function*() {
      const caller = yield* here
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      const csr = makeCsr({ names: ["a.example"], key: newPrivateKey() }).csr
      yield* finalize(caller, id, csr.toString("base64url"))
      const unchanged = Effect.gen(function*() {
        assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["processing"])
        assert.deepStrictEqual(yield* events, [])
      })
      const signing = yield* Effect.forkChild(work("signer_issue"))
      const refused = Effect.repeat(Effect.yieldNow, {
        until: () => eventsOf(records).includes("db_statement_failed")
      })
      yield* withoutRows(Effect.andThen(refused, unchanged))
      // The settlement is tried again, and now succeeds.
      while (signing.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* column("SELECT status FROM orders"), ["valid"])
      assert.deepStrictEqual(yield* events, ["certificate_issued"])
    }))

  test("gets the row of a revocation in the transaction of the revocation", () =>
    Effect.gen(function*() {
      const { orderId } = yield* issueTo(yield* here, ["a.example"])
      yield* sql("DELETE FROM audit_log")
      yield* withoutRows(Effect.flip(admin.revoke(config, operator, orderId, 1)))
      assert.deepStrictEqual(yield* column("SELECT cert_serial FROM orders WHERE revoked_at IS NOT NULL"), [])
      assert.deepStrictEqual(yield* column("SELECT serial FROM revocations"), [])
      yield* admin.revoke(config, operator, orderId, 1)
      assert.deepStrictEqual(yield* events, ["certificate_revoked"])
    }))

  test("gets the row of each change of a credential in the transaction of that change", () =>
    Effect.gen(function*() {
      yield* withoutRows(Effect.flip(eab.create(operator, { label: "one", profile: undefined })))
      assert.deepStrictEqual(yield* column("SELECT status FROM eab_keys"), [])
      const { credential } = yield* eab.create(operator, { label: "one", profile: undefined })
      yield* withoutRows(Effect.flip(eab.revoke(operator, credential.kid)))
      assert.deepStrictEqual(yield* column("SELECT status FROM eab_keys"), ["active"])
      yield* eab.revoke(operator, credential.kid)
      yield* eab.revoke(operator, credential.kid)
      yield* withoutRows(Effect.flip(deletion.remove(operator, credential.kid, "keep")))
      assert.deepStrictEqual(yield* column("SELECT status FROM eab_keys"), ["revoked"])
      yield* deletion.remove(operator, credential.kid, "keep")
      assert.deepStrictEqual(yield* events, ["eab_created", "eab_revoked", "eab_deleted"])
    }))

  test("is replaced by a log record with the subject if the row of a refusal cannot be written", () =>
    Effect.gen(function*() {
      const { orderId, serial } = yield* issueTo(yield* here, ["a.example"])
      yield* admin.revoke(config, operator, orderId, 1)
      records.length = 0
      yield* withoutRows(Effect.flip(admin.revoke(config, operator, orderId, 1)))
      const told = records.filter(({ event }) => event === "audit_write_failed").map(({ fields }) => fields)
      assert.lengthOf(told, 1)
      assert.deepInclude(told[0], {
        audit_event: "certificate_revoke_failed",
        order_id: orderId,
        cert_serial: serial.replace(/^(?:00)+/, "")
      })
    }))
})
