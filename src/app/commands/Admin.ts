import * as Command from "effect/cli/Command"
import { sessionCommand } from "./AdminSession.ts"
import { tokenCommand } from "./AdminToken.ts"
import { userCommand } from "./AdminUser.ts"

/** `admin`: operators, their sessions and their tokens. */
export const adminCommand = Command.make("admin").pipe(
  Command.withDescription("Operators, their tokens and sessions."),
  Command.withSubcommands([userCommand, tokenCommand, sessionCommand])
)
