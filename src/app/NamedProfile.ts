import * as Effect from "effect/Effect"
import { withPlace } from "../engine/config/ConfigRefused.ts"
import type { ProfileConfig } from "../settings/AppConfig.ts"
import type { Loaded } from "../settings/Load.ts"
import { CommandFailed } from "./CommandFailed.ts"

/** Returns the names of profiles, for a refusal. */
const namesOf = (profiles: ReadonlyArray<Pick<ProfileConfig, "name">>): string =>
  profiles.map(({ name }) => name).join(", ")

/**
 * Returns the profile that a command names. If the command names none, returns the only profile, or fails with code 2
 * if there are several. `flag` is where the command line names the profile. Fails with code 3 if the profile is parked
 * and has faults, although the service tolerates such faults.
 */
export const namedProfile = (
  { config: { profiles }, ignored }: Pick<Loaded, "config" | "ignored">,
  name: string | undefined,
  flag = "--profile"
): Effect.Effect<ProfileConfig, CommandFailed> => {
  const [only, ...more] = profiles
  if (name === undefined && (only === undefined || more.length > 0)) {
    return new CommandFailed({
      code: 2,
      message: `${flag} is needed, because there are several profiles: ${namesOf(profiles)}.`
    })
  }
  const found = profiles.find((profile) => name === undefined || profile.name === name)
  if (found === undefined) {
    return new CommandFailed({
      code: 3,
      message: `${flag}: ${name} is not configured; there is ${namesOf(profiles)}.`
    })
  }
  // The service tolerates faults in process-wide keys if only parked profiles inherit these keys.
  const faults = found.enabled ? [] : ignored.filter(({ key }) => {
    const [section, owner] = key.split(".")
    return section === "profiles" ? owner === found.name : section !== undefined && Object.hasOwn(found, section)
  })
  return faults.length === 0 ? Effect.succeed(found) : new CommandFailed({
    code: 3,
    message: [
      `Profile ${found.name} is parked and cannot be used as it is configured:`,
      ...faults.map(({ key, message, place }) => `  ${withPlace(`${key}: ${message}`, place)}`)
    ].join("\n")
  })
}
