import * as Redacted from "effect/Redacted"
import { sectionText } from "../engine/config/Section.ts"
import type { Config } from "./AppConfig.ts"

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Redacted.isRedacted(value) && !Array.isArray(value)

const isSame = (one: unknown, other: unknown): boolean => sectionText({ value: one }) === sectionText({ value: other })

/** Returns the keys below `key` whose values differ. Secrets are compared too. The result contains no values. */
export const differing = (key: string, before: unknown, after: unknown): ReadonlyArray<string> =>
  isSection(before) && isSection(after)
    ? [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
      differing(key === "" ? name : `${key}.${name}`, before[name], after[name])
    )
    : isSame(before, after)
    ? []
    : [key]

const byName = ({ profiles, ...sections }: Omit<Config, "proxyVariables">) => ({
  ...sections,
  profiles: Object.fromEntries(profiles.map(({ name, ...profile }) => [name, profile]))
})

/**
 * Returns the configuration keys that a reload changed. If an inherited key changed in every profile, the process-wide
 * key is named once. If a profile was added or removed, only the profile is named.
 */
export const changedKeys = (before: Config, after: Config): ReadonlyArray<string> => {
  const keys = differing("", byName(before), byName(after))
  const shared = new Set(keys.filter((key) => !key.startsWith("profiles.")))
  return keys.filter((key) => !shared.has(key.replace(/^profiles\.[^.]+\./, "")) || shared.has(key))
}
