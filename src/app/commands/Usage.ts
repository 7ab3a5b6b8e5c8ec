import { nearest } from "../../kernel/config/KeyPath.ts"
import type { CommandNode, Flag } from "../../surfaces/cli/CommandTree.ts"
import { childOf, wordOf } from "../../surfaces/cli/CommandTree.ts"
import { globalFlags } from "../../surfaces/cli/Globals.ts"

const closest = (wanted: string, known: ReadonlyArray<string>): string =>
  known.length === 0 ? "" : `; the nearest is ${nearest(wanted, known)}`

const printable = (word: string): string => /^[\w./:=@*-]+$/.test(word) ? word : JSON.stringify(word)

const isOneOf = ({ isClosed, words }: Flag, word: string): boolean => !isClosed || words.includes(word)
const choiceOf = ({ name, words }: Flag): string => `${name} takes one of ${words.join(", ")}.`

/** The fault in the words after a command's own, as a sentence. Undefined if they can be read. */
const faultOf = ({ args, flags, path }: CommandNode, words: ReadonlyArray<string>): string | undefined => {
  const command = path.slice(1).join(" ")
  const known = new Map(flags.flatMap((flag) => [flag.name, ...flag.aliases].map((name) => [name, flag] as const)))
  const given = new Set<string>()
  let place = 0
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (!word.startsWith("-") || word === "-") {
      const argument = args[place]
      if (argument === undefined) return `${command} takes no argument ${printable(word)}.`
      if (word === "") return `${argument.name} is empty.`
      if (!isOneOf(argument, word)) return choiceOf(argument)
      given.add(argument.name)
      if (!argument.isRepeated) place++
      continue
    }
    const [name = "", inline] = word.includes("=") ? [word.slice(0, word.indexOf("=")), word] : [word]
    const flag = known.get(name)
    if (flag === undefined) {
      const there = [...known.keys(), ...globalFlags.map((one) => one.name)]
      return `${command} has no flag ${printable(name)}${closest(name, there)}.`
    }
    if (given.has(flag.name) && !flag.isRepeated) return `${name} is given twice.`
    given.add(flag.name)
    if (flag.value === undefined) {
      if (inline !== undefined) return `${name} takes no value.`
    } else {
      const value = inline === undefined ? words[++at] : inline.slice(name.length + 1)
      if (value === undefined || value === "") return `${name} needs a value: ${flag.value}.`
      if (!isOneOf(flag, value)) return choiceOf(flag)
    }
  }
  const missing = [...flags, ...args].find(({ isNeeded, name }) => isNeeded && !given.has(name))
  return missing === undefined ? undefined : `${command} needs ${missing.name}.`
}

/** Why a word names no command of a group, and the nearest command. */
const strange = (group: CommandNode, word: string): string => {
  if (word.startsWith("-")) return `${printable(word)} is not allowed before a command.`
  const words = [...group.path.slice(1), printable(word)]
  return `There is no command ${words.join(" ")}${closest(word, group.children.map(wordOf))}.`
}

/** The command that the words name, and the words after it. If there is no such command, a sentence. */
const meantBy = (
  root: CommandNode,
  words: ReadonlyArray<string>
): string | { readonly node: CommandNode; readonly rest: ReadonlyArray<string> } => {
  let node = root
  for (const [at, word] of words.entries()) {
    if (node.children.length === 0) return { node, rest: words.slice(at) }
    const next = childOf(node, word)
    if (next === undefined) return strange(node, word)
    node = next
  }
  return { node, rest: [] }
}

/**
 * The fault of a command line, in a sentence that names the word. Undefined if there is none. The library is less
 * precise: for a flag without its value it reports an unknown argument, and it does not name the flag of a wrong value.
 */
export const wrongWords = (root: CommandNode, words: ReadonlyArray<string>): string | undefined => {
  const meant = meantBy(root, words)
  if (typeof meant === "string") return meant
  const { node, rest } = meant
  if (node.children.length === 0) return faultOf(node, rest)
  return node === root
    ? undefined
    : `${node.path.slice(1).join(" ")} needs a command: ${node.children.map(wordOf).join(", ")}.`
}

/**
 * Words that ask for a help page: the command that they name, or why there is none. Flags may be before and after them.
 */
export const helpOn = (root: CommandNode, words: ReadonlyArray<string>): CommandNode | string => {
  const meant = meantBy(root, words.filter((word) => !word.startsWith("-")))
  return typeof meant === "string" ? meant : meant.node
}
