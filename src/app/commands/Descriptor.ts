import * as Command from "effect/cli/Command"
import * as Param from "effect/cli/Param"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { CommandNode, Flag } from "../../surfaces/cli/CommandTree.ts"
import { describedBy } from "../../surfaces/cli/CommandTree.ts"
import type { Given } from "./Usage.ts"

type Config = Command.Command.Config

/**
 * The flags and arguments of a command. The library does not return them, so each command carries them in an
 * annotation.
 */
const Parameters = Context.Reference<Config>("acme/app/commands/Descriptor/Parameters", { defaultValue: () => ({}) })

/** Makes a command from its description (`CommandTree.describedBy`). */
export const command = <const Taken extends Config, E, R>(
  name: string,
  text: string,
  parameters: Taken,
  run: (given: Command.Command.Config.Infer<Taken>) => Effect.Effect<void, E, R>
) =>
  Command.make(name, parameters, run).pipe(
    Command.withDescription(text),
    Command.annotate(Parameters, parameters)
  )

const paramsIn = (config: Config): ReadonlyArray<Param.Any> =>
  Object.values(config).flatMap((one) => Param.isParam(one) ? [one] : paramsIn(one as Config))

const paramsOf = (command: Command.Command.Any): ReadonlyArray<Param.Any> =>
  paramsIn(Context.get(command.annotations, Parameters))

const childrenOf = (command: Command.Command.Any) => command.subcommands.flatMap(({ commands }) => commands)

/**
 * Returns the words that a value may have, if the service itself and not the library checks the value. They are at the
 * end of the description (`ActParameters.ts`), or they are the placeholder of the value.
 */
const knownWords = (text: string, value: string | undefined): ReadonlyArray<string> => {
  const [, listed] = /(?:^|\s)One of ([\w-]+(?:, [\w-]+)+)\.$/.exec(text) ?? []
  if (listed !== undefined) return listed.split(", ")
  return value !== undefined && /^[\w-]+(?:,[\w-]+)+$/.test(value) ? value.split(",") : []
}

const singleOf = (
  { aliases, description, kind, name, primitiveType, typeName }: Param.Single<Param.ParamKind, unknown>
): Flag => {
  const isFlag = kind === "flag"
  const isSwitch = primitiveType._tag === "Boolean"
  const isClosed = primitiveType._tag === "Choice"
  const value = isSwitch ? undefined : typeName ?? (isFlag ? "text" : undefined)
  const text = Option.getOrElse(description, () => "")
  return {
    name: isFlag ? `--${name}` : `<${name}>`,
    aliases: aliases.map((alias) => `-${alias}`),
    value,
    words: isClosed ? value?.split(" | ") ?? [] : knownWords(text, value),
    isClosed,
    isNeeded: true,
    isRepeated: false,
    fallback: undefined,
    text
  }
}

const shown = (fallback: unknown): string | undefined =>
  typeof fallback === "string" || typeof fallback === "number" ? String(fallback) : undefined

/** A flag or an argument, in any of the forms that the library uses. */
type AnyParam =
  | Param.Single<Param.ParamKind, unknown>
  | Param.Map<Param.ParamKind, unknown, unknown>
  | Param.Transform<Param.ParamKind, unknown, unknown>
  | Param.Optional<Param.ParamKind, unknown>
  | Param.Variadic<Param.ParamKind, unknown>

const flagOf = (any: Param.Any): Flag => {
  const param = any as AnyParam
  switch (param._tag) {
    case "Single":
      return singleOf(param)
    case "Optional":
      return { ...flagOf(param.param), isNeeded: false }
    case "Variadic":
      return { ...flagOf(param.param), isNeeded: Option.exists(param.min, (min) => min > 0), isRepeated: true }
    case "Map": {
      const flag = flagOf(param.param)
      // The library represents a flag with a default as a mapped, optional flag.
      return param.param._tag === "Optional" ? { ...flag, fallback: shown(param.f(Option.none())) } : flag
    }
    case "Transform":
      return flagOf(param.param)
  }
}

/** Returns a command tree as data. */
export const commandTree = (command: Command.Command.Any, above: ReadonlyArray<string> = []): CommandNode => {
  const path = [...above, command.name]
  const of = (kind: Param.ParamKind) => paramsOf(command).filter((param) => param.kind === kind).map(flagOf)
  return {
    path,
    ...describedBy(command.description ?? ""),
    flags: of("flag"),
    args: of("argument"),
    children: childrenOf(command).map((child) => commandTree(child, path))
  }
}

/** Returns the faults in the values of all flags. The library would stop at the first fault. */
export const wrongValues = (root: Command.Command.Any, { flags, path }: Given) => {
  const command = path.reduce((at, word) => childrenOf(at).find(({ name }) => name === word) ?? at, root)
  const given = paramsOf(command).filter(({ kind }) => kind === "flag")
  return Effect.map(
    Effect.partition(given, (flag) => flag.parse({ flags, arguments: [] })),
    ([, faults]) => faults.map(({ message }) => message)
  )
}
