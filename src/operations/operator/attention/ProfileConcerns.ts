import * as Effect from "effect/Effect"
import type { Config } from "../../../settings/AppConfig.ts"
import { degradedShown } from "../../ProfileHealth.ts"
import { concern } from "./Concern.ts"

/* What profiles need attention for. */

const wayTo = (profile: string) => ({
  label: "Show the profile",
  path: `/ui/profiles#${encodeURIComponent(profile)}`,
  command: "profile list"
})

/** Returns the concerns about the served profiles. */
export const profileConcerns = ({ profiles }: Pick<Config, "profiles">) =>
  Effect.map(degradedShown, (degraded) =>
    profiles.filter(({ enabled }) => enabled).flatMap(({ challenge, name }) => {
      const trouble = degraded.get(name)
      return [
        ...trouble === undefined ? [] : [concern("profile_degraded", {
          title: `The profile ${name} issues nothing`,
          effect: "Its clients get no certificate and no renewal.",
          since: trouble.since,
          error: trouble.trouble,
          way: wayTo(name)
        })],
        ...challenge.bypass ?
          [concern("profile_bypasses", {
            title: `The profile ${name} issues without validation`,
            effect: "Every client that reaches it gets a certificate for any name that its policy allows.",
            way: wayTo(name)
          })] :
          []
      ]
    }))
