import * as Command from "effect/cli/Command"
import { sessionCommand } from "./AdminSessionCommand.ts"
import { tokenCommand } from "./AdminTokenCommand.ts"
import { userCommand } from "./AdminUserCommand.ts"

/** `admin`: operators, their sessions and their tokens. */
export const adminCommand = Command.make("admin").pipe(
  Command.withDescription("Operators, their tokens and sessions."),
  Command.withSubcommands([userCommand, tokenCommand, sessionCommand])
)
