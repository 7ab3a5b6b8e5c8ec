import * as Command from "@effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
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
