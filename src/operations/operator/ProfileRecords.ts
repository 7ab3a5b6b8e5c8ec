import * as Effect from "effect/Effect"
import { member } from "../../engine/Members.ts"
import { rfc3339 } from "../../engine/Time.ts"
import { ProfileStates } from "../../services/signing/ProfileStates.ts"
import type { Config } from "../../settings/AppConfig.ts"
import { profileObjects } from "./objects/SettingObjects.ts"

/** Returns the served endpoints. For an endpoint for which no worker can sign, the result contains the reason. */
export const profilesShown = (config: Pick<Config, "profiles" | "server">) =>
  ProfileStates.use(({ of }) =>
    Effect.succeed(
      profileObjects(config).map((profile) => {
        const degraded = of(profile.name)
        return {
          ...profile,
          ...member(
            "degraded",
            degraded && { reason: degraded.trouble, since: rfc3339(degraded.since) }
          )
        }
      })
    )
  )
