import { it } from "@effect/vitest"
import { Effect } from "effect"
import * as Tls from "node:tls"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { startForwardProxy } from "../../support/ForwardProxy.ts"
import { deliver, deliveries } from "../../support/Notified.ts"
import { freePort } from "../../support/Ports.ts"
import { fine, receiver } from "../../support/Receiver.ts"
import type { Pair } from "../../support/Shown.ts"
import { selfSigned } from "../../support/Shown.ts"

/*
 * Tests webhooks that go through `[proxy]`. For https, the proxy makes a tunnel. For http, the proxy gets the whole
 * URL. The proxy looks up the names, which this process cannot resolve.
 */

const host = "receiver.example"
const path = "/services/T0000SECRET?token=hunter2222"
const signIn = `Basic ${Buffer.from("user:openSesame").toString("base64")}`

let right: Pair
let other: Pair
const trustedByDefault = Tls.getCACertificates()
beforeAll(async () => {
  right = await Effect.runPromise(selfSigned(host))
  other = await Effect.runPromise(selfSigned("other.example"))
  Tls.setDefaultCACertificates([...trustedByDefault, right.cert, other.cert])
})
afterAll(() => Tls.setDefaultCACertificates([...trustedByDefault]))

const proxyWith = (options?: Parameters<typeof startForwardProxy>[0]) =>
  Effect.acquireRelease(Effect.promise(() => startForwardProxy(options)), ({ stop }) => Effect.promise(stop))

const section = (scheme: "http" | "https", port: number, proxyPort: number, more = "") =>
  `[proxy]\n${scheme}_url = "http://user:openSesame@127.0.0.1:${proxyPort}"\n${more}`
  + `[notify]\nenabled = ["webhook"]\nwebhook_enabled = ["chat"]\n[notify.webhook.chat]\n`
  + `url = "${scheme}://${host}:${port}${path}"\ntimeout_ms = 20000\n`
  + `[notify.webhook.chat.headers]\nauthorization = "Bearer swordfish"\n`

const attempt = (toml: string, names = {}) =>
  Effect.provide(Effect.result(deliver("webhook", "chat")), deliveries(toml, { names }))

const refusal = (toml: string) =>
  Effect.map(attempt(toml), (attempted) => {
    const failed = attempted._tag === "Failure" ? attempted.failure : assert.fail("it was told")
    if (failed._tag !== "DeliveryRefused") return assert.fail("there was no target")
    assert.notMatch(failed.detail, /SECRET|hunter2222|swordfish|services|openSesame|dXNlcj/)
    return { hope: failed.hope, detail: failed.detail }
  })

describe("a webhook through a proxy", () => {
  it.live("uses a tunnel for https, in which the proxy sees only the host and the port", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyWith()
      const { asked, port } = yield* receiver(fine, right)
      assert.strictEqual((yield* attempt(section("https", port, proxy.port)))._tag, "Success")
      assert.deepStrictEqual(proxy.seen, [{ method: "CONNECT", target: `${host}:${port}`, authorization: signIn }])
      const [{ head } = assert.fail("was not asked")] = asked
      assert.deepStrictEqual([head.method, head.url, head.headers.host], ["POST", path, `${host}:${port}`])
      assert.strictEqual(head.headers.authorization, "Bearer swordfish")
      assert.isUndefined(head.headers["proxy-authorization"])
    }))

  it.live("sends the whole URL to the proxy for http, and signs in to the proxy and to the receiver separately", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyWith()
      const { asked, port } = yield* receiver(fine)
      assert.strictEqual((yield* attempt(section("http", port, proxy.port)))._tag, "Success")
      assert.deepStrictEqual(proxy.seen, [
        { method: "POST", target: `http://${host}:${port}${path}`, authorization: signIn }
      ])
      const [{ body, head } = assert.fail("was not asked")] = asked
      assert.deepStrictEqual([head.method, head.url, head.headers.host], ["POST", path, `${host}:${port}`])
      assert.include(body, "certificate issued for a.example")
    }))

  it.live("connects directly to hosts that are excluded from the proxy", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyWith()
      const { asked, port } = yield* receiver(fine, right)
      const toml = section("https", port, proxy.port, `no_proxy = [".example"]\n`)
      assert.strictEqual((yield* attempt(toml, { [host]: ["127.0.0.1"] }))._tag, "Success")
      assert.lengthOf(asked, 1)
      assert.deepStrictEqual(proxy.seen, [])
    }))

  it.live("compares the receiver's certificate with the name in the URL, whatever the proxy says", () =>
    Effect.gen(function*() {
      const proxy = yield* proxyWith()
      const { asked, port } = yield* receiver(fine, other)
      const { detail, hope } = yield* refusal(section("https", port, proxy.port))
      assert.strictEqual(hope, "retry")
      assert.match(detail, /receiver\.example\. is not in the cert's altnames: DNS:other\.example/)
      assert.lengthOf(proxy.seen, 1)
      assert.deepStrictEqual(asked, [])
    }))

  it.live.each<readonly ["http" | "https", number]>([["https", 407], ["https", 403], ["http", 407]])(
    "is tried again over %s if the proxy answers %i, because the receiver got no request",
    ([scheme, refuse]) =>
      Effect.gen(function*() {
        const proxy = yield* proxyWith({ refuse })
        const { asked, port } = yield* receiver(fine, scheme === "https" ? right : undefined)
        const failed = yield* refusal(section(scheme, port, proxy.port))
        assert.deepStrictEqual(failed, {
          hope: "retry",
          detail: `the proxy: answers ${refuse}${scheme === "https" ? " No" : ""}`
        })
        assert.deepStrictEqual(asked, [])
      })
  )

  it.live.each<"http" | "https">(["http", "https"])(
    "sends nothing over %s while the proxy is unreachable",
    (scheme) =>
      Effect.gen(function*() {
        const { asked, port } = yield* receiver(fine, scheme === "https" ? right : undefined)
        const { detail, hope } = yield* refusal(section(scheme, port, yield* Effect.promise(freePort)))
        assert.strictEqual(hope, "retry")
        assert.match(detail, /^the proxy: .*ECONNREFUSED/)
        assert.deepStrictEqual(asked, [])
      })
  )
})
