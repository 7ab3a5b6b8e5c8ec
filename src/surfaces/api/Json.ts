import { Either } from "effect"

/* Bodies: JSON whose members are each there once. */

const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g

/** The first member that an object of a valid JSON text has twice. */
const repeated = (text: string): string | undefined => {
  const open: Array<Set<string> | undefined> = []
  let last: string | undefined
  for (const [found] of text.matchAll(token)) {
    if (found === "{") open.push(new Set())
    else if (found === "[") open.push(undefined)
    else if (found === "}" || found === "]") open.pop()
    else if (found === ":" && last !== undefined) {
      const name: unknown = JSON.parse(last)
      const members = open.at(-1)
      if (typeof name !== "string" || members === undefined) continue
      if (members.has(name)) return name
      members.add(name)
    }
    last = found.startsWith("\"") ? found : undefined
  }
  return undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false })

/** The longest nesting of a body: nothing that operators send is deeper. */
const deepest = 32

const depthOf = (text: string): number => {
  let [depth, most] = [0, 0]
  for (const [found] of text.matchAll(token)) {
    if (found === "{" || found === "[") most = Math.max(most, ++depth)
    else if (found === "}" || found === "]") depth--
  }
  return most
}

/** Reads a body; the sentence says what is wrong with it and quotes nothing but the name of a member. */
export const readJson = (octets: Uint8Array): Either.Either<unknown, string> =>
  Either.gen(function*() {
    const text = yield* Either.try({ try: () => utf8.decode(octets), catch: () => "The body is not UTF-8 text." })
    if (depthOf(text) > deepest) return yield* Either.left("The body is nested too deeply.")
    const value = yield* Either.try({ try: (): unknown => JSON.parse(text), catch: () => "The body is not JSON." })
    const twice = repeated(text)
    if (twice !== undefined) return yield* Either.left(`The member ${twice.slice(0, 64)} is there twice.`)
    return value
  })
