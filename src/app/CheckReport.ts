import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { Loaded } from "../settings/Load.ts"
import { escapedLines } from "../surfaces/cli/Escaped.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { advisoriesOf, faultsOf } from "./ConfigCheck.ts"
import { Host } from "./Host.ts"
import * as Logging from "./Logging.ts"
import { withPlaces } from "./Places.ts"

/* What `config check` says about a configuration. */

/** Refuses a configuration that would make startup fail, with a sentence for each fault. */
export const refuseFaults = Effect.fnUntraced(function*(loaded: Loaded) {
  const { process } = yield* Host
  const faults = yield* Effect.provide(faultsOf(loaded.config, process), Logging.quiet(loaded))
  if (faults.length > 0) {
    return yield* new CommandFailed({ code: 3, message: yield* withPlaces(faults.join("\n"), loaded) })
  }
})

/** Prints the advisories of a configuration. */
export const tellAdvisories = Effect.fnUntraced(function*(loaded: Loaded) {
  for (const advisory of yield* advisoriesOf(loaded)) {
    yield* Console.error(`Advisory: ${escapedLines(yield* withPlaces(advisory, loaded))}`)
  }
})

/** Prints that a configuration can be served. */
export const tellServed = ({ config, filePresent, path }: Loaded): Effect.Effect<void> => {
  const served = config.profiles.filter(({ enabled }) => enabled).length
  return Console.log(`${filePresent ? path : "The configuration"} can be served, with ${served} profile(s).`)
}
