import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Issuer } from "../../../../src/services/signing/Issuers.ts"
import { Issuers } from "../../../../src/services/signing/Issuers.ts"
import { databases } from "../../../support/Databases.ts"
import { queued, worker, works } from "../../../support/Ending.ts"
import { breakWrites, mend } from "../../../support/Faults.ts"
import { column, configOf, sql } from "../../../support/Graph.ts"
import { issuersOf } from "../../../support/KnownIssuers.ts"
import { daySeconds, madeAt } from "../../../support/LocalCa.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/*
 * Tests the messages to operators about CAs that expire (docs/contribute/decisions/notifications.md, "CAs that end").
 */

const configWith = (events: string) =>
  configOf(`[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/secret"
${events}
[profiles.other.notify]
enabled = []
`.replace("[profiles.other]\n", ""))

const config = configWith("events = [\"authority_expiring\"]")
const days = (many: number) => TestClock.adjust(`${many} days`)

const issuerOf = (id: string, notAfter: number): Issuer => ({
  id,
  certificate: Buffer.from("x"),
  anchorPem: "",
  ledgerPath: "/nowhere",
  subject: `CN=${id}`,
  sha256: "cd",
  keyType: "ecdsa-p256",
  keySource: "file",
  nameConstraints: [],
  notBefore: 0,
  notAfter: notAfter + 1000 * daySeconds,
  firstToEnd: { notAfter, subject: "CN=Upper" }
})

/** Provides a CA for both profiles that expires `caDays` days after the beginning. */
const withCa = (caDays: number, id = "aa") =>
  Effect.provideService(Issuers, issuersOf(() => issuerOf(id, madeAt + caDays * daySeconds)))

describe.each(databases)("the expiry of a CA on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: madeAt })
  const told = Effect.map(queued, (rows) => rows.map(({ event, fields }) => [event, fields["days_remaining"]]))
  const advised = () => records.filter(({ event }) => event === "local_ca_expiring").length
  const run = (self = config, caDays = 100, id = "aa") => withCa(caDays, id)(works(self))
  const nextAt = Effect.map(
    sql("SELECT run_at FROM jobs WHERE kind = 'authority_expiry' AND status = 'ready'"),
    ([row]) => (Number(row?.["run_at"]) - madeAt) / daySeconds
  )

  test("is reported once at 90, 30, 7 and 1 days before the expiry, however often processes start", () =>
    Effect.gen(function*() {
      const heard: Array<unknown> = []
      for (let day = 0; day <= 101; day++) {
        for (let start = 0; start < 2; start++) yield* run()
        const all = yield* told
        if (all.length > heard.length) heard.push([day, ...all.slice(heard.length).map(([, left]) => left)])
        yield* days(1)
      }
      assert.deepStrictEqual(heard, [[10, 90], [70, 30], [93, 7], [99, 1]])
      const [first] = yield* queued
      const { delivery_id: _, ...fields } = first?.fields ?? assert.fail("nothing is told")
      assert.deepStrictEqual(fields, {
        hook: "authority_expiring",
        profile: "default",
        at: madeAt + 10 * daySeconds,
        issuer: "aa",
        subject: "CN=aa",
        chain_ends_with: "CN=Upper",
        not_after: madeAt + 100 * daySeconds,
        days_remaining: 90
      })
    }))

  test("is reported once for a threshold that has passed while no process ran, and also after the expiry", () =>
    Effect.gen(function*() {
      yield* run(config, 20)
      assert.deepStrictEqual(yield* told, [["authority_expiring", 20]])
      yield* days(25)
      yield* run(config, 20)
      yield* run(config, 20)
      assert.deepStrictEqual(yield* told, [["authority_expiring", 20], ["authority_expiring", 0]])
    }))

  test("is reported again for another expiry and for another CA, but not for an expiry far in the future", () =>
    Effect.gen(function*() {
      yield* run(config, 5)
      yield* run(config, 6)
      yield* run(config, 6, "bb")
      yield* run(config, 400, "bb")
      yield* run(config, 6, "bb")
      assert.deepStrictEqual((yield* told).map(([, left]) => left), [5, 6, 6])
    }))

  test("is reported only to receivers that name the event, as soon as the configuration has such a receiver", () =>
    Effect.gen(function*() {
      yield* run(configWith(""), 5)
      assert.deepStrictEqual(yield* told, [], "an entry that names no events is told those of the first version")
      assert.deepStrictEqual(yield* column("SELECT days FROM authority_notices"), [])
      yield* run(config, 5)
      assert.lengthOf(yield* told, 1)
    }))

  test("is logged once a day during the last ninety days", () =>
    Effect.gen(function*() {
      yield* run(configWith(""))
      assert.strictEqual(advised(), 0)
      yield* days(11)
      for (let day = 1; day <= 3; day++) {
        yield* run(configWith(""))
        assert.strictEqual(advised(), day)
        yield* days(1)
      }
      const [record] = records.filter(({ event }) => event === "local_ca_expiring")
      assert.deepStrictEqual(record?.fields, {
        issuer: "aa",
        not_after: new Date((madeAt + 100 * daySeconds) * 1000).toISOString().replace(".000Z", "Z")
      })
    }))

  test("is checked each day and when a threshold is reached", () =>
    Effect.gen(function*() {
      yield* run()
      assert.strictEqual(yield* nextAt, 1)
      yield* run(config, 90.25)
      assert.closeTo(yield* nextAt, 0.25, 1e-9)
    }))

  test("is not reported as long as the report cannot be recorded in the database", () =>
    Effect.gen(function*() {
      yield* breakWrites(backend.dialect, { operation: "INSERT", table: "authority_notices" })
      const { enqueuePeriodic, pass } = yield* withCa(5)(worker(config))
      yield* enqueuePeriodic()
      yield* pass
      assert.deepStrictEqual(yield* told, [])
      yield* mend(backend.dialect)
      yield* TestClock.adjust("10 minutes")
      yield* run(config, 5)
      assert.lengthOf(yield* told, 1)
    }))

  test("is not reported for a profile for which another service signs", () =>
    Effect.gen(function*() {
      yield* works(config)
      assert.deepStrictEqual(yield* column("SELECT status FROM jobs WHERE kind = 'authority_expiry'"), [])
      yield* run(config, 5)
      yield* works(config)
      assert.deepStrictEqual(yield* column("SELECT status FROM jobs WHERE kind = 'authority_expiry'"), ["done"])
    }))
})
