import { Deferred, Effect, Fiber } from "effect"
import { existsSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { makeHttpClient } from "../support/Http.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { onSystemClock, useTests } from "../support/UseTests.ts"

/* Tests the listener of operators as `serve` starts it, in this process and on real sockets. */

const { test } = useTests()

const configIn = (directory: string, admin: string) =>
  `[server]
bind_address = "127.0.0.1:0"
base_url = "http://acme.example"
[admin]
enabled = true
base_url = "https://panel.example"
${admin}
[signer.local_ca]
cert_path = "${directory}/ca.pem"
key_path = "${directory}/ca.key"
crl_path = "${directory}/ca.crl"
[profiles.default]
enabled = true
`

const password = "a password of the tests"

interface Heard {
  readonly event: string
  readonly address?: string
  readonly origin?: string
  readonly detail?: string
}

/** Starts a service that serves operators. `admin` returns the further keys of its section. */
const serving = Effect.fnUntraced(function*(admin: (directory: string) => string) {
  const place = freshPlace((directory) => configIn(directory, admin(directory)))
  const said: Array<Heard> = []
  const listening = yield* Deferred.make<string>()
  const stop = yield* Deferred.make<"SIGTERM">()
  const fiber = yield* Effect.forkChild(place.run(["serve"], {
    heard: (text) => {
      for (const line of text.split("\n").filter((one) => one !== "")) {
        const { fields } = JSON.parse(line) as { readonly fields: Heard }
        said.push(fields)
        if (fields.event === "admin_listening") Deferred.doneUnsafe(listening, Effect.succeed(fields.address ?? ""))
      }
    },
    process: { stopSignal: Deferred.await(stop) }
  }))
  const address = Effect.raceFirst(
    Deferred.await(listening),
    Effect.flatMap(Fiber.join(fiber), (ended) => Effect.die(new Error(JSON.stringify(ended))))
  )
  return { place, said, address, ended: Fiber.join(fiber), stop: Deferred.succeed(stop, "SIGTERM") }
})

const client = Effect.acquireRelease(Effect.sync(makeHttpClient), ({ close }) => Effect.sync(close))

describe("the listener of operators", () => {
  test("signs an operator in, and refuses requests from another origin", () =>
    onSystemClock(Effect.gen(function*() {
      const { address, ended, place, said, stop } = yield* serving(() => `bind_address = "127.0.0.1:0"`)
      const url = `http://${yield* address}`
      writeFileSync(join(place.directory, "pw"), `${password}\n`, { mode: 0o600 })
      const created = yield* place.run(["admin", "user", "create", "ann", "--password-file", "pw"])
      assert.strictEqual(created.code, 0, created.err)
      const { send } = yield* client
      const health = yield* Effect.promise(() => send(`${url}/health`))
      assert.deepStrictEqual([health.status, health.json], [200, { healthy: true }])
      assert.match(String(health.headers["strict-transport-security"]), /^max-age=31536000; includeSubDomains$/)
      const headers = { "content-type": "application/json" }
      const body = JSON.stringify({ username: "ann", password })
      const signedIn = yield* Effect.promise(() => send(`${url}/api/session`, { method: "POST", headers, body }))
      assert.strictEqual(signedIn.status, 200, signedIn.text)
      const cookie = String(signedIn.headers["set-cookie"]).split(";")[0] ?? ""
      const csrf = (signedIn.json as { readonly csrfToken: string }).csrfToken
      const foreign = { ...headers, cookie, "x-csrf-token": csrf, origin: "http://acme.example" }
      const mint = { method: "POST", body: JSON.stringify({ label: "web" }) } as const
      const refused = yield* Effect.promise(() => send(`${url}/api/eab`, { ...mint, headers: foreign }))
      assert.strictEqual(refused.status, 403)
      const own = { ...foreign, origin: "https://panel.example" }
      assert.strictEqual((yield* Effect.promise(() => send(`${url}/api/eab`, { ...mint, headers: own }))).status, 201)
      const file = yield* Effect.promise(() => send(`${url}/api/eab/export?format=csv`, { headers: { cookie } }))
      assert.strictEqual(file.headers["transfer-encoding"], "chunked")
      assert.match(String(file.headers["content-disposition"]), /^attachment; filename="acme-svc-eab-\w+\.csv"$/)
      assert.match(file.text, /^kid,label,profile,status,createdAt,accounts\r\n[\w-]+,web,/)
      const head = yield* Effect.promise(() => send(`${url}/api/eab/export`, { method: "HEAD", headers: { cookie } }))
      assert.deepStrictEqual([head.status, head.text], [200, ""])
      yield* stop
      assert.strictEqual((yield* ended).code, 0)
      const events = said.map(({ event }) => event)
      for (
        const event of [
          "admin_origin_resolved",
          "admin_request_refused",
          "admin_export_completed",
          "admin_login_succeeded"
        ]
      ) {
        assert.include(events, event)
      }
      assert.include(said.map(({ origin }) => origin), "https://panel.example")
      assert.notInclude(JSON.stringify(said), password)
      assert.notInclude(JSON.stringify(said), csrf)
    })))

  test("makes its own TLS certificate, with a key file that only the owner may read", () =>
    onSystemClock(Effect.gen(function*() {
      const { address, ended, place, stop } = yield* serving((directory) =>
        `bind_address = "127.0.0.1:0"
tls = { enabled = true, cert_path = "${directory}/admin.pem", key_path = "${directory}/admin.key" }`
      )
      const at = yield* address
      const { send } = yield* client
      assert.strictEqual((yield* Effect.promise(() => send(`https://${at}/health`))).status, 200)
      assert.isTrue(existsSync(join(place.directory, "admin.pem")))
      assert.strictEqual(statSync(join(place.directory, "admin.key")).mode & 0o777, 0o600)
      yield* stop
      assert.strictEqual((yield* ended).code, 0)
    })))

  test("accepts the request id that a client sends", () =>
    onSystemClock(Effect.gen(function*() {
      const { address, ended, stop } = yield* serving(() => `bind_address = "127.0.0.1:0"`)
      const url = `http://${yield* address}`
      const { send } = yield* client
      for (const path of ["/health", "/ui/login"]) {
        const told = yield* Effect.promise(() => send(`${url}${path}`, { headers: { "x-request-id": "of-the-proxy" } }))
        assert.strictEqual(told.headers["x-request-id"], "of-the-proxy", path)
      }
      yield* stop
      yield* ended
    })))

  test("applies its policy to every request except readiness probes", () =>
    onSystemClock(Effect.gen(function*() {
      const { address, ended, said, stop } = yield* serving(() =>
        `bind_address = "127.0.0.1:0"
[admin.filter]
rules = ["office"]
[admin.filter.check.office]
type = "allowed_ip"
allow = ["192.0.2.0/24"]
[admin.filter.rule.office]
when = "office"
then = "allow"
`
      )
      const url = `http://${yield* address}`
      const { send } = yield* client
      // Readiness needs no credential, and no policy applies to it.
      assert.strictEqual((yield* Effect.promise(() => send(`${url}/ready`))).status, 200)
      for (const path of ["/health", "/api/orders"]) {
        const told = yield* Effect.promise(() => send(`${url}${path}`))
        assert.deepStrictEqual([told.status, (told.json as { readonly error: string }).error], [403, "access_denied"])
        assert.include(told.text, "the client address 127.0.0.1 is not among those allowed")
      }
      for (const path of ["/none", "/ui/login"]) {
        const told = yield* Effect.promise(() => send(`${url}${path}`))
        assert.strictEqual(told.status, 403)
        assert.match(told.headers["content-type"] ?? "", /^text\/html/)
        assert.include(told.text, "access_denied")
      }
      yield* stop
      yield* ended
      const blocked = said.find(({ event }) => event === "filter_request_blocked")
      assert.strictEqual(blocked?.detail, "the client address 127.0.0.1 is not among those allowed")
    })))

  test("prevents the startup of the service if its address is in use", () =>
    onSystemClock(Effect.gen(function*() {
      const taken = createServer()
      yield* Effect.callback<void>((resume) => void taken.listen(0, "127.0.0.1", () => resume(Effect.void)))
      yield* Effect.addFinalizer(() => Effect.sync(() => taken.close()))
      const { port } = taken.address() as AddressInfo
      const unbound = yield* serving(() => `bind_address = "127.0.0.1:${port}"`)
      const refused = yield* unbound.ended
      assert.strictEqual(refused.code, 1)
      assert.include(refused.err, "admin.bind_address")
      assert.include(unbound.said.map(({ event }) => event), "admin_socket_bind_failed")
    })))
})
