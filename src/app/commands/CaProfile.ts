import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { caKeyTypes } from "../../crypto/x509/SelfSigned.ts"
import { Resolver } from "../../engine/net/Resolver.ts"
import type { Web } from "../../engine/net/Web.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { web } from "../Graph.ts"
import { Host } from "../Host.ts"
import * as Logging from "../Logging.ts"
import { namedProfile } from "../NamedProfile.ts"
import { placing } from "../Places.ts"
import { Settings } from "../Settings.ts"
import { choiceFlag, optional, optionalText } from "./Flags.ts"

/* The profile whose CA a command is about. */

export const profileFlag = optionalText("profile", "The profile. Without it, default, or the only one.")

/** Makes the flag for the kind of a new key. */
export const keyTypeFlag = (text: string) => optional(choiceFlag("key-type", caKeyTypes), text)

/** The profile that a command means if it names none and there are several. */
const usualProfile = "default"

/** What a command needs to know about a profile: its name, and `signer.local_ca`. */
export type CaProfile = Pick<ProfileConfig, "name"> & Pick<ProfileConfig["signer"], "local_ca">

/**
 * Runs a command about the CA of a profile. The service need not run, and there need be no database. Refuses a profile
 * with another signer.
 */
export const ofCa = <R>(
  profile: string | undefined,
  program: (profile: CaProfile) => Effect.Effect<void, CommandFailed, R | Web>,
  flag?: string
) =>
  Effect.gen(function*() {
    const loaded = yield* Settings.loaded
    const { config } = loaded
    const { profiles } = config
    const { process: { version } } = yield* Host
    const usual = profiles.some(({ name }) => name === usualProfile) ? usualProfile : undefined
    const { name, signer } = yield* namedProfile(loaded, profile ?? usual, flag)
    if (signer.backend !== "local_ca") {
      return yield* new CommandFailed({
        code: 3,
        message: `Profile ${name} has no CA of its own: its signer.backend is ${signer.backend}.`
      })
    }
    yield* program({ name, local_ca: signer.local_ca }).pipe(
      Effect.catchTag("CommandFailed", placing(loaded)),
      Effect.provide(Logging.quiet(loaded)),
      // The key may be in another server.
      Effect.provide(Layer.provide(web(config, version), Resolver.layer(config.dns.resolver)))
    )
  })
