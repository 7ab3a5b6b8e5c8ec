import * as Effect from "effect/Effect"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { checkTypes } from "../../../domain/policy/CheckType.ts"
import { reservedNames } from "../../../domain/policy/Condition.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { endpointGuide } from "../../../operations/EndpointGuide.ts"
import { refusalsByRule } from "../../../operations/operator/PolicyRefusals.ts"
import { viewOf } from "../../../services/policy/PolicyView.ts"
import { anotherProfile } from "../../../settings/AnotherProfile.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { Resolved } from "../../../settings/Resolve.ts"
import { listCas } from "../../operator/acts/AuthorityActs.ts"
import { listKinds } from "../../operator/acts/KindActs.ts"
import { explainPolicy, listProfiles } from "../../operator/acts/ProfileActs.ts"
import { readTrends } from "../../operator/acts/ServiceActs.ts"
import { urlOf } from "../Listing.ts"
import { submitted } from "../PanelActs.ts"
import { forRole, page } from "../Route.ts"

const daySeconds = 86_400

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

/** Returns the sums of the last 24 hours. */
const dayOf = (profile: string) =>
  Effect.map(readTrends.run({ profile, range: "24h" }), ({ buckets }) =>
    buckets.reduce(
      (sum, { issued, refused, revoked }) => ({
        issued: sum.issued + issued,
        refused: sum.refused + refused,
        revoked: sum.revoked + revoked
      }),
      { issued: 0, refused: 0, revoked: 0 }
    ))

/** Returns the routes of the pages about profiles. */
export const profileRoutes = (resolved: Pick<Resolved, "config" | "sources">) => {
  const { config } = resolved
  const served = (name: string) =>
    Effect.fromNullishOr(config.profiles.find((one) => one.enabled && one.name === name)).pipe(
      Effect.mapError(() => new NoSuch({ noun: "profile", id: name }))
    )
  return [
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
    forRole("viewer")("GET", "/ui/profiles/{name}", ({ parameters: { name = "" } }) =>
      Effect.gen(function*() {
        const profile = yield* served(name)
        const { items } = yield* listProfiles.run({})
        const { items: cas } = yield* listCas.run({})
        const { items: kinds } = yield* listKinds.run({ profile: name })
        const { clients, root, trustLines } = yield* endpointGuide(profile, config.server.base_url)
        const view = viewOf(profile)
        return page("profile", `Profile ${name}`, {
          profile: items.find((one) => one.name === name),
          day: yield* dayOf(name),
          since: rfc3339((yield* currentSeconds) - daySeconds),
          cas: cas.filter(({ profiles }) => profiles.includes(name)),
          kinds: kinds.map(({ description, isDefault, kind }) => ({ kind, description, isDefault })),
          clients,
          root,
          trust: trustLines.join("\n"),
          rules: view.rules.map((rule) => rule.name),
          otherwise: view.default,
          another: anotherProfile(resolved, name)
        })
      })),
    forRole("operator")(
      "POST",
      "/ui/profiles/{name}/explain",
      (given) => Effect.map(submitted(explainPolicy, given), (told) => page("explained", "The policy", { told }))
    ),
    forRole("viewer")("GET", "/ui/profiles/{name}/filter", ({ parameters: { name = "" } }) =>
      Effect.gen(function*() {
        const profile = yield* served(name)
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
}
