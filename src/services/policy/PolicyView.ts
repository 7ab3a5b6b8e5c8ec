import { renderCondition } from "../../domain/policy/Condition.ts"
import type { Stage } from "../../domain/policy/Stage.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { rulesOf, stagesOfCheck } from "./Policies.ts"

/** A profile's policy in the form that the API and `filter show` return. */
export interface PolicyView {
  readonly profile: string
  /** Whether anything is filtered at this profile. */
  readonly active: boolean
  /** The decision if rules apply but none of them decides. Absent if nothing is filtered. */
  readonly default?: "allow" | "deny"
  readonly checks: ReadonlyArray<
    { readonly name: string; readonly type: string; readonly stages: ReadonlyArray<Stage> }
  >
  /** The rules in the order in which they are tried, with fully parenthesised conditions. */
  readonly rules: ReadonlyArray<{
    readonly name: string
    readonly when: string
    readonly then: "allow" | "deny"
    readonly mode: "enforce" | "warn"
    readonly stages: ReadonlyArray<Stage>
  }>
  readonly warnings: ReadonlyArray<string>
}

/** Returns the checks that no selected rule names. They are not built. */
export const unusedChecks = ({ filter }: Pick<ProfileConfig, "filter">): ReadonlyArray<string> => {
  const used = new Set(rulesOf(filter).flatMap(({ names }) => names))
  return Object.keys(filter.check).filter((name) => !used.has(name))
}

/** Returns the resolved policy of a profile. */
export const viewOf = (profile: ProfileConfig): PolicyView => {
  const { check, default: otherwise, rule, rules } = profile.filter
  const active = rules.length > 0
  const unselected = Object.keys(rule).filter((name) => !rules.includes(name))
  return {
    profile: profile.name,
    active,
    ...(active ? { default: otherwise } : {}),
    checks: Object.entries(check).map(([name, one]) => ({ name, type: one.type, stages: stagesOfCheck(one) })),
    rules: rulesOf(profile.filter).map(({ mode, name, stages, then, when }) => ({
      name,
      when: renderCondition(when),
      then,
      mode,
      stages
    })),
    warnings: [
      ...(active ? [] : ["filter.rules is empty: nothing is filtered"]),
      ...unusedChecks(profile).map((name) => `no rule in force names the check ${name}`),
      ...unselected.map((name) => `filter.rules does not name the rule ${name}`)
    ]
  }
}
