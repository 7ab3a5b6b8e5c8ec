import { Deferred, Effect, Fiber } from "effect"
import { X509Certificate } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { connect } from "node:tls"
import { assert } from "vitest"
import { load } from "../../src/app/ListenerTls.ts"
import { generateTlsPair } from "../../src/crypto/x509/TlsPair.ts"
import { currentSeconds } from "../../src/engine/Time.ts"
import { freshDirectory } from "../support/Databases.ts"
import { configOf } from "../support/Graph.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { onSystemClock, useTests } from "../support/UseTests.ts"

/* Tests on real sockets how `serve` renews the TLS certificates that its listeners generated. */

const { test } = useTests()

const config = (directory: string) =>
  `[server]
bind_address = "127.0.0.1:0"
base_url = "https://localhost"
tls = { enabled = true, cert_path = "${directory}/server.pem", key_path = "${directory}/server.key" }
[admin]
enabled = true
bind_address = "127.0.0.1:0"
base_url = "https://localhost"
tls = { enabled = true, cert_path = "${directory}/admin.pem", key_path = "${directory}/admin.key" }
[signer.local_ca]
cert_path = "${directory}/ca.pem"
key_path = "${directory}/ca.key"
crl_path = "${directory}/ca.crl"
[profiles.default]
enabled = true
`

interface Heard {
  readonly event: string
  readonly listener?: string
  readonly address?: string
  readonly sha256?: string
}

const daySeconds = 86_400

/** Returns the fingerprint of the certificate that a new connection gets. */
const shown = (address: string) =>
  Effect.callback<string | undefined>((resume) => {
    const port = Number(address.slice(address.lastIndexOf(":") + 1))
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resume(Effect.succeed(fingerprintOf(socket.getPeerX509Certificate())))
      socket.destroy()
    })
  })

const fingerprintOf = (certificate: X509Certificate | undefined) =>
  certificate?.fingerprint256.replaceAll(":", "").toLowerCase()

/** Starts a service whose TLS certificates are due for renewal after `seconds`. */
const serving = Effect.fnUntraced(function*(seconds: number) {
  const place = freshPlace(config)
  const heard: Array<Heard> = []
  const waiting = new Set<() => void>()
  const stop = yield* Deferred.make<"SIGTERM">()
  const now = (yield* currentSeconds) + seconds - 396 * daySeconds + 3600
  for (const name of ["server", "admin"]) {
    const pair = yield* generateTlsPair({ host: "localhost", now, serial: Uint8Array.of(1) })
    writeFileSync(join(place.directory, `${name}.pem`), pair.certificatePem)
    writeFileSync(join(place.directory, `${name}.key`), pair.privateKeyPem, { mode: 0o600 })
  }
  const fiber = yield* Effect.forkChild(place.run(["serve"], {
    heard: (text) => {
      for (const line of text.split("\n").filter((one) => one !== "")) {
        heard.push((JSON.parse(line) as { readonly fields: Heard }).fields)
      }
      waiting.forEach((look) => look())
    },
    process: { stopSignal: Deferred.await(stop) }
  }))
  const once = (event: string, listener: string, count = 1) =>
    Effect.callback<Heard>((resume) => {
      const look = () => {
        const found = heard.filter((one) =>
          one.event === event && (one.listener === undefined || one.listener === listener)
        )
        const [last] = found.slice(count - 1)
        if (last === undefined) return
        waiting.delete(look)
        resume(Effect.succeed(last))
      }
      waiting.add(look)
      look()
    })
  return { place, once, ended: Fiber.join(fiber), stop: Deferred.succeed(stop, "SIGTERM") }
})

test("both listeners renew the TLS certificates that they generated, and then present the new ones to clients", () =>
  onSystemClock(Effect.gen(function*() {
    const files = { acme: "server", admin: "admin" } as const
    // If the startup takes longer, the certificates are renewed before a client can connect, and the test tries again.
    for (const seconds of [3, 3, 10, 60]) {
      const { ended, once, place, stop } = yield* serving(seconds)
      const read = (name: string) => new X509Certificate(readFileSync(join(place.directory, `${name}.pem`)))
      let isRenewedWhileServing = true
      for (const listener of ["acme", "admin"] as const) {
        const { address = "" } = yield* once(listener === "acme" ? "server_listening" : "admin_listening", listener)
        const first = yield* once("tls_certificate_loaded", listener)
        yield* once("tls_pair_renewed", listener)
        const now = fingerprintOf(read(files[listener]))
        if (first.sha256 === now) isRenewedWhileServing = false
        else yield* once("tls_certificate_loaded", listener, 2)
        assert.strictEqual(yield* shown(address), now)
      }
      yield* stop
      assert.strictEqual((yield* ended).code, 0)
      if (isRenewedWhileServing) return
    }
    assert.fail("no start was fast enough")
  })))

test("each listener takes the time limit of its TLS handshakes from its own key", () =>
  Effect.scoped(Effect.gen(function*() {
    const directory = freshDirectory()
    const { certificatePem, privateKeyPem } = yield* generateTlsPair({
      host: "localhost",
      now: yield* currentSeconds,
      serial: Uint8Array.of(1)
    })
    for (const name of ["server", "admin"]) {
      writeFileSync(join(directory, `${name}.pem`), certificatePem)
      writeFileSync(join(directory, `${name}.key`), privateKeyPem, { mode: 0o600 })
    }
    const tls = (name: string, millis: number) =>
      `tls = { enabled = true, cert_path = "${directory}/${name}.pem", key_path = "${directory}/${name}.key", handshake_timeout_ms = ${millis} }`
    const settings = configOf(
      `[server]\n${tls("server", 1500)}\n[admin]\nbase_url = "https://localhost"\n${tls("admin", 3_600_000)}`
    )
    for (const [listener, millis] of [["acme", 1500], ["admin", 3_600_000]] as const) {
      assert.strictEqual((yield* load(settings, listener)).settings?.handshakeTimeoutMillis, millis)
    }
  })))
