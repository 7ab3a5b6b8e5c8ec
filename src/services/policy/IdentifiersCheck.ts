import { labelGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckConfig, NamedIdentifier } from "./Check.ts"
import { passed, refused, refusedNames } from "./Check.ts"
import { listsOf } from "./PolicyLists.ts"

const kinds = { dns: "DNS names", cn: "common names of the CSR" }
const noNames = refused("there are no names to judge")

/**
 * Makes a check of type `identifiers`, which every name must pass. The deny list also applies to common names. The
 * allow list does not.
 */
export const identifiersCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, labelGlob)
  const { allow_wildcards, allowed_types } = config
  /** Returns why a name is refused, as the text before the name, or `undefined` if the name passes. */
  const faultOf = ({ type, value }: NamedIdentifier): string | undefined => {
    if (!allowed_types.includes(type)) return `${kinds[type]} are not allowed:`
    if (deny.matches(value)) return type === "cn" ? "denied as a common name of the CSR:" : "denied:"
    if (type !== "dns") return undefined
    if (!allow_wildcards && value.startsWith("*.")) return "wildcards are not allowed:"
    return allow.isEmpty || allow.matches(value) ? undefined : "not allowed:"
  }
  return {
    _tag: "Instant",
    ask: (question) => {
      if (question.stage !== "identifiers") return noNames
      const failing = question.identifiers.flatMap((identifier) => {
        const words = faultOf(identifier)
        return words === undefined ? [] : [{ identifier, words }]
      })
      return failing.length === 0 ? passed : refusedNames(failing)
    }
  }
}
