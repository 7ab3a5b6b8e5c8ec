import { RE2JS, RE2JSSyntaxException } from "re2js"
import type { Compiled } from "./Glob.ts"

/**
 * Compiles a regular expression that must match the whole text. Matching ignores upper and lower case. The time to
 * match grows linearly with the length of the text. Syntax that is not supported, such as look-around and
 * back-references, is a fault.
 */
export const wholeRegex = (pattern: string): Compiled => {
  try {
    const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE)
    return { matches: (text) => compiled.matches(text) }
  } catch (cause) {
    const words = cause instanceof RE2JSSyntaxException ? cause.getDescription() : "unreadable"
    return { fault: `must be regular expressions without look-around and back-references: ${words}` }
  }
}
