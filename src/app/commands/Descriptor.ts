import type { Span } from "@effect/cli"
import type * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import type * as HelpDoc from "@effect/cli/HelpDoc"
import type * as Options from "@effect/cli/Options"
import * as Option from "effect/Option"
import type { CommandNode, Flag } from "../../surfaces/cli/CommandTree.ts"
import { describedBy } from "../../surfaces/cli/CommandTree.ts"

/*
 * The library has no public way to walk a tree of commands. So the shape in which it holds them is declared here. Its
 * version is pinned, and test/app/Usage.test.ts would fail with another one.
 */

/** The kind of a value, as the library holds it. */
interface Primitive {
  readonly _tag: string
  /** The words of a choice. */
  readonly alternatives?: ReadonlyArray<readonly [string, unknown]>
}

interface Single {
  readonly _tag: "Single"
  readonly name: string
  readonly fullName?: string
  readonly placeholder?: string
  readonly aliases?: ReadonlyArray<string>
  readonly primitiveType: Primitive
  readonly description: HelpDoc.HelpDoc
}

/** Flags or arguments. */
type Taking =
  | Single
  | { readonly _tag: "Empty" }
  | { readonly _tag: "Map" | "WithFallback"; readonly options?: Taking; readonly args?: Taking }
  | {
    readonly _tag: "WithDefault"
    readonly options?: Taking
    readonly args?: Taking
    readonly fallback: unknown
  }
  | { readonly _tag: "Both" | "OrElse"; readonly left: Taking; readonly right: Taking }
  | { readonly _tag: "KeyValueMap"; readonly argumentOption: Taking }
  | {
    readonly _tag: "Variadic"
    readonly argumentOption?: Taking
    readonly args?: Taking
    readonly min: Option.Option<number>
  }

type Command =
  | {
    readonly _tag: "Standard"
    readonly name: string
    readonly description: HelpDoc.HelpDoc
    readonly options: Options.Options<unknown>
    readonly args: unknown
  }
  | { readonly _tag: "Map"; readonly command: Command }
  | { readonly _tag: "Subcommands"; readonly parent: Command; readonly children: ReadonlyArray<Command> }

const spanText = (span: Span.Span): string => {
  switch (span._tag) {
    case "Text":
    case "URI":
      return span.value
    case "Sequence":
      return spanText(span.left) + spanText(span.right)
    default:
      return spanText(span.value)
  }
}

const textOf = (doc: HelpDoc.HelpDoc): string => {
  switch (doc._tag) {
    case "Header":
    case "Paragraph":
      return spanText(doc.value)
    case "Sequence":
      return [textOf(doc.left), textOf(doc.right)].filter((text) => text !== "").join(" ")
    default:
      return ""
  }
}

/**
 * The words of a set that is not judged here. They are at the end of a description (`Flags.oneOf`), or they are the
 * value itself.
 */
const knownWords = (text: string, value: string | undefined): ReadonlyArray<string> => {
  const [, listed] = /(?:^|\s)One of ([\w-]+(?:, [\w-]+)+)\.$/.exec(text) ?? []
  if (listed !== undefined) return listed.split(", ")
  return value !== undefined && /^[\w-]+(?:,[\w-]+)+$/.test(value) ? value.split(",") : []
}

const flagOf = (
  { aliases = [], description, fullName, name, placeholder, primitiveType }: Single,
  more: Pick<Flag, "isNeeded" | "isRepeated" | "fallback">
): Flag => {
  const choices = (primitiveType.alternatives ?? []).map(([word]) => word)
  const isSwitch = primitiveType._tag === "Bool"
  const value = choices.length > 0 ? choices.join(" | ") : isSwitch ? undefined : placeholder
  const text = textOf(description)
  return {
    name: fullName ?? name,
    aliases: aliases.map((alias) => `-${alias}`),
    value,
    words: choices.length > 0 ? choices : knownWords(text, value),
    isClosed: choices.length > 0,
    text,
    ...more,
    isNeeded: more.isNeeded && !isSwitch
  }
}

const shown = (fallback: unknown): string | undefined =>
  typeof fallback === "string" || typeof fallback === "number" ? String(fallback) : undefined

const flagsOf = (
  taking: Taking | undefined,
  more: Pick<Flag, "isNeeded" | "isRepeated" | "fallback"> = { isNeeded: true, isRepeated: false, fallback: undefined }
): ReadonlyArray<Flag> => {
  if (taking === undefined) return []
  switch (taking._tag) {
    case "Empty":
      return []
    case "Single":
      return [flagOf(taking, more)]
    case "Both":
      return [...flagsOf(taking.left, more), ...flagsOf(taking.right, more)]
    case "OrElse":
      return [taking.left, taking.right].flatMap((one) => flagsOf(one, { ...more, isNeeded: false }))
    case "KeyValueMap":
      return flagsOf(taking.argumentOption, more)
    case "Variadic": {
      const isNeeded = more.isNeeded && Option.getOrElse(taking.min, () => 0) > 0
      return flagsOf(taking.argumentOption ?? taking.args, { ...more, isRepeated: true, isNeeded })
    }
    case "WithDefault":
      return flagsOf(taking.options ?? taking.args, { ...more, isNeeded: false, fallback: shown(taking.fallback) })
    case "Map":
    case "WithFallback":
      return flagsOf(taking.options ?? taking.args, more)
  }
}

const nodeOf = (command: Command, above: ReadonlyArray<string>): CommandNode => {
  switch (command._tag) {
    case "Map":
      return nodeOf(command.command, above)
    case "Standard":
      return {
        path: [...above, command.name],
        ...describedBy(textOf(command.description)),
        flags: flagsOf(command.options as unknown as Taking),
        args: flagsOf(command.args as Taking),
        children: []
      }
    case "Subcommands": {
      const parent = nodeOf(command.parent, above)
      return { ...parent, children: command.children.map((child) => nodeOf(child, parent.path)) }
    }
  }
}

/** A command tree as data. */
export const commandTree = (command: CommandDescriptor.Command<unknown>): CommandNode =>
  nodeOf(command as unknown as Command, [])
