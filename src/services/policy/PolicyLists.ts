import type { Compiled, Matches } from "../../domain/policy/Glob.ts"
import { wholeRegex } from "../../domain/policy/Regex.ts"
import type { CheckConfig } from "./Check.ts"

/** The allow list or the deny list of a check, with its globs and regular expressions. */
export interface List {
  readonly isEmpty: boolean
  readonly matches: Matches
}

// All entries compile: a configuration with other entries has already been refused.
const compiled = (entries: ReadonlyArray<string>, compile: (entry: string) => Compiled): ReadonlyArray<Matches> =>
  entries.flatMap((entry) => {
    const { fault, matches } = { matches: undefined, ...compile(entry) }
    return fault === undefined && matches !== undefined ? [matches] : []
  })

const listOf = (members: ReadonlyArray<Matches>): List => ({
  isEmpty: members.length === 0,
  matches: (text) => {
    // This is a loop, because it runs for every rule of every request.
    for (const matches of members) if (matches(text)) return true
    return false
  }
})

/** Returns the allow list and the deny list of a check. */
export const listsOf = (
  config: Pick<CheckConfig, "allow" | "deny" | "allow_regex" | "deny_regex">,
  glob: (entry: string) => Compiled
): { readonly allow: List; readonly deny: List } => ({
  allow: listOf([...compiled(config.allow, glob), ...compiled(config.allow_regex, wholeRegex)]),
  deny: listOf([...compiled(config.deny, glob), ...compiled(config.deny_regex, wholeRegex)])
})
