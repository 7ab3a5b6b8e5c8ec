import { writeFileSync } from "node:fs"
import { assert, describe, it, vi } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf } from "../support/Documents.ts"
import { patienceMs } from "../support/Patience.ts"
import { begun, hasRunLinesOf, Place } from "../support/Place.ts"

/* The documents for people who look for an order or a job. */

describe("docs/configure/challenges.md", () => {
  it("has an example that the service accepts", async () => {
    await builtServer()
    const place = await Place.make()
    const [example = ""] = bodiesOf("docs/configure/challenges.md", "toml")
    writeFileSync(place.at("config.toml"), `${example}\n[profiles.default]\n`)
    assert.match(await place.succeed("profiles"), /^default .* http-01, dns-01, tls-alpn-01/m)
  })

  it("has commands that find the order that failed, and the reason", async () => {
    const { place, serving } = await begun()
    const session = await AcmeSession.open(`http://localhost:${place.port}/profile/default/directory`)
    try {
      await session.register()
      const failure = await session.issue(["demo.localhost"], new Map()).then(
        () => "",
        (error: unknown) => String(error)
      )
      assert.notStrictEqual(failure, "")
      const [, id = ""] = /^([0-9a-f-]{36})  default  default  invalid/m.exec(await place.succeed("ordersFailed")) ?? []
      place.stand("ORDER_ID", id)
      const shown = await place.succeed("orderShow")
      assert.match(shown, /^ +cause: connect_failed, (?:127\.0\.0\.1|::1) port \d+: /m)
      assert.match(shown, /^No address of the name took a connection on the validation port\.\n.*cause/m)
    } finally {
      session.close()
      await serving.stop()
    }
  })
})

describe("docs/operate/jobs.md", () => {
  it("has commands that work on jobs and processes", async () => {
    const { place, serving } = await begun()
    const session = await AcmeSession.open(`http://localhost:${place.port}/profile/default/directory`)
    try {
      await session.register()
      const { url } = await session.newOrder(["demo.localhost"])
      place.stand("ORDER_ID", url.slice(url.lastIndexOf("/") + 1))
      assert.include(await place.succeed("jobsOfOrder"), "0 of 0 row(s).")
      assert.match(await place.succeed("jobsQueue"), /^order_sweep +1 +0 +0 +0 s$/m)
      assert.include(await place.succeed("jobsFailed"), "0 of 0 row(s).")
      assert.include(await place.succeed("jobsDeliveries"), "0 of 0 row(s).")
      assert.match(await place.succeed("workerList"), /  acme,admin,worker  /)
      const { stdout } = await place.run("acme-svc jobs list --kind order_sweep")
      place.stand("JOB_ID", /^([0-9a-f-]{36})  order_sweep  ready/m.exec(stdout)?.[1] ?? "")
      assert.match(await place.succeed("jobsShow"), /^kind +order_sweep$/m)
      assert.include(await place.succeed("jobsRunNow"), "The order_sweep job about all is due now.")
      // If the job is running, it cannot be cancelled. It is then due again tomorrow, and the next attempt cancels it.
      await vi.waitFor(() => place.succeed("jobsCancel"), { timeout: patienceMs, interval: 100 })
    } finally {
      session.close()
      await serving.stop()
    }
  })
})

hasRunLinesOf("orders")
