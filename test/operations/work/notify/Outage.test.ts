import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import { assert, describe } from "vitest"
import type { Payload } from "../../../../src/domain/Notification.ts"
import { transaction } from "../../../../src/engine/sql/Database.ts"
import * as accountRecords from "../../../../src/operations/operator/AccountRecords.ts"
import * as jobs from "../../../../src/operations/operator/Jobs.ts"
import * as orderRecords from "../../../../src/operations/operator/OrderRecords.ts"
import * as crl from "../../../../src/operations/work/crl/ListPublication.ts"
import { Deliveries } from "../../../../src/services/notify/Deliveries.ts"
import { Notifier } from "../../../../src/services/notify/Notifier.ts"
import { databases, freshDirectory } from "../../../support/Databases.ts"
import { accountKeyOf, callerAt, configOf, count, eventsOf, profileOf, registerKey } from "../../../support/Graph.ts"
import { issueTo, profilesIn, work } from "../../../support/Issued.ts"
import { madeAt } from "../../../support/LocalCa.ts"
import { deliveriesOf } from "../../../support/Notified.ts"
import { freePort } from "../../../support/Ports.ts"
import { receiver } from "../../../support/Receiver.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/*
 * Tests real webhooks and a real program that are away for an hour or longer on a test clock. Events of that time are
 * sent when the receivers are back (docs/configure/notifications.md, "When a receiver is away").
 */

const hour = 3600
const operator = { kind: "cli", id: "tester" } as const
const targets = ["custom/tell", "webhook/chat", "webhook/pager"]

/** One attempt, and whether the receiver accepted it. */
interface Attempt {
  readonly at: number
  readonly target: string
  readonly fields: Payload
  readonly taken: boolean
}

/** What a receiver got, reduced to the parts that this test compares. */
interface Told {
  readonly hook: string
  readonly delivery_id: string
}

const body = `body = '{"hook": {{ hook | tojson }}, "delivery_id": {{ delivery_id | tojson }}}'`

/**
 * Three receivers that are away in different ways: one refuses connections, one answers 503, and one is a program that
 * does not exist.
 */
const outage = Effect.gen(function*() {
  const directory = freshDirectory()
  const [program, told] = [join(directory, "tell"), join(directory, "told")]
  let isAway = true
  const port = yield* Effect.promise(freePort)
  const chat: Array<string> = []
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => chat.push(chunk.toString("utf8")))
    request.on("end", () => response.end())
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
  const pager = yield* receiver((response) => void (isAway ? response.writeHead(503) : response).end())
  const config = configOf(`[notify]
enabled = ["webhook", "custom"]
webhook_enabled = ["chat", "pager"]
custom_enabled = ["tell"]
[notify.webhook.chat]
url = "http://127.0.0.1:${port}/"
${body}
[notify.webhook.pager]
url = "http://127.0.0.1:${pager.port}/"
${body}
[notify.custom.tell]
script_path = "${program}"
`)
  let refused = 0
  return {
    config,
    comeBack: Effect.promise(async () => {
      refused = pager.asked.length
      isAway = false
      writeFileSync(program, `#!/bin/sh\nexec printf '%s\\n' "$(cat)" >> '${told}'\n`)
      chmodSync(program, 0o755)
      await new Promise<void>((done) => server.listen(port, "127.0.0.1", done))
    }),
    /** What each receiver got, in the order of arrival. */
    told: (): { readonly [target: string]: ReadonlyArray<Told> } => {
      const lines = existsSync(told) ? readFileSync(told, "utf8").trim().split("\n") : []
      const all = {
        "custom/tell": lines,
        "webhook/chat": chat,
        "webhook/pager": pager.asked.slice(refused).map(({ body }) => body)
      }
      return Object.fromEntries(
        Object.entries(all).map(([target, texts]) => [target, texts.map((text) => JSON.parse(text) as Told)])
      )
    }
  }
})

describe.each(databases)("receivers that are away on $name", (backend) => {
  let deliver: Deliveries["Service"]["deliver"]
  const attempts: Array<Attempt> = []
  const { records, test } = useWorld(backend, {
    startsAt: madeAt,
    first: () => crl.initialize,
    script: ({ script }) => ({
      profiles: profilesIn(freshDirectory()),
      // With these waits, nine attempts take more than an hour, and five attempts take less.
      maxAttempts: script?.maxAttempts ?? 9,
      deliver: (delivery) =>
        Effect.gen(function*() {
          const at = Math.floor((yield* Clock.currentTimeMillis) / 1000) - madeAt
          const answer = yield* Effect.exit(deliver(delivery))
          const { backend, entry, fields } = delivery
          attempts.push({ at, target: `${backend}/${entry}`, fields, taken: answer._tag === "Success" })
          return yield* answer
        })
    })
  })

  /** Lets the worker do the work that is due until this second of the test. */
  const until = Effect.fnUntraced(function*(second: number) {
    for (;;) {
      yield* work("notify_deliver")
      const next = yield* count("SELECT min(run_at) FROM jobs WHERE kind = 'notify_deliver' AND status = 'ready'")
      if (next === 0 || next - madeAt > second) break
      yield* TestClock.setTime(next * 1000)
    }
    yield* TestClock.setTime((madeAt + second) * 1000)
  })

  /** Runs an hour in which several events happen and some changes are rolled back. */
  const play = Effect.fnUntraced(function*({ config }: Effect.Success<typeof outage>) {
    attempts.length = 0
    deliver = Context.get(yield* Layer.build(deliveriesOf(config)), Deliveries).deliver
    const profile = profileOf(config)
    const happen = Effect.gen(function*() {
      const caller = yield* callerAt(profile)
      yield* until(600)
      const { orderId } = yield* issueTo(caller, ["a.example"])
      yield* until(1200)
      yield* Effect.ignore(
        transaction(Effect.andThen(registerKey(profile, accountKeyOf()), Effect.fail("undone")))
      )
      yield* orderRecords.revoke(config, operator, orderId, 4)
      yield* until(2400)
      yield* Effect.ignore(
        transaction(Effect.andThen(accountRecords.deactivate(operator, caller.accountId), Effect.fail("undone")))
      )
      yield* accountRecords.deactivate(operator, caller.accountId)
    })
    yield* Effect.provide(happen, Notifier.layer(() => config))
    yield* until(hour)
    assert.isTrue(attempts.every(({ taken }) => !taken), "nobody was there")
  })

  const hooks = ["account_created", "certificate_issued", "certificate_revoked", "account_deactivated"]

  /** Checks that each receiver gets each event once, with an id that is the same for all receivers. */
  const haveAll = (told: { readonly [target: string]: ReadonlyArray<Told> }) => {
    const idsOf = new Map(hooks.map((hook) => [hook, new Set<string>()]))
    for (const [target, notices] of Object.entries(told)) {
      assert.sameMembers([...new Set(notices.map(({ hook }) => hook))], hooks, target)
      for (const { delivery_id, hook } of notices) idsOf.get(hook)?.add(delivery_id)
    }
    for (const [hook, ids] of idsOf) assert.strictEqual(ids.size, 1, hook)
  }

  test("get all messages when they are back after an hour, and are tried on schedule until then", () =>
    Effect.gen(function*() {
      const receivers = yield* outage
      yield* play(receivers)
      yield* receivers.comeBack
      yield* until(3 * hour)
      haveAll(receivers.told())
      assert.strictEqual(
        yield* count("SELECT count(*) FROM jobs WHERE kind = 'notify_deliver' AND status <> 'done'"),
        0
      )
      const { retry_base_seconds: base, retry_max_seconds: most } = receivers.config.jobs
      for (const target of targets) {
        for (const hook of hooks) {
          const own = attempts.filter((one) => one.target === target && one.fields.hook === hook)
          assert.deepStrictEqual(own.map(({ taken }) => taken).indexOf(true), own.length - 1, "none after it was taken")
          own.slice(1).forEach(({ at }, index) => {
            const longest = Math.min(most, base * 2 ** index)
            assert.isAtMost(at - (own[index]?.at ?? 0), longest, `${target} ${hook}`)
            assert.isAtLeast(at - (own[index]?.at ?? 0), Math.floor(longest * 0.75), `${target} ${hook}`)
          })
        }
      }
    }))

  test(
    "get the messages when an operator runs the failed jobs, if the receivers were away for longer than a delivery is tried",
    () =>
      Effect.gen(function*() {
        const receivers = yield* outage
        yield* play(receivers)
        yield* receivers.comeBack
        yield* until(2 * hour)
        assert.deepStrictEqual(Object.values(receivers.told()).flat(), [])
        const { items: given } = yield* jobs.list(
          { kind: "notify_deliver", status: "failed" },
          { limit: 100, offset: 0 }
        )
        assert.lengthOf(given, targets.length * hooks.length)
        assert.lengthOf(eventsOf(records).filter((event) => event === "notify_delivery_abandoned"), given.length)
        for (const { id } of given) yield* jobs.runNow(operator, id)
        yield* work("notify_deliver")
        haveAll(receivers.told())
        for (const notices of Object.values(receivers.told())) assert.lengthOf(notices, hooks.length)
      }),
    { maxAttempts: 5 }
  )
})
