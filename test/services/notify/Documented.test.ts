import { it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { readFileSync } from "node:fs"
import { assert, describe } from "vitest"
import type { NotificationEvent, Payload } from "../../../src/domain/Notification.ts"
import { notificationEvents } from "../../../src/domain/Notification.ts"
import { backoffSeconds } from "../../../src/engine/queue/Settlement.ts"
import { outsideSubset } from "../../../src/engine/template/Subset.ts"
import { compileMessages } from "../../../src/services/notify/MessageTemplates.ts"
import { resolveConfig } from "../../../src/settings/Resolve.ts"
import { issued, payload } from "../../support/Notified.ts"
import { receivers, refusalsOf } from "./Published.ts"

/*
 * Tests that the examples in docs/configure/notifications.md are accepted, and that their receivers would accept the
 * bodies.
 */

const text = readFileSync(new URL("../../../docs/configure/notifications.md", import.meta.url), "utf8")
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(([, body = ""]) => body)
const configs = blocks("toml")

const configOf = (toml: string) =>
  Result.getOrThrowWith(
    resolveConfig({ fileText: `${toml}\n[profiles.default]\n`, env: {} }),
    ({ message }) => new Error(message)
  ).config

const nasty = "a\"\\\r\n\u2028<b>&{{ x }}😀"

/** Makes an event with hostile text in each member that a client or a host can influence. */
const eventOf = (event: NotificationEvent): Payload =>
  event === "certificate_issued"
    ? issued({ identifiers: ["a.example"] })
    : payload(event, { username: nasty, identifier: nasty, error: nasty, challenge_type: "http-01", user_agent: nasty })

/** Makes an event with the longest value of each member that others can write. A message contains at most ten names. */
const longest = (event: NotificationEvent): Payload => {
  const name = (number: number) => `${number}.${"x".repeat(253)}`.slice(0, 253)
  const names = Array.from({ length: 1000 }, (_, number) => name(number))
  return event === "certificate_issued" || event === "certificate_revoked"
    ? issued({ hook: event, identifiers: names })
    : payload(event, {
      identifier: name(0),
      challenge_type: "tls-alpn-01",
      error: "incorrectResponse",
      username: "x".repeat(64),
      total: 1000,
      certificates: [{ identifiers: names, days_remaining: 3 }]
    })
}

describe("docs/configure/notifications.md", () => {
  it("has an example for each receiver, and each is accepted", () => {
    const entries = configs.flatMap((toml) => Object.keys(configOf(toml).notify.webhook))
    assert.sameMembers(entries, [...receivers])
  })

  it.effect.each(configs)(
    "has bodies that their receivers accept, whatever the event contains and however long the event is: %#",
    (toml) =>
      Effect.gen(function*() {
        const { notify } = configOf(toml)
        const messages = yield* compileMessages(notify, "notify", "localhost")
        for (const entry of Object.keys(notify.webhook)) {
          for (const event of notificationEvents) {
            for (const fields of [eventOf(event), longest(event)]) {
              const body: unknown = JSON.parse(yield* messages.webhook(entry, fields))
              assert.deepStrictEqual(refusalsOf(entry, body), [], `${entry} of ${event}`)
            }
          }
        }
      })
  )

  it("says how long a receiver may be unreachable", () => {
    const { jobs } = configOf("")
    const rows = [...text.matchAll(/^\| (\d+)(?:, the default)? +\| (\d+) minutes\b/gm)]
    assert.isAtLeast(rows.length, 4)
    assert.strictEqual(Number(rows[0]?.[1]), jobs.max_attempts)
    for (const [, attempts, minutes] of rows) {
      const waits = Array.from({ length: Number(attempts) - 1 }, (_, index) => backoffSeconds(index + 1, jobs, 1))
      assert.strictEqual(Math.floor(waits.reduce((sum, wait) => sum + wait, 0) / 60), Number(minutes), attempts)
    }
  })

  it("has only templates that use the supported syntax", () => {
    for (const template of blocks("text")) assert.isUndefined(outsideSubset("document", template))
  })

  it("describes every event", () => {
    for (const event of notificationEvents) {
      assert.include(text, `| \`${event}\``)
    }
  })
})
