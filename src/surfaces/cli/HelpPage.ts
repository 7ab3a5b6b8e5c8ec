import type { CommandNode, Flag } from "./CommandTree.ts"
import { saidOf, summaryOf, wordOf } from "./CommandTree.ts"
import { globalFlags } from "./Globals.ts"
import type { View } from "./Paint.ts"

/** The commands of the program, grouped by purpose, in the order of the help page. */
export type Sections = ReadonlyArray<readonly [title: string, words: ReadonlyArray<string>]>

/** Returns the sections with their commands. A command that no section names is in the last section. */
export const sectioned = (
  sections: Sections,
  nodes: ReadonlyArray<CommandNode>
): ReadonlyArray<readonly [title: string, nodes: ReadonlyArray<CommandNode>]> => {
  const known = new Set(sections.flatMap(([, words]) => words))
  return sections.map(([title, words], index) => {
    const named = words.flatMap((word) => nodes.filter((node) => wordOf(node) === word))
    const strays = index === sections.length - 1 ? nodes.filter((node) => !known.has(wordOf(node))) : []
    return [title, [...named, ...strays]] as const
  })
}

const [narrowest, usual, widest] = [40, 80, 100]

/** Returns the length of lines: at most the width of the terminal, and never so long that lines are hard to read. */
const widthOf = ({ columns = usual }: View): number => Math.min(Math.max(columns, narrowest), widest)

/** Breaks a text into lines. A word that is longer than a line stays whole. */
const wrapped = (text: string, width: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line]
}

const widestName = 32

/** Renders names with their descriptions in two columns. A name that is too long gets a separate line. */
const twoColumns = (
  view: View,
  rows: ReadonlyArray<readonly [name: string, text: string]>,
  column = Math.min(widestName, Math.max(...rows.map(([name]) => name.length)))
): ReadonlyArray<string> =>
  rows.flatMap(([name, text]) => {
    const indent = " ".repeat(column + 4)
    const [first = "", ...more] = wrapped(text, widthOf(view) - indent.length)
    const label = view.paint("cyan", name)
    return name.length > column
      ? [`  ${label}`, `${indent}${first}`, ...more.map((line) => indent + line)]
      : [`  ${label}${" ".repeat(column - name.length)}  ${first}`.trimEnd(), ...more.map((line) => indent + line)]
  })

const bracketed = (text: string, isNeeded: boolean): string => isNeeded ? text : `[${text}]`

const widestChoice = 24

/** Returns whether the sentence of a flag lists its words, because the words are too long to be shown as the value. */
const isSpelt = ({ value = "", words }: Flag): boolean => words.length > 0 && value.length > widestChoice

const valueOf = (flag: Flag): string =>
  flag.value === undefined ? "" : ` <${isSpelt(flag) ? "word" : flag.value.replaceAll(" | ", "|")}>`

const flagRow = (flag: Flag): readonly [string, string] => {
  const { aliases, fallback, isClosed, isNeeded, name } = flag
  const notes = [
    fallback === undefined ? "" : ` Default: ${fallback}.`,
    isNeeded && name.startsWith("-") ? " Needed." : ""
  ]
  return [
    `${aliases.map((alias) => `${alias}, `).join("")}${name}${valueOf(flag)}`,
    saidOf(flag, isSpelt(flag) && isClosed) + notes.join("")
  ]
}

/** Returns the form of a command: its words, its arguments and its required flags. */
export const usageOf = (node: CommandNode): string => {
  const { args, children, flags, path } = node
  const needed = flags.filter(({ isNeeded }) => isNeeded).map((flag) => `${flag.name}${valueOf(flag)}`)
  const words = args.map(({ isNeeded, isRepeated, name }) => bracketed(`${name}${isRepeated ? "..." : ""}`, isNeeded))
  const rest = flags.length > needed.length ? ["[flags]"] : []
  return [
    ...path,
    ...children.length > 0 ? [path.length > 1 ? "<command>" : "[command]"] : [],
    ...words,
    ...needed,
    ...rest
  ]
    .join(" ")
}

const heading = (view: View, text: string): string => view.paint("bold", `${text}:`)

/**
 * Renders the usage. All lines after the first begin below the first word of the usage. A flag and its value stay on
 * the same line.
 */
const usageLines = (view: View, node: CommandNode, more = ""): string => {
  const label = "Usage: "
  const kept = `${usageOf(node)}${more}`.replaceAll(" <", "\u0000<")
  const [first = "", ...rest] = wrapped(kept, widthOf(view) - label.length)
  return [`${heading(view, "Usage")} ${first}`, ...rest.map((line) => " ".repeat(label.length) + line)].join("\n")
    .replaceAll("\u0000", " ")
}

const listed = (view: View, nodes: ReadonlyArray<CommandNode>, column: number): ReadonlyArray<string> =>
  twoColumns(view, nodes.map((node) => [wordOf(node), summaryOf(node, widthOf(view) - column - 4)]), column)

const rootPage = (node: CommandNode, view: View, sections: Sections): ReadonlyArray<string> => {
  const column = Math.max(...node.children.map((child) => wordOf(child).length))
  return [
    usageLines(view, node, " [flags]"),
    ...wrapped(node.text, widthOf(view)),
    ...sectioned(sections, node.children).filter(([, nodes]) => nodes.length > 0).flatMap(([title, nodes]) => [
      view.paint("bold", title),
      ...listed(view, nodes, column)
    ]),
    view.paint("bold", "Flags of every command"),
    ...twoColumns(view, globalFlags.map(flagRow))
  ]
}

const everywhere = globalFlags.map(({ name }) => name).join(", ")

const leafPage = (node: CommandNode, view: View): ReadonlyArray<string> => {
  const { args, example, exits, flags } = node
  const section = (title: string, rows: ReadonlyArray<readonly [string, string]>) =>
    rows.length === 0 ? [] : ["", heading(view, title), ...twoColumns(view, rows)]
  return [
    usageLines(view, node),
    "",
    ...wrapped(node.text, widthOf(view)),
    ...section("Arguments", args.map(flagRow)),
    ...section("Flags", flags.map(flagRow)),
    ...example === undefined ? [] : ["", heading(view, "Example"), `  ${example}`],
    ...section("Exit codes", exits.map(({ code, meaning }) => [String(code), meaning])),
    "",
    ...wrapped(`Every command also takes ${everywhere}; see \`${node.path[0]} --help\`.`, widthOf(view))
  ]
}

const groupPage = (node: CommandNode, view: View): ReadonlyArray<string> => [
  usageLines(view, node),
  "",
  ...wrapped(node.text, widthOf(view)),
  "",
  heading(view, "Commands"),
  ...listed(view, node.children, Math.max(...node.children.map((child) => wordOf(child).length))),
  "",
  ...wrapped(`\`${node.path.join(" ")} <command> --help\` explains one command.`, widthOf(view))
]

/** Renders the help page of the program, of a group or of a command. Its lines fit the terminal. */
export const renderHelp = (node: CommandNode, view: View, sections: Sections): string =>
  (node.children.length === 0 ? leafPage(node, view) : node.path.length > 1
    ? groupPage(node, view)
    : rootPage(node, view, sections)).join("\n")
