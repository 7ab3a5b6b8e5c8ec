import * as Effect from "effect/Effect"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { checkTypes } from "../../../domain/policy/CheckType.ts"
import { reservedNames } from "../../../domain/policy/Condition.ts"
import { rfc3339 } from "../../../engine/Time.ts"
import { refusalsByRule } from "../../../operations/operator/PolicyRefusals.ts"
import { viewOf } from "../../../services/policy/PolicyView.ts"
import type { Config, ProfileConfig } from "../../../settings/AppConfig.ts"
import { listProfiles } from "../../operator/acts/ProfileActs.ts"
import { urlOf } from "../Listing.ts"
import { forRole, page } from "../Route.ts"

/* The pages about the served endpoints and their policies. */

/**
 * Returns the words of a condition. Each name of a check is a link to that check. `gap` says that a space precedes the
 * word.
 */
const wordsOf = (when: string) =>
  (when.match(/[()]|[^() ]+/g) ?? []).map((text, index, all) => ({
    text,
    gap: index > 0 && text !== ")" && all[index - 1] !== "(",
    isCheck: text !== "(" && text !== ")" && !reservedNames.includes(text)
  }))

/** Returns the keys of a check that have a value, as they are written in the file. */
const settingsOf = (check: ProfileConfig["filter"]["check"][string] | undefined) => {
  if (check === undefined || check.type === "") return []
  const values: { readonly [key: string]: unknown } = { ...check }
  return checkTypes[check.type].keys.flatMap((key) => {
    const value = values[key]
    const text = Array.isArray(value) ? value.join(", ") : String(value ?? "")
    return text === "" ? [] : [{ key, text }]
  })
}

/** Returns the routes of the pages about profiles. */
export const profileRoutes = (config: Config) => [
  forRole("viewer")(
    "GET",
    "/ui/profiles",
    () =>
      Effect.map(listProfiles.run({}), ({ items }) =>
        page("profiles", "Profiles", {
          profiles: items,
          unmounted: config.profiles.filter(({ enabled }) => !enabled).map(({ name }) => name)
        }))
  ),
  forRole("viewer")("GET", "/ui/profiles/{name}/filter", ({ parameters: { name = "" } }) =>
    Effect.gen(function*() {
      const profile = config.profiles.find((one) => one.enabled && one.name === name) ??
        (yield* new NoSuch({ noun: "profile", id: name }))
      const view = viewOf(profile)
      const { counts, isCut, since } = yield* refusalsByRule(name)
      const inForce = new Set(view.rules.map((rule) => rule.name))
      return page("filter", `Policy of ${name}`, {
        profile: name,
        isActive: view.active,
        otherwise: view.default,
        warnings: view.warnings,
        checks: view.checks.map((check) => ({
          ...check,
          asks: checkTypes[check.type as keyof typeof checkTypes].asks,
          settings: settingsOf(profile.filter.check[check.name]),
          rules: view.rules.filter(({ when }) => wordsOf(when).some(({ text }) => text === check.name)).map((rule) =>
            rule.name
          )
        })),
        rules: view.rules.map((rule) => ({
          ...rule,
          words: wordsOf(rule.when),
          refusals: counts.get(rule.name),
          message: profile.filter.rule[rule.name]?.message
        })),
        byDefault: counts.get(""),
        byOthers: [...counts].filter(([rule]) => rule !== "" && !inForce.has(rule)).map(([rule, count]) => ({
          rule,
          count
        })),
        isCut,
        trail: urlOf("/ui/audit", { event: "certificate_issue_failed", profile: name, since: rfc3339(since) })
      })
    }))
]
