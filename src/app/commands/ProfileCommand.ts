import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { renderProfiles } from "../../surfaces/cli/ProfileText.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption } from "./Flags.ts"

const listCommand = command(
  "list",
  "List the configured endpoints. Example: acme-svc profile list --json. Exit codes: 0, 3.",
  { json: jsonOption },
  ({ json }) => Effect.flatMap(Settings.loaded, ({ config }) => Console.log(renderProfiles(config, json)))
)

/** `profile`: the endpoints. */
export const profileCommand = Command.make("profile").pipe(
  Command.withDescription("ACME endpoints."),
  Command.withSubcommands([listCommand])
)
