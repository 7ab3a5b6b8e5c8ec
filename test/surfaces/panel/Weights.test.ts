import { Effect } from "effect"
import { assert, describe } from "vitest"
import { sqlite } from "../../support/Databases.ts"
import { fillLists } from "../../support/FullLists.ts"
import { enter } from "../../support/Operators.ts"
import { entered, usePanel } from "../../support/Panel.ts"

/* The weight of pages when their lists are full (docs/contribute/decisions/panel.md, "Weight"). */

/** The limits are in octets of HTML, before any compression. */
const most = 20_000
/** The first page has what needs attention and four charts. */
const mostOfFirst = 32_000

/** The pages with lists, and how many rows each has. */
const lists: ReadonlyArray<readonly [path: string, rows: number]> = [
  ["/ui/orders", 50],
  ["/ui/orders?status=valid", 50],
  ["/ui/certificates", 50],
  ["/ui/certificates?sort=soonest", 50],
  ["/ui/expiring?days=365", 50],
  ["/ui/accounts", 50],
  ["/ui/eab", 50],
  ["/ui/upstream-orders", 50],
  ["/ui/jobs", 50],
  ["/ui/jobs?status=failed", 50],
  ["/ui/notifications", 50],
  ["/ui/audit", 50],
  ["/ui/audit?event=certificate_issued&page=1", 40],
  ["/ui/operators", 50],
  ["/ui/workers", 20],
  ["/ui/operators/ann", 25],
  ["/ui/account", 25],
  ["/ui/search?q=node-003.eu.corp.example", 1]
]

const others = [
  "/ui/campaigns",
  "/ui/audit/chain",
  "/ui/",
  "/ui/?range=30d",
  "/ui/authorities",
  "/ui/profiles",
  "/ui/profiles/default",
  "/ui/profiles/default/filter",
  "/ui/configuration",
  "/ui/configuration?profile=default",
  "/ui/nonces",
  "/ui/search"
]

describe("a page of the panel with full lists", () => {
  const { test } = usePanel(sqlite)

  test("has at most 20 KB, and the first page at most 32 KB", (panel) =>
    Effect.gen(function*() {
      yield* fillLists
      const held = yield* entered(panel, "ann", "admin")
      for (let many = 0; many < 30; many++) yield* enter("ann")
      for (const [path, rows] of [...lists, ...others.map((path) => [path, 0] as const)]) {
        const { status, text } = yield* panel.ask(path, held)
        assert.strictEqual(status, 200, path)
        if (rows > 0) assert.isAtLeast(text.split(/<tr\b(?![^<]*<th)/).length - 1, rows, path)
        assert.isAtMost(Buffer.byteLength(text), /^\/ui\/(?:$|\?)/.test(path) ? mostOfFirst : most, path)
      }
    }))
})
