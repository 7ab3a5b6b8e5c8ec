import * as Result from "effect/Result"
import { nearest } from "../../engine/config/KeyPath.ts"
import type { CommandNode, Flag } from "../../surfaces/cli/CommandTree.ts"
import { childOf, wordOf } from "../../surfaces/cli/CommandTree.ts"
import { globalFlags } from "../../surfaces/cli/Globals.ts"

/** What a command line contains for a command. */
export interface Given {
  /** The words that name the command. */
  readonly path: ReadonlyArray<string>
  /** The values of each flag. A flag without a value has the value `true`. */
  readonly flags: { readonly [name: string]: ReadonlyArray<string> }
  readonly args: ReadonlyArray<string>
}

/** Returns the words in a form that the library cannot misread. */
export const wordsOf = ({ args, flags, path }: Given): ReadonlyArray<string> => [
  ...path,
  ...Object.entries(flags).flatMap(([name, values]) => values.map((value) => `--${name}=${value}`)),
  "--",
  ...args
]

const closest = (wanted: string, known: ReadonlyArray<string>): string =>
  known.length === 0 ? "" : `; the nearest is ${nearest(wanted, known)}`

const printable = (word: string): string => /^[\w./:=@*-]+$/.test(word) ? word : JSON.stringify(word)

const isOneOf = ({ isClosed, words }: Flag, word: string): boolean => !isClosed || words.includes(word)
const choiceOf = ({ name, words }: Flag) => Result.fail(`${name} takes one of ${words.join(", ")}.`)

/** Reads the words that follow the words of a command. After `--` every word is an argument. */
const givenTo = ({ args, flags, path }: CommandNode, words: ReadonlyArray<string>): Result.Result<Given, string> => {
  const command = path.slice(1).join(" ")
  const known = new Map(flags.flatMap((flag) => [flag.name, ...flag.aliases].map((name) => [name, flag] as const)))
  const given = new Map<string, ReadonlyArray<string>>()
  const valuesOf = ({ name }: Flag) => given.get(name) ?? []
  const give = (flag: Flag, value: string) => given.set(flag.name, [...valuesOf(flag), value])
  let place = 0
  let areFlagsOver = false
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ""
    if (word === "--" && !areFlagsOver) {
      areFlagsOver = true
      continue
    }
    if (areFlagsOver || !word.startsWith("-") || word === "-") {
      const argument = args[place]
      if (argument === undefined) return Result.fail(`${command} takes no argument ${printable(word)}.`)
      if (word === "") return Result.fail(`${argument.name} is empty.`)
      if (!isOneOf(argument, word)) return choiceOf(argument)
      give(argument, word)
      if (!argument.isRepeated) place++
      continue
    }
    const [name = "", inline] = word.includes("=") ? [word.slice(0, word.indexOf("=")), word] : [word]
    const flag = known.get(name)
    if (flag === undefined) {
      const there = [...known.keys(), ...globalFlags.map((one) => one.name)]
      return Result.fail(`${command} has no flag ${printable(name)}${closest(name, there)}.`)
    }
    if (given.has(flag.name) && !flag.isRepeated) return Result.fail(`${name} is given twice.`)
    if (flag.value === undefined) {
      if (inline !== undefined) return Result.fail(`${name} takes no value.`)
      give(flag, "true")
    } else {
      const value = inline === undefined ? words[++at] : inline.slice(name.length + 1)
      if (value === undefined || value === "") return Result.fail(`${name} needs a value: ${flag.value}.`)
      if (!isOneOf(flag, value)) return choiceOf(flag)
      give(flag, value)
    }
  }
  const missing = [...flags, ...args].find(({ isNeeded, name }) => isNeeded && !given.has(name))
  return missing !== undefined ? Result.fail(`${command} needs ${missing.name}.`) : Result.succeed({
    path: path.slice(1),
    flags: Object.fromEntries(flags.map((flag) => [flag.name.slice("--".length), valuesOf(flag)])),
    args: args.flatMap(valuesOf)
  })
}

/** Returns the commands in a group whose name ends with a word. */
const endingWith = (group: CommandNode, word: string): ReadonlyArray<string> =>
  group.children.flatMap((child) => [
    ...wordOf(child) === word ? [child.path.slice(1).join(" ")] : [],
    ...endingWith(child, word)
  ])

/**
 * Returns why a word names no command of a group. Also names the commands that end with the word or, if there are none,
 * the nearest command.
 */
const strange = (group: CommandNode, word: string): string => {
  if (word.startsWith("-")) return `${printable(word)} is not allowed before a command.`
  const words = [...group.path.slice(1), printable(word)]
  const ending = endingWith(group, word)
  if (ending.length > 0) return `There is no command ${words.join(" ")}; some end with it: ${ending.join(", ")}.`
  return `There is no command ${words.join(" ")}${closest(word, group.children.map(wordOf))}.`
}

interface Meant {
  readonly node: CommandNode
  readonly rest: ReadonlyArray<string>
}

/** Returns the command that the words name, and the words that follow its name. */
const meantBy = (root: CommandNode, words: ReadonlyArray<string>): Result.Result<Meant, string> => {
  let node = root
  for (const [at, word] of words.entries()) {
    if (node.children.length === 0) return Result.succeed({ node, rest: words.slice(at) })
    const next = childOf(node, word)
    if (next === undefined) return Result.fail(strange(node, word))
    node = next
  }
  return Result.succeed({ node, rest: [] })
}

/**
 * Reads a command line before the library reads it. Fails with a sentence that names the first wrong word, and the
 * right word that is nearest to it. The library reports faults in a different order. It also reads some words
 * differently: it treats a value that begins with a dash as a flag, and the word `true` after a flag without a value as
 * the value of that flag.
 */
export const readWords = (root: CommandNode, words: ReadonlyArray<string>): Result.Result<Given, string> =>
  Result.flatMap(meantBy(root, words), ({ node, rest }) =>
    node === root || node.children.length === 0
      ? givenTo(node, rest)
      : Result.fail(`${node.path.slice(1).join(" ")} needs a command: ${node.children.map(wordOf).join(", ")}.`))

/**
 * Reads the words of a command line that asks for a help page. Returns the command that they name, or says why there is
 * no such command. Flags may precede and follow the words.
 */
export const helpOn = (root: CommandNode, words: ReadonlyArray<string>): Result.Result<CommandNode, string> =>
  Result.map(meantBy(root, words.filter((word) => !word.startsWith("-"))), ({ node }) => node)
