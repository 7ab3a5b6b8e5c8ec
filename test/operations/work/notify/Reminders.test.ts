import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { contactEvent } from "../../../../src/domain/Notification.ts"
import type { ExpiringCertificate, Payload } from "../../../../src/domain/Notification.ts"
import { Database } from "../../../../src/engine/sql/Database.ts"
import * as stored from "../../../../src/store/notify/ReminderRows.ts"
import { databases } from "../../../support/Databases.ts"
import { accountWith, ending, queued, setOrder, worker, works, worksUntil } from "../../../support/Ending.ts"
import { blindOnce, breakWrites, mend } from "../../../support/Faults.ts"
import { column, configOf, count, eventsOf, sql } from "../../../support/Graph.ts"
import { daySeconds, madeAt } from "../../../support/LocalCa.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/* Tests mail to the contacts of accounts (docs/contribute/decisions/notifications.md, "Expiring certificates"). */

const withExpiry = (expiry: string) =>
  configOf(`[notify]
enabled = ["email"]
[notify.email]
smtp_host = "localhost"
from = "a@example.org"
to = ["b@example.org"]
events = []
[notify.expiry]
${expiry}
`)

const config = withExpiry("lead_days = 14\nto_contacts = true")
const days = (many: number) => TestClock.adjust(`${many} days`)
const mail = (name: string) => `mailto:${name}@example.org`

describe.each(databases)("mail to contacts on $name", (backend) => {
  let sent: Array<Payload> = []
  const { records, test } = useWorld(backend, {
    startsAt: madeAt,
    first: () => Effect.sync(() => void (sent = [])),
    script: () => ({
      deliver: ({ fields }) =>
        Effect.sync(() => {
          sent.push(fields)
          return { answer: "taken" }
        })
    })
  })

  const said = (event: string) => records.filter((one) => one.event === event).map(({ fields }) => fields)
  const recipients = Effect.map(
    queued,
    (rows) => rows.filter(({ event }) => event === contactEvent).map(({ fields }) => fields["recipient"])
  )
  /** Runs the periodic work that is due, and delivers its mails. */
  const daily = works(config, { delivers: true })
  const namesOf = ({ certificates }: Payload) =>
    (certificates as ReadonlyArray<ExpiringCertificate>).map(({ identifiers }) => identifiers.join())

  test("is not sent unless it is turned on", () =>
    Effect.gen(function*() {
      yield* ending(yield* accountWith(config, [mail("ann")]), 3, "a.example")
      yield* works(withExpiry("lead_days = 14"), { delivers: true })
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
    }))

  test("tells each contact once a week which certificates expire, whichever workers run", () =>
    Effect.gen(function*() {
      const caller = yield* accountWith(config, [mail("ann"), mail("bob"), "MAILTO:ann%40example.org", mail("ANN")])
      yield* ending(caller, 13, "b.example", "c.example")
      yield* ending(caller, 12, "a.example")
      yield* ending(caller, 40, "later.example")
      yield* ending(yield* accountWith(config, [mail("zoe")], "other"), 1, "z.example")
      yield* daily
      yield* works(config, { delivers: true, owner: "host:2:b" })
      const here = sent.filter(({ profile }) => profile === "default")
      assert.deepStrictEqual(here.map(({ recipient }) => recipient).toSorted(), ["ANN@example.org", "bob@example.org"])
      const { at, certificates: _, delivery_id: __, recipient: ___, ...fields } = here[0] ??
        assert.fail("nothing is sent")
      assert.deepStrictEqual(fields, { hook: contactEvent, profile: "default", account_id: caller.accountId, total: 2 })
      assert.deepStrictEqual(here.map(namesOf), [["a.example", "b.example,c.example"], [
        "a.example",
        "b.example,c.example"
      ]])
      assert.strictEqual(at, madeAt)
      assert.sameDeepMembers(said("notify_expiry_reminders_queued"), [
        { profile: "default", count: 2, limited: 0 },
        { profile: "other", count: 1, limited: 0 }
      ])
      for (let day = 1; day < 7; day++) {
        yield* days(1)
        yield* daily
      }
      assert.lengthOf(sent, 3)
      yield* days(1)
      yield* daily
      assert.lengthOf(sent, 5, "the week is over")
    }))

  test("is not sent about replaced or revoked certificates, nor to a deactivated account", () =>
    Effect.gen(function*() {
      const caller = yield* accountWith(config, [mail("ann")])
      yield* ending(caller, 3, "replaced.example")
      yield* ending(caller, 90, "replaced.example")
      yield* setOrder(yield* ending(caller, 3, "revoked.example"), `revoked_at = ${madeAt}`)
      yield* ending(yield* accountWith(config, [mail("bob")]), 3, "gone.example")
      yield* sql(`UPDATE accounts SET status = 'deactivated' WHERE contact LIKE '%bob%'`)
      yield* daily
      assert.deepStrictEqual(yield* recipients, [])
      yield* ending(caller, 3, "left.example")
      yield* days(1)
      yield* daily
      assert.deepStrictEqual(sent.map(namesOf), [["left.example"]])
    }))

  test("reports the state at the time of sending, without certificates that were replaced, revoked or deleted after queueing", () =>
    Effect.gen(function*() {
      const caller = yield* accountWith(config, [mail("ann")])
      const kept = yield* ending(caller, 3, "kept.example")
      yield* ending(caller, 3, "replaced.example")
      yield* works(config)
      assert.lengthOf(yield* recipients, 1)
      yield* ending(caller, 90, "replaced.example")
      yield* daily
      assert.deepStrictEqual(sent.map(namesOf), [["kept.example"]])
      assert.deepStrictEqual(sent.map(({ total }) => total), [1])

      const dropped = () => said("notify_expiry_reminder_dropped").length
      const again = Effect.gen(function*() {
        yield* sql("DELETE FROM expiry_reminders")
        yield* sql("DELETE FROM reminded_addresses")
        yield* sql("DELETE FROM jobs")
        yield* works(config)
        assert.lengthOf(yield* recipients, 1)
      })
      yield* again
      yield* setOrder(kept, `revoked_at = ${madeAt}`)
      yield* daily
      assert.strictEqual(dropped(), 1, "revoked")
      yield* setOrder(kept, "revoked_at = NULL")
      yield* again
      yield* sql("UPDATE accounts SET status = 'deactivated'")
      yield* daily
      assert.strictEqual(dropped(), 2, "deactivated")
      yield* sql("UPDATE accounts SET status = 'valid'")
      yield* again
      yield* sql(`UPDATE accounts SET contact = '["mailto:bob@example.org"]'`)
      yield* daily
      assert.strictEqual(dropped(), 3, "another contact")
      yield* again
      yield* works(withExpiry("lead_days = 14"), { delivers: true })
      assert.strictEqual(dropped(), 4, "turned off")
      yield* again
      yield* setOrder(kept, `cert_not_after = ${madeAt}`)
      yield* daily
      assert.strictEqual(dropped(), 5, "ended")
      yield* setOrder(kept, `cert_not_after = ${madeAt + 3 * daySeconds}`)
      yield* again
      yield* sql("DELETE FROM orders")
      yield* daily
      assert.strictEqual(dropped(), 6, "deleted")
      assert.lengthOf(sent, 1)
      assert.deepStrictEqual(yield* column("SELECT DISTINCT status FROM jobs WHERE kind = 'notify_deliver'"), ["done"])
    }))

  test("is sent to one address at most five times a day, whoever names the address", () =>
    Effect.gen(function*() {
      for (let index = 0; index < 7; index++) {
        const caller = yield* accountWith(config, index < 6 ? [mail("victim")] : [mail("Victim"), mail("ann")])
        yield* ending(caller, 1 + index, `${index}.example`)
      }
      yield* daily
      const to = (name: string) => sent.filter(({ recipient }) => recipient === `${name}@example.org`).length
      assert.deepStrictEqual([to("victim"), to("Victim"), to("ann")], [5, 0, 1])
      assert.deepStrictEqual(said("notify_expiry_reminders_queued"), [{ profile: "default", count: 6, limited: 2 }])
      const stored = yield* column("SELECT key FROM reminded_addresses")
      assert.notInclude(stored.join(), "example")
      yield* days(1)
      yield* daily
      assert.deepStrictEqual([to("victim"), to("Victim"), to("ann")], [6, 0, 1], "the others the next day")
    }))

  test("is counted for an address in windows of a day, and a clock that is behind begins no window", () =>
    Effect.gen(function*() {
      const counted = (now: number) => stored.count({ key: "k", most: 2, windowSeconds: daySeconds, now })
      const next = madeAt + daySeconds
      const times = [madeAt, madeAt + 1, madeAt + 2, next - 1, next, next + 1, next + 2, madeAt]
      const taken = yield* Effect.forEach(times, counted)
      assert.deepStrictEqual(taken, [true, true, false, false, true, true, false, false])
    }))

  test("is not sent to a contact that is not a single mail address, whatever the contact contains", () =>
    Effect.gen(function*() {
      const odd = [
        "mailto:a@example.org%0d%0aBcc: b@example.org",
        "mailto:a%0d%0a@example.org",
        "mailto:a%00@example.org",
        "mailto:a\u0000@example.org",
        "mailto:a\r\nBcc:x@example.org",
        "mailto:\"a b\"@example.org",
        "mailto:a@example.org,b@example.org",
        "mailto:a@example.org?subject=x",
        "mailto:<a@example.org>",
        "mailto:a%E0%A4%A@example.org",
        `mailto:${"a".repeat(10_000)}@example.org`,
        "tel:+123",
        "a@example.org",
        ""
      ]
      yield* ending(
        yield* accountWith(config, [...odd, "mailto:ünï@exämple.org", "mailto:o'hara@example.org"]),
        3,
        "a.example"
      )
      yield* ending(yield* accountWith(config, odd), 3, "b.example")
      yield* daily
      assert.deepStrictEqual(sent.map(({ recipient }) => recipient).toSorted(), [
        "o'hara@example.org",
        "ünï@exämple.org"
      ])
      assert.strictEqual(yield* count("SELECT count(*) FROM expiry_reminders"), 1)
    }))

  test("is queued once even if two workers have read the same certificates", () =>
    Effect.gen(function*() {
      yield* ending(yield* accountWith(config, [mail("ann")]), 3, "a.example")
      const driver = yield* Database
      const blind = { ...blindOnce(driver, "FROM expiry_reminders WHERE order_id IN").driver, aside: undefined }
      yield* works(config)
      yield* sql("UPDATE jobs SET run_at = 0 WHERE kind = 'notify_expiry_reminders'")
      yield* Effect.provideService(works(config, { owner: "host:2:b" }), Database, blind)
      assert.lengthOf(yield* recipients, 1)
    }))

  test("is not sent again within the week, and no row is written in that time", () =>
    Effect.gen(function*() {
      yield* ending(yield* accountWith(config, [mail("ann")]), 12, "a.example")
      yield* daily
      yield* breakWrites(backend.dialect, { operation: "INSERT", table: "expiry_reminders" })
      yield* days(6)
      yield* daily
      yield* mend(backend.dialect)
      assert.deepStrictEqual(said("notify_expiry_reminders_failed"), [])
      assert.lengthOf(sent, 1)
    }))

  test("has its own share of deliveries, so that it does not delay mail to operators", () =>
    Effect.gen(function*() {
      yield* ending(yield* accountWith(config, [mail("ann")]), 3, "a.example")
      yield* works(config)
      const shares = yield* column("SELECT share FROM jobs WHERE kind = 'notify_deliver'")
      assert.deepStrictEqual(shares, ["default/email/expiry_reminder"])
    }))

  test("is queued once even if its worker is killed after any statement", () =>
    Effect.gen(function*() {
      for (const name of ["ann", "bob"]) yield* ending(yield* accountWith(config, [mail(name)]), 3, `${name}.example`)
      const outcomes = new Set<number>()
      let isWhole = false
      for (let statements = 0; !isWhole; statements++) {
        for (const table of ["jobs", "expiry_reminders", "reminded_addresses"]) yield* sql(`DELETE FROM ${table}`)
        yield* Effect.flatMap(worker(config), ({ enqueuePeriodic }) => enqueuePeriodic())
        isWhole = yield* worksUntil(config, statements)
        outcomes.add((yield* recipients).length)
        yield* TestClock.adjust("2 minutes")
        yield* works(config)
        assert.sameMembers(yield* recipients, ["ann@example.org", "bob@example.org"], `after ${statements} statements`)
        assert.isBelow(statements, 60)
      }
      assert.deepStrictEqual([...outcomes].toSorted(), [0, 1, 2])
    }))

  test("keeps its rows only for a week or a day, and no row of an order that was deleted", () =>
    Effect.gen(function*() {
      yield* ending(yield* accountWith(config, [mail("ann")]), 2, "a.example")
      yield* ending(yield* accountWith(config, [mail("bob")]), 2, "b.example")
      yield* daily
      yield* sql("DELETE FROM orders WHERE account_id IN (SELECT id FROM accounts WHERE contact LIKE '%bob%')")
      const left = Effect.all([
        count("SELECT count(*) FROM expiry_reminders"),
        count("SELECT count(*) FROM reminded_addresses")
      ])
      assert.deepStrictEqual(yield* left, [1, 2])
      yield* sql(
        `INSERT INTO reminded_addresses (key, window_started_at, mails) VALUES ('ahead', ${
          madeAt + 40 * daySeconds
        }, 5)`
      )
      yield* days(8)
      yield* daily
      assert.deepStrictEqual(yield* left, [0, 0])
    }))

  test("ends when it is turned off, and the log reports a failure of the database", () =>
    Effect.gen(function*() {
      yield* ending(yield* accountWith(config, [mail("ann")]), 2, "a.example")
      yield* sql("ALTER TABLE expiry_reminders RENAME TO expiry_reminders_away")
      yield* works(config)
      assert.include(String(said("notify_expiry_reminders_failed")[0]?.["error"]), "expiry_reminders")
      yield* sql("ALTER TABLE expiry_reminders_away RENAME TO expiry_reminders")
      yield* TestClock.adjust("2 minutes")
      yield* works(config)
      assert.lengthOf(yield* recipients, 1)
      yield* works(withExpiry("lead_days = 14"))
      assert.include(eventsOf(records), "notify_expiry_reminders_retired")
    }))

  test("names at most fifty certificates of an account, and counts all of them", () =>
    Effect.gen(function*() {
      const caller = yield* accountWith(config, [mail("ann")])
      for (let index = 0; index < 53; index++) yield* ending(caller, 3, `${index}.example`)
      yield* daily
      assert.deepStrictEqual(sent.map(({ total }) => total), [53])
      assert.lengthOf(sent.flatMap(namesOf), 50)
      assert.strictEqual(yield* count("SELECT count(*) FROM expiry_reminders"), 53)
    }))
})
