import { textGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckConfig } from "./Check.ts"
import { passed, refused } from "./Check.ts"
import { listsOf } from "./PolicyLists.ts"

const unasked = refused("there is no kind to judge")

/**
 * Makes a check of type `kinds`, which looks in its lists for the kind of certificate of an order. The deny list is
 * checked first. The refusal calls the kind a profile, because clients know it by that word.
 */
export const kindsCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, textGlob)
  return {
    _tag: "Instant",
    ask: (question) => {
      if (question.stage !== "identifiers") return unasked
      const { kind } = question
      if (deny.matches(kind)) return refused(`the certificate profile ${kind} is denied`)
      if (allow.isEmpty || allow.matches(kind)) return passed
      return refused(`the certificate profile ${kind} is not among those allowed`)
    }
  }
}
