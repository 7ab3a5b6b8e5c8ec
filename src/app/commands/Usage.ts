import type { CommandDescriptor, Usage } from "@effect/cli"
import { Args, Options } from "@effect/cli"
import { Option } from "effect"
import { nearest } from "../../kernel/config/KeyPath.ts"

/** A command as the library holds it, which has no other way of walking a tree. */
type Node =
  | {
    readonly _tag: "Standard"
    readonly name: string
    readonly options: Options.Options<unknown>
    readonly args: Args.Args<unknown>
  }
  | { readonly _tag: "Map"; readonly command: Node }
  | { readonly _tag: "Subcommands"; readonly parent: Node; readonly children: ReadonlyArray<Node> }

/** A flag of a command, or an argument. */
interface Flag {
  readonly name: string
  /** What stands for its value in the help; absent for one that has none. */
  readonly value: string | undefined
  readonly isNeeded: boolean
  readonly isRepeated: boolean
}

/** One command and what it takes. */
export interface Taken {
  /** The words that lead to it; none for the program itself. */
  readonly path: ReadonlyArray<string>
  readonly flags: ReadonlyArray<Flag>
  /** Every one is needed. */
  readonly args: ReadonlyArray<Flag>
  readonly children: ReadonlyArray<Taken>
}

const flagsOf = (
  usage: Usage.Usage,
  more: { readonly isNeeded: boolean; readonly isRepeated: boolean } = { isNeeded: true, isRepeated: false }
): ReadonlyArray<Flag> => {
  switch (usage._tag) {
    case "Empty":
    case "Mixed":
      return []
    case "Named":
      return [{ name: usage.names[0] ?? "", value: Option.getOrUndefined(usage.acceptedValues), ...more }]
    case "Optional":
      return flagsOf(usage.usage, { ...more, isNeeded: false })
    case "Repeated":
      return flagsOf(usage.usage, { isNeeded: false, isRepeated: true })
    case "Alternation":
    case "Concat":
      return [...flagsOf(usage.left, more), ...flagsOf(usage.right, more)]
  }
}

const takenBy = (node: Node, above: ReadonlyArray<string>): Taken => {
  switch (node._tag) {
    case "Map":
      return takenBy(node.command, above)
    case "Standard":
      return {
        path: [...above, node.name],
        flags: flagsOf(Options.getUsage(node.options)),
        args: flagsOf(Args.getUsage(node.args)),
        children: []
      }
    case "Subcommands": {
      const parent = takenBy(node.parent, above)
      return { ...parent, children: node.children.map((child) => takenBy(child, parent.path)) }
    }
  }
}

/** A command tree as data. */
export const taken = (command: CommandDescriptor.Command<unknown>): Taken => takenBy(command as unknown as Node, [])

const closest = (wanted: string, known: ReadonlyArray<string>): string =>
  known.length === 0 ? "" : `; the nearest is ${nearest(wanted, known)}`

const printable = (word: string): string => /^[\w./:=@*-]+$/.test(word) ? word : JSON.stringify(word)

/** Words of a closed set stand in the help with bars between them. */
const choicesOf = ({ value = "" }: Flag): ReadonlyArray<string> => value.split(" | ")
const isOneOf = (flag: Flag, word: string): boolean => {
  const choices = choicesOf(flag)
  return choices.length < 2 || choices.includes(word)
}
const choiceOf = (flag: Flag): string => `${flag.name} takes one of ${choicesOf(flag).join(", ")}.`

/** The sentence that says what is wrong with the words behind a command's own; undefined when they can be read. */
const faultOf = ({ args, flags, path }: Taken, words: ReadonlyArray<string>): string | undefined => {
  const command = path.slice(1).join(" ")
  const known = new Map(flags.map((flag) => [flag.name, flag]))
  const given = new Set<string>()
  let place = 0
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (!word.startsWith("-") || word === "-") {
      const argument = args[place++]
      if (argument === undefined) return `${command} takes no argument ${printable(word)}.`
      if (word === "") return `${argument.name} is empty.`
      if (!isOneOf(argument, word)) return choiceOf(argument)
      continue
    }
    const [name = "", inline] = word.includes("=") ? [word.slice(0, word.indexOf("=")), word] : [word]
    const flag = known.get(name)
    if (flag === undefined) return `${command} has no flag ${printable(name)}${closest(name, [...known.keys()])}.`
    if (given.has(name) && !flag.isRepeated) return `${name} is given twice.`
    given.add(name)
    if (flag.value === undefined) {
      if (inline !== undefined) return `${name} takes no value.`
    } else {
      const value = inline === undefined ? words[++at] : inline.slice(name.length + 1)
      if (value === undefined || value === "") return `${name} needs a value: ${flag.value}.`
      if (!isOneOf(flag, value)) return choiceOf(flag)
    }
  }
  const missing = flags.find(({ isNeeded, name }) => isNeeded && !given.has(name))
  if (missing !== undefined) return `${command} needs ${missing.name}.`
  const absent = args[place]
  return absent === undefined ? undefined : `${command} needs ${absent.name}.`
}

const asksForHelp = ["-h", "--help", "--version"]

/**
 * What is wrong with a command line, in a sentence that names the word; undefined when it can be read. The library says
 * less: a flag without its value is an unknown argument to it, and a value of the wrong kind has no flag.
 */
export const wrongWords = (
  command: CommandDescriptor.Command<unknown>,
  words: ReadonlyArray<string>
): string | undefined => {
  if (words.some((word) => asksForHelp.includes(word))) return undefined
  let here = taken(command)
  let at = 0
  for (; here.children.length > 0 && at < words.length; at++) {
    const word = words[at] ?? ""
    const children: ReadonlyArray<readonly [string, Taken]> = here.children.map((child) =>
      [child.path.at(-1) ?? "", child] as const
    )
    const next = children.find(([name]) => name === word)?.[1]
    if (next === undefined) {
      if (word.startsWith("-")) return `${printable(word)} does not stand before a command.`
      const group = here.path.slice(1).join(" ")
      return `There is no command ${[group, printable(word)].filter((part) => part !== "").join(" ")}${
        closest(word, children.map(([name]) => name))
      }.`
    }
    here = next
  }
  return here.children.length > 0 ? undefined : faultOf(here, words.slice(at))
}
