import { labelGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckConfig, NamedIdentifier } from "./Check.ts"
import { passed, refused, refusedNames } from "./Check.ts"
import { listsOf } from "./Lists.ts"

const noNames = refused("there are no names to judge")

/** `identifiers`: every name must pass; deny covers common names too, allow does not. */
export const identifiersCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, labelGlob)
  const { allow_wildcards, allowed_types } = config
  const passes = ({ type, value }: NamedIdentifier): boolean => {
    if (!allowed_types.includes(type) || deny.matches(value)) return false
    if (type !== "dns") return true
    return (allow_wildcards || !value.startsWith("*.")) && (allow.isEmpty || allow.matches(value))
  }
  return {
    _tag: "Instant",
    ask: (question) => {
      if (question.stage !== "identifiers") return noNames
      const failing = question.identifiers.filter((identifier) => !passes(identifier))
      if (failing.length === 0) return passed
      return refusedNames(failing.map((identifier) => ({ identifier, words: "not allowed:" })))
    }
  }
}
