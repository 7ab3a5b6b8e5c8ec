import { Effect } from "effect"
import { createServer } from "node:http"
import { assert, describe } from "vitest"
import { listening } from "../support/Listening.ts"
import { mailServer } from "../support/MailServer.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { shellScript } from "../support/Script.ts"
import { useTests } from "../support/UseTests.ts"

/* Tests `notify test` with real receivers. */

const { test } = useTests({ startsAt: 1_800_000_000 })

const place = Effect.fnUntraced(function*(status: number) {
  const asked: Array<string> = []
  const http = yield* listening(createServer((request, response) => {
    request.on("data", (chunk: Buffer) => asked.push(chunk.toString("utf8")))
    request.on("end", () => response.writeHead(status).end("said"))
  }))
  const mail = yield* mailServer()
  const made = freshPlace(() => `
[notify]
enabled = ["email", "webhook", "custom"]
webhook_enabled = ["chat"]
custom_enabled = ["tell"]
[notify.email]
smtp_host = "127.0.0.1"
smtp_port = ${mail.port}
smtp_security = "none"
from = "a@example.org"
to = ["b@example.org"]
timeout_ms = 20000
[notify.webhook.chat]
url = "http://127.0.0.1:${http}/SECRETPATH"
events = ["certificate_issued"]
timeout_ms = 20000
[notify.custom.tell]
script_path = "${shellScript("exit 0")}"
events = ["certificate_revoked", "admin_sign_in"]
timeout_ms = 20000
[profiles.default]
`)
  assert.strictEqual((yield* made.run(["migrate"])).code, 0)
  return { asked, mail, run: made.run }
})

const eventsOf = (json: string) =>
  (JSON.parse(json) as {
    readonly items: ReadonlyArray<{ readonly backend: string; readonly event: string; readonly delivered: boolean }>
  })
    .items.map(({ backend, delivered, event }) => `${backend} ${event} ${delivered}`).toSorted()

describe("notify test", () => {
  test("sends each receiver samples of the events that it wants, and prints the answers", () =>
    Effect.gen(function*() {
      const { asked, mail, run } = yield* place(200)
      const all = yield* run(["notify", "test", "--json"])
      assert.deepStrictEqual([all.code, all.err], [0, ""])
      assert.deepStrictEqual(eventsOf(all.out), [
        "custom certificate_revoked true",
        "email account_created true",
        "email account_deactivated true",
        "email certificate_issued true",
        "email certificate_revoked true",
        "email certificates_expiring true",
        "email challenge_failed true",
        "email profile_mounted true",
        "webhook certificate_issued true"
      ])
      assert.lengthOf(mail.taken, 7)
      assert.lengthOf(asked, 1)
      const one = yield* run(["notify", "test", "chat", "--log-level", "info"])
      assert.include(one.err, "notify_tested")
      assert.match(one.out, /^default +webhook chat +certificate_issued +ok +answered 200: said$/m)
      const trail = yield* run(["audit", "list", "--event", "notifications_tested", "--json"])
      assert.include(trail.out, `"detail":{"delivered":9,"failed":0}`)
      assert.include(trail.out, `"detail":{"target":"chat","delivered":1,"failed":0}`)
    }))

  test("ends with 1 when a receiver refuses, and prints its answer without secrets", () =>
    Effect.gen(function*() {
      const { run } = yield* place(404)
      const refused = yield* run(["notify", "test", "webhook"])
      assert.strictEqual(refused.code, 1)
      assert.match(refused.out, /certificate_issued +failed +answered 404: said/)
      assert.include(refused.err, "1 of 1 could not be delivered.")
      assert.notInclude(refused.out + refused.err, "SECRETPATH")
    }))

  test("ends with 3 if no receiver matches", () =>
    Effect.gen(function*() {
      const { run } = yield* place(200)
      for (
        const words of [["pager"], ["chat", "--event", "certificate_revoked"], ["--profile", "other"], ["--event", "x"]]
      ) {
        const { code, err } = yield* run(["notify", "test", ...words])
        assert.deepStrictEqual([code, err === ""], [3, false], words.join(" "))
      }
    }))
})
