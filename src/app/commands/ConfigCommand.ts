import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { NoSuch } from "../../domain/OperatorError.ts"
import { configKeyObject } from "../../operations/operator/objects/SettingObjects.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { effectiveKeys } from "../../settings/Effective.ts"
import { renderKeys } from "../../surfaces/cli/ConfigurationText.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { refuseFaults, tellAdvisories, tellServed } from "../CheckReport.ts"
import { CommandFailed, refusedFor } from "../CommandFailed.ts"
import * as Logging from "../Logging.ts"
import { tryOnline } from "../OnlineCheck.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, switchFlag } from "./Flags.ts"
import { print } from "./Print.ts"

/**
 * Prints the results of the tries. A failed try is not a fault of the configuration, because a later try may succeed.
 */
const tellTries = Effect.fnUntraced(function*(config: Config) {
  const tries = yield* tryOnline(config)
  yield* Console.log(renderTable(
    ["key", "what", "result", "answer"],
    tries.map(({ answer, key, result, what }) => [key, what, result, answer]),
    tries.length
  ))
  const failed = tries.filter(({ result }) => result === "failed").length
  if (failed > 0) {
    return yield* new CommandFailed({ code: 1, message: `${failed} of ${tries.length} tries failed.` })
  }
})

const checkCommand = command(
  "check",
  "Check the configuration with its files and scripts, as serve does when it starts, and print the advisories; nothing is changed. Example: acme-svc config check --online. Exit codes: 0, 1 something cannot be reached, 3.",
  {
    online: switchFlag(
      "online",
      "Also try the database, ports, name servers, upstreams, inventories, mail servers and receivers, without changing anything there."
    )
  },
  ({ online }) =>
    Effect.gen(function*() {
      const loaded = yield* Settings.loaded
      yield* refuseFaults(loaded)
      yield* tellAdvisories(loaded)
      if (online) yield* Effect.provide(tellTries(loaded.config), Logging.quiet(loaded))
      yield* tellServed(loaded)
    })
)

const showCommand = command(
  "show",
  "Show the keys in force and the source of each; secrets are masked. Example: acme-svc config show --profile web. Exit codes: 0, 3.",
  {
    profile: optionalText(
      "profile",
      "The keys of this profile, with the inherited ones. Without it, the process-wide keys."
    ),
    json: jsonOption
  },
  ({ json, profile }) =>
    Effect.gen(function*() {
      const found = effectiveKeys(yield* Settings.loaded, profile)
      if (found === undefined) return yield* refusedFor(new NoSuch({ noun: "profile", id: profile ?? "" }))
      const items = found.map(configKeyObject)
      yield* print(json, { items, total: items.length, limit: items.length, offset: 0 }, () => renderKeys(items))
    })
)

/** `config`: the configuration on disk. */
export const configCommand = Command.make("config").pipe(
  Command.withDescription("The configuration, as it is on disk."),
  Command.withSubcommands([checkCommand, showCommand])
)
