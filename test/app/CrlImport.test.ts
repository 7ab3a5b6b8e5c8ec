import { Effect, Result } from "effect"
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { listedSerials } from "../../src/crypto/x509/Crl.ts"
import type { Database } from "../../src/engine/sql/Database.ts"
import { Database as Db } from "../../src/engine/sql/Database.ts"
import { rfc3339 } from "../../src/engine/Time.ts"
import * as crl from "../../src/operations/work/crl/ListPublication.ts"
import { Signers } from "../../src/services/signing/Signer.ts"
import * as crls from "../../src/store/revocation/Crls.ts"
import * as revocations from "../../src/store/revocation/Revocations.ts"
import { bitString, der, ext, int, oid, pem, seq } from "../crypto/Pki.ts"
import type { World } from "../support/Graph.ts"
import { openDriver, sql, world } from "../support/Graph.ts"
import { profilesIn } from "../support/Issued.ts"
import type { Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/* `crl import`, run in this process. */

const startsAt = 1_800_000_000
const { test } = useTests({ startsAt })

/** Runs a program directly on the database of a place and with its CA, not through a command. */
const served = <A, E>({ directory }: Place, program: Effect.Effect<A, E, Database | World>) =>
  Effect.scoped(
    Effect.flatMap(openDriver(`sqlite://${directory}/acme.db`), (driver) =>
      program.pipe(
        Effect.provide(world({ profiles: profilesIn(directory) })),
        Effect.provideService(Db, driver)
      ))
  )

const own = Effect.map(Signers, ({ crlIssuers: [only] }) => only ?? assert.fail("no CA"))

/** Makes a revocation list of the CA with these serial numbers, all revoked at one time as `superseded`. */
const listOf = (number: number, serials: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { id } = yield* own
    const before = yield* crls.find(id)
    for (const serial of serials) {
      yield* revocations.insert({ issuer: id, serial, now: 5, reason: 4, notAfter: undefined })
    }
    yield* sql(`UPDATE crls SET crl_number = ${number - 1}`)
    yield* crl.regenerate({ issuer: id })
    const made = (yield* crls.find(id))?.der ?? assert.fail("no list")
    if (before !== undefined) {
      yield* sql("DELETE FROM crls")
      yield* crls.insert({ ...before, issuer: id, number: before.crlNumber })
    }
    yield* sql("DELETE FROM revocations")
    return Buffer.from(made)
  })

/** Makes a place whose database knows the CA, and a revocation list with entries that the database does not have. */
const restored = Effect.gen(function*() {
  const place = freshPlace((here) => `
    [profiles.default.signer.local_ca]
    cert_path = "${here}/ca.pem"
    key_path = "${here}/ca.key"
    crl_path = "${here}/ca.crl"
  `)
  assert.strictEqual((yield* place.run(["migrate"])).code, 0)
  const { issuer, list } = yield* served(
    place,
    Effect.gen(function*() {
      yield* crl.initialize
      const { id } = yield* own
      return { issuer: id, list: yield* listOf(41, ["0a", "0b"]) }
    })
  )
  writeFileSync(join(place.directory, "kept.pem"), pem("X509 CRL", list))
  writeFileSync(join(place.directory, "kept.crl"), list)
  return { place, issuer, list, run: (...words: ReadonlyArray<string>) => place.run(["crl", "import", ...words]) }
})

describe("crl import", () => {
  test("asks before it imports the entries that are missing, and counts them", () =>
    Effect.gen(function*() {
      const { issuer, list, place, run } = yield* restored
      assert.strictEqual((yield* run(issuer, "kept.pem")).code, 2, "nobody can be asked")
      const declined = yield* place.run(["crl", "import", issuer, "kept.pem"], { typed: "n" })
      assert.strictEqual(declined.code, 3)
      assert.include(
        declined.err,
        `Revoke 2 certificates that list 41 of ${rfc3339(startsAt - 3600)} names and the database does not?`
      )
      const { code, err, out } = yield* run(issuer, "kept.pem", "--yes", "--json")
      assert.deepStrictEqual([code, err], [0, ""])
      assert.deepStrictEqual(JSON.parse(out), {
        issuer,
        crlNumber: 41,
        thisUpdate: rfc3339(startsAt - 3600),
        entries: 2,
        recorded: 0,
        ended: 0,
        imported: 2,
        withoutOrder: 2
      })
      const again = yield* run(issuer, "kept.crl")
      assert.deepStrictEqual([again.code, again.err], [0, ""], "nothing is left to be asked for")
      assert.match(again.out, /^recorded +2$/m)
      assert.match(again.out, /^imported +0$/m)
      yield* served(
        place,
        Effect.gen(function*() {
          assert.deepStrictEqual(
            (yield* sql("SELECT event, actor_kind, actor_id, cert_serial FROM audit_log ORDER BY id")).map((row) =>
              Object.values(row).join(" ")
            ),
            [
              "revocation_restored cli tester 0a",
              "revocation_restored cli tester 0b",
              "crl_number_raised cli tester "
            ]
          )
          assert.deepStrictEqual(
            (yield* sql("SELECT serial, revoked_at, reason, not_after FROM revocations ORDER BY serial")).map((row) =>
              Object.values(row).map(String).join(" ")
            ),
            ["0a 5 4 null", "0b 5 4 null"]
          )
          assert.deepStrictEqual((yield* sql("SELECT kind FROM jobs")).map(({ kind }) => kind), [
            "local_ca_crl_regenerate"
          ])
          yield* crl.regenerate({ issuer })
          const next = yield* crls.find(issuer)
          assert.strictEqual(next?.crlNumber, 42)
          assert.deepStrictEqual([...Result.getOrThrow(listedSerials(next?.der ?? list))], ["0a", "0b"])
        })
      )
    }))

  test("works if the CA certificate of another profile is missing, but not if that certificate is invalid", () =>
    Effect.gen(function*() {
      const { issuer, place, run } = yield* restored
      const at = (name: string) => join(place.directory, name)
      appendFileSync(
        at("config.toml"),
        `[profiles.gone.signer.local_ca]\ncert_path = "${at("gone.pem")}"\nkey_path = "${
          at("gone.key")
        }"\ncrl_path = "${at("gone.crl")}"\n`
      )
      const listed = yield* place.run(["crl", "list", "--json"])
      const warning = `Warning: Profile gone: signer.local_ca.cert_path: ${
        at("gone.pem")
      } cannot be used: no such file or directory; run \`init\`.`
      assert.deepStrictEqual([listed.code, JSON.parse(listed.err)], [0, { remarks: [warning] }])
      const { items } = JSON.parse(listed.out)
      assert.lengthOf(items, 1)
      assert.deepInclude(items[0], { issuer, profiles: ["default"] })
      assert.strictEqual((yield* run(issuer, "kept.pem", "--yes")).code, 0)
      writeFileSync(at("gone.pem"), "no certificate")
      for (const words of [["list"], ["import", issuer, "kept.pem"]]) {
        const { code, err } = yield* place.run(["crl", ...words])
        assert.strictEqual(code, 3)
        assert.include(err, "gone.pem cannot be used")
      }
    }))

  test("refuses every file that is not a complete revocation list of this CA, and changes nothing", () =>
    Effect.gen(function*() {
      const { issuer, list, place, run } = yield* restored
      const at = (name: string) => join(place.directory, name)
      const another = freshPlace()
      yield* another.run(["migrate"])
      const foreign = yield* served(another, Effect.andThen(crl.initialize, listOf(50, ["0c"])))
      writeFileSync(at("foreign.crl"), foreign)
      writeFileSync(at("cut.crl"), list.subarray(0, 100))
      writeFileSync(at("empty.crl"), "")
      mkdirSync(at("folder"))
      const algorithm = seq(oid("1.2.840.10045.4.3.2"))
      const time = der(0x17, Buffer.from("260101000000Z"))
      const signed = seq(int(1n), algorithm, seq(), time, der(0xa0, seq(ext("2.5.29.27", int(1n), true))))
      const delta = seq(signed, algorithm, bitString(Buffer.alloc(8)))
      writeFileSync(at("odd.crl"), delta)
      const before = readFileSync(at("acme.db"))
      for (
        const [words, says] of [
          [[issuer, "foreign.crl"], "foreign.crl cannot be imported: it does not verify under the key of this CA"],
          [[issuer, "cut.crl"], "it is no revocation list in DER"],
          [[issuer, "odd.crl"], "odd.crl cannot be imported: it is a delta list"],
          [[issuer, "empty.crl"], "it is neither DER nor one block X509 CRL of PEM"],
          [[issuer, "ca.pem"], "it is neither DER nor one block X509 CRL of PEM"],
          [[issuer, "absent.crl"], "absent.crl cannot be used: no such file or directory"],
          [[issuer, "folder"], "folder cannot be used: not a regular file"],
          [["unknown", "kept.crl"], "There is no issuer unknown."]
        ] as const
      ) {
        const { code, err, out } = yield* run(...words, "--yes")
        assert.deepStrictEqual([code, out], [3, ""], words.join(" "))
        assert.include(err, says)
      }
      assert.deepStrictEqual(readFileSync(at("acme.db")), before)
      yield* served(
        place,
        sql(`INSERT INTO crls (issuer, crl_number, der, this_update, next_update) VALUES ('former', 1, x'00', 0, 0)`)
      )
      const unserved = yield* run("former", "kept.crl", "--yes")
      assert.strictEqual(unserved.code, 3)
      assert.include(unserved.err, "No enabled profile signs with the CA former")
    }))
})
