import { RE2JS, RE2JSSyntaxException } from "re2js"
import type { Compiled } from "./Glob.ts"

/**
 * A regular expression that has to match the whole text, in any case, on an engine that takes time linear in the text:
 * an expression that the engine does not know, look-around and back-references among them, is a fault.
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
