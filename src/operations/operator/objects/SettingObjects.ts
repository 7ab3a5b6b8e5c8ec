import { sectionText } from "../../../engine/config/Section.ts"
import { member } from "../../../engine/Members.ts"
import type { Config, ProfileConfig } from "../../../settings/AppConfig.ts"
import type { EffectiveKey } from "../../../settings/Effective.ts"

/** One key of the configuration in force. */
export const configKeyObject = ({ isSecret, key, source, value }: EffectiveKey) => ({
  key,
  ...member("value", value),
  source,
  ...(isSecret ? { secret: true } : {})
})

/** An endpoint. `signerShared` lists the other profiles that use the same signer. */
export const profileObject = (
  { profiles, server }: Pick<Config, "profiles" | "server">,
  { challenge, eab, filter, meta, name, signer }: ProfileConfig
) => {
  const backend = sectionText(signer)
  return {
    name,
    directory: `${server.base_url}/profile/${name}/directory`,
    backend: signer.backend,
    challenges: challenge.enabled,
    challengeBypass: challenge.bypass,
    eabEnabled: eab.enabled,
    filterActive: filter.rules.length > 0,
    ...member("termsOfService", meta.terms_of_service === "" ? undefined : meta.terms_of_service),
    signerShared: profiles.filter((other) =>
      other.enabled && other.name !== name && sectionText(other.signer) === backend
    ).map((other) => other.name)
  }
}

/** The endpoints that are served. */
export const profileObjects = (config: Pick<Config, "profiles" | "server">) =>
  config.profiles.filter(({ enabled }) => enabled).map((profile) => profileObject(config, profile))
