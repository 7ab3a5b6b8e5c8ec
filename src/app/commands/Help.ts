import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { CommandNode } from "../../surfaces/cli/CommandTree.ts"
import { renderCompletions, shells } from "../../surfaces/cli/Completions.ts"

/** `completions`: the script by which a shell completes command lines. `tree` is the tree of all commands. */
export const completionsCommand = (tree: Effect.Effect<CommandNode>) =>
  Command.withDescription(
    Command.make(
      "completions",
      {
        shell: Args.choice(shells.map((shell) => [shell, shell] as const), { name: "shell" }).pipe(
          Args.withDescription("Whose script.")
        )
      },
      ({ shell }) => Effect.flatMap(tree, (root) => Console.log(renderCompletions(root, shell)))
    ),
    "Print the completion script of a shell; it needs no configuration and no database. Example: source <(acme-svc completions bash). Exit codes: 0, 2."
  )

/** `help`: the help page of a command, like `--help` after the command. `show` prints the page of the given words. */
export const helpCommand = <E, R>(show: (words: ReadonlyArray<string>) => Effect.Effect<void, E, R>) =>
  Command.withDescription(
    Command.make(
      "help",
      {
        command: Args.text({ name: "command" }).pipe(
          Args.repeated,
          Args.withDescription("The words of a command. Without them, every command.")
        )
      },
      ({ command }) => show(command)
    ),
    "Print what a command does, and its flags and arguments. Example: acme-svc help order list. Exit codes: 0, 2."
  )
