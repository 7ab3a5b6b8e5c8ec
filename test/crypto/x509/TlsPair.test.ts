import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { connect, createServer } from "node:tls"
import { assert } from "vitest"
import { encodePem } from "../../../src/crypto/asn1/Pem.ts"
import { generateCa } from "../../../src/crypto/x509/CaCertificate.ts"
import type { CertificatePair } from "../../../src/crypto/x509/SelfSigned.ts"
import { generateTlsPair, isOwnTlsCertificate, renewTlsCertificate } from "../../../src/crypto/x509/TlsPair.ts"
import { DAY, newSerial, NOW } from "../Ca.ts"

const make = (host: string, now = NOW) => generateTlsPair({ host, now, serial: newSerial() })

describe("generateTlsPair", () => {
  it.effect("writes the host into the SAN as a DNS name or as an IP address", () =>
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
        assert.strictEqual(Date.parse(judged.validTo) - Date.parse(judged.validFrom), 397 * DAY * 1000)
        assert.isTrue(isOwnTlsCertificate(pair.certificatePem))
        assert.deepStrictEqual(judged.keyUsage, ["1.3.6.1.5.5.7.3.1"])
        assert.isFalse(judged.ca)
      }
    }))

  /** Returns whether a client that trusts only these certificates accepts a server with this pair. */
  const trusts = (ca: string, { certificatePem, privateKeyPem }: CertificatePair, host = "localhost") =>
    Effect.acquireUseRelease(
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
          const socket = connect({ host: "127.0.0.1", port, ca, rejectUnauthorized: false, ...servername })
          const [data] = await once(socket, "data")
          assert.strictEqual(String(data), "hello")
          socket.destroy()
          return socket.authorized
        }),
      (server) => Effect.sync(() => server.close())
    )

  it.live("makes a pair with which a server is accepted by a client that trusts only this certificate", () =>
    Effect.gen(function*() {
      // The client compares the dates with the real clock.
      for (const host of ["localhost", "127.0.0.1"]) {
        const pair = yield* make(host, yield* realNow)
        assert.isTrue(yield* trusts(pair.certificatePem, pair, host))
      }
    }))

  it.live("makes a pair whose renewed certificate is accepted by a client that trusts both certificates", () =>
    Effect.gen(function*() {
      const now = yield* realNow
      const pair = yield* make("localhost", now)
      const request = { host: "localhost", now, serial: newSerial() }
      const next = { ...pair, certificatePem: yield* renewTlsCertificate(pair.privateKeyPem, request) }
      assert.isFalse(yield* trusts(pair.certificatePem, next))
      for (const both of [[pair, next], [next, pair]]) {
        const ca = both.map(({ certificatePem }) => certificatePem).join("")
        assert.isTrue(yield* trusts(ca, pair))
        assert.isTrue(yield* trusts(ca, next))
      }
    }))
})

describe("isOwnTlsCertificate", () => {
  it.effect("is true only for certificates that this service made", () =>
    Effect.gen(function*() {
      const { certificatePem } = yield* make("localhost")
      const subject = { organization: "acme-svc listener pair", commonName: "localhost" }
      const similar = yield* generateCa({ keyType: "ecdsa-p256", subject, now: NOW, serial: newSerial() })
      const other = { ...subject, organization: "Example" }
      const foreign = yield* generateCa({ keyType: "ecdsa-p256", subject: other, now: NOW, serial: newSerial() })
      // This signature over the same fields does not verify.
      const forged = Buffer.from(new X509Certificate(certificatePem).raw)
      forged.writeUInt8(forged.readUInt8(forged.length - 1) ^ 1, forged.length - 1)
      assert.deepStrictEqual(
        [
          certificatePem,
          `${certificatePem}\n`,
          similar.certificatePem,
          foreign.certificatePem,
          `${certificatePem}${foreign.certificatePem}`,
          `a comment\n${certificatePem}`,
          encodePem("CERTIFICATE", forged),
          encodePem("CERTIFICATE", Uint8Array.of(1)),
          "no certificate\n",
          ""
        ].map(isOwnTlsCertificate),
        [true, true, true, false, false, false, false, false, false, false]
      )
    }))

  it.effect("is also true for a renewed certificate with the same key", () =>
    Effect.gen(function*() {
      const pair = yield* make("localhost")
      const serial = newSerial()
      const next = yield* renewTlsCertificate(pair.privateKeyPem, { host: "localhost", now: NOW + DAY, serial })
      const [before, after] = [new X509Certificate(pair.certificatePem), new X509Certificate(next)]
      assert.isTrue(isOwnTlsCertificate(next))
      assert.isTrue(after.publicKey.equals(before.publicKey))
      assert.strictEqual(Date.parse(after.validTo) - Date.parse(before.validTo), DAY * 1000)
      assert.notStrictEqual(after.serialNumber, before.serialNumber)
      assert.notStrictEqual(after.subject, before.subject)
    }))
})

const realNow = Effect.map(Effect.clockWith((clock) => clock.currentTimeMillis), (millis) => Math.floor(millis / 1000))
