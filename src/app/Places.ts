import * as Effect from "effect/Effect"
import { withPlace } from "../engine/config/ConfigRefused.ts"
import type { Loaded } from "../settings/Load.ts"
import { CommandFailed } from "./CommandFailed.ts"

/*
 * Adds the place in the file to faults that are found outside the configuration itself: in the files, addresses and
 * programs that it names.
 */

/** Matches a sentence that begins with a key or a section, which may be that of a profile. */
const about = /^(?:Profile (?<profile>[a-z0-9-]+): )?(?<key>[a-z0-9_.-]+): /

/** Adds the place in the file to each sentence that begins with a key of the file. */
export const withPlaces = (message: string, { places }: Pick<Loaded, "places">): Effect.Effect<string> =>
  Effect.map(places, (placeOf) =>
    message.split("\n").map((line) => {
      const { key = "", profile } = about.exec(line)?.groups ?? {}
      if (key === "") return line
      return withPlace(line, profile === undefined ? placeOf(key) : placeOf(`profiles.${profile}.${key}`, key))
    }).join("\n"))

/** Adds places to a refusal of the configuration, as {@link withPlaces} does. Other failures stay unchanged. */
export const placing =
  (loaded: Pick<Loaded, "places">) => (error: CommandFailed): Effect.Effect<never, CommandFailed> =>
    error.code === 3
      ? Effect.flatMap(withPlaces(error.message, loaded), (message) => new CommandFailed({ code: 3, message }))
      : Effect.fail(error)
