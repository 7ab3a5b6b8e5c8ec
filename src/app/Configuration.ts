import { Effect } from "effect"
import type { Loaded } from "../settings/Load.ts"
import { loadConfig } from "../settings/Load.ts"
import { CommandFailed } from "./CommandFailed.ts"

/** The variables of the process. */
export type Environment = { readonly [name: string]: string | undefined }

/** Reads the configuration; every fault at once, exit 3. */
export const load = (env: Environment, cwd: string): Effect.Effect<Loaded, CommandFailed> =>
  Effect.mapError(loadConfig({ env, cwd }), ({ message }) => new CommandFailed({ code: 3, message }))
