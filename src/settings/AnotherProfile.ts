import { effectiveKeys } from "./Effective.ts"
import type { EffectiveKey } from "./Effective.ts"
import type { Resolved } from "./Resolve.ts"

/* The table of another profile that is like an existing one. */

const hasSecret = ({ isSecret, value }: EffectiveKey): boolean =>
  isSecret || [value].flat().some((one) => typeof one === "string" && one.includes("***"))

const toml = (value: EffectiveKey["value"]): string =>
  Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : JSON.stringify(value)

/**
 * Returns a table of the configuration file that makes a profile like this one, under the name NAME. It has every key
 * that is not at its default. A secret is left out, and a comment says so. Returns undefined if there is no such
 * profile.
 */
export const anotherProfile = (resolved: Pick<Resolved, "config" | "sources">, profile: string): string | undefined => {
  const keys = effectiveKeys(resolved, profile)
  if (keys === undefined) return undefined
  const lines = keys.filter(({ source, value }) => source !== "default" && value !== undefined).map((one) => {
    const key = one.key.slice(`profiles.${profile}.`.length)
    return hasSecret(one) ? `# ${key} is a secret: write it yourself.` : `${key} = ${toml(one.value)}`
  })
  return ["[profiles.NAME]", ...lines].join("\n")
}
