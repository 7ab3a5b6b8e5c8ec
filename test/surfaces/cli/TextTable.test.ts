import { stripVTControlCharacters } from "node:util"
import { assert, describe, it } from "vitest"
import { renderAuditRow, renderTrail } from "../../../src/surfaces/cli/AuditText.ts"
import { renderDetail } from "../../../src/surfaces/cli/Detail.ts"
import { escaped, escapedLines } from "../../../src/surfaces/cli/Escaped.ts"
import type { View } from "../../../src/surfaces/cli/Paint.ts"
import { painted, unpainted } from "../../../src/surfaces/cli/Paint.ts"
import { stacked } from "../../../src/surfaces/cli/Rendered.ts"
import { clientText, columnsOf } from "../../../src/surfaces/cli/Text.ts"
import { renderTable } from "../../../src/surfaces/cli/TextTable.ts"

const now = Date.parse("2027-01-15T08:00:00Z") / 1000
const program: View = { columns: undefined, isTerminal: false, paint: unpainted, utc: false, now }
const terminal = (columns: number, more: Partial<View> = {}): View => ({
  columns,
  isTerminal: true,
  paint: unpainted,
  utc: false,
  now,
  ...more
})
const at = (seconds: number): string => new Date((now + seconds) * 1000).toISOString().replace(".000Z", "Z")
const id = "0b2cf0de-7f3c-4a53-9f43-6d2b6a9f1a11"

describe("a table", () => {
  it("has padded columns under upper-case names, and a footer", () => {
    assert.strictEqual(
      String(renderTable(["id", "next update"], [["a", "b"], ["cc", ""]], 7)),
      ["ID  NEXT UPDATE", "a   b", "cc", "2 of 7 row(s)."].join("\n")
    )
    assert.strictEqual(String(renderTable(["id"], [], 0)), "0 of 0 row(s).")
  })

  it("shows on a terminal how long ago times are, and otherwise the times themselves", () => {
    const spans = [[-3 * 3600, "3 h ago"], [12 * 86_400, "in 12 d"], [-90, "90 s ago"], [0, "now"], [
      -150,
      "2 min ago"
    ]] as const
    const table = renderTable(["name", "created"], [...spans.map(([away]) => ["x", at(away)]), ["y", ""]], 6)
    const cells = (text: string) => text.split("\n").slice(1, -2).map((line) => line.split(/ {2,}/)[1])
    assert.deepStrictEqual(cells(table.on(terminal(80))), spans.map(([, shown]) => shown))
    for (const view of [program, terminal(80, { utc: true })]) {
      assert.deepStrictEqual(cells(table.on(view)), spans.map(([away]) => at(away)))
    }
    assert.include(renderTable(["o", "seen"], [["a", `${at(-60)} (stale)`]], 1).on(terminal(80)), "60 s ago (stale)")
    assert.include(renderTable(["o", "label"], [["a", at(-60)], ["b", "text"]], 2).on(terminal(80)), at(-60))
  })

  it("fits the terminal because the widest text is shortened", () => {
    const long = "www.example.org ".repeat(20).trim()
    const table = renderTable(["id", "status", "about", "names"], [[id, "valid", "some job of work", long], [
      id,
      "",
      "",
      "b"
    ]], 2)
    const lines = table.on(terminal(80)).split("\n")
    for (const line of lines) assert.isAtMost(columnsOf(line), 80)
    assert.match(lines[1] ?? "", new RegExp(`^${id}  valid   some job of work  www\\.exam.*…$`))
    const narrow = table.on(terminal(60))
    assert.match(narrow, new RegExp(`^${id}  valid   some job…   www\\.examp…$`, "m"))
    assert.include(table.on(program), long)
    assert.include(table.on(terminal(20)), id)
  })

  it("is measured in columns of the terminal and not in characters", () => {
    const rows = [["証明書", "x"], ["e\u0301te\u0301", "x"], ["🔒", "x"], ["plain", "x"]]
    const lines = renderTable(["name", "b"], rows, 4).on(terminal(80)).split("\n").slice(1, -1)
    assert.deepStrictEqual(lines.map((line) => columnsOf(line.slice(0, -1))), [8, 8, 8, 8])
    const cut = renderTable(["a", "name"], [["x", "証".repeat(60)], ["x", "e\u0301".repeat(60)]], 2).on(terminal(40))
    for (const line of cut.split("\n")) assert.isAtMost(columnsOf(line), 40)
    assert.match(cut, /証…$/m)
    assert.match(cut, /e\u0301…$/m)
  })

  it("colours the words of states only in columns of states", () => {
    const paint = painted
    const rows = [["a", "valid", "valid"], ["b", "pending", "x"], ["c", "revoked", "x"], ["d", "cancelled", "x"]]
    const text = renderTable(["id", "status", "label"], rows, 4).on(terminal(80, { paint }))
    assert.include(text, "a   \u001b[32mvalid\u001b[39m      valid")
    for (const shown of ["\u001b[33mpending", "\u001b[31mrevoked", "\u001b[2mcancelled", "\u001b[1mSTATUS"]) {
      assert.include(text, shown)
    }
    assert.strictEqual(stripVTControlCharacters(text), renderTable(["id", "status", "label"], rows, 4).on(terminal(80)))
  })

  it("escapes characters that control a terminal", () => {
    assert.strictEqual(
      escaped("a\n\t\u001b[2J\u009b\u202e\u2028\u200b\u{e0041}é日"),
      "a\\n\\t\\u001b[2J\\u009b\\u202e\\u2028\\u200b\\udb40\\udc41é日"
    )
    assert.strictEqual(escapedLines("a\n\u001bb"), "a\n\\u001bb")
    const rows = [["a", "\u001b]0;x\u0007"]]
    for (const view of [program, terminal(80)]) {
      assert.notMatch(renderTable(["id", "label"], rows, 1).on(view).replaceAll("\n", ""), /\p{Cc}/u)
      assert.notMatch(renderDetail({ label: rows[0]?.[1], names: ["\u001b"] }).on(view).replaceAll("\n", ""), /\p{Cc}/u)
    }
  })
})

describe("the caller, in output for people", () => {
  const row = {
    id: 1,
    createdAt: at(-7200),
    event: "operator_role_changed",
    outcome: "failure",
    actorKind: "admin",
    actorId: "root",
    identifiers: [],
    clientIp: "192.0.2.7",
    clientPtr: "bank.example",
    detail: { target: "olga" }
  } as const

  it("is shown as the address with its reverse name", () => {
    const told = "192.0.2.7 (bank.example)"
    assert.include(String(renderAuditRow(row)), `from           ${told}`)
    assert.include(String(renderTrail([row], 1)), told)
    assert.strictEqual(clientText("192.0.2.7", undefined), "192.0.2.7")
    assert.isUndefined(clientText(undefined, undefined))
  })

  it("is shown in the audit trail next to the outcome and the subject", () => {
    const [head = "", line = ""] = String(renderTrail([row], 1)).split("\n")
    assert.match(head, /^ID +TIME +EVENT +OUTCOME +ACTOR +FROM +ABOUT +PROFILE/)
    assert.match(line, /operator_role_changed +failure +admin root +192\.0\.2\.7 \(bank\.example\) +olga$/)
    assert.include(renderTrail([row], 1).on(terminal(300, { paint: painted })), "\u001b[31mfailure")
  })
})

describe("a cell that needs attention", () => {
  it("is coloured on a terminal, and is a plain word in output for a program", () => {
    const table = renderTable(["id", "factor"], [["a", "yes"], ["b", { text: "no", style: "yellow" }]], 2)
    assert.include(table.on(terminal(80, { paint: painted })), "\u001b[33mno\u001b[39m")
    assert.match(String(table), /^b {3}no$/m)
  })
})

describe("a detail view", () => {
  const view = renderDetail({ id, status: "valid, revoked", createdAt: at(-7200), label: undefined })

  it("has one padded line for each member that exists", () => {
    assert.strictEqual(String(view), `id          ${id}\nstatus      valid, revoked\ncreated at  ${at(-7200)}`)
    assert.strictEqual(String(stacked([view, "end"], "\n\n")), `${view}\n\nend`)
  })

  it("shows on a terminal how long ago a time was", () => {
    const text = view.on(terminal(80, { paint: painted }))
    assert.include(text, `${at(-7200)}\u001b[2m (2 h ago)`)
    assert.include(text, "\u001b[31mvalid, revoked")
    assert.notInclude(view.on(terminal(80, { utc: true })), "ago")
  })
})
