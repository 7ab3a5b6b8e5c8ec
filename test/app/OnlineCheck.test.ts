import { it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { readdirSync, writeFileSync } from "node:fs"
import type { AddressInfo, Socket } from "node:net"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { freshPostgresUrl } from "../support/Databases.ts"
import { dnsAnswerer } from "../support/DnsAnswerer.ts"
import { startDnsUpdateServer } from "../support/DnsUpdateServer.ts"
import { through } from "../support/Forwarder.ts"
import { foreignCa } from "../support/LocalCa.ts"
import { mailServer } from "../support/MailServer.ts"
import { freePort } from "../support/Ports.ts"
import { fine, receiver } from "../support/Receiver.ts"
import type { Around, Place } from "../support/RunCommand.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { minimalConfig } from "../support/Server.ts"
import { startTwoServers } from "../support/TwoServers.ts"

/*
 * Tests `config check --online`, which tries each address and program that the configuration names, and changes
 * nothing.
 */

const check = ({ run }: Place, around: Around = {}) => run(["config", "check", "--online"], around)

/** Returns the result and the message of each row of the table, by key. */
const rowsOf = (out: string): ReadonlyMap<string, string> =>
  new Map(
    out.split("\n").flatMap((line) => {
      const [key, , ...rest] = line.split(/ {2,}/)
      return key === undefined || rest.length === 0 ? [] : [[key, rest.join(": ").trim()] as const]
    })
  )

const port = Effect.promise(freePort)

const secret = Buffer.from("a key that both know").toString("base64")
const key = { name: "acme-key", algorithm: "hmac-sha256", secret } as const

const updates = Effect.acquireRelease(
  Effect.promise(() => startDnsUpdateServer("corp.example.", [key])),
  (server) => Effect.promise(() => server.stop())
)

const json = (value: unknown): Parameters<typeof receiver>[0] => (response) => void response.end(JSON.stringify(value))

interface World {
  readonly server: number
  readonly metrics: number
  readonly resolver: string
  readonly directory: number
  readonly updates: number
  readonly tsig: string
  readonly inventory: number
  readonly mail: number
  readonly password: string
  readonly hook: number
  readonly collector: number
}

const configOf = (world: World) => (directory: string) =>
  `${minimalConfig}
[server]
bind_address = "127.0.0.1:${world.server}"
[metrics]
enabled = true
bind_address = "127.0.0.1:${world.metrics}"
[dns]
resolver = "${world.resolver}"
[tracing]
endpoint = "http://127.0.0.1:${world.collector}/v1/traces"
[profiles.twin]
[ipam]
backend = "netbox"
netbox = { url = "http://127.0.0.1:${world.inventory}", token = "t0ken" }
[signer]
backend = "relay"
[signer.relay]
directory_url = "http://127.0.0.1:${world.directory}/directory"
account_key_path = "${directory}/account.key"
challenge_strategy = "dns01"
[signer.relay.dns01.rfc2136]
server = "127.0.0.1:${world.updates}"
zone = "corp.example."
tsig_key_name = "acme-key"
tsig_key_secret = "${world.tsig}"
[profiles.program.signer]
backend = "custom"
custom.script_path = "${directory}/sign.sh"
[notify]
enabled = ["email", "webhook"]
webhook_enabled = ["chat"]
[notify.email]
smtp_host = "localhost"
smtp_port = ${world.mail}
smtp_security = "none"
smtp_username = "acme"
smtp_password = "${world.password}"
from = "acme@corp.example"
to = ["ops@corp.example"]
[notify.webhook.chat]
url = "http://127.0.0.1:${world.hook}/services/hunter2"
`

const place = (world: World): Place => {
  const made = freshPlace(configOf(world))
  writeFileSync(join(made.directory, "sign.sh"), "#!/bin/sh\ntouch \"$0.ran\"\n", { mode: 0o755 })
  return made
}

const signsIn = mailServer({
  authOptional: false,
  allowInsecureAuth: true,
  onAuth: ({ password, username }, _, done) =>
    username === "acme" && password === "right" ? done(null, { user: username }) : done(new Error("wrong password"))
})

/**
 * Starts a proxy to a PostgreSQL server that passes on everything except notifications, as a proxy that pools
 * transactions does.
 */
const deaf = (target: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const sockets = new Set<Socket>()
        const server = createServer((client) => {
          const upstream = connect(target, "127.0.0.1")
          for (const socket of [client, upstream]) {
            sockets.add(socket)
            socket.on("error", () => undefined).on("close", () => sockets.delete(socket))
          }
          client.pipe(upstream)
          let held = Buffer.alloc(0)
          upstream.on("data", (chunk: Buffer) => {
            held = Buffer.concat([held, chunk])
            // A message consists of its type, its length, which excludes the type, and its contents.
            for (let size = 0; held.length >= 5 && held.length >= (size = 1 + held.readUInt32BE(1));) {
              if (held[0] !== "A".charCodeAt(0)) client.write(held.subarray(0, size))
              held = held.subarray(size)
            }
          }).on("end", () => client.end())
        }).listen(0, "127.0.0.1")
        await once(server, "listening")
        return { server, sockets }
      }),
      ({ server, sockets }) =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
          server.close()
        })
    ),
    ({ server }) => (server.address() as AddressInfo).port
  )

describe("config check --online", () => {
  it.live("reports that every configured address works, and changes nothing", () =>
    Effect.gen(function*() {
      const zone = yield* updates
      const [mail, hook] = [yield* signsIn, yield* receiver(fine)]
      const collector = yield* receiver(fine)
      const directory = yield* receiver(json({ newNonce: "n", newOrder: "o" }))
      const inventory = yield* receiver(json({ next: null, results: [] }))
      const name = yield* dnsAnswerer()
      const here = place({
        server: yield* port,
        metrics: yield* port,
        resolver: name.address,
        directory: directory.port,
        updates: zone.port,
        tsig: secret,
        inventory: inventory.port,
        mail: mail.port,
        password: "right",
        hook: hook.port,
        collector: collector.port
      })
      assert.strictEqual((yield* here.run(["migrate"])).code, 0)
      const before = readdirSync(here.directory)
      const trail = { ACME_SVC_AUDIT__HTTP__URL: `http://127.0.0.1:${hook.port}/` }
      const { code, err, out } = yield* check(here, { env: trail })
      assert.strictEqual(code, 0, `${out}${err}`)
      const relay = "profiles.default.signer.relay"
      assert.deepStrictEqual([...rowsOf(out)].filter(([key]) => key !== "KEY"), [
        ["database.url", "ok: opened"],
        ["server.bind_address", "ok: free"],
        ["metrics.bind_address", "ok: free"],
        ["dns.resolver", "ok: answers"],
        [`${relay}.directory_url`, "ok: answers as a directory"],
        [`${relay}.dns01.rfc2136.server`, "ok: takes updates of this key"],
        ["profiles.program.signer.custom.script_path", "untried: programs are not run"],
        ["profiles.default.ipam.netbox.url", "ok: answers a look-up"],
        ["profiles.default.notify.email.smtp_host", "ok: signs in"],
        ["profiles.default.notify.webhook.chat.url", "ok: connects; nothing was sent"],
        ["audit.http.url", "ok: connects; nothing was sent"],
        ["tracing.endpoint", "ok: connects; nothing was sent"]
      ])
      assert.match(out, /config\.toml can be served, with 3 profile\(s\)\.\n$/)
      assert.notInclude(`${out}${err}`, "hunter2")
      assert.deepStrictEqual([hook.asked, collector.asked, mail.taken], [[], [], []], "nobody was told anything")
      assert.deepStrictEqual([...zone.texts.values()].flat(), [])
      assert.deepStrictEqual(directory.asked.map(({ head }) => `${head.method} ${head.url}`), ["GET /directory"])
      assert.deepStrictEqual(readdirSync(here.directory), before)
    }))

  it.live("reports all failed tries together, ends with exit code 1, and prints no secret", () =>
    Effect.gen(function*() {
      const zone = yield* updates
      const mail = yield* signsIn
      const directory = yield* receiver((response) => void response.writeHead(404).end())
      const inventory = yield* receiver((response) => void response.writeHead(403).end())
      const [another, healthy] = [yield* receiver(fine), yield* receiver(json({ healthy: true }))]
      const here = place({
        server: another.port,
        metrics: healthy.port,
        resolver: `127.0.0.1:${yield* port}`,
        directory: directory.port,
        updates: zone.port,
        tsig: Buffer.from("another key").toString("base64"),
        inventory: inventory.port,
        mail: mail.port,
        password: "hunter2",
        hook: yield* port,
        collector: yield* port
      })
      const url = new URL(yield* Effect.promise(freshPostgresUrl))
      url.password = "hunter2"
      const away = yield* port
      const { code, err, out } = yield* check(here, {
        env: {
          ACME_SVC_DATABASE__URL: url.href,
          ACME_SVC_AUDIT__SYSLOG__ADDRESS: `127.0.0.1:${away}`,
          ACME_SVC_AUDIT__HTTP__URL: `https://127.0.0.1:${away}/`,
          ACME_SVC_AUDIT__HTTP__TOKEN_PATH: "/nowhere/token"
        }
      })
      assert.strictEqual(code, 1, `${out}${err}`)
      const rows = rowsOf(out)
      const relay = "profiles.default.signer.relay"
      const expected: ReadonlyArray<readonly [string, RegExp]> = [
        ["database.url", /^failed: database\.url: postgres.*cannot be opened: .*password/],
        ["server.bind_address", /^failed: in use by another program$/],
        ["metrics.bind_address", /^failed: in use by another program$/],
        ["dns.resolver", /^failed: no answer: E/],
        [`${relay}.directory_url`, /^failed: answers 404$/],
        [`${relay}.dns01.rfc2136.server`, /^failed: /],
        ["profiles.program.signer.custom.script_path", /^untried: programs are not run$/],
        ["profiles.default.ipam.netbox.url", /^failed: NetBox at \S+ answers with status 403/],
        ["profiles.default.notify.email.smtp_host", /^failed: .*wrong password/],
        ["profiles.default.notify.webhook.chat.url", /^failed: .*ECONNREFUSED/],
        ["audit.syslog.address", /^failed: .*ECONNREFUSED/],
        ["audit.http.url", /^failed: audit\.http\.token_path: \/nowhere\/token cannot be read/],
        ["tracing.endpoint", /^failed: .*ECONNREFUSED/]
      ]
      for (const [key, pattern] of expected) assert.match(rows.get(key) ?? "absent", pattern, key)
      assert.include(err, "12 of 13 tries failed.")
      assert.notInclude(out, "can be served")
      for (const hidden of ["hunter2", "t0ken", secret]) assert.notInclude(`${out}${err}`, hidden)
    }))

  it.live("accepts addresses that this service uses, and a database that is missing or has pending migrations", () =>
    Effect.gen(function*() {
      const healthy = yield* receiver(json({ healthy: true }))
      const metrics = yield* receiver(json({ ready: true, roles: ["acme", "worker"] }))
      const name = yield* dnsAnswerer()
      const file = (more = "") =>
        `${minimalConfig}${more}
[server]
bind_address = "127.0.0.1:${healthy.port}"
[metrics]
enabled = true
bind_address = "127.0.0.1:${metrics.port}"
[dns]
resolver = "${name.address}"
`
      const here = freshPlace(() => file())
      const rows = Effect.map(check(here), ({ code, out }) => [code, rowsOf(out)] as const)
      const [code, fresh] = yield* rows
      assert.strictEqual(code, 0)
      assert.strictEqual(fresh.get("database.url"), "untried: not there yet: `acme-svc init` or a start makes it")
      assert.strictEqual(fresh.get("server.bind_address"), "ok: in use by this service")
      assert.strictEqual(fresh.get("metrics.bind_address"), "ok: in use by this service")
      writeFileSync(join(here.directory, "acme.db"), "")
      const [, empty] = yield* rows
      assert.match(empty.get("database.url") ?? "", /^ok: opened; \d+ migration\(s\) pending, for a worker's start$/)
    }))

  it.live("refuses a standby that is not a copy of the database", () =>
    Effect.gen(function*() {
      const { address: resolver } = yield* dnsAnswerer()
      const [url, other] = yield* Effect.promise(() => Promise.all([freshPostgresUrl(), freshPostgresUrl()]))
      const wrong = new URL(url)
      wrong.password = "hunter2"
      const found = (readUrl: string) =>
        Effect.map(
          check(
            freshPlace(() =>
              `${minimalConfig}[server]\nbind_address = "127.0.0.1:0"\n[dns]\nresolver = "${resolver}"\n`
            ),
            {
              env: { ACME_SVC_DATABASE__URL: url, ACME_SVC_DATABASE__READ_URL: readUrl }
            }
          ),
          ({ err, out }) => {
            assert.notInclude(`${out}${err}`, "hunter2")
            return rowsOf(out).get("database.read_url") ?? "absent"
          }
        )
      assert.strictEqual(yield* found(url), "ok: opened; it is the server of database.url")
      assert.strictEqual(yield* found(""), "absent")
      assert.strictEqual(yield* found(other), "failed: it is no copy of the database of database.url")
      assert.match(yield* found(wrong.href), /^failed: database\.read_url: postgres.*cannot be opened: .*password/)
    }))
  it.live("reports whether database.listen_url receives what is sent at database.url", () =>
    Effect.gen(function*() {
      const [url, other] = [
        yield* Effect.promise(freshPostgresUrl),
        yield* Effect.promise(freshPostgresUrl)
      ]
      const servers = yield* Effect.acquireRelease(
        Effect.promise(startTwoServers),
        (started) => Effect.promise(started.dispose)
      )
      const proxy = yield* deaf(Number(new URL(url).port))
      const name = yield* dnsAnswerer()
      const { run } = freshPlace(() => `${minimalConfig}[dns]\nresolver = "${name.address}"\n`)
      const judged = (listenUrl: string, at = url) =>
        Effect.map(
          run(["config", "check", "--online"], {
            env: {
              ACME_SVC_SERVER__BIND_ADDRESS: "127.0.0.1:0",
              ACME_SVC_DATABASE__URL: at,
              ACME_SVC_DATABASE__POOLING: "transaction",
              ACME_SVC_DATABASE__LISTEN_URL: listenUrl
            }
          }),
          ({ code, out }) => [code, rowsOf(out).get("database.listen_url")] as const
        )
      assert.deepStrictEqual(yield* judged(url), [0, "ok: hears what is sent at database.url"])
      assert.deepStrictEqual(yield* judged(other), [1, "failed: leads to another database than database.url"])
      const [gone, away] = yield* judged(through(url, { port: yield* port }))
      assert.strictEqual(gone, 1)
      assert.match(away ?? "", /^failed: .*ECONNREFUSED/)
      const [standing, standby] = yield* judged(servers.at.follower, servers.at.primary)
      assert.strictEqual(standing, 1)
      assert.match(standby ?? "", /^failed: .*cannot execute LISTEN during recovery/)
      assert.deepStrictEqual(yield* judged(through(url, { port: proxy })), [
        1,
        "failed: does not hear what is sent at database.url: let it lead past a proxy that pools transactions"
      ])
    }).pipe(Effect.scoped))

  it.live("tries the keys of all CAs of a profile, each by its place in the configuration", () =>
    Effect.gen(function*() {
      const ca = foreignCa({ name: "Next" })
      const { directory, run } = freshPlace((at) =>
        `${minimalConfig}[profiles.default.signer.local_ca]\ncert_path = "${at}/ca.pem"\nkey_path = "${at}/ca.key"\n` +
        `[profiles.default.signer.local_ca.others.next]\ncert_path = "${at}/next.pem"\nstate = "retired"\n` +
        `key_source = "transit"\n[profiles.default.signer.local_ca.others.next.transit]\n` +
        `address = "http://127.0.0.1:1"\nkey = "next"\ntoken_file = "${at}/token"\n`
      )
      writeFileSync(join(directory, "next.pem"), ca.certificatePem)
      writeFileSync(join(directory, "token"), "secret\n", { mode: 0o600 })
      const { code, err, out } = yield* run(["config", "check", "--online"], {
        env: { ACME_SVC_SERVER__BIND_ADDRESS: "127.0.0.1:0" }
      })
      assert.strictEqual(code, 1, err)
      const row = rowsOf(out).get("profiles.default.signer.local_ca.others.next.transit") ?? out
      assert.match(row, /^failed: .*ECONNREFUSED/)
      assert.notInclude(out + err, "secret")
    }))

  it.live("tries no address if the flag --online is absent", () =>
    Effect.gen(function*() {
      const name = yield* dnsAnswerer()
      const { run } = freshPlace(() => `${minimalConfig}[dns]\nresolver = "${name.address}"\n`)
      const { code, out } = yield* run(["config", "check"])
      assert.deepStrictEqual([code, out.includes("dns.resolver"), name.queries], [0, false, []])
    }))
})
