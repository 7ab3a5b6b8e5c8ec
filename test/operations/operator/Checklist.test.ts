import { assert, describe, it } from "vitest"
import { checklist } from "../../../src/operations/operator/Checklist.ts"
import { configOf } from "../../support/Graph.ts"

/* What the first page lists until a new service is ready for others. */

const doneOf = (toml: string, orders = 0) =>
  checklist(configOf(toml), orders).map(({ isDone, title }) => `${isDone ? "done" : "open"} ${title}`)

describe("the checklist", () => {
  it("is all open for the first configuration, but leads to the page with the lines of clients", () => {
    assert.deepStrictEqual(doneOf(""), [
      "open Get a first certificate",
      "open Say who may ask",
      "open Serve clients over TLS",
      "open Be told of failures",
      "open Ask operators for a second factor"
    ])
    assert.strictEqual(checklist(configOf(""), 0)[0]?.path, "/ui/profiles/default")
  })

  it("names the profiles at which everybody may ask", () => {
    const [, who] = checklist(configOf(""), 1)
    assert.include(who?.reason, "Whoever reaches default, other may ask there")
  })

  it("is done step by step", () => {
    const toml = `[server]
base_url = "https://acme.example"
[eab]
enabled = true
[admin]
require_mfa = true
[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example/"
`
    assert.deepStrictEqual(doneOf(toml, 1).map((step) => step.slice(0, 4)), ["done", "done", "done", "done", "done"])
  })
})
