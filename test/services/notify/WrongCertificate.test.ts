import { it } from "@effect/vitest"
import { Effect } from "effect"
import * as Tls from "node:tls"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { deliver, deliveries } from "../../support/Notified.ts"
import { fine, receiver } from "../../support/Receiver.ts"
import type { Pair } from "../../support/Shown.ts"
import { ofOwnCa, selfSigned } from "../../support/Shown.ts"

/* Webhooks at receivers that cannot prove their identity: nothing is sent to them, and the error says why. */

const host = "receiver.example"
const year = 31_557_600
const now = Math.floor(Date.now() / 1000)

const trustedByDefault = Tls.getCACertificates()
const trust = (...more: ReadonlyArray<string>) => Tls.setDefaultCACertificates([...trustedByDefault, ...more])
afterAll(() => trust())

const section = (port: number) =>
  `[notify]\nenabled = ["webhook"]\nwebhook_enabled = ["chat"]\n[notify.webhook.chat]\n`
  + `url = "https://${host}:${port}/services/T0000SECRET?token=hunter2222"\ntimeout_ms = 20000\n`
  + `[notify.webhook.chat.headers]\nauthorization = "Bearer swordfish"\n`

const attempt = (port: number) =>
  Effect.result(deliver("webhook", "chat")).pipe(
    Effect.provide(deliveries(section(port), { names: { [host]: ["127.0.0.1"] } }))
  )

const hundred = Array.from({ length: 100 }, (_, number) => `T0000SECRET-${number}.example`)

describe("a receiver whose certificate", () => {
  const shown = new Map<string, Pair>()
  beforeAll(async () => {
    const make = async (name: string, at: string, from?: number) =>
      shown.set(name, await Effect.runPromise(selfSigned(at, from)))
    await make("right", host)
    await make("expired", host, now - 11 * year)
    await make("early", host, now + year)
    await make("other", "other.example")
    await make("own", host)
    shown.set("stranger", ofOwnCa(host))
    const ofMany = ofOwnCa(...hundred)
    shown.set("many", ofMany)
    const known = ["right", "expired", "early", "other"].map((name) => shown.get(name)?.cert ?? "")
    trust(ofMany.ca, ...known)
  })

  it.live.each<readonly [what: string, name: string, said: RegExp]>([
    ["has expired", "expired", /certificate has expired/],
    ["is not valid yet", "early", /certificate is not yet valid/],
    ["is for another name", "other", /receiver\.example\. is not in the cert's altnames: DNS:other\.example/],
    ["is for many other names", "many", /is not in the cert's altnames: DNS:\*\*\*-0\.example/],
    ["is signed by itself", "own", /self-signed certificate/],
    [
      "is of an unknown CA",
      "stranger",
      /unable to (?:verify the first|get local issuer) certificate|self-signed certificate in certificate chain/
    ]
  ])("%s gets no message, and the delivery is tried again", ([, name, said]) =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine, shown.get(name))
      const attempted = yield* attempt(port)
      const failed = attempted._tag === "Failure" ? attempted.failure : assert.fail("it was told")
      assert.deepInclude({ ...failed }, { _tag: "DeliveryRefused", hope: "retry" })
      const { detail } = failed._tag === "DeliveryRefused" ? failed : assert.fail("there was no target")
      assert.match(detail, said)
      assert.isAtMost(detail.length, 200)
      assert.notMatch(detail, /SECRET|hunter2222|swordfish|services|token|authorization/)
      assert.deepStrictEqual(asked, [])
    }))

  it.live("is valid for the name in the URL gets the message", () =>
    Effect.gen(function*() {
      const { asked, port } = yield* receiver(fine, shown.get("right"))
      assert.strictEqual((yield* attempt(port))._tag, "Success")
      assert.strictEqual(asked[0]?.head.headers.host, `${host}:${port}`)
    }))
})
