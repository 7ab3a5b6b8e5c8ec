import { Effect, Result } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { assert, describe } from "vitest"
import { refuseEmptied } from "../../../../src/operations/work/crl/Emptied.ts"
import * as crl from "../../../../src/operations/work/crl/ListPublication.ts"
import { ledgerPathOf } from "../../../../src/services/signing/Ledger.ts"
import { Signers } from "../../../../src/services/signing/Signer.ts"
import { databases, freshDirectory } from "../../../support/Databases.ts"
import { column, sql, world } from "../../../support/Graph.ts"
import { profilesIn, useOwnCa } from "../../../support/Issued.ts"

/*
 * Tests a published list and a database that do not belong together, because the database was lost, was exchanged or is
 * older.
 */

describe.each(databases)("an exported list, with a database on $name", (backend) => {
  const { test } = useOwnCa(backend)

  const emptied = Effect.andThen(sql("DELETE FROM jobs"), sql("DELETE FROM crls"))
  const here = Effect.map(Signers, ({ crlIssuers: [only] }) => only ?? assert.fail("no CA"))
  const number = Effect.map(column("SELECT crl_number FROM crls"), ([one]) => Number(one))

  test("prevents a worker from starting with an empty database unless the list belongs to another CA or an old ledger exists", () =>
    Effect.gen(function*() {
      yield* refuseEmptied
      const { id, path } = yield* here
      yield* sql("UPDATE crls SET crl_number = 6")
      yield* crl.regenerate({ issuer: id })
      yield* emptied
      const refused = yield* Effect.flip(refuseEmptied)
      assert.deepInclude(refused, { _tag: "DatabaseEmptied", path, number: 7 })
      rmSync(path)
      const issued = `${path}.issued`
      assert.deepInclude(yield* Effect.flip(refuseEmptied), { _tag: "DatabaseEmptied", path: issued, number: 7 })
      const another = Effect.flatMap(here, (other) =>
        Effect.updateService(refuseEmptied, Signers, (signers) => ({
          ...signers,
          crlIssuers: [{ ...other, path }]
        })))
      yield* Effect.provide(another, world({ seed: "another", profiles: profilesIn(freshDirectory()) }))
      writeFileSync(ledgerPathOf(path), "[]")
      yield* refuseEmptied
    }))

  test("is followed only by lists with higher numbers", () =>
    Effect.gen(function*() {
      const { id } = yield* here
      yield* sql("UPDATE crls SET crl_number = 6")
      yield* crl.regenerate({ issuer: id })
      yield* emptied
      yield* crl.initialize
      assert.strictEqual(yield* number, 8, "begun anew")
      yield* sql("UPDATE crls SET crl_number = 2")
      yield* crl.initialize
      assert.deepStrictEqual(yield* column("SELECT kind FROM jobs"), ["local_ca_crl_regenerate"])
      yield* crl.regenerate({ issuer: id })
      assert.strictEqual(yield* number, 9, "an older database")
      assert.isTrue(Result.isSuccess(yield* Effect.result(refuseEmptied)))
    }))
})
