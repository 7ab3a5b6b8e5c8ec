import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Effect from "effect/Effect"
import { everyRole } from "../../domain/Role.ts"
import { health } from "../Health.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { Settings } from "../Settings.ts"
import { numberFlag } from "./Flags.ts"

/** `health`: whether a running service is healthy. */
export const healthCommand = Command.withDescription(
  Command.make(
    "health",
    {
      role: Options.choice("role", everyRole).pipe(
        Options.withDefault("acme" as const),
        Options.withDescription("The role to check.")
      ),
      timeout: numberFlag("timeout-ms", { least: 1, most: 600_000, of: "a number of milliseconds" }).pipe(
        Options.withDefault(3000),
        Options.withDescription("How long to wait, in milliseconds.")
      )
    },
    ({ role, timeout }) =>
      Effect.gen(function*() {
        const { process } = yield* Host
        const loaded = yield* Settings.loaded
        yield* Effect.provide(health(loaded.config, process.version, role, timeout), Logging.quiet(loaded))
      })
  ),
  "Check whether a running service is healthy. Prints nothing. Example: acme-svc health --role worker. Exit codes: 0 healthy, 1 not."
)
