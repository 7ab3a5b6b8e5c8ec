import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import type { Form } from "./ValueForm.ts"
import { quoteOf } from "./ValueForm.ts"

/** The TOML type of a value in the file. The form of the value in an environment variable follows from it. */
export type Kind = "string" | "integer" | "boolean" | "array"

/**
 * A raw value, before {@link Facts.read}. Integers are `bigint`, so that `5.0` in the file stays a float. A key that
 * may be unset has the default `undefined`.
 */
export type Default = string | bigint | boolean | ReadonlyArray<string> | undefined

/** All facts about one key. The schema of each key has them as an annotation. */
export interface Facts {
  readonly kind: Kind
  /** The type and range in words, for the reference. */
  readonly rule: string
  readonly default: Default
  /** What the key does, for operators. */
  readonly doc: string
  /** Whether the value is held as `Redacted` and masked wherever it is shown. */
  readonly secret: boolean
  /** Whether the value is one or several paths of files. */
  readonly isPath?: boolean | undefined
  /**
   * Returns the typed value, or fails with a sentence without subject that does not quote the value. It coerces
   * nothing.
   */
  readonly read: (raw: unknown) => Result.Result<unknown, string>
}

const factsId = "acme/engine/config/Facts"
const namesId = "acme/engine/config/Names"

/** {@link Facts.read} with the type of its result. */
type Read<A> = (raw: unknown) => Result.Result<A, string>

/** The schema of a key. It only decodes, and its input is a raw value, whatever the type of the key is. */
type Key<A> = Schema.Codec<A, unknown>

const key = <A>(facts: Omit<Facts, "read" | "secret">, read: Read<A>, secret = false): Key<A> =>
  Schema.declareConstructor<A, unknown>()(
    [],
    () => (raw, _, options) =>
      Effect.fromResult(
        Result.mapError(read(raw), (message) => new SchemaIssue.InvalidValue({ message }, raw, options))
      ),
    { [factsId]: { ...facts, read, secret } }
  )

const readText = (form: Form): Read<string> => (raw) => {
  if (typeof raw !== "string") return Result.fail("must be a string")
  const text = form.isTrimmed === true ? raw.trim() : raw
  const fault = form.fault(text)
  return fault === undefined ? Result.succeed(text) : Result.fail(fault)
}

/** A string of a certain form. */
export const text = (initial: string, form: Form, doc: string): Key<string> =>
  key({ kind: "string", rule: form.says, default: initial, doc, isPath: form.isPath }, readText(form))

/** A string of a certain form that is never printed whole. */
export const secret = (initial: string, form: Form, doc: string): Key<Redacted.Redacted<string>> =>
  key(
    { kind: "string", rule: form.says, default: initial, doc },
    (raw) => Result.map(readText(form)(raw), Redacted.make),
    true
  )

// A date can still represent the current time plus this number of seconds, and minus this number of days.
const largest = 2_147_483_647

const readInteger = (min: number, max: number | undefined): Read<number> => (raw) => {
  if (typeof raw !== "bigint") return Result.fail("must be an integer")
  if (raw >= min && raw <= (max ?? largest)) return Result.succeed(Number(raw))
  return Result.fail(max === undefined && raw < min ? `must be at least ${min}` : `must be ${min} to ${max ?? largest}`)
}

/** An integer within a range; without `max`, the largest value is 2^31 - 1. */
export const integer = (
  initial: number,
  { max, min }: { readonly min: number; readonly max?: number },
  doc: string
): Key<number> => {
  const rule = max === undefined ? `at least ${min}` : `${min} to ${max}`
  return key({ kind: "integer", rule, default: BigInt(initial), doc }, readInteger(min, max))
}

/** A duration or other count, at least 1. */
export const count = (initial: number, doc: string): Key<number> => integer(initial, { min: 1 }, doc)

/** A duration in milliseconds that a timer can wait. */
export const milliseconds = (initial: number, doc: string): Key<number> =>
  integer(initial, { min: 1, max: largest }, doc)

/** A duration in milliseconds that may be left unset. Its value then depends on other keys. */
export const unsetMilliseconds = (doc: string): Key<number | undefined> => {
  const read = readInteger(1, largest)
  const rule = `1 to ${largest}`
  return key(
    { kind: "integer", rule, default: undefined, doc },
    (raw) => raw === undefined ? Result.succeed(raw) : read(raw)
  )
}

/** A port to connect to. */
export const port = (initial: number, doc: string): Key<number> => integer(initial, { min: 1, max: 65535 }, doc)

/** A boolean. */
export const flag = (initial: boolean, doc: string): Key<boolean> =>
  key(
    { kind: "boolean", rule: "", default: initial, doc },
    (raw) => typeof raw === "boolean" ? Result.succeed(raw) : Result.fail("must be true or false")
  )

/** A closed vocabulary: the words that this build offers, and the words that it knows but does not offer. */
export interface Words<W extends string> {
  readonly offered: ReadonlyArray<W>
  readonly unoffered?: ReadonlyArray<string>
}

const quoted = (words: ReadonlyArray<string>): string => words.map((word) => `"${word}"`).join(", ")

const known = (words: Words<string>): ReadonlyArray<string> => [...words.offered, ...words.unoffered ?? []]

/** Quotes a value that is not one of the words, unless it may be a secret. */
const insteadOf = (raw: unknown): string => {
  const shown = typeof raw === "string" ? quoteOf(raw) : undefined
  return shown === undefined ? "" : `, and not ${shown}`
}

const readWord = <W extends string>(words: Words<W>): Read<W> => (raw) => {
  const word = words.offered.find((offered) => offered === raw)
  if (word !== undefined) return Result.succeed(word)
  const unoffered = words.unoffered?.find((other) => other === raw)
  if (unoffered === undefined) return Result.fail(`must be one of ${quoted(known(words))}${insteadOf(raw)}`)
  return Result.fail(`"${unoffered}" is not offered by this build, which offers ${quoted(words.offered)}`)
}

const coded = (words: ReadonlyArray<string>): string =>
  words.map((word) => word === "" ? "empty" : `\`${word}\``).join(", ")

const wordRule = ({ offered, unoffered = [] }: Words<string>): string =>
  coded(offered) + (unoffered.length === 0 ? "" : ` (not offered by this build: ${coded(unoffered)})`)

/** One word of a closed vocabulary. */
export const word = <const W extends string>(
  initial: NoInfer<W>,
  words: Words<W>,
  doc: string
): Key<W> => key({ kind: "string", rule: `one of ${wordRule(words)}`, default: initial, doc }, readWord(words))

/**
 * One word of a closed vocabulary. It may be written in any case, and its value is in lower case. An unset key has the
 * empty text, which a rule can then refuse.
 */
export const choice = <const W extends string>(offered: ReadonlyArray<W>, doc: string): Key<W | ""> => {
  const read = readWord({ offered })
  return key<W | "">(
    { kind: "string", rule: `one of ${coded(offered)}`, default: "", doc },
    (raw) => raw === "" ? Result.succeed("") : read(typeof raw === "string" ? raw.toLowerCase() : raw)
  )
}

const readItems = <A>(read: Read<A>): Read<ReadonlyArray<A>> => (raw) => {
  if (!Array.isArray(raw)) return Result.fail("must be an array of strings, in brackets even if it is one")
  const items = raw.map((item: unknown, index) =>
    Result.mapError(read(item), (message) => `entry ${index + 1} ${message}`)
  )
  const faults = items.filter(Result.isFailure).map(({ failure }) => failure)
  return faults.length > 0
    ? Result.fail(faults.join("; "))
    : Result.succeed(items.filter(Result.isSuccess).map(({ success }) => success))
}

/** An array of strings of one form. */
export const texts = (
  initial: ReadonlyArray<string>,
  form: Form,
  doc: string
): Key<ReadonlyArray<string>> =>
  key({ kind: "array", rule: form.says, default: initial, doc, isPath: form.isPath }, readItems(readText(form)))

/** An array of strings of one form. Each string may be a secret, so none of the strings is ever printed. */
export const secrets = (
  initial: ReadonlyArray<string>,
  form: Form,
  doc: string
): Key<Redacted.Redacted<ReadonlyArray<string>>> =>
  key(
    { kind: "array", rule: form.says, default: initial, doc },
    (raw) => Result.map(readItems(readText(form))(raw), (items) => Redacted.make(items)),
    true
  )

/** A non-empty array of different words of a closed vocabulary. */
export const words = <const W extends string>(
  initial: ReadonlyArray<NoInfer<W>>,
  vocabulary: Words<W>,
  doc: string
): Key<ReadonlyArray<W>> =>
  key(
    { kind: "array", rule: `at least one of ${wordRule(vocabulary)}`, default: initial, doc },
    (raw) =>
      Result.flatMap(readItems(readWord(vocabulary))(raw), (items) => {
        if (items.length === 0) return Result.fail(`must name at least one of ${quoted(known(vocabulary))}`)
        return distinct(items)
      })
  )

const distinct = <A>(items: ReadonlyArray<A>): Result.Result<ReadonlyArray<A>, string> =>
  new Set(items).size < items.length ? Result.fail("must not name the same word twice") : Result.succeed(items)

/** An array of different words of a closed vocabulary; empty by default unless `initial` is given. */
export const someWords = <const W extends string>(
  offered: ReadonlyArray<W>,
  doc: string,
  initial: ReadonlyArray<NoInfer<W>> = []
): Key<ReadonlyArray<W>> =>
  key(
    { kind: "array", rule: `any of ${coded(offered)}`, default: initial, doc },
    (raw) => Result.flatMap(readItems(readWord({ offered }))(raw), distinct)
  )

/** The rules for the names of a named table's entries. */
export interface Names {
  /** Returns the entry name that a segment of a variable's name stands for. */
  readonly fold: (segment: string) => string
  /** Returns what is wrong with the name, or `undefined`. */
  readonly fault: (name: string) => string | undefined
  /**
   * The noun for an entry in messages, if entries inherit unset keys from the process-wide section of the same name.
   */
  readonly inheritsAs?: string
}

/** A table of named entries of one shape, such as `places.<name>`. */
export const entries = <A, I>(
  names: Names,
  entry: Schema.Codec<A, I>
): Schema.Codec<{ readonly [name: string]: A }, { readonly [name: string]: I }> =>
  Schema.Record(Schema.String, entry).annotate({ [namesId]: names })

/** One node of the table of keys: a key, a section, or a table of named entries. */
export type Node =
  | { readonly _tag: "Key"; readonly facts: Facts }
  | { readonly _tag: "Section"; readonly fields: ReadonlyMap<string, Node> }
  | { readonly _tag: "Entries"; readonly names: Names; readonly entry: Node }

/** Returns the table that a schema of keys, structs and {@link entries} declares. Throws for any other schema. */
export const nodeOf = (ast: SchemaAST.AST): Node => {
  const facts = SchemaAST.resolveAt<Facts>(factsId)(ast)
  if (facts !== undefined) return { _tag: "Key", facts }
  if (!SchemaAST.isObjects(ast)) throw new Error(`not a table of keys: ${ast._tag}`)
  const names = SchemaAST.resolveAt<Names>(namesId)(ast)
  const [index] = ast.indexSignatures
  if (names !== undefined && index !== undefined) {
    return { _tag: "Entries", names, entry: nodeOf(index.type) }
  }
  return {
    _tag: "Section",
    fields: new Map(ast.propertySignatures.map(({ name, type }) => [String(name), nodeOf(type)]))
  }
}

/** A key with its path. The name of an entry in the path is `<name>`. */
export interface Declared {
  readonly path: ReadonlyArray<string>
  readonly facts: Facts
}

/** Returns every key below a node in the order of declaration, the keys of a section before its sub-sections. */
export const declaredKeys = (node: Node, path: ReadonlyArray<string> = []): ReadonlyArray<Declared> => {
  if (node._tag === "Key") return [{ path, facts: node.facts }]
  if (node._tag === "Entries") return declaredKeys(node.entry, [...path, "<name>"])
  const fields = [...node.fields].map(([name, child]) => ({ child, keys: declaredKeys(child, [...path, name]) }))
  const [keys, sections] = [true, false].map((isKey) => fields.filter(({ child }) => (child._tag === "Key") === isKey))
  return [...keys ?? [], ...sections ?? []].flatMap((field) => field.keys)
}
