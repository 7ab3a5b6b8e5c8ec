import { pathGlob } from "../../domain/policy/Glob.ts"
import type { Check, CheckConfig } from "./Check.ts"
import { passed, refused } from "./Check.ts"
import { listsOf } from "./Lists.ts"

const denied = refused("the path is not allowed")

/** `path`: globs over the path of the request, deny first. */
export const pathCheck = (config: CheckConfig): Check => {
  const { allow, deny } = listsOf(config, pathGlob)
  return {
    _tag: "Instant",
    ask: (question) => {
      if (question.stage !== "connection") return denied
      const { path } = question
      return !deny.matches(path) && (allow.isEmpty || allow.matches(path)) ? passed : denied
    }
  }
}
