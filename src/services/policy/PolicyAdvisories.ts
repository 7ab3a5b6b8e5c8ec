import * as Effect from "effect/Effect"
import { emit } from "../../domain/words/Log.ts"
import { isExecutable } from "../../engine/host/Files.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { canRefuse } from "./Policies.ts"
import { unusedChecks } from "./PolicyView.ts"

type Scripts = ReadonlyArray<readonly [key: string, path: string]>

/** Returns the programs of a filter's checks, each with the configuration key that names the program. */
export const scriptsOfFilter = (at: string, { check }: Pick<ProfileConfig["filter"], "check">): Scripts =>
  Object.entries(check).flatMap(([name, { script_path, type }]) =>
    type === "custom" ? [[`${at}.check.${name}.script_path`, script_path] as const] : []
  )

/** Returns the programs that a profile's policy would run, by the configuration key that names the program. */
const scriptsOf = ({ filter, ipam }: ProfileConfig): Scripts => [
  ...scriptsOfFilter("filter", filter),
  ...ipam.backend === "custom" ? [["ipam.custom.script_path", ipam.custom.script_path] as const] : []
]

const acceptsAnyCertificate = ({ ipam }: ProfileConfig): boolean =>
  (ipam.backend === "netbox" && ipam.netbox.insecure_skip_verify) ||
  (ipam.backend === "phpipam" && ipam.phpipam.insecure_skip_verify)

/**
 * Warns about checks that no rule of the policy names. `scope` is the profile, or the word for the operators' listener.
 */
export const adviseOfChecks = (scope: string, policy: Pick<ProfileConfig, "filter">): Effect.Effect<void> =>
  Effect.forEach(unusedChecks(policy), (check) => emit("filter_check_unused", { profile: scope, check }), {
    discard: true
  })

/** Logs what an operator should know about the policies in force. This happens once, at startup. */
export const advise = (profiles: ReadonlyArray<ProfileConfig>): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (const profile of profiles) {
      const { name } = profile
      if (!canRefuse(profile.filter)) yield* emit("filter_disabled", { profile: name })
      yield* adviseOfChecks(name, profile)
      if (acceptsAnyCertificate(profile)) yield* emit("ipam_tls_verification_disabled", { profile: name })
      for (const [key, path] of scriptsOf(profile)) {
        if (yield* isExecutable(path)) continue
        yield* emit("script_not_executable", { key: `profiles.${name}.${key}`, path })
      }
    }
  })
