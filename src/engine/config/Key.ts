import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import type { Form } from "./ValueForm.ts"
import { quoteOf } from "./ValueForm.ts"

/** The TOML type of a value in the file. The form of the value in an environment variable follows from it. */
export type Kind = "string" | "integer" | "integerOrWord" | "boolean" | "array"

/**
 * A raw value, before {@link Facts.read}. Integers are `bigint`, so that `5.0` in the file stays a float. If a key may
 * be unset, its default is `undefined`.
 */
export type Default = string | bigint | boolean | ReadonlyArray<string> | undefined

/** All facts about one key. The schema of the key carries them in an annotation. */
export interface Facts {
  readonly kind: Kind
  /** The type and range in words, for the reference. */
  readonly rule: string
  readonly default: Default
  /** What the key does, for operators. */
  readonly doc: string
  /** Whether the value is kept as `Redacted`, and masked wherever it is shown. */
  readonly secret: boolean
  /** Whether the value is the path of a file, or several such paths. */
  readonly isPath?: boolean | undefined
  /**
   * Returns the typed value. Fails with a sentence that has no subject and does not quote the value. No value is
   * converted from another type.
   */
  readonly read: (raw: unknown) => Result.Result<unknown, string>
}

const factsId = "acme/engine/config/Facts"
const namesId = "acme/engine/config/Names"

/** {@link Facts.read} with the type of its result. */
type Read<A> = (raw: unknown) => Result.Result<A, string>

/** The schema of a key. It can only decode. Its input is a raw value, whatever the type of the key is. */
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

/** A string of a certain form that is never printed as a whole. */
export const secret = (initial: string, form: Form, doc: string): Key<Redacted.Redacted<string>> =>
  key(
    { kind: "string", rule: form.says, default: initial, doc },
    (raw) => Result.map(readText(form)(raw), Redacted.make),
    true
  )

// The largest integer. A date can still represent the current time plus this number of seconds, and minus this number
// of days.
const largest = 2_147_483_647

const readInteger = (min: number, max: number | undefined): Read<number> => (raw) => {
  if (typeof raw !== "bigint") return Result.fail("must be an integer")
  if (raw >= min && raw <= (max ?? largest)) return Result.succeed(Number(raw))
  return Result.fail(max === undefined && raw < min ? `must be at least ${min}` : `must be ${min} to ${max ?? largest}`)
}

/** An integer within a range. Without `max`, the highest value is 2^31 - 1. */
export const integer = (
  initial: number,
  { max, min }: { readonly min: number; readonly max?: number },
  doc: string
): Key<number> => {
  const rule = max === undefined ? `at least ${min}` : `${min} to ${max}`
  return key({ kind: "integer", rule, default: BigInt(initial), doc }, readInteger(min, max))
}

/** A duration or another number that must be at least 1. */
export const count = (initial: number, doc: string): Key<number> => integer(initial, { min: 1 }, doc)

/** An integer within a range, or one word. */
export const integerOr = <const W extends string>(
  word: W,
  initial: number,
  { max, min }: { readonly min: number; readonly max: number },
  doc: string
): Key<number | W> => {
  const read = readInteger(min, max)
  const rule = `integer, ${min} to ${max}, or \`"${word}"\``
  return key<number | W>({ kind: "integerOrWord", rule, default: BigInt(initial), doc }, (raw) =>
    raw === word
      ? Result.succeed(word)
      : Result.mapError(read(raw), () => `must be an integer, ${min} to ${max}, or "${word}"${insteadOf(raw)}`))
}

/** A duration in milliseconds that is not too long for a timer. */
export const milliseconds = (initial: number, doc: string): Key<number> =>
  integer(initial, { min: 1, max: largest }, doc)

/** A duration in milliseconds that may be left unset. If it is unset, other keys determine the value. */
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

/** A closed vocabulary: the words that this build offers, and words that this build knows but does not offer. */
export interface Words<W extends string> {
  readonly offered: ReadonlyArray<W>
  readonly unoffered?: ReadonlyArray<string>
}

const quoted = (words: ReadonlyArray<string>): string => words.map((word) => `"${word}"`).join(", ")

const known = (words: Words<string>): ReadonlyArray<string> => [...words.offered, ...words.unoffered ?? []]

/** Quotes a value that is not one of the words, unless the value may be a secret. */
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
 * One word of a closed vocabulary. It may be written in upper or lower case, and its value is in lower case. If the key
 * is unset, its value is the empty text, which a rule can then refuse.
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

/** An array of strings of one form. Each string may be a secret, so none of them is ever printed. */
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

/** An array of different strings of one form. It must not be empty, unless `mayBeEmpty` is true. */
export const distinctTexts = (
  initial: ReadonlyArray<string>,
  form: Form,
  doc: string,
  mayBeEmpty = false
): Key<ReadonlyArray<string>> =>
  key(
    { kind: "array", rule: form.says, default: initial, doc },
    (raw) =>
      Result.flatMap(readItems(readText(form))(raw), (items) =>
        items.length === 0 && !mayBeEmpty ? Result.fail("must not be empty") : distinct(items))
  )

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
  /** Returns the name of the entry that a part of a variable's name stands for. */
  readonly fold: (segment: string) => string
  /** Returns what is wrong with the name, or `undefined` if nothing is wrong. */
  readonly fault: (name: string) => string | undefined
  /**
   * The word for an entry in messages. Present if entries inherit unset keys from the process-wide section of the same
   * name.
   */
  readonly inheritsAs?: string
}

/** A table of named entries that all have the same shape, such as `places.<name>`. */
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

/**
 * Returns the table that a schema declares. The schema may consist of keys, structs and {@link entries}. Throws if it
 * contains anything else.
 */
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

/** A key with its path. In the path, `<name>` stands for the name of an entry. */
export interface Declared {
  readonly path: ReadonlyArray<string>
  readonly facts: Facts
}

/** Returns every key below a node, in the order of declaration. The keys of a section come before its sub-sections. */
export const declaredKeys = (node: Node, path: ReadonlyArray<string> = []): ReadonlyArray<Declared> => {
  if (node._tag === "Key") return [{ path, facts: node.facts }]
  if (node._tag === "Entries") return declaredKeys(node.entry, [...path, "<name>"])
  const fields = [...node.fields].map(([name, child]) => ({ child, keys: declaredKeys(child, [...path, name]) }))
  const [keys, sections] = [true, false].map((isKey) => fields.filter(({ child }) => (child._tag === "Key") === isKey))
  return [...keys ?? [], ...sections ?? []].flatMap((field) => field.keys)
}
