import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { connect, createServer } from "node:tls"
import { assert } from "vitest"
import { generateTlsPair } from "../../../src/pki/x509/TlsPair.ts"
import { DAY, newSerial, NOW } from "../Ca.ts"

const make = (host: string, now = NOW) => generateTlsPair({ host, now, serial: newSerial() })

describe("generateTlsPair", () => {
  it.effect("has the host as the kind of name it is", () =>
    Effect.gen(function*() {
      const long = `${"a".repeat(63)}.${"b".repeat(63)}.example.com`
      for (
        const [host, name] of [
          ["localhost", "DNS:localhost"],
          ["acme.example.com", "DNS:acme.example.com"],
          [long, `DNS:${long}`],
          ["192.0.2.7", "IP Address:192.0.2.7"],
          ["::1", "IP Address:0:0:0:0:0:0:0:1"],
          ["[2001:db8::ff:1]", "IP Address:2001:DB8:0:0:0:0:FF:1"],
          ["2001:db8:1:2:3:4:5:6", "IP Address:2001:DB8:1:2:3:4:5:6"],
          ["::ffff:192.0.2.7", "IP Address:0:0:0:0:0:FFFF:C000:207"],
          ["fe80::", "IP Address:FE80:0:0:0:0:0:0:0"]
        ] as const
      ) {
        const pair = yield* make(host)
        const judged = new X509Certificate(pair.certificatePem)
        assert.strictEqual(judged.subjectAltName, name)
        assert.isTrue(judged.verify(judged.publicKey))
        assert.strictEqual(judged.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1")
        assert.strictEqual(Date.parse(judged.validTo) - Date.parse(judged.validFrom), 3653 * DAY * 1000)
        assert.deepStrictEqual(judged.keyUsage, ["1.3.6.1.5.5.7.3.1"])
        assert.isFalse(judged.ca)
      }
    }))

  it.live("serves a connection that trusts it and nothing else", () =>
    Effect.gen(function*() {
      // The client compares dates with the real clock.
      for (const host of ["localhost", "127.0.0.1"]) {
        const { certificatePem, privateKeyPem } = yield* make(host, yield* realNow)
        yield* Effect.acquireUseRelease(
          Effect.promise(async () => {
            const server = createServer({ cert: certificatePem, key: privateKeyPem }, (socket) => socket.end("hello"))
            server.listen(0, "127.0.0.1")
            await once(server, "listening")
            return server
          }),
          (server) =>
            Effect.promise(async () => {
              const { port } = server.address() as AddressInfo
              const servername = host === "localhost" ? { servername: host } : {}
              const socket = connect({ host: "127.0.0.1", port, ca: certificatePem, ...servername })
              const [data] = await once(socket, "data")
              assert.isTrue(socket.authorized)
              assert.strictEqual(String(data), "hello")
              socket.destroy()
            }),
          (server) => Effect.sync(() => server.close())
        )
      }
    }))
})

const realNow = Effect.map(Effect.clockWith((clock) => clock.currentTimeMillis), (millis) => Math.floor(millis / 1000))
