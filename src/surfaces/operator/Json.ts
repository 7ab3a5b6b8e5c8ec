import * as Result from "effect/Result"

/* Reads bodies as JSON. An object with two members of the same name is refused. */

/**
 * Matches strings and punctuation in JSON. In any other text a string may have no end, and the search for its end from
 * each quote would take too long.
 */
const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g

/** The deepest nesting of a body. No request of an operator needs more. */
const deepest = 32

/** Returns the fault in the nesting or the members of a text that is valid JSON. */
const faultOf = (json: string): string | undefined => {
  // The names seen so far in each open object. For an array the set stays empty.
  const open: Array<Set<string>> = []
  let last = ""
  for (const [found] of json.matchAll(token)) {
    if (found === "{" || found === "[") {
      if (open.push(new Set()) > deepest) return "The body is nested too deeply."
    } else if (found === "}" || found === "]") open.pop()
    else if (found === ":") {
      const name = String(JSON.parse(last))
      const members = open.at(-1)
      if (members?.has(name)) return `The member ${name.slice(0, 64)} was given twice.`
      members?.add(name)
    }
    last = found
  }
  return undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

/**
 * Reads a body. Fails with a sentence that says what is wrong. The sentence quotes nothing but the name of a member.
 */
export const readJson = (octets: Uint8Array): Result.Result<unknown, string> =>
  Result.gen(function*() {
    const text = yield* Result.try({ try: () => utf8.decode(octets), catch: () => "The body is not UTF-8 text." })
    // This comes first, because all later steps need a text that is JSON.
    const value = yield* Result.try({ try: (): unknown => JSON.parse(text), catch: () => "The body is not JSON." })
    const fault = faultOf(text)
    return fault === undefined ? value : yield* Result.fail(fault)
  })
