import { Effect } from "effect"
import { sections, whole } from "../../src/app/Commands.ts"
import type { CommandNode, Flag } from "../../src/surfaces/cli/CommandTree.ts"
import { leavesOf, saidOf, usualExits, wordOf } from "../../src/surfaces/cli/CommandTree.ts"
import { globalFlags } from "../../src/surfaces/cli/Globals.ts"
import { sectioned, usageOf } from "../../src/surfaces/cli/HelpPage.ts"
import { tableOf } from "./Markdown.ts"

const root = await Effect.runPromise(whole)

const code = (text: string): string => `\`${text}\``

const flagTable = (title: string, flags: ReadonlyArray<Flag>): ReadonlyArray<string> =>
  flags.length === 0 ? [] : [tableOf(
    [title, "Value", "Default", "Meaning"],
    flags.map((flag) => [
      code([...flag.aliases, flag.name].join(", ")),
      flag.value ?? "",
      flag.isNeeded ? "needed" : flag.fallback ?? "",
      saidOf(flag, false)
    ])
  )]

const exitsOf = ({ exits }: CommandNode): string =>
  exits.map(({ code, meaning }) =>
    usualExits.some((usual) => usual.code === code && usual.meaning === meaning) ? String(code) : `${code} (${meaning})`
  ).join(", ")

const escapedMarks = (text: string): string => text.replaceAll(/[<>*_|]/g, (mark) => `\\${mark}`)

const commandPart = (node: CommandNode): string =>
  [
    `#### ${node.path.slice(1).join(" ")}`,
    code(usageOf(node)),
    escapedMarks(node.text),
    ...flagTable("Argument", node.args),
    ...flagTable("Flag", node.flags),
    `Example: ${code(node.example ?? "")}. Exit codes: ${exitsOf(node)}.`
  ].join("\n\n")

/**
 * Returns the command line for `docs/reference/cli.md`: every command with its flags, from the tree that the parser and
 * the help use.
 */
export const renderCommands = (): string =>
  [
    "### Flags of every command",
    ...flagTable("Flag", globalFlags),
    "### Exit codes",
    tableOf(["Code", "Means"], usualExits.map(({ code, meaning }) => [String(code), meaning])),
    ...sectioned(sections, root.children).filter(([, nodes]) => nodes.length > 0).flatMap(([title, nodes]) => [
      `### ${title}`,
      tableOf(["Command", "What it is for"], nodes.map((node) => [code(wordOf(node)), escapedMarks(node.text)])),
      ...nodes.flatMap(leavesOf).map(commandPart)
    ])
  ].join("\n\n")
