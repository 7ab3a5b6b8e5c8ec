import * as Effect from "effect/Effect"
import { NoSuch } from "../../../domain/OperatorError.ts"
import type { EffectiveKey } from "../../../settings/Effective.ts"
import { effectiveKeys } from "../../../settings/Effective.ts"
import type { Resolved } from "../../../settings/Resolve.ts"
import { readConfig } from "../../operator/acts/ConfigurationActs.ts"
import { urlOf } from "../Listing.ts"
import { askedOf } from "../PanelActs.ts"
import { forRole, page } from "../Route.ts"

/* The page about the configuration in force. It shows no secrets. */

const shownText = ({ isSecret, value }: EffectiveKey): string => {
  if (isSecret && (value === "" || value === "***")) return value === "" ? "not set" : "set"
  // The type allows any key without a default, but today only secret keys have no default.
  if (value === undefined) return "not set"
  if (typeof value === "object") return value.join(", ")
  return String(value)
}

/**
 * Returns the table in which the file sets a key: the first table below the prefix, or the prefix itself. Every key has
 * a table.
 */
const tableOf = (key: string, prefix: string): string => {
  const [first = "", ...rest] = key.slice(prefix.length).split(".")
  return rest.length === 0 ? prefix.slice(0, -1) : `${prefix}${first}`
}

/** The words for the source of a value. A default needs no word, because its key is not set anywhere. */
const sourceWords = { default: "", file: "file", env: "environment" } as const

const grouped = (keys: ReadonlyArray<EffectiveKey>, prefix: string) => {
  const tables = new Map<string, Array<object>>()
  for (const one of keys) {
    const name = tableOf(one.key, prefix)
    const row = {
      key: one.key.slice(name.length + 1),
      text: shownText(one),
      source: sourceWords[one.source]
    }
    const rows = tables.get(name)
    if (rows === undefined) tables.set(name, [row])
    else rows.push(row)
  }
  return [...tables].map(([name, rows]) => ({ name, rows }))
}

/** Returns the route of the page about the configuration. */
export const configurationRoutes = (resolved: Pick<Resolved, "config" | "sources">) => [
  forRole("viewer")("GET", "/ui/configuration", (given) =>
    Effect.gen(function*() {
      const { profile } = yield* Effect.fromResult(askedOf(readConfig.input, given))
      const keys = effectiveKeys(resolved, profile) ?? (yield* new NoSuch({ noun: "profile", id: profile ?? "" }))
      return page("configuration", profile === undefined ? "Configuration" : `Configuration of ${profile}`, {
        profile: profile ?? "",
        sections: grouped(keys, profile === undefined ? "" : `profiles.${profile}.`),
        count: keys.length,
        places: [undefined, ...resolved.config.profiles.map(({ name }) => name)].map((one) => ({
          word: one ?? "service",
          url: urlOf("/ui/configuration", { profile: one }),
          isCurrent: one === profile
        }))
      })
    }))
]
