import { Command } from "@effect/cli"
import { Console, Effect } from "effect"
import { renderProfiles } from "../../surfaces/cli/Profiles.ts"
import { Settings } from "../Settings.ts"
import { jsonOption } from "./Flags.ts"

const listCommand = Command.withDescription(
  Command.make(
    "list",
    { json: jsonOption },
    ({ json }) => Effect.flatMap(Settings.loaded, ({ config }) => Console.log(renderProfiles(config, json)))
  ),
  "List the configured endpoints. Example: acme-svc profile list --json. Exit codes: 0, 3."
)

/** `profile`: the endpoints. */
export const profileCommand = Command.withDescription(
  Command.make("profile").pipe(Command.withSubcommands([listCommand])),
  "ACME endpoints."
)
