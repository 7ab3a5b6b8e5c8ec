import * as Command from "@effect/cli/Command"
import { sessionCommand } from "./AdminSession.ts"
import { tokenCommand } from "./AdminToken.ts"
import { userCommand } from "./AdminUser.ts"

/** `admin`: operators, their sessions and their tokens. */
export const adminCommand = Command.withDescription(
  Command.make("admin").pipe(Command.withSubcommands([userCommand, tokenCommand, sessionCommand])),
  "Operators, their tokens and sessions."
)
