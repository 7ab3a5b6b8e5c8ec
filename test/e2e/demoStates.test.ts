import { afterEach, assert, beforeAll, describe, it } from "vitest"
import type { Demo } from "../demo/Demo.ts"
import { startDemo } from "../demo/Demo.ts"
import type { StateName } from "../demo/States.ts"
import { states } from "../demo/States.ts"
import { builtServer } from "../support/Databases.ts"
import { text } from "../support/Documents.ts"

/* The states of the demo show what they say. The pictures of the gallery are taken from some of them. */

describe("the demo in the state", () => {
  let demo: Demo | undefined
  const started = async (state: StateName): Promise<Demo> => demo = await startDemo({ state })

  beforeAll(builtServer)
  afterEach(async () => {
    await demo?.stop()
    demo = undefined
  })

  it("outage asks for attention for many causes", async () => {
    const { items } = JSON.parse(await (await started("outage")).command(["attention", "--json"])) as {
      readonly items: ReadonlyArray<{ readonly cause: string }>
    }
    assert.includeMembers(items.map(({ cause }) => cause), [
      "worker_absent",
      "ca_ended",
      "list_expired",
      "upstream_away",
      "changes_lost",
      "jobs_failed",
      "client_loops",
      "key_compromised",
      "campaign_unconfirmed",
      "certificates_orphaned",
      "notifications_stuck"
    ])
  })

  it("rotation has a waiting and a retired CA beside the one that issues", async () => {
    const listed = await (await started("rotation")).command(["ca", "list"])
    for (const word of ["issuing", "waiting", "retired"]) assert.match(listed, new RegExp(`\\b${word}\\b`))
  })

  it("campaign has a running campaign whose certificates are mostly replaced", async () => {
    const { items } = JSON.parse(await (await started("campaign")).command(["campaign", "list", "--json"])) as {
      readonly items: ReadonlyArray<{ readonly state: string; readonly matched: number; readonly remaining: number }>
    }
    const running = items.find(({ state }) => state === "running")
    assert.isAbove(running?.matched ?? 0, 200)
    assert.isBelow(running?.remaining ?? Infinity, (running?.matched ?? 0) / 3)
    assert.isAbove(running?.remaining ?? 0, 0)
  })

  it("forty has forty profiles", async () => {
    const { items } = JSON.parse(await (await started("forty")).command(["profile", "list", "--json"])) as {
      readonly items: ReadonlyArray<unknown>
    }
    assert.lengthOf(items, 40)
  })

  it("is described in docs/start/panel.md", () => {
    const described = [...text("docs/start/panel.md").matchAll(/^\| `(\w+)` +\| (.*?) *\|$/gm)].map(([, name]) => name)
    assert.deepStrictEqual(described, Object.keys(states))
  })
})
