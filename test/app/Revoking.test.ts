import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Database } from "../../src/engine/sql/Database.ts"
import { Database as Db } from "../../src/engine/sql/Database.ts"
import type { World } from "../support/Graph.ts"
import { callerAt, configOf, openDriver, orderWith, profileOf, sql, world } from "../support/Graph.ts"
import type { Ended, Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"
import { useTests } from "../support/UseTests.ts"

/* Tests the commands that revoke certificates and that list the certificates which expire soon. */

const startsAt = 1_800_000_000
const { test } = useTests({ startsAt })

const served = <A, E>({ directory }: Place, program: Effect.Effect<A, E, Database | World>) =>
  Effect.scoped(
    Effect.flatMap(openDriver(`sqlite://${directory}/acme.db`), (driver) =>
      program.pipe(Effect.provide(world()), Effect.provideService(Db, driver)))
  )

/** A signer that only jobs call. No worker runs jobs in these tests. */
const custom = `[signer]\nbackend = "custom"\ncustom.script_path = "sign"\n${minimalConfig}`

/** Makes a place with the certificates a1 and a2, which expire in ten and in twenty days. */
const issuedWith = (config: string) =>
  Effect.gen(function*() {
    const place = freshPlace(() => config)
    assert.strictEqual((yield* place.run(["migrate"])).code, 0)
    const [one = "", two = ""] = yield* served(
      place,
      Effect.gen(function*() {
        const caller = yield* callerAt(profileOf(configOf()))
        return yield* Effect.forEach([1, 2], (number) =>
          orderWith(
            caller,
            `status = 'valid', certificate = 'PEM', cert_serial = 'a${number}', cert_not_after = ${
              startsAt + number * 864_000
            }`,
            `a${number}.example`
          ))
      })
    )
    return { one, place, run: place.run, two }
  })

/** Makes every job fail as soon as it exists. */
const failing = sql(
  "CREATE TRIGGER fail AFTER INSERT ON jobs BEGIN UPDATE jobs SET status = 'failed' WHERE id = NEW.id; END"
)

const issued = issuedWith(custom)

const outOf = <A>({ out }: Ended): A => JSON.parse(out) as A

interface Queued {
  readonly status: string
  readonly job: string
}

describe("order revoke", () => {
  test("prints the status and the id of the queued job with --json", () =>
    Effect.gen(function*() {
      const { one, place, run } = yield* issued
      const ended = yield* run(["order", "revoke", one, "--reason", " 04 ", "--wait", "0", "--json"])
      assert.deepStrictEqual([ended.err, ended.code], ["", 0])
      const { job, status } = outOf<Queued>(ended)
      assert.strictEqual(status, "queued")
      assert.deepStrictEqual(yield* served(place, sql("SELECT lower(hex(id)) AS id FROM jobs")), [{
        id: job.replaceAll("-", "")
      }])
    }))

  test("ends with 1 if the job fails while the command waits", () =>
    Effect.gen(function*() {
      const { one, place, run, two } = yield* issued
      yield* served(place, failing)
      const ended = yield* run(["order", "revoke", one, "--wait", "5", "--json"])
      const { job } = outOf<Queued>(ended)
      assert.strictEqual(ended.code, 1)
      assert.include(ended.err, `Job ${job} is failed`)
      assert.strictEqual((yield* run(["order", "revoke", two, "--wait", "0"])).code, 0, "nobody waits for it")
    }))

  test("ignores the signer in a refused configuration", () =>
    Effect.gen(function*() {
      const asked = (config: string) =>
        Effect.gen(function*() {
          const { one, place, run } = yield* issuedWith(minimalConfig)
          writeFileSync(join(place.directory, "config.toml"), config)
          return yield* run(["order", "revoke", one, "--wait", "0"])
        })
      const local = yield* asked(minimalConfig)
      assert.strictEqual(local.code, 3)
      assert.include(local.err, "no revocation list yet")
      const refused = yield* asked(`${minimalConfig}[servers]\nspeed = 1\n`)
      assert.strictEqual(refused.code, 0, refused.err)
      assert.include(refused.out, "asks the signer")
    }))
})

describe("cert list", () => {
  test("prints certificates with their states and ends, and refuses what does not fit", () =>
    Effect.gen(function*() {
      const { place, run } = yield* issued
      yield* served(place, sql(`UPDATE orders SET revoked_at = ${startsAt} WHERE cert_serial = 'a2'`))
      const ended = yield* run(["cert", "list", "--sort", "soonest"])
      assert.deepStrictEqual([ended.code, ended.err], [0, ""])
      const [head = "", ...rows] = ended.out.trimEnd().split("\n")
      assert.match(head, /^NAMES +KIND +ENDS +STATE +ACCOUNT +PROFILE +SERIAL$/)
      assert.match(rows[0] ?? "", /^a1\.example +default +\S+.* +ending +\S+ +default +a1$/)
      assert.match(rows[1] ?? "", /^a2\.example +default +\S+.* +revoked +\S+ +default +a2$/)
      const revoked = yield* run(["cert", "list", "--state", "revoked", "--json"])
      assert.deepStrictEqual(
        outOf<{ items: Array<{ certSerial: string }> }>(revoked).items.map((one) => one.certSerial),
        [
          "a2"
        ]
      )
      const wrong = yield* run(["cert", "list", "--sort", "latest", "--identifier", "a1.example"])
      assert.strictEqual(wrong.code, 2)
      assert.include(wrong.err, "only with")
    }))
})

describe("cert revoke", () => {
  interface Done {
    readonly items: ReadonlyArray<Queued & { readonly serial: string }>
    readonly refused: ReadonlyArray<{ readonly serial: string; readonly error: string }>
  }

  test("reports for each certificate whether its revocation is queued or refused", () =>
    Effect.gen(function*() {
      const { place, run } = yield* issued
      yield* served(place, sql(`UPDATE orders SET revoked_at = ${startsAt} WHERE cert_serial = 'a1'`))
      const ended = yield* run(["cert", "revoke", "A1", "a2", "0a:2", "--wait", "0", "--json"])
      assert.strictEqual(ended.code, 3)
      const { items, refused } = outOf<Done>(ended)
      assert.deepStrictEqual(items.map(({ serial, status }) => [serial, status]), [["a2", "queued"]])
      assert.deepStrictEqual(refused.map(({ error, serial }) => [serial, error]), [["a1", "already_revoked"]])
      assert.include(ended.err, "a1: The certificate is revoked already.")
    }))

  test("reports refused and failed revocations", () =>
    Effect.gen(function*() {
      const { place, run } = yield* issued
      yield* served(place, Effect.andThen(failing, sql(`UPDATE orders SET revoked_at = 1 WHERE cert_serial = 'a1'`)))
      const ended = yield* run(["cert", "revoke", "a1", "a2", "--wait", "5"])
      assert.strictEqual(ended.code, 1)
      assert.match(ended.out, /^a2: Job \S+ asks the signer to revoke the certificate\.\n$/)
      assert.match(ended.err, /^Job \S+ is failed\na1: The certificate is revoked already\.\n$/)
    }))

  test("revokes no certificate if one of them is unknown", () =>
    Effect.gen(function*() {
      const { place, run } = yield* issued
      const unknown = yield* run(["cert", "revoke", "a1", "b1", "b2"])
      assert.deepStrictEqual([unknown.code, unknown.out], [3, ""])
      assert.match(unknown.err, /There is no certificate b1\..*\n.*There is no certificate b2\..*\nNo certificate was/)
      assert.deepStrictEqual(yield* served(place, sql("SELECT id FROM jobs")), [])
      yield* served(place, sql("UPDATE orders SET revoked_at = 1"))
      const refused = yield* run(["cert", "revoke", "a1"])
      assert.deepStrictEqual([refused.code, refused.out], [3, ""])
      const wrong = yield* run(["cert", "revoke", "a1", "xyz"])
      assert.deepStrictEqual([wrong.code, wrong.out], [2, ""])
      assert.include(
        wrong.err,
        "<serial> takes a serial number in hexadecimal, with or without colons, which value 2 is not."
      )
    }))
})

describe("order expiring", () => {
  test("lists the same orders as order list --expiring-in", () =>
    Effect.gen(function*() {
      const { run } = yield* issued
      const listed = (...words: ReadonlyArray<string>) =>
        Effect.map(run(["order", ...words, "--json"]), outOf<{ readonly total: number; readonly days: number }>)
      for (const days of ["15", "0", "-3"]) {
        const old = yield* listed("list", "--expiring-in", days)
        assert.deepStrictEqual(yield* listed("expiring", "--within", days), old)
      }
      const { days, total } = yield* listed("expiring")
      assert.deepStrictEqual([days, total], [30, 2])
      assert.strictEqual((yield* listed("expiring", "--within", "15")).total, 1)
    }))

  test("refuses other filters in its old form, order list --expiring-in", () =>
    Effect.gen(function*() {
      const { run } = yield* issued
      for (const words of [["--hide-superseded"], ["--expiring-in", "7", "--status", "valid"]]) {
        const ended = yield* run(["order", "list", ...words])
        assert.deepStrictEqual([ended.code, ended.out], [2, ""], words.join(" "))
        assert.include(ended.err, "--expiring-in")
      }
    }))
})
