import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { health } from "../Health.ts"
import { numberFlag } from "./Flags.ts"
import type { Kit } from "./Kit.ts"
import { described } from "./Kit.ts"

/** `health`: whether a running service is well. */
export const healthCommand = ({ host, load, quiet }: Kit) =>
  described(
    Command.make(
      "health",
      {
        role: Options.choice("role", ["acme", "worker"]).pipe(
          Options.withDefault("acme" as const),
          Options.withDescription("Whose health.")
        ),
        timeout: numberFlag("timeout-ms", { least: 1, most: 600_000, of: "a number of milliseconds" }).pipe(
          Options.withDefault(3000),
          Options.withDescription("How long to wait.")
        )
      },
      ({ role, timeout }) =>
        Effect.flatMap(
          load,
          (loaded) => Effect.provide(health(loaded.config, host.process.version, role, timeout), quiet(loaded))
        )
    ),
    "Ask a running service whether it is well. Silent. Example: acme-svc health --role worker. Exit codes: 0 well, 1 not."
  )
