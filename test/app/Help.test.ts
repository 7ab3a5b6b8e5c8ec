import { Effect, Result } from "effect"
import { assert, describe, it } from "vitest"
import { outline, sections, whole } from "../../src/app/Commands.ts"
import { readWords } from "../../src/app/commands/Usage.ts"
import type { CommandNode } from "../../src/surfaces/cli/CommandTree.ts"
import { describedBy, leavesOf, summaryOf, wordOf } from "../../src/surfaces/cli/CommandTree.ts"
import { globalFlags, readGlobals } from "../../src/surfaces/cli/Globals.ts"
import { renderHelp } from "../../src/surfaces/cli/HelpPage.ts"
import type { View } from "../../src/surfaces/cli/Paint.ts"
import { unpainted } from "../../src/surfaces/cli/Paint.ts"
import { committed } from "../support/Committed.ts"
import { freshPlace } from "../support/RunCommand.ts"

/* The help, the parser and docs/reference/cli.md are made from one tree, so that all of them agree. */

const root = await Effect.runPromise(whole)
const nodesOf = (node: CommandNode): ReadonlyArray<CommandNode> => [node, ...node.children.flatMap(nodesOf)]
const nodes = nodesOf(root)
const leaves = leavesOf(root)
const place = freshPlace(null)
const ends = (...words: ReadonlyArray<string>) => Effect.runPromise(place.run(words))
const at = (columns: number | undefined): View => ({ columns, isTerminal: true, paint: unpainted, utc: false, now: 0 })
const document = committed("docs/reference/cli.md")

const nameOf = ({ path }: CommandNode) => path.join(" ")
const each = (nodes: ReadonlyArray<CommandNode>) => nodes.map((node) => ({ name: nameOf(node), node }))

it("the overview describes each command with the first sentence of the command's own page", () => {
  const summaries = ({ children, text }: CommandNode) => [
    text,
    children.map((child) => [wordOf(child), summaryOf(child, 1000)]).sort()
  ]
  assert.deepStrictEqual(summaries(outline), summaries(root))
})

describe.each(each(leaves))("$name", ({ node }) => {
  it("has a description, an example that can be parsed, and exit codes", () => {
    assert.match(node.text, /^[A-Z].*\.$/)
    const words = /acme-svc((?: [^\s)]+)*)\)?$/.exec(node.example ?? "")?.[1]?.trim().split(" ")
    assert.deepStrictEqual(words?.slice(0, node.path.length - 1), node.path.slice(1), node.example)
    const read = Result.flatMap(readGlobals(words ?? []), ({ rest }) => readWords(root, rest))
    assert.strictEqual(Result.isFailure(read) ? read.failure : undefined, undefined)
    assert.includeMembers(node.exits.map(({ code }) => code), [0, 2])
    for (const flag of [...node.flags, ...node.args]) assert.match(flag.text, /^\S.*\.$/, flag.name)
  })

  it("is in docs/reference/cli.md with every flag and argument", () => {
    const [, part = ""] = document.split(`\n#### ${node.path.slice(1).join(" ")}\n`)
    const [own = ""] = part.split(/\n###/)
    for (const { name } of [...node.flags, ...node.args]) assert.include(own, `${name.replaceAll("<", "\\<")}\``)
    assert.include(own, node.example ?? "Example")
  })
})

describe.each(each(nodes))("the page of $name", ({ node }) => {
  it("fits a terminal of 80 columns, and lists every subcommand, flag and argument", async () => {
    const { code, err, out } = await ends(...node.path.slice(1), "--help")
    assert.deepStrictEqual([code, err], [0, ""])
    assert.deepStrictEqual(out.split("\n").filter((line) => line.length > 80), [])
    for (const { name } of [...node.flags, ...node.args]) assert.include(out, `  ${name}`)
    for (const child of node.children) assert.match(out, new RegExp(`^  ${wordOf(child)} +\\S`, "m"))
    assert.strictEqual((await ends("help", ...node.path.slice(1))).out, out)
    assert.strictEqual((await ends(...node.path.slice(1), "-h")).out, out)
  })

  it("describes each subcommand on one line that is not truncated", () => {
    for (const child of node.children) assert.notInclude(summaryOf(child, 62), "…", wordOf(child))
  })

  it("is at most 100 columns wide, and adapts to a narrower terminal", () => {
    const longest = (columns: number) =>
      Math.max(...renderHelp(node, at(columns), sections).split("\n").map(({ length }) => length))
    assert.isAtMost(longest(300), 100)
    const example = node.example?.length ?? 0
    assert.isAtMost(longest(60), Math.max(60, example + 2, 74)) // Examples and names of commands are never wrapped.
  })
})

describe("the page of the program", () => {
  it("fits one screen and groups every command", async () => {
    const { out } = await ends("--help")
    const lines = out.trimEnd().split("\n")
    assert.isAtLeast(lines.length, 24)
    assert.isAtMost(lines.length, 44)
    const grouped = sections.flatMap(([, words]) => words)
    assert.strictEqual(new Set(grouped).size, grouped.length)
    assert.includeMembers([...grouped], root.children.map(wordOf))
  })

  it("is what the name of the program alone prints on a terminal", async () => {
    const { code, out } = await Effect.runPromise(place.run([], { columns: 100 }))
    assert.strictEqual(code, 0)
    assert.include(out, "acme-svc [command] [flags]")
    assert.strictEqual((await Effect.runPromise(place.run(["--help"], { columns: 100 }))).out, out)
  })

  it("lists global flags, which may be given anywhere in a command line", () => {
    for (const { aliases, name, value, words } of globalFlags) {
      for (const flag of [name, ...aliases]) {
        const given = value === undefined ? [flag] : [flag, words[0] ?? ""]
        const read = readGlobals(["order", ...given, "list"])
        assert.deepStrictEqual(read._tag === "Success" ? read.success.rest : read.failure, ["order", "list"])
      }
      if (value === undefined) {
        const read = readGlobals(["order", "list", `${name}=yes`])
        assert.strictEqual(read._tag === "Failure" ? read.failure : read._tag, `${name} takes no value.`)
      }
    }
  })

  it("is coloured on request", async () => {
    assert.include((await ends("--help", "--color", "always")).out, "\u001b[1mService\u001b[22m")
    assert.notInclude((await ends("--help")).out, "\u001b[")
  })
})

describe("a description", () => {
  it("is split into sentences, an example and exit codes with their meaning", () => {
    assert.deepStrictEqual(describedBy("Do it. Slowly. Example: acme-svc do it 1.2. Exit codes: 0 well, 3 not."), {
      text: "Do it. Slowly.",
      example: "acme-svc do it 1.2",
      exits: [
        { code: 0, meaning: "well" },
        { code: 2, meaning: "the command line is wrong" },
        { code: 3, meaning: "not" }
      ]
    })
    assert.deepStrictEqual(describedBy("A group."), { text: "A group.", example: undefined, exits: [] })
  })
})
