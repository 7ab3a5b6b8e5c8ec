import { it } from "@effect/vitest"
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import { assert, describe } from "vitest"
import { deliver, deliveries, deliveryId, issued } from "../../support/Notified.ts"
import { freePort } from "../../support/Ports.ts"
import { rawServer } from "../../support/RawServer.ts"
import { fine, receiver } from "../../support/Receiver.ts"

const chat = (port: number, more = "", scheme = "http") =>
  `[notify]\nenabled = ["webhook"]\nwebhook_enabled = ["chat"]\n[notify.webhook.chat]\n`
  + `url = "${scheme}://127.0.0.1:${port}/services/T0000SECRET?token=hunter2222"\ntimeout_ms = 20000\n${more}\n`

const attempt = (toml: string, fields = issued()) =>
  Effect.provide(Effect.result(deliver("webhook", "chat", fields)), deliveries(toml))

const refusal = (toml: string, fields = issued()) =>
  Effect.provide(Effect.flip(deliver("webhook", "chat", fields)), deliveries(toml))

describe("a webhook", () => {
  it.live("sends the message as JSON, with the configured headers", () =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine)
      const more =
        `method = "put"\n[notify.webhook.chat.headers]\nauthorization = "Bearer swordfish"\nUSER-AGENT = "other"`
      const receipt = yield* Effect.provide(deliver("webhook", "chat"), deliveries(chat(port, more)))
      assert.deepStrictEqual(receipt, { answer: "answered 200: ok", status: 200 })
      const { body, head } = asked[0] ?? assert.fail("was not asked")
      assert.deepStrictEqual([head.method, head.url], ["PUT", "/services/T0000SECRET?token=hunter2222"])
      assert.deepInclude(head.headers, {
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(body)),
        authorization: "Bearer swordfish",
        "user-agent": "other"
      })
      assert.deepStrictEqual(JSON.parse(body), {
        text: "[default] certificate issued for a.example, b.example, valid until 2031-02-04T05:05:06Z"
      })
      assert.isUndefined(head.headers["webhook-signature"])
    }))

  it.live("may have a body that the operator wrote, which is JSON whatever the event contains", () =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine)
      const nasty = "\r\nBcc: x\u0000\"\\'{{ secret }}\u2028 ü 😀".repeat(500)
      const body =
        `body = '{"is": {{ user_agent | tojson }}, "id": {{ delivery_id | tojson }}, "of": {{ names | tojson }}}'`
      yield* attempt(chat(port, body), issued({ user_agent: nasty, identifiers: Array(25).fill("a.example") }))
      assert.deepStrictEqual(JSON.parse(asked[0]?.body ?? ""), {
        is: nasty,
        id: deliveryId,
        of: `${Array(10).fill("a.example").join(", ")} and 15 more`
      })
    }))

  it.live("is signed according to Standard Webhooks, with the same id at every attempt", () =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine)
      const key = Buffer.from("0123456789abcdef0123456789abcdef")
      const toml = chat(port, `signing_key = "whsec_${key.toString("base64")}"`)
      yield* Effect.provide(Effect.andThen(deliver("webhook", "chat"), deliver("webhook", "chat")), deliveries(toml))
      for (const { body, head } of asked) {
        const { "webhook-id": id, "webhook-signature": signature, "webhook-timestamp": at } = head.headers
        assert.strictEqual(id, deliveryId)
        const expected = createHmac("sha256", key).update(`${id}.${at}.${body}`).digest("base64")
        assert.strictEqual(signature, `v1,${expected}`)
      }
      assert.lengthOf(asked, 2)
    }))

  it.live.each<readonly [number, "retry" | "never"]>([
    [301, "never"],
    [307, "never"],
    [400, "never"],
    [401, "never"],
    [404, "never"],
    [410, "never"],
    [408, "retry"],
    [429, "retry"],
    [500, "retry"],
    [503, "retry"],
    [599, "retry"]
  ])("that answers %i has the outcome %s", ([status, hope]) =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver((response) => {
        response.writeHead(status, { location: "/elsewhere", "retry-after": "120" }).end("it says no")
      })
      const failed = yield* refusal(chat(port))
      assert.deepInclude({ ...failed }, { hope, status })
      assert.lengthOf(asked, 1)
      assert.strictEqual(
        "afterSeconds" in failed ? failed.afterSeconds : undefined,
        [429, 503].includes(status) ? 120 : undefined
      )
    }))

  it.live("accepts a date in the header Retry-After", () =>
    Effect.gen(function*() {
      const { port } = yield* receiver((response) => {
        response.writeHead(503, { "retry-after": new Date(Date.now() + 600_000).toUTCString() }).end()
      })
      const failed = yield* refusal(chat(port))
      assert.approximately("afterSeconds" in failed ? failed.afterSeconds ?? 0 : 0, 600, 60)
    }))

  it.live("is tried again if the receiver does not answer, disconnects, does not exist or has a wrong certificate", () =>
    Effect.gen(function*() {
      const hanging = yield* receiver(() => {})
      const dropping = yield* receiver((response) => response.destroy())
      const gone = yield* Effect.promise(freePort)
      const said = [
        yield* refusal(chat(hanging.port, "").replace("20000", "300")),
        yield* refusal(chat(dropping.port)),
        yield* refusal(chat(gone)),
        yield* refusal(chat(dropping.port, "", "https"))
      ].map((failed) => "hope" in failed ? [failed.hope, failed.detail] : [])
      assert.deepStrictEqual(said.map(([hope]) => hope), ["retry", "retry", "retry", "retry"])
      assert.strictEqual(said[0]?.[1], "no answer within 300 ms")
    }))

  it.live.each<readonly [string, string, string]>([
    ["a body that a 204 must not have", "204 No Content\r\nContent-Length: 2\r\n\r\nok", "answered 204"],
    ["a body that is cut off", "200 OK\r\nContent-Length: 100\r\n\r\nok", "answered 200"],
    ["a body with a wrong chunk", "202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", "answered 202"]
  ])("is not sent again if the receiver accepts it with %s", ([, answer, said]) =>
    Effect.gen(function*() {
      const { port } = yield* rawServer((socket) => void socket.end(`HTTP/1.1 ${answer}`))
      assert.deepInclude(yield* attempt(chat(port)), {
        _tag: "Success",
        success: { answer: said, status: +said.slice(9) }
      })
    }))

  it.live("is not sent again if the receiver accepts it with a body that does not end in time", () =>
    Effect.gen(function*() {
      const { port } = yield* rawServer((socket) => void socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\no"))
      assert.deepInclude(yield* attempt(chat(port, "").replace("20000", "300")), {
        _tag: "Success",
        success: { answer: "answered 200", status: 200 }
      })
    }))

  it.live("is given up if the receiver refuses it with a body that is cut off", () =>
    Effect.gen(function*() {
      const { port } = yield* rawServer((socket) => void socket.end("HTTP/1.1 410 Gone\r\nContent-Length: 9\r\n\r\nno"))
      assert.deepInclude({ ...yield* refusal(chat(port)) }, { hope: "never", status: 410 })
    }))

  it.live("reads an endless answer only up to the limit", () =>
    Effect.gen(function*() {
      const { port } = yield* receiver((response) => {
        const flood = () => void (response.destroyed || (response.write("x".repeat(65_536)), setImmediate(flood)))
        flood()
      })
      const answered = yield* attempt(chat(port))
      assert.strictEqual(answered._tag, "Success")
    }))

  it.live("hides its secrets if the receiver repeats them in the answer", () =>
    Effect.gen(function*() {
      const { port } = yield* receiver((response, { head }) => {
        response.writeHead(404).end(
          `no ${head.url} for ${head.headers.authorization}\n\u001b[31m hunter2222 T0000SECRET`
        )
      })
      const failed = yield* refusal(chat(port, `[notify.webhook.chat.headers]\nauthorization = "Bearer swordfish"`))
      assert.strictEqual("detail" in failed ? failed.detail : "", "answered 404: no *** for *** [31m *** ***")
    }))

  it.live("is neither sent nor tried again if its template cannot be rendered", () =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine)
      const failed = yield* refusal(chat(port, "body = '{% for a in not_after %}{% endfor %}'"))
      assert.deepInclude({ ...failed }, { hope: "never" })
      assert.include("detail" in failed ? failed.detail : "", "profiles.default.notify.webhook.chat.body:1")
      assert.deepStrictEqual(asked, [])
    }))

  it.live("is not sent if it is not in the configuration", () =>
    Effect.gen(function*() {
      const { port } = yield* receiver(fine)
      const failed = yield* Effect.provide(Effect.flip(deliver("webhook", "other")), deliveries(chat(port)))
      assert.strictEqual(failed._tag, "TargetMissing")
    }))
})
