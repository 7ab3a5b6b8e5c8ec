import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { everyRole } from "../../domain/Role.ts"
import { health } from "../Health.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { choiceFlag, numberFlag } from "./Flags.ts"

/** `health`: whether a running service is healthy. */
export const healthCommand = command(
  "health",
  "Check whether a running service is healthy. Prints nothing. Example: acme-svc health --role worker. Exit codes: 0 healthy, 1 not.",
  {
    role: choiceFlag("role", everyRole).pipe(
      Flag.withDefault("acme"),
      Flag.withDescription("The role to check.")
    ),
    timeout: numberFlag("timeout-ms", { least: 1, most: 600_000, of: "a number of milliseconds" }).pipe(
      Flag.withDefault(3000),
      Flag.withDescription("How long to wait, in milliseconds.")
    )
  },
  ({ role, timeout }) =>
    Effect.gen(function*() {
      const { process } = yield* Host
      const settings = yield* Settings
      const sections = { acme: settings.forListener("server"), admin: settings.forListener("admin") }
      const config = yield* role === "worker" ? settings.forRecords : sections[role]
      yield* Effect.provide(health(config, process.version, role, timeout), Logging.quiet({ config }))
    })
)
