import { Effect } from "effect"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { assert, describe } from "vitest"
import { Database } from "../../../../src/engine/sql/Database.ts"
import { dns, sanOf } from "../../../crypto/Pki.ts"
import { databases } from "../../../support/Databases.ts"
import { accountWith, queued, works } from "../../../support/Ending.ts"
import { configOf, newPrivateKey, openDriver, sql } from "../../../support/Graph.ts"
import { letterFaults } from "../../../support/Letters.ts"
import { daySeconds, foreignCa, madeAt } from "../../../support/LocalCa.ts"
import { mailServer } from "../../../support/MailServer.ts"
import { deliver, deliveries } from "../../../support/Notified.ts"
import { idLiteral } from "../../../support/OpenDatabase.ts"
import { useWorld } from "../../../support/UseWorld.ts"

/*
 * Tests a digest with as many certificates as a large installation has, with signed chains. The expiries of some chains
 * are not stored in the column.
 */

const toml = (port: number) =>
  `[notify]
enabled = ["email", "webhook"]
webhook_enabled = ["chat"]
[notify.email]
smtp_host = "localhost"
smtp_port = ${port}
smtp_security = "none"
from = "a@example.org"
to = ["b@example.org"]
timeout_ms = 60000
[notify.webhook.chat]
url = "https://chat.example/secret"
[notify.expiry]
lead_days = 14
max_entries = 1000
`

const ca = foreignCa({ name: "Large" })
const key = newPrivateKey()
const unknown = 500

/** Makes a chain for a numbered name, and returns the chain with its name and expiry. */
const chainOf = (number: number) => {
  const notAfter = madeAt + daySeconds + number * 60
  const name = `host-${number}.large.example`
  const more = [sanOf(dns(name), dns(`www.${name}`))]
  const leaf = foreignCa({ name, key, issuer: ca, notAfter, more })
  return { name, notAfter, chain: leaf.certificatePem + ca.certificatePem }
}

describe.each(databases)("the digest of ten thousand certificates on $name", (backend) => {
  const { database, test } = useWorld(backend, { startsAt: madeAt })

  const stored = Effect.fnUntraced(function*(accountId: string, from: number, to: number) {
    const id = (number: number) =>
      idLiteral(backend.dialect, `01890a5d-ac96-774b-bcce-${String(number).padStart(12, "0")}`)
    const account = idLiteral(backend.dialect, accountId)
    for (let at = from; at < to; at += 200) {
      const numbers = Array.from({ length: Math.min(200, to - at) }, (_, index) => at + index)
      const rows = numbers.map((number) => {
        const { chain, name, notAfter } = chainOf(number)
        const identifiers = JSON.stringify([name, `www.${name}`].map((value) => ({ type: "dns", value })))
        const end = number < unknown ? "NULL" : String(notAfter)
        return `(${id(number)}, 'default', ${account}, 'valid', '${identifiers}', '${chain}', '${
          number.toString(16).padStart(32, "0")
        }', ${end}, ${madeAt})`
      })
      yield* sql(`INSERT INTO orders (id, profile, account_id, status, identifiers, certificate, cert_serial,
        cert_not_after, created_at) VALUES ${rows.join(", ")}`)
    }
  })

  /** Measures a digest: the longest time in which no other work was done, and the memory. */
  const measured = Effect.fnUntraced(function*(config: ReturnType<typeof configOf>) {
    yield* sql("DELETE FROM jobs")
    yield* sql("DELETE FROM expiry_digests")
    yield* sql(
      `UPDATE orders SET cert_not_after = NULL WHERE id IN (SELECT id FROM orders ORDER BY id LIMIT ${unknown})`
    )
    const delays = monitorEventLoopDelay({ resolution: 1 })
    let most = 0
    const before = process.memoryUsage().heapUsed
    const sampling = setInterval(() => most = Math.max(most, process.memoryUsage().heapUsed), 1)
    delays.enable()
    yield* works(config)
    delays.disable()
    clearInterval(sampling)
    return { longestMillis: delays.max / 1e6, heap: Math.max(0, most - before) / 1e6 }
  })

  test("delays other work less than four times as long as a digest of two thousand certificates, and fits into a mail", () =>
    Effect.gen(function*() {
      const server = yield* mailServer()
      const text = toml(server.port)
      const config = configOf(text)
      const { accountId } = yield* accountWith(config)
      const beside = yield* openDriver(database.url(), 2, undefined, 1)
      const driver = yield* Database
      const withReader = Effect.provideService(Database, { ...driver, aside: beside.aside })
      const figures: Array<Effect.Success<ReturnType<typeof measured>>> = []
      for (const [from, to] of [[0, 2000], [2000, 10_000]] as const) {
        yield* stored(accountId, from, to)
        const runs = yield* Effect.replicateEffect(measured(config), 3).pipe(withReader)
        figures.push(runs.toSorted((one, other) => one.longestMillis - other.longestMillis)[0] ?? assert.fail("no run"))
      }
      const [few, many] = figures
      process.stdout.write(`\n${backend.name}: 2000 ${JSON.stringify(few)}, 10000 ${JSON.stringify(many)}\n`)
      assert.isBelow((many?.longestMillis ?? 0) / (few?.longestMillis ?? 1), 4)

      const [{ fields } = assert.fail("nothing is told")] = yield* queued
      assert.deepInclude(fields, { total: 10_000, superseded: 0 })
      assert.isBelow(JSON.stringify(fields).length, 270_000)
      yield* Effect.provide(deliver("email", "-", fields), deliveries(text))
      const letter = server.taken[0] ?? assert.fail("nothing was sent")
      assert.deepStrictEqual(letterFaults(letter), [])
      assert.isBelow(letter.raw.length, 500_000)
      assert.include(letter.mail.text, "10000 certificates expire within 14 days")
    }))
})
