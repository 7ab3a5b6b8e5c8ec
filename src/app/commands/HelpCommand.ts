import * as Argument from "effect/cli/Argument"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { CommandNode } from "../../surfaces/cli/CommandTree.ts"
import { renderCompletions, shells } from "../../surfaces/cli/Completions.ts"
import type { Sections } from "../../surfaces/cli/HelpPage.ts"
import { renderManPage } from "../../surfaces/cli/ManPage.ts"
import { Host } from "../Host.ts"
import { command } from "./Descriptor.ts"
import { choiceArgument } from "./Flags.ts"

/** `completions`: the script that completes command lines in a shell. `tree` is the tree of all commands. */
export const completionsCommand = (tree: Effect.Effect<CommandNode>) =>
  command(
    "completions",
    "Print the completion script of a shell; it needs no configuration and no database. Example: source <(acme-svc completions bash). Exit codes: 0, 2.",
    {
      shell: choiceArgument("shell", shells).pipe(
        Argument.withDescription("Whose script.")
      )
    },
    ({ shell }) => Effect.flatMap(tree, (root) => Console.log(renderCompletions(root, shell)))
  )

/** `man`: the manual page. `tree` is the tree of all commands, and `sections` gives their order. */
export const manCommand = (tree: Effect.Effect<CommandNode>, sections: Sections) =>
  command(
    "man",
    "Print the manual page, as roff; it needs no configuration and no database. Example: acme-svc man. Exit codes: 0, 2.",
    {},
    () =>
      Effect.flatMap(Host, ({ process: { version } }) =>
        Effect.flatMap(tree, (root) =>
          Console.log(renderManPage(root, sections, { version, day: "" }))))
  )

/**
 * `help`: the help page of a command, the same as with `--help` after the command. `show` prints the page for the given
 * words.
 */
export const helpCommand = <E, R>(show: (words: ReadonlyArray<string>) => Effect.Effect<void, E, R>) =>
  command(
    "help",
    "Print what a command does, and its flags and arguments. Example: acme-svc help order list. Exit codes: 0, 2.",
    {
      command: Argument.String("command").pipe(
        Argument.variadic(),
        Argument.withDescription("The words of a command. Without them, every command.")
      )
    },
    ({ command: words }) => show(words)
  )
