import { Command } from "@effect/cli"
import { Console, Effect } from "effect"
import { renderProfiles } from "../../surfaces/cli/Profiles.ts"
import type { Kit } from "./Kit.ts"
import { described, jsonOption } from "./Kit.ts"

const listCommand = ({ load }: Kit) =>
  described(
    Command.make(
      "list",
      { json: jsonOption },
      ({ json }) => Effect.flatMap(load, ({ config }) => Console.log(renderProfiles(config, json)))
    ),
    "List the configured endpoints. Example: acme-svc profile list --json. Exit codes: 0, 3."
  )
/** `profile`: the endpoints. */
export const profileCommand = (kit: Kit) =>
  described(
    Command.make("profile").pipe(Command.withSubcommands([listCommand(kit)])),
    "ACME endpoints."
  )
