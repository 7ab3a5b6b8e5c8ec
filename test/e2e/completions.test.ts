import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { whole } from "../../src/app/Commands.ts"
import type { CommandNode } from "../../src/surfaces/cli/CommandTree.ts"
import { wordOf } from "../../src/surfaces/cli/CommandTree.ts"
import { renderCompletions, shells } from "../../src/surfaces/cli/Completions.ts"
import { globalFlags } from "../../src/surfaces/cli/Globals.ts"
import { freshDirectory } from "../support/Databases.ts"

/* Runs the completion scripts in all installed shells. Every machine that runs the tests has bash. */

const root = await Effect.runPromise(whole)
const nodesOf = (node: CommandNode): ReadonlyArray<CommandNode> => [node, ...node.children.flatMap(nodesOf)]
const globals = globalFlags.flatMap(({ aliases, name }) => [name, ...aliases])
const isInstalled = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0

const directory = freshDirectory()
for (const shell of shells) writeFileSync(join(directory, shell), renderCompletions(root, shell))
writeFileSync(join(directory, "some-file"), "")

const runIn = (shell: string, program: string): ReadonlyArray<string> => {
  const { status, stderr, stdout } = spawnSync(shell, shell === "zsh" ? ["-f", "-c", program] : ["-c", program], {
    cwd: directory,
    encoding: "utf8"
  })
  assert.deepStrictEqual([status, stderr], [0, ""], program)
  return stdout.split("\n").filter((line) => line !== "")
}

/**
 * Returns what one bash offers after each list of words, whose last word is not complete. For bash, `=` is a separate
 * word.
 */
const offersOfBash = (asked: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> => {
  const asks = asked.map((words) => {
    const line = words.map((word) => `'${word}'`).join(" ")
    return `COMPREPLY=(); COMP_WORDS=(acme-svc ${line}); COMP_CWORD=${words.length}; _acme_svc; printf '%s\\n' "\${COMPREPLY[@]}" :`
  })
  const said = runIn("bash", ["source ./bash", ...asks].join("\n"))
  const offered: Array<Array<string>> = [[]]
  for (const word of said) {
    if (word === ":") offered.push([])
    else offered.at(-1)?.push(word)
  }
  assert.lengthOf(offered, asked.length + 1)
  return offered.slice(0, -1)
}

/** Returns what bash offers after these words. */
const offeredByBash = (...words: ReadonlyArray<string>): ReadonlyArray<string> => offersOfBash([words])[0] ?? []

describe("the completion in bash", () => {
  it.each(nodesOf(root).map((node) => [node.path.join(" "), node] as const))(
    "offers the words that can follow %s",
    (_, node) => {
      const place = node.path.slice(1)
      if (place.join() === "help") return assert.sameMembers([...offeredByBash("help", "")], root.children.map(wordOf))
      const expected = node.children.length > 0
        ? node.children.map(wordOf)
        : node.args.some(({ words }) => words.length > 0)
        ? node.args.flatMap(({ words }) => words)
        : [...node.flags.map(({ name }) => name), ...globals]
      const flags = [...node.flags, ...globalFlags].filter(({ value }) => value !== undefined)
      const [words = [], dashed = [], ...values] = offersOfBash([
        [...place, ""],
        [...place, "-"],
        ...flags.flatMap(({ name }) => [[...place, name, ""], [...place, name, "=", ""], [...place, name, "="]])
      ])
      assert.sameMembers([...words], expected)
      assert.sameMembers([...dashed], [...node.flags.map(({ name }) => name), ...globals])
      for (const [at, { name, words }] of flags.entries()) {
        const given = values[3 * at] ?? []
        assert.sameMembers([...given], name.endsWith("-file") ? [...shells, "some-file"] : [...words], name)
        assert.deepStrictEqual(values[3 * at + 1], given)
        assert.deepStrictEqual(values[3 * at + 2], given)
      }
    }
  )

  it("completes a word that has begun, also after help and after global flags", () => {
    assert.deepStrictEqual(offeredByBash("ord"), ["order"])
    assert.deepStrictEqual(offeredByBash("order", "li"), ["list"])
    assert.deepStrictEqual(offeredByBash("--color", "never", "order", "ch"), ["chain"])
    assert.deepStrictEqual(offeredByBash("order", "list", "--status", "va"), ["valid"])
    assert.deepStrictEqual(offeredByBash("order", "list", "--status", "valid", "--of"), ["--offset"])
    assert.deepStrictEqual(offeredByBash("completions", "z"), ["zsh"])
    assert.deepStrictEqual(offeredByBash("help", "order", "li"), ["list"])
    assert.deepStrictEqual(offeredByBash("nonsense", "x"), [])
  })
})

/** Runs the script in elvish without its line editor, by calling the completion function. */
const offeredByElvish = (...words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const script = readFileSync(join(directory, "elvish"), "utf8").split("\nset edit:")[0] ?? ""
  const line = words.map((word) => `'${word}'`).join(" ")
  return runIn("elvish", `${script}\nacme-svc-completions acme-svc ${line} | each {|offer| echo $offer[0] }`)
}

describe.skipIf(!isInstalled("elvish"))("the completion in elvish", () => {
  it("offers the commands, flags and values that can follow", () => {
    assert.includeMembers([...offeredByElvish("")], ["order", "--json"])
    assert.includeMembers([...offeredByElvish("order", "")], ["list", "show"])
    assert.includeMembers([...offeredByElvish("help", "order", "")], ["list", "show"])
    assert.sameMembers([...offeredByElvish("eab", "list", "--status", "")], ["active", "revoked"])
    assert.deepStrictEqual(offeredByElvish("order", "list", "--limit", ""), [])
  })
})

describe("the completion in PowerShell", () => {
  it("has the commands and flags of every place, and every value of a flag", () => {
    const script = readFileSync(join(directory, "powershell"), "utf8")
    for (const { args, children, flags, path } of nodesOf(root)) {
      const place = path.slice(1).map((word) => ` ${word}`).join("")
      const line = script.split("\n").find((one) => one.startsWith(`    '${place}' = @(@(`)) ?? ""
      const offered = [...line.matchAll(/@\('([^' ]+)', '(?:[^']|'')*'\)/g)].map(([, word]) => word)
      const words = [...children.map(wordOf), ...args.flatMap(({ words }) => words), ...flags.map(({ name }) => name)]
      assert.includeMembers(offered, words, place)
      for (const { name, words } of flags.filter(({ words }) => words.length > 0)) {
        assert.include(script, `    '${place} ${name}' = @(${words.map((word) => `'${word}'`).join(", ")})`)
      }
    }
  })
})

describe.skipIf(!isInstalled("pwsh"))("the completion in an installed PowerShell", () => {
  it("completes a line", () => {
    const offered = (line: string) => {
      const ask = `[System.Management.Automation.CommandCompletion]::CompleteInput('${line}', ${line.length}, $null)`
      return runIn("pwsh", `Get-Content -Raw powershell | Invoke-Expression; ${ask}.CompletionMatches.CompletionText`)
    }
    assert.include(offered("acme-svc ord"), "order")
    assert.sameMembers([...offered("acme-svc eab list --status ")], ["active", "revoked"])
  })
})

describe.skipIf(!isInstalled("zsh"))("the completion in zsh", () => {
  it("loads its script, which offers words with their descriptions", () => {
    const offered = (words: string, at: number) =>
      runIn(
        "zsh",
        `compdef() { }; source ./zsh; _describe() { print -l -- "\${(@P)2}" }; _message() { }; words=(${words}); CURRENT=${at}; _acme_svc`
      )
    assert.include(offered("acme-svc ''", 2), "order:Orders and their certificates")
    assert.include(offered("acme-svc order list ''", 4), "--limit:Rows to print, at most 10000")
    assert.deepStrictEqual(offered("acme-svc eab list --status ''", 5), ["active", "revoked"])
  })
})

describe.skipIf(!isInstalled("fish"))("the completion in fish", () => {
  it("loads its script, which offers words with their descriptions", () => {
    const offered = (line: string) => runIn("fish", `source ./fish; complete -C '${line}'`)
    assert.include(offered("acme-svc ord"), "order\tOrders and their certificates")
    assert.include(offered("acme-svc order list --lim"), "--limit\tRows to print, at most 10000")
    assert.sameMembers([...offered("acme-svc eab list --status ")].map((one) => one.split("\t")[0]), [
      "active",
      "revoked"
    ])
  })
})
