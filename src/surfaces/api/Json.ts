import { Either } from "effect"

/* Bodies: JSON whose members are each there once. */

/** Strings and marks. In a text that is no JSON a string may have no end, and looking for it from each quote takes too long. */
const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g

/** The deepest nesting of a body: nothing that operators send is deeper. */
const deepest = 32

/** What is wrong with the nesting or the members of a text that is valid JSON. */
const faultOf = (json: string): string | undefined => {
  const open: Array<Set<string> | undefined> = []
  let last = ""
  for (const [found] of json.matchAll(token)) {
    if (found === "{" || found === "[") {
      if (open.push(found === "{" ? new Set() : undefined) > deepest) return "The body is nested too deeply."
    } else if (found === "}" || found === "]") open.pop()
    else if (found === ":") {
      const name = String(JSON.parse(last))
      const members = open.at(-1)
      if (members?.has(name)) return `The member ${name.slice(0, 64)} is there twice.`
      members?.add(name)
    }
    last = found
  }
  return undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

/** Reads a body; the sentence says what is wrong with it and quotes nothing but the name of a member. */
export const readJson = (octets: Uint8Array): Either.Either<unknown, string> =>
  Either.gen(function*() {
    const text = yield* Either.try({ try: () => utf8.decode(octets), catch: () => "The body is not UTF-8 text." })
    // First of all: only a text that is JSON is looked at any further.
    const value = yield* Either.try({ try: (): unknown => JSON.parse(text), catch: () => "The body is not JSON." })
    const fault = faultOf(text)
    return fault === undefined ? value : yield* Either.left(fault)
  })
