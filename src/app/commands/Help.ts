import { Args, Command } from "@effect/cli"
import { Console, Effect } from "effect"
import type { CommandNode } from "../../surfaces/cli/CommandTree.ts"
import { renderCompletions, shells } from "../../surfaces/cli/Completions.ts"

/** `completions`: scripts by which a shell completes command lines. `tree` is every command there is. */
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
    "Print the completion script of a shell; it asks neither the configuration nor the database. Example: source <(acme-svc completions bash). Exit codes: 0, 2."
  )

/** `help`: a help page by its command, as `--help` behind it. `show` prints the page that words lead to. */
export const helpCommand = <E, R>(show: (words: ReadonlyArray<string>) => Effect.Effect<void, E, R>) =>
  Command.withDescription(
    Command.make(
      "help",
      {
        command: Args.text({ name: "command" }).pipe(
          Args.repeated,
          Args.withDescription("The words of a command. Every command without it.")
        )
      },
      ({ command }) => show(command)
    ),
    "Say what a command does and takes. Example: acme-svc help order list. Exit codes: 0, 2."
  )
