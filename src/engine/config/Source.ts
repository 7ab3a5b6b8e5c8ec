import * as Result from "effect/Result"
import { parse, TomlError } from "smol-toml"
import type { Fault } from "./ConfigRefused.ts"
import type { Facts, Kind, Node } from "./Key.ts"
import { dotted, environmentPrefix, fileVariable, printableVariable, unknownKey, unknownVariable } from "./KeyPath.ts"

/** The environment of a process. */
export interface Environment {
  readonly [variable: string]: string | undefined
}

/** A value that was written, before it is checked. */
export interface Written {
  /** The dotted key as it was written. The key in a named entry begins with the table and the name of the entry. */
  readonly key: string
  readonly facts: Facts
  readonly source: "file" | "env"
  /** The value in the form for {@link Facts.read}. If the text cannot be converted, a failure that says why. */
  readonly raw: Result.Result<unknown, string>
  /** The variable from which the value comes. */
  readonly variable?: string
}

/** A named entry that was written. It may be empty. */
export interface Entry {
  /** The dotted key of the table that contains the entry. */
  readonly table: string
  readonly name: string
}

/** The content of one source: the file or the environment. */
export interface Layer {
  readonly written: ReadonlyArray<Written>
  readonly entries: ReadonlyArray<Entry>
  readonly faults: ReadonlyArray<Fault>
}

const isTable = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date)

const merge = (layers: ReadonlyArray<Layer>): Layer => ({
  written: layers.flatMap((layer) => layer.written),
  entries: layers.flatMap((layer) => layer.entries),
  faults: layers.flatMap((layer) => layer.faults)
})

const faulty = (key: string, message: string): Layer => ({ written: [], entries: [], faults: [{ key, message }] })

/** Returns the named entry at this place, or what is wrong with its name. */
const entryMet = (node: Node, path: ReadonlyArray<string>, name: string): Layer => {
  if (node._tag !== "Entries") return merge([])
  const message = node.names.fault(name)
  return message === undefined
    ? { written: [], entries: [{ table: dotted(path), name }], faults: [] }
    : faulty(dotted([...path, name]), message)
}

/** Returns one fault for every key in an unknown table, so that each refusal names the whole key. */
const unknown = (root: Node, path: ReadonlyArray<string>, value: unknown): Layer => {
  const members = isTable(value) ? Object.entries(value) : []
  return members.length === 0
    ? faulty(dotted(path), unknownKey(root, path))
    : merge(members.map(([name, member]) => unknown(root, [...path, name], member)))
}

const readValue = (root: Node, node: Node, path: ReadonlyArray<string>, value: unknown): Layer => {
  const key = dotted(path)
  if (node._tag === "Key") {
    return {
      written: [{ key, facts: node.facts, source: "file", raw: Result.succeed(value) }],
      entries: [],
      faults: []
    }
  }
  if (!isTable(value)) return faulty(key, `is a section and holds keys; it begins with [${key}]`)
  return merge(
    Object.entries(value).map(([name, member]) => {
      const child = node._tag === "Entries" ? node.entry : node.fields.get(name)
      return child === undefined
        ? unknown(root, [...path, name], member)
        : merge([entryMet(node, path, name), readValue(root, child, [...path, name], member)])
    })
  )
}

/** Returns the line, the column and the parser's own message. That message never quotes the document. */
const tomlFault = (cause: unknown): string => {
  if (!(cause instanceof TomlError)) return "is not well-formed TOML"
  const [reason = ""] = cause.message.replace("Invalid TOML document: ", "").split("\n")
  return `is not well-formed TOML at line ${cause.line}, column ${cause.column}: ${reason}`
}

/** Reads a TOML file that has no table of keys. Fails with a sentence that says why the text is not TOML. */
export const readToml = (text: string): Result.Result<{ readonly [name: string]: unknown }, string> =>
  Result.try({ try: () => parse(text), catch: tomlFault })

/**
 * Reads a TOML file with the help of the table of keys. Fails with a sentence that says why the text is not TOML.
 * Values keep their TOML type.
 */
export const readFile = (root: Node, text: string): Result.Result<Layer, string> =>
  Result.map(
    Result.try({ try: () => parse(text, { integersAsBigInt: true }), catch: tomlFault }),
    (document) => readValue(root, root, [], document)
  )

const integer = /^-?[0-9]+$/

/** Reads values in the forms that docs/reference/configuration.md, "Environment" describes. */
const readText: { readonly [K in Kind]: (text: string) => Result.Result<unknown, string> } = {
  string: Result.succeed,
  integer: (text) => integer.test(text) ? Result.succeed(BigInt(text)) : Result.fail("must be an integer"),
  integerOrWord: (text) => Result.succeed(integer.test(text) ? BigInt(text) : text),
  boolean: (text) => {
    const word = text.toLowerCase()
    return word === "true" || word === "false" ? Result.succeed(word === "true") : Result.fail("must be true or false")
  },
  array: (text) => {
    const items = text === "" ? [] : text.split(",").map((item) => item.trim())
    return items.includes("") ? Result.fail("must have no empty item between commas") : Result.succeed(items)
  }
}

interface Located {
  readonly path: ReadonlyArray<string>
  readonly facts: Facts
  readonly met: Layer
}

/** Finds the key that the parts of a variable's name stand for. */
const locate = (node: Node, segments: ReadonlyArray<string>, path: ReadonlyArray<string>): Located | undefined => {
  const [segment, ...rest] = segments
  if (node._tag === "Key") return segment === undefined ? { path, facts: node.facts, met: merge([]) } : undefined
  if (segment === undefined) return undefined
  if (node._tag === "Section") {
    const field = [...node.fields].find(([name]) => name.toUpperCase() === segment)
    return field === undefined ? undefined : locate(field[1], rest, [...path, field[0]])
  }
  const name = node.names.fold(segment)
  const found = locate(node.entry, rest, [...path, name])
  return found === undefined ? undefined : { ...found, met: merge([entryMet(node, path, name), found.met]) }
}

const readVariable = (root: Node, variable: string, text: string): Layer => {
  const segments = variable.slice(environmentPrefix.length).split("__")
  const located = locate(root, segments, [])
  if (located === undefined) return faulty(printableVariable(variable), unknownVariable(root, variable))
  const { facts, met, path } = located
  const raw = readText[facts.kind](text)
  return merge([met, {
    written: [{ key: dotted(path), facts, source: "env", raw, variable }],
    entries: [],
    faults: []
  }])
}

/** Removes the value of a key that two variables set, because nobody can know which value is meant. */
const refuseTwice = (layer: Layer): Layer => ({
  ...layer,
  written: layer.written.map((one) => {
    const others = layer.written.filter(({ key, variable }) => key === one.key && variable !== one.variable)
    const names = others.map(({ variable = "" }) => printableVariable(variable))
    return names.length === 0 ? one : { ...one, raw: Result.fail(`is set by ${names.join(", ")} as well`) }
  })
})

/** Reads every `ACME_SVC_` variable except the one that names the file. The form of a value depends on its key. */
export const readEnvironment = (root: Node, env: Environment): Layer => {
  const variables = Object.entries(env).filter(([name]) => name.startsWith(environmentPrefix) && name !== fileVariable)
  return refuseTwice(merge(
    variables.toSorted(([left], [right]) => left < right ? -1 : 1).flatMap(([name, text]) =>
      text === undefined ? [] : [readVariable(root, name, text)]
    )
  ))
}
