import { shownName } from "../../crypto/Character.ts"
import { pathGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckConfig } from "./Check.ts"
import { passed, refused } from "./Check.ts"
import { listsOf } from "./PolicyLists.ts"

const unasked = refused("there is no path to judge")

/**
 * Makes a check of type `path`, which looks in its lists for the path of the request. The deny list is checked first.
 */
export const pathCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, pathGlob)
  return {
    _tag: "Instant",
    ask: (question) => {
      if (question.stage !== "connection") return unasked
      const { path } = question
      if (deny.matches(path)) return refused(`the path ${shownName(path)} is denied`)
      if (allow.isEmpty || allow.matches(path)) return passed
      return refused(`the path ${shownName(path)} is not among those allowed`)
    }
  }
}
